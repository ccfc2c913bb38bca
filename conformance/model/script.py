"""What the model says, and what it was asked: the same for every API."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Say:
    """Text, streamed word by word."""

    text: str


@dataclass(frozen=True)
class Think:
    """A thought, streamed word by word."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of the offered tool that has this name, or whose name ends in it: agents put servers' names before."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stall:
    """Nothing more, until the agent hangs up."""


Part = Say | Think | Call | Stall
Reply = Sequence[Part]


@dataclass(frozen=True)
class Script:
    """Answers a prompt that contains `prompt`: the first reply to it, the second to the first one's results, and so on."""

    prompt: str
    replies: Sequence[Reply]


@dataclass(frozen=True)
class Turn:
    """One message of the conversation so far. What one reply said and called is one turn."""

    by: Literal["user", "model", "tool"]
    text: str


@dataclass(frozen=True)
class Request:
    """What an agent asked, whichever way it asked."""

    api: str
    turns: Sequence[Turn]
    tools: Sequence[str]
    body: dict[str, Any]

    @property
    def results(self) -> list[str]:
        """What tools answered since the last prompt."""
        texts: list[str] = []
        for turn in self.turns:
            if turn.by == "user":
                texts.clear()
            elif turn.by == "tool":
                texts.append(turn.text)
        return texts

    def tool(self, name: str) -> str:
        """The offered tool that is meant by `name`."""
        named = [tool for tool in self.tools if tool == name]
        named += [tool for tool in self.tools if re.search(rf"[^a-zA-Z0-9]{re.escape(name)}$", tool)]
        if not named:
            raise LookupError(f"no tool `{name}` is offered, only {', '.join(self.tools)}")
        return named[0]


def reply_to(request: Request, scripts: Sequence[Script]) -> Reply:
    """What to say. It depends on the request alone, so agents may ask again, and ask on the side."""
    if not request.tools:
        return [Say("A scripted conversation")]  # for a title or a summary
    try:
        reply = scripted(request, scripts)
        for part in reply:
            if isinstance(part, Call):
                request.tool(part.tool)
    except LookupError as error:
        return [Say(str(error))]
    return reply


def scripted(request: Request, scripts: Sequence[Script]) -> Reply:
    for place in range(len(request.turns) - 1, -1, -1):
        turn = request.turns[place]
        for script in scripts:
            if turn.by == "user" and script.prompt in turn.text:
                given = sum(later.by == "model" for later in request.turns[place:])
                if given < len(script.replies):
                    return script.replies[given]
                raise LookupError(f"the script for `{script.prompt}` is over")
    raise LookupError("there is no script for this")


def merged(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with what belongs to one reply of the model as one."""
    together: list[Turn] = []
    for turn in turns:
        if together and turn.by == together[-1].by == "model":
            together[-1] = Turn("model", together[-1].text + turn.text)
        else:
            together.append(turn)
    return together


def words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)
