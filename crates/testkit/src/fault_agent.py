"""An ACP agent that does what its prompt says, right or wrong. Raw JSON-RPC on purpose: no library corrects it.

Each line of a prompt is an order, for example `say hello`, `chunks 100000 50`, `crash 3`; see `fault_orders.py`.
Faults at the start are arguments: `--banner`, `--slow SECONDS`, `--auth`, `--version N`, `--no-initialize`,
`--no-http` (supports MCP servers over stdio only), `--ask-at-login` (asks its user while it signs in),
`--forgetful` (cannot continue old sessions), `--late-replay` (plays them back after the answer),
`--modes A,B` (its modes, the first one is current), `--exclusive` (continues only sessions of this process),
`--store FILE` (sessions outlive the process, and those that are not stored cannot be continued),
`--mute` (writes to standard error and never answers).
A session named `missing` cannot be loaded or resumed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from fault_orders import ORDERS
from fault_wire import (
    STORE,
    ask,
    cancelled,
    client,
    replied,
    replies,
    say,
    send,
    send_line,
    session_numbers,
    sessions,
    stored,
    update,
    update_line,
)

signed_in = "--auth" not in sys.argv


def prompt(request_id, params) -> None:
    session = params["sessionId"]
    sessions[session]["prompt"] = params["prompt"]
    text = "".join(block.get("text", "") for block in params["prompt"])
    for line in text.splitlines():
        order, _, rest = line.strip().partition(" ")
        if order == "stop":
            send(id=request_id, result={"stopReason": rest})
            return
        if order == "tokens":
            read, written = map(int, rest.split())
            usage = {"totalTokens": read + written, "inputTokens": read, "outputTokens": written}
            send(id=request_id, result={"stopReason": "end_turn", "usage": usage})
            return
        if order == "fail":
            # A message, and perhaps data (JSON): `MESSAGE :: DATA`.
            message, _, data = rest.partition(" :: ")
            error = {"code": -32603, "message": message}
            send(id=request_id, error={**error, "data": json.loads(data)} if data else error)
            return
        if order in ORDERS:
            ORDERS[order](session, rest)
        else:
            say(session, line + "\n")
        if cancelled[session].is_set():
            # With the response in one write: what is late comes at once, too.
            late = [update_line(session, **update) for update in sessions[session].pop("late", [])]
            response = {"jsonrpc": "2.0", "id": request_id, "result": {"stopReason": "cancelled"}}
            send_line("\n".join([json.dumps(response), *late]))
            return
    send(id=request_id, result={"stopReason": "end_turn"})


MODE_IDS = sys.argv[sys.argv.index("--modes") + 1].split(",") if "--modes" in sys.argv else ["plan", "act"]
MODES = {
    "currentModeId": MODE_IDS[0],
    "availableModes": [{"id": mode, "name": mode.title()} for mode in MODE_IDS],
}


def options(session: dict) -> list:
    values = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
    return [
        {
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": session.get("model", "small"),
            "options": values,
        }
    ]


def opened(session: str, params: dict) -> dict:
    state = sessions.setdefault(session, {})
    state["servers"] = params.get("mcpServers", [])
    state["cwd"] = params.get("cwd")
    commands = [{"name": "web", "description": "Search the web", "input": {"hint": "query"}}]
    update(session, sessionUpdate="available_commands_update", availableCommands=commands)
    return {"modes": MODES, "configOptions": options(state)}


def handle(method: str, params: dict):
    global signed_in
    if method == "initialize":
        client.update(params["clientCapabilities"])
        if "--mute" in sys.argv:
            print("loading a very large model", file=sys.stderr, flush=True)
            threading.Event().wait()
        if "--no-initialize" in sys.argv:
            sys.exit("no license found")
        version = int(sys.argv[sys.argv.index("--version") + 1]) if "--version" in sys.argv else 1
        return {
            "protocolVersion": version,
            "agentInfo": {"name": "fault-agent", "version": "1"},
            "agentCapabilities": {
                "loadSession": "--forgetful" not in sys.argv,
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "mcpCapabilities": {"http": "--no-http" not in sys.argv, "sse": "--no-http" not in sys.argv},
                "sessionCapabilities": {
                    name: {}
                    for name in ("resume", "list", "close", "delete", "fork")
                    if name != "resume" or not {"--forgetful", "--late-replay"} & set(sys.argv)
                },
            },
            "authMethods": [
                {"id": "login", "name": "Log in", "description": "With your account"},
                {"id": "shell", "name": "At a terminal", "type": "terminal", "args": ["--login"]},
                {
                    "id": "older",
                    "name": "At a terminal, by the older extension",
                    "_meta": {
                        "terminal-auth": {"command": "some-agent", "args": ["sign in"], "env": {"A": "1"}}
                    },
                },
            ],
        }
    if method == "authenticate":
        if "--ask-at-login" in sys.argv:
            request = {"mode": "url", "elicitationId": "e-2", "url": "https://login.example/code?a=1&b=2"}
            asked = {"requestId": params["id"], "message": "Open this page", **request}
            answer = ask("elicitation/create", asked)
            if answer.get("result", {}).get("action") != "accept":
                return {"code": -32603, "message": "nobody signed in"}
        signed_in = True
        return {}
    if not signed_in:
        return {"code": -32000, "message": "Authentication required"}
    if method == "session/new":
        session = f"session-{os.getpid()}-{next(session_numbers)}"
        return {"sessionId": session, **opened(session, params)}
    if method == "session/fork":
        session = f"session-{os.getpid()}-{next(session_numbers)}"
        sessions[session] = dict(sessions[params["sessionId"]])
        return {"sessionId": session, **opened(session, params)}
    if method in ("session/resume", "session/load") and params["sessionId"] == "missing":
        return {"code": -32002, "message": "No such session"}
    if method == "session/resume" and "--exclusive" in sys.argv and params["sessionId"] not in sessions:
        return {"code": -32603, "message": "session is in use by another client"}
    if method == "session/resume":
        if STORE and params["sessionId"] not in {**stored(), **sessions}:
            return {"code": -32002, "message": "No such session"}
        sessions.setdefault(params["sessionId"], stored().get(params["sessionId"], {}))
        return opened(params["sessionId"], params)
    if method == "session/load" and "--late-replay" in sys.argv:
        threading.Timer(0.05, say, [params["sessionId"], "an old answer"]).start()
        return opened(params["sessionId"], params)
    if method == "session/load":
        say(params["sessionId"], "an old question", "user_message_chunk")
        say(params["sessionId"], "an old answer")
        return opened(params["sessionId"], params)
    if method == "session/list":
        listed = {**stored(), **sessions}.items()
        times = {name: f"2026-01-{number + 1:02}" for number, name in enumerate(stored())}
        return {
            "sessions": [
                {"sessionId": name, "cwd": state["cwd"], "updatedAt": times.get(name)}
                for name, state in listed
            ]
        }
    if method in ("session/close", "session/delete"):
        sessions.pop(params["sessionId"], None)
        return {}
    if method == "session/set_mode":
        update(params["sessionId"], sessionUpdate="current_mode_update", currentModeId=params["modeId"])
        return {}
    if method == "session/set_config_option":
        state = sessions[params["sessionId"]]
        state[params["configId"]] = params["value"]
        return {"configOptions": options(state)}
    return {"code": -32601, "message": "Method not found"}


def respond(message: dict) -> None:
    answer = handle(message["method"], message["params"])
    send(id=message["id"], **({"error": answer} if "code" in answer else {"result": answer}))


def main() -> None:
    if "--banner" in sys.argv:
        send_line("Welcome to the fault agent!\n\n  \x1b[1mversion 1\x1b[0m")
    if "--slow" in sys.argv:
        time.sleep(float(sys.argv[sys.argv.index("--slow") + 1]))
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            with replied:
                replies[message["id"]] = message
                replied.notify_all()
        elif method == "session/cancel":
            cancelled[message["params"]["sessionId"]].set()
        elif method == "session/prompt":
            # Here and not in the thread: a cancel may come before the thread runs.
            cancelled[message["params"]["sessionId"]].clear()
            threading.Thread(target=prompt, args=(message["id"], message["params"]), daemon=True).start()
        elif method == "authenticate":
            # Beside the loop: it may ask something, and the answer comes through the loop.
            message["params"]["id"] = message["id"]
            threading.Thread(target=respond, args=(message,), daemon=True).start()
        elif "id" in message:
            respond(message)


main()
