"""Gemini's generateContent.

<https://ai.google.dev/api/generate-content>
"""

from collections.abc import Iterator
from typing import Any

from model.dialect import Dialect, event, text_of
from model.script import Call, Part, Reply, Request, Say, Stall, Think, Turn, merged, words

USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}


class Gemini(Dialect):
    def answers(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return path.endswith(":streamGenerateContent")

    def request(self, body: dict[str, Any]) -> Request:
        turns = [turn for content in body["contents"] for turn in turns_of(content)]
        tools = [
            function["name"]
            for tool in body.get("tools", [])
            for function in tool.get("functionDeclarations", [])
        ]
        return Request("gemini", merged(turns), tools, body)

    def stream(self, request: Request, reply: Reply) -> Iterator[bytes | Stall]:
        for part in reply:
            match part:
                case Stall():
                    yield part
                case Say(text) | Think(text):
                    for word in words(text):
                        yield event(answer([piece(request, type(part)(word))]))
                case Call():
                    yield event(answer([piece(request, part)]))
        yield event(answer([{"text": ""}], "STOP"))

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        return answer([piece(request, part) for part in reply], "STOP")


def turns_of(content: dict[str, Any]) -> Iterator[Turn]:
    parts = content["parts"]
    text = "".join(part.get("text", "") for part in parts)
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if content.get("role") == "model":
        yield Turn("model", text)
    elif results:
        yield from (Turn("tool", text_of(result["response"])) for result in results)
    else:
        yield Turn("user", text)


def piece(request: Request, part: Part) -> dict[str, Any]:
    match part:
        case Say(text):
            return {"text": text}
        case Think(text):
            return {"text": text, "thought": True}
        case Call(tool, arguments):
            return {"functionCall": {"name": request.tool(tool), "args": arguments}}
    raise TypeError("a stall is no part")


def answer(parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "scripted"}
