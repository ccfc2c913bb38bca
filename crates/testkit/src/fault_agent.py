"""An ACP agent that does what its prompt says, right or wrong. Raw JSON-RPC on purpose: no library corrects it.

Each line of a prompt is an order, for example `say hello`, `chunks 100000 50`, `crash 3`; see `ORDERS`.
Faults at the start are arguments: `--banner`, `--slow SECONDS`, `--auth`, `--version N`, `--no-initialize`,
`--no-http` (supports MCP servers over stdio only), `--ask-at-login` (asks its user while it signs in),
`--forgetful` (cannot continue old sessions), `--late-replay` (plays them back after the answer),
`--modes A,B` (its modes, the first one is current), `--exclusive` (continues only sessions of this process),
`--store FILE` (sessions outlive the process, and those that are not stored cannot be continued),
`--mute` (writes to standard error and never answers).
A session named `missing` cannot be loaded or resumed.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

output = threading.Lock()
replies: dict = {}
replied = threading.Condition()
cancelled: dict[str, threading.Event] = collections.defaultdict(threading.Event)  # by session
sessions: dict[str, dict] = {}
session_numbers = itertools.count(1)
client: dict = {}
last_id = 0
signed_in = "--auth" not in sys.argv


def send_line(line: str) -> None:
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(**message) -> None:
    send_line(json.dumps({"jsonrpc": "2.0", **message}))


def update(session: str, **content) -> None:
    send(method="session/update", params={"sessionId": session, "update": content})


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


# The option that lasts comes first, as one agent lists them: position must not decide.
OPTIONS = [
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def permission(
    session: str, call: str, title: str, kind: str, path: str | None = None, options=OPTIONS, **more
) -> str:
    asked = {"toolCallId": call, "title": title, "kind": kind, **more}
    asked["locations"] = [{"path": path}] if path else []
    answer = ask("session/request_permission", {"sessionId": session, "toolCall": asked, "options": options})
    outcome = answer.get("result", {}).get("outcome", {"outcome": f"error {answer.get('error')}"})
    return outcome.get("optionId", outcome["outcome"])


# --- orders -------------------------------------------------------------------------------------------


def order_say(session, rest):
    say(session, rest + "\n")


def order_shout(session, rest):
    """What a terminal's echo of this line does not hold. With `wait` in it, until it is cancelled."""
    say(session, rest.upper() + "\n")
    if "wait" in rest:
        cancelled[session].wait()


def order_inject(session, rest):
    """A text (a JSON string) in every place where an agent can put one."""
    text = json.loads(rest)
    say(session, text + "\n")
    say(session, text, "agent_thought_chunk")
    block = {"type": "text", "text": text}
    entries = [{"content": text, "priority": "high", "status": "pending"}]
    update(session, sessionUpdate="plan", entries=entries)
    update(session, sessionUpdate="notice", severity="warning", title=text, description=text)
    content = [
        {"type": "content", "content": block},
        {"type": "diff", "path": f"/{text}", "oldText": text, "newText": text + text},
        {"type": "content", "content": {"type": "resource", "resource": {"uri": text, "text": text}}},
        {
            "type": "content",
            "content": {"type": "resource_link", "uri": text, "name": text, "description": text},
        },
        {"type": "content", "content": {"type": "image", "data": text, "mimeType": text, "uri": text}},
    ]
    raw = {"command": text, text: text}
    tool(
        session,
        f"call-{rest}",
        title=text,
        kind="read",
        status="completed",
        content=content,
        rawInput=raw,
        rawOutput=text,
        locations=[{"path": f"/{text}"}],
    )
    say(session, f"`{text}`\n\n- {text}\n\n> {text}\n\n| a |\n|---|\n| {text} |\n")


def order_think(session, rest):
    say(session, rest, "agent_thought_chunk")


def order_chunks(session, rest):
    count, size = map(int, rest.split())
    text = []
    for number in range(count):
        chunk = f"{number} ".ljust(size - 1, "x") + "\n"
        text.append(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "method": "session/update",
                    "params": {
                        "sessionId": session,
                        "update": {
                            "sessionUpdate": "agent_message_chunk",
                            "content": {"type": "text", "text": chunk},
                        },
                    },
                }
            )
        )
        if len(text) == 100:
            send_line("\n".join(text))
            text.clear()
    if text:
        send_line("\n".join(text))


