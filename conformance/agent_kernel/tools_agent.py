"""An agent on the protocol's Python SDK that calls the tools of its notebook through its own MCP client.

A prompt is one order. `eval CODE` shows a card before it calls, `later CODE` one after the call, `quiet CODE` none;
`call TOOL JSON` calls any tool. `servers`, `pids` and `introduction` say what the agent was given.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from acp import (
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    update_agent_message_text,
    update_tool_call,
)
from acp.interfaces import Agent, Client
from acp.schema import AgentCapabilities, Implementation, PromptCapabilities
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation as ClientInfo

# The name that the client gives to the server.
CLIENT = sys.argv[1] if len(sys.argv) > 1 else "tools-agent"


class ToolsAgent(Agent):
    client: Client

    def __init__(self) -> None:
        self.servers: list = []
        self.tools: asyncio.Future[ClientSession] | None = None
        self.serving: asyncio.Task | None = None
        self.calls = 0
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=AgentCapabilities(
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True)
            ),
            agent_info=Implementation(name="tools-agent", title="Tools", version="1"),
        )

    async def new_session(
        self, cwd: str, mcp_servers: list | None = None, **kwargs: Any
    ) -> NewSessionResponse:
        self.servers = mcp_servers or []
        self.tools = asyncio.get_running_loop().create_future()
        if self.servers:
            self.serving = asyncio.create_task(self.serve(self.servers[-1]))
        return NewSessionResponse(session_id="session-1")

    async def serve(self, server: Any) -> None:
        environment = {variable.name: variable.value for variable in server.env}
        start = StdioServerParameters(
            command=server.command, args=server.args, env={**os.environ, **environment}
        )
        async with stdio_client(start) as (read, write):
            info = ClientInfo(name=CLIENT, version="1")
            async with ClientSession(read, write, client_info=info) as session:
                self.about = await session.initialize()
                self.listed = await session.list_tools()
                self.tools.set_result(session)
                await asyncio.Event().wait()

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list, **kwargs: Any) -> PromptResponse:
        self.cancelled.clear()
        texts = [block.text for block in prompt if hasattr(block, "text")]
        introduced = texts[0].startswith("<cellwright>")
        order, _, rest = texts[1 if introduced else 0].partition(" ")
        match order:
            case "introduction":
                await self.say(session_id, texts[0] if introduced else "none")
            case "servers":
                await self.say(session_id, json.dumps([server.model_dump() for server in self.servers]))
            case "pids":
                await self.say(session_id, str(os.getpid()))
            case "tools":
                await self.say(session_id, json.dumps([tool.model_dump() for tool in self.listed.tools]))
            case "say":
                await self.say(session_id, rest)
            case "call":
                name, _, arguments = rest.partition(" ")
                await self.call(session_id, name, json.loads(arguments), "quiet")
            case _:
                if not await self.call(session_id, "eval", {"code": rest}, order):
                    return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")

    async def say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, update_agent_message_text(text))

    async def call(self, session_id: str, name: str, arguments: dict, card: str) -> bool:
        """Calls a tool, and says what it answered. False if the turn was cancelled first."""
        self.calls += 1
        id = f"call-{self.calls}"
        show = self.client.session_update
        if card == "eval":
            await show(session_id, start_tool_call(id, f"cellwright_{name}", raw_input=arguments))
        calling = asyncio.ensure_future((await self.tools).call_tool(name, arguments))
        if card == "later":
            await asyncio.sleep(0.1)
            await show(session_id, start_tool_call(id, f"cellwright_{name}", raw_input={}))
            await show(session_id, update_tool_call(id, raw_input=arguments, status="in_progress"))
        cancelled = asyncio.ensure_future(self.cancelled.wait())
        await asyncio.wait([calling, cancelled], return_when=asyncio.FIRST_COMPLETED)
        cancelled.cancel()
        if not calling.done():
            return False  # as Gemini and oh-my-pi: the server is not told
        result = calling.result()
        texts = [part.text if part.type == "text" else part.type for part in result.content]
        if card in ("eval", "later"):
            status = "failed" if result.is_error else "completed"
            await show(session_id, update_tool_call(id, status=status, raw_output={"echo": texts}))
        await self.say(session_id, ("failed: " if result.is_error else "answered: ") + " ".join(texts))
        return True


asyncio.run(run_agent(ToolsAgent()))
