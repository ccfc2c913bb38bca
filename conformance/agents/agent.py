"""The agents: how each is started, and how it is led to the scripted model."""

import json
from abc import ABC, abstractmethod

from model import Call, Model
from workspace import Folder, node_program


class Agent(ABC):
    name: str
    """What `cellwright mcp install` calls it."""

    @abstractmethod
    def set_up(self, folder: Folder, model: Model) -> dict[str, str]:
        """Writes the settings it needs, and returns what it needs in its environment besides."""

    @abstractmethod
    def ask(self, prompt: str) -> list[str]:
        """The command that answers one prompt and asks nobody for permission."""

    @abstractmethod
    def listing(self) -> list[str]:
        """The command that lists MCP servers."""

    @abstractmethod
    def acp(self) -> list[str]:
        """The command that speaks ACP on stdin and stdout."""

    @abstractmethod
    def shell(self, command: str) -> Call:
        """A call of its own shell tool, for which it asks permission."""


class OpenCode(Agent):
    name = "opencode"

    def set_up(self, folder: Folder, model: Model) -> dict[str, str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"scripted": {"tool_call": True}},
        }
        settings = {
            "provider": {"scripted": provider},
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "share": "disabled",
            "permission": {"bash": "ask"},
        }
        return {
            "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def ask(self, prompt: str) -> list[str]:
        return [str(node_program("opencode")), "run", prompt]

    def listing(self) -> list[str]:
        return [str(node_program("opencode")), "mcp", "list"]

    def acp(self) -> list[str]:
        return [str(node_program("opencode")), "acp"]

    def shell(self, command: str) -> Call:
        return Call("bash", {"command": command, "description": "a command of the script"})


class GeminiCli(Agent):
    name = "gemini"

    def set_up(self, folder: Folder, model: Model) -> dict[str, str]:
        settings = folder.home / ".gemini/settings.json"
        settings.parent.mkdir()
        settings.write_text('{\n  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n')
        return {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    # A model is named, or another one would be asked which to take.
    def ask(self, prompt: str) -> list[str]:
        return [str(node_program("gemini")), "--model", "scripted", "--yolo", "--prompt", prompt]

    def listing(self) -> list[str]:
        return [str(node_program("gemini")), "mcp", "list"]

    def acp(self) -> list[str]:
        return [str(node_program("gemini")), "--model", "scripted", "--acp"]

    def shell(self, command: str) -> Call:
        return Call("run_shell_command", {"command": command, "description": "a command of the script"})


def environment(agent: Agent, folder: Folder, model: Model) -> dict[str, str]:
    """What the agent is started with. Called once for a folder."""
    return {**folder.environment, "NO_COLOR": "1", **agent.set_up(folder, model)}