def order_line(session, rest):
    """One line of this many megabytes."""
    say(session, "y" * (int(rest) * 1_000_000) + " end")


def order_garbage(session, rest):
    with output:
        sys.stdout.buffer.write(
            b'\xff\xfe\x00 not text\n{broken json\n[1, 2]\n17\n\n{}\n{"jsonrpc": "2.0"}\n'
        )
        sys.stdout.buffer.flush()


def order_stderr(session, rest):
    for _ in range(int(rest)):
        sys.stderr.write(("e" * 99 + "\n") * 10_000)
    sys.stderr.write("last words\n")
    sys.stderr.flush()


def order_crash(session, rest):
    sys.stderr.write("about to crash\n")
    sys.stderr.flush()
    os._exit(int(rest))


def order_close(session, rest):
    """Closes the output and stays."""
    os.close(1)
    time.sleep(600)


def order_wait(session, rest):
    """Waits to be cancelled."""
    cancelled[session].wait()


def order_farewell(session, rest):
    """Counts until it is cancelled, and then has last words of several kinds."""
    number = 0
    while not cancelled[session].wait(0.001):
        say(session, f"step {number}\n")
        number += 1
    tool(session, "last", title="Tidy up", kind="other", status="completed")
    say(session, f"{number} steps, good bye\n")


def order_hang(session, rest):
    """Says what it is given, if anything, and then never answers, whatever is cancelled.

    The two are one order: between orders a cancel is answered.
    """
    if rest:
        say(session, rest + "\n")
    threading.Event().wait()


def order_late(session, rest):
    """Updates that come after the response."""

    def later():
        time.sleep(0.05)
        say(session, rest + "\n")

    threading.Thread(target=later).start()


def order_unknown(session, rest):
    update(session, sessionUpdate="from_the_future", anything=[1, 2])
    send(method="_vendor/event", params={"a": 1})
    update(session, sessionUpdate="agent_message_chunk", content={"type": "hologram"})
    answer = ask("client/no_such_method", {})
    say(session, f"unknown method: {answer.get('error', {}).get('code')}\n")


def order_duplicate(session, rest):
    """Two requests with one id, a response to nothing, and a response twice."""
    send(id="nobody-asked", result={"x": 1})
    for _ in range(2):
        send(id="twice", method="terminal/output", params={"sessionId": session, "terminalId": "none"})
    for _ in range(2):
        tool(session, "same", title="Twice", kind="other", status="completed")


def order_permission(session, rest):
    """For a tool call that was never announced."""
    kind, path = rest.split() if rest else ("edit", "/tmp/x")
    say(session, f"permission: {permission(session, 'unheard-of', 'Touch ' + path, kind, path)}\n")


def order_may(session, rest):
    """For a command: title and command alike, or `TITLE :: COMMAND`, with `\\n` for a line feed."""
    title, _, command = rest.replace("\\n", "\n").partition(" :: ")
    raw_input = {"command": command or title}
    say(session, f"may: {permission(session, 'a-command', title, 'execute', rawInput=raw_input)}\n")


def order_swap(session, rest):
    """Asks for one command, and then says that it is another: `ASKED :: SHOWN`."""
    asked, _, shown = rest.partition(" :: ")

    def later():
        time.sleep(0.2)
        tool_update(session, "swapped", title=shown, kind="read", rawInput={"command": shown})

    threading.Thread(target=later).start()
    answer = permission(session, "swapped", asked, "execute", rawInput={"command": asked})
    say(session, f"swapped: {answer}\n")


