"""Orders of the fault agent that change notebooks, as agents do that write files through their client."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

from fault_wire import ask, cancelled, say, sessions


def change(session: str, path: str, work: dict) -> dict:
    """Reads a notebook, makes one change of its JSON and writes it. What came of it."""
    file = {"sessionId": session, "path": path}
    answer = ask("fs/read_text_file", file)
    if "error" in answer:
        return {"error": f"{answer['error'].get('data') or answer['error']['message']}"}
    notebook = json.loads(answer["result"]["content"])
    cells = notebook["cells"]
    if work["do"] == "read":
        if work.get("short"):
            return {"length": max(len("".join(cell["source"])) for cell in cells)}
        return {"cells": [(cell["id"], "".join(cell["source"])) for cell in cells]}
    wanted = work.get("id")
    at = next((at for at, cell in enumerate(cells) if wanted is not None and cell["id"] == wanted), None)
    if at is None and "at" in work and cells:
        at = work["at"] % len(cells)
    if "from_end" in work:
        at = len(cells) - 1 - work["from_end"]
    if work["do"] == "insert":
        cell = {
            "cell_type": "code",
            "id": work["new"],
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        cells.insert(0 if at is None else at + 1, {**cell, "source": work["source"]})
        wanted = work["new"]
    elif at is None:
        return {"error": "no such cell"}
    else:
        wanted = cells[at]["id"]
        if wanted in work.get("spare", []):
            return {"error": "spared"}
        if work["do"] == "edit":
            before = "".join(cells[at]["source"])
            cells[at].update(source=before + work["add"])
            if cells[at]["cell_type"] == "code":
                cells[at].update(outputs=[], execution_count=None)
        elif work["do"] == "delete":
            del cells[at]
        elif work["do"] == "move":
            cells.append(cells.pop(at))
    answer = ask("fs/write_text_file", {**file, "content": json.dumps(notebook)})
    if "error" in answer:
        return {"error": f"{answer['error'].get('data') or answer['error']['message']}", "id": wanted}
    return {"done": wanted}


def order_notebook(session: str, rest: str) -> None:
    """`notebook PATH JSON`: one change."""
    path, work = rest.split(" ", 1)
    say(session, f"{json.dumps(change(session, path, json.loads(work)))}\n")


def order_notebook_late(session: str, rest: str) -> None:
    """`notebook_late PATH ID`: writes a cell when somebody else had time to change it."""
    path, wanted = rest.split(" ")
    file = {"sessionId": session, "path": path}
    notebook = json.loads(ask("fs/read_text_file", file)["result"]["content"])
    say(session, "has read\n")
    while not Path(f"{path}.go").exists():
        time.sleep(0.01)
    cell = next(cell for cell in notebook["cells"] if cell["id"] == wanted)
    cell["source"] = "say something else"
    answer = ask("fs/write_text_file", {**file, "content": json.dumps(notebook)})
    say(session, f"{answer.get('error', answer)}\n")


def order_obey(session: str, folder: str) -> None:
    """Makes the changes that come as `N.json` into a folder, in order, and answers each by `N.done`."""
    number = 0
    while not cancelled[session].is_set():
        order = Path(folder) / f"{number}.json"
        if not order.exists():
            time.sleep(0.01)
            continue
        work = json.loads(order.read_text())
        if work["do"] == "end":
            return
        answer = order.with_suffix(".part")
        answer.write_text(json.dumps(change(session, work["path"], work)))
        os.replace(answer, order.with_suffix(".done"))
        number += 1


def order_eval(session, rest):
    """Runs code by the tools of the notebook: its code, with `\\n` for a line feed."""
    variables = [pair for server in sessions[session]["servers"] for pair in server.get("env", [])]
    env = {pair["name"]: pair["value"] for pair in variables}
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(env["CELLWRIGHT_ATTACH"])
        lines = door.makefile("rw")

        def send(**message):
            lines.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            lines.flush()

        def call(number, method, **params):
            send(id=number, method=method, params=params)
            while (answer := json.loads(lines.readline())).get("id") != number:
                pass
            return answer["result"]

        lines.write(env["CELLWRIGHT_ATTACH_TOKEN"] + "\n")
        lines.flush()
        lines.readline()
        info = {"name": "fault-agent", "version": "1"}
        call(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        send(method="notifications/initialized")
        call(2, "tools/list")
        answer = call(3, "tools/call", name="eval", arguments={"code": rest.replace("\\n", "\n")})
    say(session, f"eval failed: {answer.get('isError', False)}\n")
