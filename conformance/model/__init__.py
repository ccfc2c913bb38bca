"""A language model that plays a script, for agents that think they talk to a real one. See README.md."""

from model.script import Call, Reply, Request, Say, Script, Stall, Think
from model.server import Model

__all__ = ["Call", "Model", "Reply", "Request", "Say", "Script", "Stall", "Think"]