def order_twins(session, rest):
    """Two questions about one tool call at a time."""
    answers = []

    def question(command):
        answers.append(
            (command, permission(session, "twin", command, "execute", rawInput={"command": command}))
        )

    threads = [threading.Thread(target=question, args=(command,)) for command in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(session, f"twins: {sorted(answers)}\n")


def order_swaptwin(session, rest):
    """Two questions about one tool call. When the first is answered, the call becomes another one."""
    second = []

    def question():
        asked = permission(session, "twin", "second", "execute", rawInput={"command": "second"})
        second.append(asked)

    thread = threading.Thread(target=question)
    # The second question goes out while the first one waits.
    threading.Timer(0.1, thread.start).start()
    first = permission(session, "twin", "first", "execute", rawInput={"command": "first"})
    say(session, f"first: {first}\n")
    tool_update(session, "twin", title="ls", kind="read", rawInput={"command": "ls"})
    thread.join()
    say(session, f"second: {second[0]}\n")


def order_unasked(session, rest):
    """Runs a command, or changes a file, without asking: `execute COMMAND` or `edit PATH`."""
    kind, what = rest.split(" ", 1)
    raw_input = {"command": what} if kind == "execute" else {"path": what}
    call = f"unasked-{what}"
    tool(session, call, title=what, kind=kind, status="in_progress", rawInput=raw_input)
    tool_update(session, call, status="completed")


def order_propose(session, rest):
    """Asks to change a file: its path and its new text."""
    path, text = rest.split(" ", 1)
    content = [{"type": "diff", "path": path, "oldText": None, "newText": text}]
    say(session, f"proposed: {permission(session, 'a-change', 'Edit', 'edit', path, content=content)}\n")


def order_options(session, rest):
    """A permission with options of these kinds, which may be none."""
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in rest.split()]
    say(session, f"chosen: {permission(session, 'odd', 'Odd question', 'other', options=options)}\n")


def order_abandon(session, rest):
    """Asks for a permission, and ends while the question is open."""
    threading.Timer(0.2, os._exit, [4]).start()
    permission(session, "unheard-of", "Touch", "edit", "/tmp/x")


def order_tools(session, rest):
    """So many tool calls, one after another."""
    for number in range(int(rest)):
        call = f"many-{number}"
        tool(session, call, title=f"Step {number}", kind="other", status="in_progress")
        tool_update(session, call, status="completed")


def order_tool(session, rest):
    tool(session, "call-1", title="Read", kind="read", status="pending", rawInput={"path": rest})
    tool_update(session, "call-1", title=f"Read {rest}", status="in_progress", locations=[{"path": rest}])
    content = [{"type": "content", "content": {"type": "text", "text": "<b>what it read</b>"}}]
    tool_update(session, "call-1", status="completed", content=content, rawOutput={"ok": True})


def order_diff(session, rest):
    content = [{"type": "diff", "path": rest, "oldText": "one\ntwo\n", "newText": "one\nthree\n"}]
    tool(session, "call-diff", title=f"Edit {rest}", kind="edit", status="completed", content=content)


def order_plan(session, rest):
    for status in ("pending", "in_progress", "completed"):
        entries = [{"content": rest, "priority": "high", "status": status}]
        update(session, sessionUpdate="plan", entries=entries)


def order_image(session, rest):
    content = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    update(session, sessionUpdate="agent_message_chunk", content=content)


def order_notice(session, rest):
    severity, title = rest.split(" ", 1)
    update(session, sessionUpdate="notice", severity=severity, title=title, description="as you can see")


def order_meta(session, rest):
    """A command whose output comes in `_meta` only."""
    tool(
        session,
        "call-meta",
        title="make",
        kind="execute",
        status="in_progress",
        content=[{"type": "terminal", "terminalId": "theirs"}],
        _meta={"terminal_info": {"terminal_id": "theirs"}},
    )
    for part in ("compiling\n", "linking\n"):
        meta = {"terminal_output_delta": {"terminal_id": "theirs", "data": part}}
        tool_update(session, "call-meta", _meta=meta)
    ended = {"terminal_exit": {"terminal_id": "theirs", "exit_code": 2, "signal": None}}
    tool_update(session, "call-meta", status="failed", _meta=ended)


def order_usage(session, rest):
    update(
        session,
        sessionUpdate="usage_update",
        used=1200,
        size=200000,
        cost={"amount": 0.01, "currency": "USD"},
    )


def order_read(session, rest):
    answer = ask("fs/read_text_file", {"sessionId": session, "path": rest})
    text = answer.get("result", {}).get("content")
    say(session, f"read {len(text)}\n" if text is not None else f"read error {answer['error']['code']}\n")


