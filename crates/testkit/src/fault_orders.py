"""What the fault agent does: one function for each order of a prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import fault_notebooks
import fault_questions
from fault_wire import (
    ask,
    cancelled,
    client,
    output,
    say,
    send,
    send_line,
    sessions,
    store,
    tool,
    tool_update,
    update,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


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


def order_ramble(session, rest):
    """Texts and tool calls that hold a word, until it is cancelled; then last words, before and after the response."""
    number = 0
    while not cancelled[session].wait(0.001):
        if number % 5 == 4:
            tool(
                session, f"{rest}-{number}", title=f"{rest} call {number}", kind="other", status="in_progress"
            )
        else:
            say(session, f"{rest} step {number}\n")
        number += 1
    tool(session, f"{rest}-last", title=f"{rest} tidies up", kind="other", status="completed")
    say(session, f"{rest} ends after {number}\n")
    text = {"type": "text", "text": f"{rest} is late\n"}
    sessions[session]["late"] = [
        {"sessionUpdate": "agent_message_chunk", "content": text},
        {
            "sessionUpdate": "tool_call",
            "toolCallId": f"{rest}-late",
            "title": f"{rest} late call",
            "status": "completed",
        },
    ]


def order_linger(session, rest):
    """A message and a tool call with ids. The next turn's `resume` goes on with them."""
    text = {"type": "text", "text": f"{rest} begins\n"}
    update(session, sessionUpdate="agent_message_chunk", content=text, messageId="lingering")
    tool(session, "lingering", title=f"{rest} call", kind="other", status="in_progress")


def order_resume(session, rest):
    text = {"type": "text", "text": f"{rest} ends\n"}
    update(session, sessionUpdate="agent_message_chunk", content=text, messageId="lingering")
    tool_update(session, "lingering", status="completed")


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


def order_rename(session, rest):
    """Gives the session a title, and changes the model to `large`, twice each."""
    values = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
    model = {"id": "model", "name": "Model", "type": "select", "currentValue": "large", "options": values}
    for _ in range(2):
        update(session, sessionUpdate="session_info_update", title=rest)
        update(session, sessionUpdate="config_option_update", configOptions=[model])


def order_screenshot(session, rest):
    """A tool call whose result is a picture."""
    content = [{"type": "content", "content": {"type": "image", "data": PIXEL, "mimeType": "image/png"}}]
    tool(session, "shot", title="Look", kind="read", status="completed", content=content)


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


def order_headings(session, rest):
    """So many headings, each with a paragraph: 350 bytes."""
    for number in range(int(rest)):
        say(session, f"## Heading {number}\n\n{'word ' * 65}\n\n")


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


ORDERS = {
    name[6:]: function
    for name, function in [*vars(fault_notebooks).items(), *vars(fault_questions).items(), *globals().items()]
    if name.startswith("order_")
}
