"""An agent on the protocol's Python SDK, made as the SDK's own examples are: it sends back what it gets.

With `edit PATH`, `run COMMAND` or `wait` it also shows a plan, asks for permission, writes a file and runs a command
through its client, and waits to be cancelled.
"""

from __future__ import annotations

import asyncio
from typing import Any

from acp import (
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    plan_entry,
    run_agent,
    start_edit_tool_call,
    start_tool_call,
    text_block,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    Implementation,
    PermissionOption,
    PromptCapabilities,
    ToolCallUpdate,
)


class ExampleAgent(Agent):
    client: Client

    def __init__(self) -> None:
        self.sessions = 0
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=AgentCapabilities(
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True)
            ),
            agent_info=Implementation(name="example-agent", title="Example", version="1"),
        )

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        self.sessions += 1
        return NewSessionResponse(session_id=f"session-{self.sessions}")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list, **kwargs: Any) -> PromptResponse:
        self.cancelled.clear()
        order, _, rest = prompt[0].text.partition(" ")
        match order:
            case "edit":
                await self.edit(session_id, rest)
            case "run":
                await self.run(session_id, rest)
            case "wait":
                await self.say(session_id, "waiting")
                await self.cancelled.wait()
                return PromptResponse(stop_reason="cancelled")
            case _:
                await self.client.session_update(session_id, update_agent_message(text_block("Client sent:")))
                for block in prompt:
                    await self.client.session_update(session_id, update_agent_message(block))
        return PromptResponse(stop_reason="end_turn")

    async def say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, update_agent_message_text(text))

    async def edit(self, session_id: str, path: str) -> None:
        for status in ("in_progress", "completed"):
            await self.client.session_update(
                session_id, update_plan([plan_entry("Write the file", status=status)])
            )
        await self.client.session_update(session_id, update_agent_thought_text("It needs a permission."))
        call = start_edit_tool_call("edit-1", f"Edit {path}", path, "new text\n")
        await self.client.session_update(session_id, call)
        options = [
            PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
            PermissionOption(option_id="no", name="Reject", kind="reject_once"),
        ]
        asked = ToolCallUpdate(tool_call_id="edit-1", title=f"Edit {path}", kind="edit")
        answer = await self.client.request_permission(session_id=session_id, tool_call=asked, options=options)
        if answer.outcome.outcome != "selected" or answer.outcome.option_id != "yes":
            await self.client.session_update(session_id, update_tool_call("edit-1", status="failed"))
            return await self.say(session_id, "Then not.")
        await self.client.write_text_file(session_id=session_id, path=path, content="new text\n")
        content = [tool_diff_content(path, "new text\n")]
        await self.client.session_update(
            session_id, update_tool_call("edit-1", status="completed", content=content)
        )
        await self.say(session_id, "It is written.")

    async def run(self, session_id: str, command: str) -> None:
        terminal = (await self.client.create_terminal(session_id=session_id, command=command)).terminal_id
        content = [tool_terminal_ref(terminal)]
        call = start_tool_call("run-1", command, kind="execute", status="in_progress", content=content)
        await self.client.session_update(session_id, call)
        ended = await self.client.wait_for_terminal_exit(session_id=session_id, terminal_id=terminal)
        await self.client.session_update(session_id, update_tool_call("run-1", status="completed"))
        await self.client.release_terminal(session_id=session_id, terminal_id=terminal)
        await self.say(session_id, f"It exited with {ended.exit_code}.")


asyncio.run(run_agent(ExampleAgent()))