def order_write(session, rest):
    path, content = rest.split(" ", 1)
    answer = ask("fs/write_text_file", {"sessionId": session, "path": path, "content": content})
    say(session, "written\n" if "result" in answer else f"write error {answer['error']['code']}\n")


def order_create(session, rest):
    """A terminal from parameters (JSON), and what it wrote."""
    answer = ask("terminal/create", {"sessionId": session, **json.loads(rest)})
    if "error" in answer:
        say(session, f"create error {answer['error']['message']}\n")
        return
    terminal = {"sessionId": session, "terminalId": answer["result"]["terminalId"]}
    ask("terminal/wait_for_exit", terminal)
    say(session, f"created {ask('terminal/output', terminal)['result']['output']!r}\n")


def order_run(session, rest):
    answer = ask("terminal/create", {"sessionId": session, "command": rest})
    if "error" in answer:
        say(session, f"run error {answer['error']['message']}\n")
        return
    terminal = {"sessionId": session, "terminalId": answer["result"]["terminalId"]}
    content = [{"type": "terminal", "terminalId": terminal["terminalId"]}]
    tool(session, "call-run", title=rest, kind="execute", status="in_progress", content=content)
    exit_status = ask("terminal/wait_for_exit", terminal)["result"]
    text = ask("terminal/output", terminal)["result"]["output"]
    tool_update(session, "call-run", status="completed")
    ask("terminal/release", terminal)
    say(session, f"ran {exit_status.get('exitCode')} {text!r}\n")


def order_start(session, rest):
    """A command that nobody waits for."""
    ask("terminal/create", {"sessionId": session, "command": rest})


def order_elicit(session, rest):
    if rest:
        request = {"mode": "url", "elicitationId": "e-1", "url": rest, "message": "Please look"}
        answer = ask("elicitation/create", {"sessionId": session, **request})
        say(session, json.dumps(answer.get("result") or answer.get("error"), sort_keys=True) + "\n")
        return
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Your name"}, "sure": {"type": "boolean"}},
        "required": ["name"],
    }
    answer = ask(
        "elicitation/create",
        {"sessionId": session, "mode": "form", "message": "Who are you?", "requestedSchema": schema},
    )
    say(session, json.dumps(answer.get("result") or answer.get("error"), sort_keys=True) + "\n")


def order_echo(session, rest):
    """What came with the prompt besides this line."""
    say(session, json.dumps(sessions[session]["prompt"][1:]) + "\n")


def order_servers(session, rest):
    say(session, json.dumps([server["name"] for server in sessions[session]["servers"]]) + "\n")


def order_capabilities(session, rest):
    """What the client can do."""
    say(session, json.dumps(client) + "\n")


def order_remember(session, rest):
    sessions[session]["memory"] = rest
    store(session)


def order_recall(session, rest):
    say(session, f"{sessions[session].get('memory')}\n")


def order_pid(session, rest):
    say(session, f"{os.getpid()}\n")


def order_detach(session, rest):
    """A command of its own that sleeps so long in a session of its own, as some agents run commands."""
    say(session, f"{subprocess.Popen(['sleep', rest], start_new_session=True).pid}\n")


def order_sleep(session, rest):
    time.sleep(float(rest))


STORE = Path(sys.argv[sys.argv.index("--store") + 1]) if "--store" in sys.argv else None


def stored() -> dict:
    return json.loads(STORE.read_text()) if STORE and STORE.exists() else {}


def store(session: str) -> None:
    if STORE:
        kept = {name: sessions[session].get(name) for name in ("memory", "cwd")}
        STORE.write_text(json.dumps({**stored(), session: kept}))


ORDERS = {name[6:]: function for name, function in list(globals().items()) if name.startswith("order_")}


# --- the protocol ---------------------------------------------------------------------------------------


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
            send(id=request_id, error={"code": -32603, "message": rest})
            return
        if order in ORDERS:
            ORDERS[order](session, rest)
        else:
            say(session, line + "\n")
        if cancelled[session].is_set():
            send(id=request_id, result={"stopReason": "cancelled"})
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
