"""OpenAI's Responses.

<https://platform.openai.com/docs/api-reference/responses>
"""

import json
from collections.abc import Iterator
from typing import Any

from model.dialect import Dialect, event, text_of
from model.script import Call, Reply, Request, Say, Stall, Think, Turn, merged, words

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}


class Responses(Dialect):
    def answers(self, path: str) -> bool:
        return path.endswith("/responses")

    def request(self, body: dict[str, Any]) -> Request:
        asked = body["input"]
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        turns = [turn for item in items if (turn := turn_of(item))]
        return Request("responses", merged(turns), list(tools_of(body.get("tools", []))), body)

    def stream(self, request: Request, reply: Reply) -> Iterator[bytes | Stall]:
        number = 0

        def send(kind: str, **data: Any) -> bytes:
            nonlocal number
            number += 1
            return event({"type": kind, "sequence_number": number, **data}, kind)

        yield send("response.created", response=response("in_progress", []))
        items = []
        for index, part in enumerate(reply):
            if isinstance(part, Stall):
                yield part
                return
            item = item_of(request, part, index)
            place = {"item_id": item["id"], "output_index": index}
            yield send(
                "response.output_item.added", output_index=index, item={**item, "status": "in_progress"}
            )
            match part:
                case Say(text):
                    empty = {"type": "output_text", "text": "", "annotations": []}
                    yield send("response.content_part.added", **place, content_index=0, part=empty)
                    for word in words(text):
                        yield send("response.output_text.delta", **place, content_index=0, delta=word)
                    yield send("response.output_text.done", **place, content_index=0, text=text)
                case Think(text):
                    for word in words(text):
                        yield send(
                            "response.reasoning_summary_text.delta", **place, summary_index=0, delta=word
                        )
                case Call():
                    arguments = item["arguments"]
                    yield send("response.function_call_arguments.delta", **place, delta=arguments)
                    yield send("response.function_call_arguments.done", **place, arguments=arguments)
            yield send("response.output_item.done", output_index=index, item=item)
            items.append(item)
        yield send("response.completed", response=response("completed", items))

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        items = [item_of(request, part, index) for index, part in enumerate(reply)]
        return response("completed", items)


def turn_of(item: dict[str, Any]) -> Turn | None:
    match item.get("type", "message"), item.get("role"):
        case "message", "user":
            return Turn("user", text_of(item["content"]))
        case "message", "assistant":
            return Turn("model", text_of(item["content"]))
        case "reasoning", _:
            return Turn("model", "")
        case str(kind), _ if kind.endswith("_call_output"):
            return Turn("tool", text_of(item["output"]))
        case str(kind), _ if kind.endswith("_call"):
            return Turn("model", "")
    return None  # instructions


def tools_of(tools: list[dict[str, Any]], namespace: str = "") -> Iterator[str]:
    """The functions. Codex gathers those of a server under a name of their own."""
    for tool in tools:
        if tool["type"] == "namespace":
            yield from tools_of(tool["tools"], tool["name"])
        elif tool["type"] == "function":
            yield f"{namespace}.{tool['name']}" if namespace else tool["name"]


def item_of(request: Request, part: Say | Think | Call | Stall, index: int) -> dict[str, Any]:
    # Ids differ within a conversation, or results are taken for those of an earlier call.
    name = f"{len(request.turns)}_{index}"
    match part:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": f"msg_{name}", "role": "assistant", "content": content}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": f"rs_{name}", "summary": summary}
        case Call(tool, arguments):
            namespace, _, function = request.tool(tool).rpartition(".")
            item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": function}
            within = {"namespace": namespace} if namespace else {}
            return {**item, **within, "arguments": json.dumps(arguments)}
    raise TypeError("a stall is no item")


def response(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = USAGE if status == "completed" else None
    head = {"id": "resp_scripted", "object": "response", "created_at": 0, "model": "scripted"}
    return {**head, "status": status, "output": output, "usage": usage}
