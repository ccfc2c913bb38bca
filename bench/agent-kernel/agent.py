"""The agent that every contender talks to. What it sends is made before it is asked for, so that it is not what is measured.

`say TEXT` sends it in one chunk; `chunks` sends 100,000 chunks of 50 bytes.
"""

import json
import sys

CHUNKS, SIZE = 100_000, 50


def update(text: str) -> dict:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def main() -> None:
    send = sys.stdout.buffer.write

    def notify(text: str) -> bytes:
        params = {"sessionId": "s", "update": update(text)}
        message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        return json.dumps(message).encode() + b"\n"

    prepared = b"".join(notify(f"{number} ".ljust(SIZE - 1, "x") + "\n") for number in range(CHUNKS))
    for line in sys.stdin:
        message = json.loads(line)
        result: dict = {}
        match message.get("method"):
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
            case "session/new":
                result = {"sessionId": "s"}
            case "session/prompt":
                text = message["params"]["prompt"][0]["text"]
                send(prepared if text == "chunks" else notify(text.removeprefix("say ")))
                result = {"stopReason": "end_turn"}
        if "id" in message:
            send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
        sys.stdout.buffer.flush()


main()
