"""What the fault agent asks: permissions and forms."""

from __future__ import annotations

import json
import os
import threading
import time

from fault_wire import ask, say, tool, tool_update

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


def order_survey(session, rest):
    """A form with a field of every kind."""
    sizes = [
        {"const": "s", "title": "Small", "description": "for trying things out"},
        {"const": "l", "title": "Large"},
    ]
    properties = {
        "a_name": {"type": "string", "title": "Your name", "description": "As on <b>your</b> card"},
        "b_port": {"type": "integer", "title": "Port", "minimum": 1, "maximum": 65535, "default": 5432},
        "c_size": {"type": "string", "title": "Size", "oneOf": sizes},
        "d_parts": {"type": "array", "title": "Parts", "items": {"type": "string", "enum": ["x", "y"]}},
        "e_sure": {"type": "boolean", "title": "Are you sure?", "default": True},
    }
    schema = {"type": "object", "properties": properties, "required": ["a_name", "b_port", "c_size"]}
    request = {"mode": "form", "message": "A few questions", "requestedSchema": schema}
    answer = ask("elicitation/create", {"sessionId": session, **request})
    say(session, json.dumps(answer.get("result") or answer.get("error"), sort_keys=True) + "\n")
