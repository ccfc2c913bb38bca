"""The wire of the fault agent: lines of JSON-RPC, what it waits for, and its sessions."""

from __future__ import annotations

import collections
import itertools
import json
import sys
import threading
from pathlib import Path

output = threading.Lock()
replies: dict = {}
replied = threading.Condition()
cancelled: dict[str, threading.Event] = collections.defaultdict(threading.Event)  # by session
sessions: dict[str, dict] = {}
session_numbers = itertools.count(1)
client: dict = {}
last_id = 0


def send_line(line: str) -> None:
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(**message) -> None:
    send_line(json.dumps({"jsonrpc": "2.0", **message}))


def update_line(session: str, **content) -> str:
    params = {"sessionId": session, "update": content}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})


def update(session: str, **content) -> None:
    send_line(update_line(session, **content))


def say(session: str, text: str, kind: str = "agent_message_chunk") -> None:
    update(session, sessionUpdate=kind, content={"type": "text", "text": text})


def ask(method: str, params: dict, request_id=None):
    """Sends a request and waits for its response, result or error."""
    global last_id
    with replied:
        last_id += 1
        number = request_id if request_id is not None else f"agent-{last_id}"
    send(id=number, method=method, params=params)
    with replied:
        replied.wait_for(lambda: number in replies)
        return replies.pop(number)


def tool(session: str, call: str, **content) -> None:
    update(session, sessionUpdate="tool_call", toolCallId=call, **content)


def tool_update(session: str, call: str, **content) -> None:
    update(session, sessionUpdate="tool_call_update", toolCallId=call, **content)


STORE = Path(sys.argv[sys.argv.index("--store") + 1]) if "--store" in sys.argv else None


def stored() -> dict:
    return json.loads(STORE.read_text()) if STORE and STORE.exists() else {}


def store(session: str) -> None:
    if STORE:
        kept = {name: sessions[session].get(name) for name in ("memory", "cwd")}
        STORE.write_text(json.dumps({**stored(), session: kept}))
