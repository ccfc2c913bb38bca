"""The HTTP side: one loopback server for all APIs."""

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from model.anthropic import Anthropic
from model.chat import Chat
from model.dialect import Dialect
from model.gemini import Gemini
from model.responses import Responses
from model.script import Request, Script, Stall, reply_to

DIALECTS: list[Dialect] = [Chat(), Responses(), Anthropic(), Gemini()]

# Some agents ask how long a request is before they send it; these are the two forms of the answer.
TOKENS = {"input_tokens": 1, "totalTokens": 1}


class Model:
    """A model that plays `scripts` at `url` from `with` on."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = scripts
        self.requests: list[Request] = []
        """What was asked for, in order; not what was asked on the side, for a title say."""
        self.strays: list[str] = []
        """Methods and paths that no API here has."""
        self.stalled = threading.Event()
        """A reply has come to its `Stall`."""
        self.hung_up = threading.Event()
        """The agent has hung up on a stalled reply."""
        self._connections: set[socket.socket] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        serve = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="model", daemon=True)
        serve.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            with suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_RDWR)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                model._connections.add(self.connection)

            def finish(self) -> None:
                model._connections.discard(self.connection)
                super().finish()

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                address = urlsplit(self.path)
                if address.path.endswith(("/count_tokens", ":countTokens")):
                    return self._whole(TOKENS)
                for dialect in DIALECTS:
                    if dialect.answers(address.path):
                        return self._reply(dialect, address.path, body)
                self._stray()

            def do_GET(self) -> None:
                if urlsplit(self.path).path.endswith("/models"):
                    return self._whole({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
                self._stray()

            do_HEAD = do_PUT = do_DELETE = do_GET

            def _reply(self, dialect: Dialect, path: str, body: dict[str, Any]) -> None:
                request = dialect.request(body)
                if request.tools:
                    model.requests.append(request)
                reply = reply_to(request, model.scripts)
                if dialect.streams(path, body):
                    self._stream(dialect.stream(request, reply))
                else:
                    self._whole(dialect.whole(request, reply))

            def _stream(self, events: Iterator[bytes | Stall]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for event in events:
                        if isinstance(event, Stall):
                            model.stalled.set()
                            select.select([self.connection], [], [])  # nothing is sent but the end
                            model.hung_up.set()
                            self.close_connection = True
                            return
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True  # the agent has heard enough

            def _whole(self, answer: dict[str, Any]) -> None:
                self._send(200, json.dumps(answer).encode())

            def _stray(self) -> None:
                model.strays.append(f"{self.command} {self.path}")
                self._send(404, b'{"error": {"message": "no such API"}}')

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler
