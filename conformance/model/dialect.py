"""What all APIs have in common."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from model.script import Reply, Request, Stall


class Dialect(ABC):
    """One API: how it asks, and how it is answered."""

    @abstractmethod
    def answers(self, path: str) -> bool:
        """Whether the path asks for a reply."""

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        """Whether the reply is wanted piece by piece."""
        return bool(body.get("stream"))

    @abstractmethod
    def request(self, body: dict[str, Any]) -> Request: ...

    @abstractmethod
    def stream(self, request: Request, reply: Reply) -> Iterator[bytes | Stall]: ...

    @abstractmethod
    def whole(self, request: Request, reply: Reply) -> dict[str, Any]: ...


def event(data: dict[str, Any], name: str | None = None) -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def text_of(content: Any) -> str:
    """All text in a message, whatever it is wrapped in."""
    match content:
        case str():
            return content
        case list():
            return "".join(map(text_of, content))
        case dict():
            return "".join(
                text_of(content[key]) for key in ("text", "content", "output", "error") if key in content
            )
    return ""
