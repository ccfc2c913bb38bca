"""The scripted model says the same by every API."""

import http.client
import json
import unittest
from typing import Any
from urllib.parse import urlsplit

from model import Call, Model, Say, Script, Stall, Think

SCRIPT = Script(
    "what is it", [[Think("Hm."), Say("I look."), Call("look", {"at": "sky"})], [Say("It is blue.")]]
)
STALL = Script("wait", [[Say("So"), Stall()]])


def events(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


class EveryApi:
    """Tests for every API; the rest comes from the test case."""

    path: str

    def body(self, prompt: str, result: str | None = None) -> dict[str, Any]:
        """A request, of a conversation where the tool has answered if there is a result."""
        raise NotImplementedError

    def heard(self, events: list[dict[str, Any]]) -> tuple[str, list[tuple[str, Any]]]:
        """What was said, and what was called."""
        raise NotImplementedError

    def setUp(self):
        self.model = self.enterContext(Model(SCRIPT, STALL))

    def connect(self, body: dict[str, Any]) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(urlsplit(self.model.url).netloc)
        self.addCleanup(connection.close)
        connection.request("POST", self.path, json.dumps(body), {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def ask(self, body: dict[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
        _, response = self.connect(body)
        self.assertEqual(response.status, 200)
        return self.heard(events(response.read()))

    def test_a_call_and_then_an_answer(self):
        self.assertEqual(self.ask(self.body("what is it?")), ("I look.", [("my_look", {"at": "sky"})]))
        self.assertEqual(self.ask(self.body("what is it?", "blue")), ("It is blue.", []))
        self.assertEqual([request.results for request in self.model.requests], [[], ["blue"]])

    def test_a_stalled_reply_lasts_until_the_agent_hangs_up(self):
        connection, response = self.connect(self.body("wait for me"))
        first = b""
        while b"So" not in first:
            first += response.readline()
        self.assertTrue(self.model.stalled.wait(30))
        self.assertFalse(self.model.hung_up.is_set())
        response.close()
        connection.close()
        self.assertTrue(self.model.hung_up.wait(30))

    def test_what_is_not_in_the_script_is_told(self):
        said, _ = self.ask(self.body("something else"))
        self.assertEqual(said, "there is no script for this")
        said, _ = self.ask({**self.body("what is it?"), "tools": []})
        self.assertEqual(said, "A scripted conversation")
        self.assertEqual(len(self.model.requests), 1)


class ChatApi(EveryApi, unittest.TestCase):
    path = "/v1/chat/completions"

    def body(self, prompt: str, result: str | None = None) -> dict[str, Any]:
        messages = [{"role": "system", "content": "help"}, {"role": "user", "content": prompt}]
        if result:
            messages += [{"role": "assistant", "content": None}, {"role": "tool", "content": result}]
        tools = [{"type": "function", "function": {"name": "my_look"}}]
        return {"stream": True, "messages": messages, "tools": tools}

    def heard(self, events):
        deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", [])]
        said = "".join(delta.get("content") or "" for delta in deltas)
        return said, [(call["name"], json.loads(call["arguments"])) for call in calls]


class ResponsesApi(EveryApi, unittest.TestCase):
    path = "/v1/responses"

    def body(self, prompt: str, result: str | None = None) -> dict[str, Any]:
        items: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]
        if result:
            items += [{"type": "reasoning", "summary": []}, {"type": "function_call", "name": "my_look"}]
            items += [{"type": "function_call_output", "output": result}]
        return {"stream": True, "input": items, "tools": [{"type": "function", "name": "my_look"}]}

    def heard(self, events):
        self.assertEqual(events[-1]["type"], "response.completed")
        items = events[-1]["response"]["output"]
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        self.assertEqual(items, done)
        said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        calls = [item for item in items if item["type"] == "function_call"]
        return said, [(call["name"], json.loads(call["arguments"])) for call in calls]


class AnthropicApi(EveryApi, unittest.TestCase):
    path = "/v1/messages"

    def body(self, prompt: str, result: str | None = None) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        if result:
            answer = [{"type": "tool_result", "content": [{"type": "text", "text": result}]}]
            messages += [{"role": "assistant", "content": []}, {"role": "user", "content": answer}]
        return {"stream": True, "messages": messages, "tools": [{"name": "my_look"}]}

    def heard(self, events):
        self.assertEqual(events[-1]["type"], "message_stop")
        starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        said = "".join(delta.get("text", "") for delta in deltas)
        inputs = [json.loads(delta["partial_json"]) for delta in deltas if "partial_json" in delta]
        names = [start["name"] for start in starts if start["type"] == "tool_use"]
        return said, list(zip(names, inputs, strict=True))


class GeminiApi(EveryApi, unittest.TestCase):
    path = "/v1beta/models/any:streamGenerateContent?alt=sse"

    def body(self, prompt: str, result: str | None = None) -> dict[str, Any]:
        contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": prompt}]}]
        if result:
            answer = {"functionResponse": {"name": "my_look", "response": {"output": result}}}
            contents += [{"role": "model", "parts": []}, {"role": "user", "parts": [answer]}]
        return {"contents": contents, "tools": [{"functionDeclarations": [{"name": "my_look"}]}]}

    def heard(self, events):
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        said = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        return said, [(call["name"], call["args"]) for call in calls]


if __name__ == "__main__":
    unittest.main()
