"""Anthropic's Messages.

<https://docs.anthropic.com/en/api/messages>
"""

import json
from collections.abc import Iterator
from typing import Any

from model.dialect import Dialect, event, text_of
from model.script import Call, Part, Reply, Request, Say, Stall, Think, Turn, merged, words


class Anthropic(Dialect):
    def answers(self, path: str) -> bool:
        return path.endswith("/messages")

    def request(self, body: dict[str, Any]) -> Request:
        turns = [turn for message in body["messages"] for turn in turns_of(message)]
        return Request("anthropic", merged(turns), [tool["name"] for tool in body.get("tools", [])], body)

    def stream(self, request: Request, reply: Reply) -> Iterator[bytes | Stall]:
        def send(kind: str, **data: Any) -> bytes:
            return event({"type": kind, **data}, kind)

        yield send("message_start", message=message([], None))
        for index, part in enumerate(reply):
            match part:
                case Stall():
                    yield part
                    continue
                case Say(text):
                    start = {"type": "text", "text": ""}
                    deltas = [{"type": "text_delta", "text": word} for word in words(text)]
                case Think(text):
                    start = {"type": "thinking", "thinking": "", "signature": ""}
                    deltas = [{"type": "thinking_delta", "thinking": word} for word in words(text)]
                    deltas.append({"type": "signature_delta", "signature": "scripted"})
                case Call():
                    start = {**block(request, part, index), "input": {}}
                    deltas = [{"type": "input_json_delta", "partial_json": json.dumps(part.arguments)}]
            yield send("content_block_start", index=index, content_block=start)
            for delta in deltas:
                yield send("content_block_delta", index=index, delta=delta)
            yield send("content_block_stop", index=index)
        delta = {"stop_reason": reason(reply), "stop_sequence": None}
        yield send("message_delta", delta=delta, usage={"output_tokens": 1})
        yield send("message_stop")

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        return message([block(request, part, index) for index, part in enumerate(reply)], reason(reply))


def turns_of(message: dict[str, Any]) -> Iterator[Turn]:
    if message["role"] == "assistant":
        yield Turn("model", text_of(message["content"]))
        return
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [block for block in blocks if block["type"] == "tool_result"]
    yield from (Turn("tool", text_of(block.get("content"))) for block in results)
    if not results:  # what stands beside results are the agent's own reminders
        yield Turn("user", text_of(blocks))


def block(request: Request, part: Part, index: int) -> dict[str, Any]:
    match part:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": "scripted"}
        case Call(tool, arguments):
            # Ids differ within a conversation, or results are taken for those of an earlier call.
            name = f"toolu_{len(request.turns)}_{index}"
            return {"type": "tool_use", "id": name, "name": request.tool(tool), "input": arguments}
    raise TypeError("a stall is no block")


def reason(reply: Reply) -> str:
    return "tool_use" if any(isinstance(part, Call) for part in reply) else "end_turn"


def message(content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    head = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
