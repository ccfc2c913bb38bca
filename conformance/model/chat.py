"""OpenAI's Chat Completions, which most other providers speak too.

<https://platform.openai.com/docs/api-reference/chat>
"""

import json
from collections.abc import Iterator
from typing import Any

from model.dialect import Dialect, event, text_of
from model.script import Call, Reply, Request, Say, Stall, Think, Turn, merged, words

WHO = {"user": "user", "assistant": "model", "tool": "tool"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class Chat(Dialect):
    def answers(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def request(self, body: dict[str, Any]) -> Request:
        turns = [
            Turn(WHO[message["role"]], text_of(message.get("content")))
            for message in body["messages"]
            if message["role"] in WHO
        ]
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        return Request("chat", merged(turns), tools, body)

    def stream(self, request: Request, reply: Reply) -> Iterator[bytes | Stall]:
        def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return event({**head("chat.completion.chunk"), "choices": [choice], **more})

        yield chunk({"role": "assistant", "content": ""})
        calls = 0
        for part in reply:
            match part:
                case Think(text):
                    yield from (chunk({"reasoning_content": word}) for word in words(text))
                case Say(text):
                    yield from (chunk({"content": word}) for word in words(text))
                case Call():
                    yield chunk({"tool_calls": [{"index": calls, **call(request, part, calls)}]})
                    calls += 1
                case Stall():
                    yield part
        yield chunk({}, "tool_calls" if calls else "stop")
        yield event({**head("chat.completion.chunk"), "choices": [], "usage": USAGE})
        yield b"data: [DONE]\n\n"

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        text = "".join(part.text for part in reply if isinstance(part, Say))
        calls = [part for part in reply if isinstance(part, Call)]
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [call(request, part, number) for number, part in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {**head("chat.completion"), "choices": [choice], "usage": USAGE}


def head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": "scripted"}


def call(request: Request, part: Call, number: int) -> dict[str, Any]:
    # Ids differ within a conversation, or results are taken for those of an earlier call.
    name = {"name": request.tool(part.tool), "arguments": json.dumps(part.arguments)}
    return {"id": f"call_{len(request.turns)}_{number}", "type": "function", "function": name}
