"""What every client can expect, whichever way it is connected."""

import asyncio
import base64
import io
import json
import re
import warnings
from contextlib import AbstractAsyncContextManager

from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import ElicitResult, ListRootsResult, Root, ToolListChangedNotification
from PIL import Image
from serving import images, text
from workspace import CELLWRIGHT, PYTHON, Folder

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "one",
            "metadata": {},
            "source": ["n = 10"],
            "outputs": [],
            "execution_count": None,
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}

TOOLS = ["eval", "read", "edit", "write", "notebook", "kernel", "bash"]


class EveryClient:
    """Tests for both transports; `connect` comes from the test case."""

    def setUp(self):
        # Roots and logging, by a version of the protocol that comes after those we speak.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def connect(self, *arguments: str, **options) -> AbstractAsyncContextManager[Client]:
        raise NotImplementedError

    async def test_tools_are_listed_with_schemas(self):
        async with self.connect() as client:
            tools = (await client.list_tools()).tools
            self.assertEqual([tool.name for tool in tools], TOOLS)
            for tool in tools:
                self.assertEqual(tool.input_schema["type"], "object")
                self.assertIn("Example: {", tool.description)
            self.assertTrue(next(tool for tool in tools if tool.name == "read").annotations.read_only_hint)
            self.assertEqual(client.server_info.name, "cellwright")
            self.assertIn("eval", client.instructions)

    async def test_every_tool_does_its_work(self):
        async with self.connect() as client:

            async def ok(tool: str, **arguments) -> str:
                result = await client.call_tool(tool, arguments)
                self.assertFalse(result.is_error, text(result))
                return text(result)

            await ok("write", path="a.ipynb", content="# %% [code]\nn = 10\n")
            await ok("edit", path="a.ipynb", old="n = 10", new="n = 11")
            await ok("notebook", action="insert", path="a.ipynb", source="n + 1")
            marked = await ok("read", path="a.ipynb")
            self.assertEqual(marked, "# %% [code] cell:0\nn = 11\n# %% [code] cell:1\nn + 1\n")
            self.assertIn("12\n", await ok("eval", cells=[{"code": "n = 11"}, {"code": "n + 1"}]))
            self.assertIn("n: int", await ok("kernel", action="status"))
            self.assertEqual(await ok("bash", command="ls *.ipynb"), "a.ipynb\n")

    async def test_images_are_image_content_within_bounds(self):
        code = (
            "import matplotlib.pyplot as plt, numpy as np\n"
            "plt.figure(figsize=(40, 30)); plt.imshow(np.random.rand(600, 800)); plt.show()"
        )
        async with self.connect() as client:
            result = await client.call_tool("eval", {"code": code, "timeout": 120})
            self.assertFalse(result.is_error, text(result))
            [image] = images(result)
            data = base64.b64decode(image.data)
            self.assertLessEqual(len(data), 1024 * 1024)
            self.assertLessEqual(max(Image.open(io.BytesIO(data)).size), 1568)
            self.assertNotIn(image.data[:100], json.dumps(result.structured_content))

    async def test_progress_brings_output_while_the_cell_runs(self):
        heard: list[tuple[float, str]] = []
        everything = asyncio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, message))
            if "three" in message:
                (self.folder.path / "go").touch()
                everything.set()

        code = (
            "import os, time\n"
            "for word in ['one', 'two', 'three']: print(word, flush=True); time.sleep(0.1)\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
            "print('four')"
        )
        async with self.connect() as client:
            result = await client.call_tool("eval", {"code": code}, progress_callback=progress)
        self.assertTrue(everything.is_set())
        self.assertTrue(text(result).startswith("one\ntwo\nthree\nfour\n"), text(result))
        self.assertEqual(heard, sorted(heard))

    async def test_cancelling_stops_the_code_and_keeps_the_variables(self):
        async with self.connect() as client:
            await client.call_tool("eval", {"code": "kept = 1"})
            begun = asyncio.Event()

            async def progress(done: float, total: float | None, message: str | None) -> None:
                begun.set()

            code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
            call = asyncio.create_task(
                client.call_tool("eval", {"code": code, "timeout": 600}, progress_callback=progress)
            )
            await asyncio.wait_for(begun.wait(), 30)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            # The kernel is free again, in less time than the sleep, with its variables.
            result = await asyncio.wait_for(client.call_tool("eval", {"code": "kept"}), 60)
            self.assertTrue(text(result).startswith("1\n"), text(result))

    async def test_failures_are_flagged(self):
        async with self.connect() as client:
            for tool, arguments, told in [
                ("eval", {"code": "1 / 0"}, "ZeroDivisionError"),
                ("eval", {"cod": "1"}, "did you mean `code`?"),
                ("read", {"path": "none.txt"}, "none.txt: no such file"),
                ("bash", {"command": "exit 3"}, "[exit code 3]"),
                ("evil", {}, "unknown tool `evil`; did you mean `eval`?"),
            ]:
                result = await client.call_tool(tool, arguments)
                self.assertTrue(result.is_error)
                self.assertIn(told, text(result))

    async def test_input_is_asked_of_the_user(self):
        asked: list[str] = []

        async def answer(context, params) -> ElicitResult:
            asked.append(params.message)
            return ElicitResult(action="accept", content={"answer": "Ada"})

        async def refuse(context, params) -> ElicitResult:
            return ElicitResult(action="decline")

        code = {"code": "name = input('Your name? ')\nf'hello {name}'"}
        async with self.connect(elicitation_callback=answer) as client:
            result = await client.call_tool("eval", code)
            self.assertIn("'hello Ada'", text(result))
            self.assertEqual(asked, ["Your name? "])
        async with self.connect(elicitation_callback=refuse) as client:
            result = await client.call_tool("eval", code)
            self.assertTrue(result.is_error)
            self.assertIn("the user declined to answer", text(result))
        async with self.connect() as client:
            result = await client.call_tool("eval", code)
            self.assertTrue(result.is_error)
            self.assertIn("input()", text(result))

    async def test_a_question_nobody_answers_is_taken_back_when_the_call_is_cancelled(self):
        asked, taken_back = asyncio.Event(), asyncio.Event()

        async def think(context, params) -> ElicitResult:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                taken_back.set()

        async with self.connect(elicitation_callback=think) as client:
            call = asyncio.create_task(client.call_tool("eval", {"code": "x = input('who? ')", "timeout": 1}))
            await asyncio.wait_for(asked.wait(), 30)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(taken_back.wait(), 30)
            self.assertIn("42", text(await client.call_tool("eval", {"code": "6 * 7"})))

    async def test_the_time_a_person_takes_to_answer_is_not_the_cells_time(self):
        async def think(context, params) -> ElicitResult:
            await asyncio.sleep(1.5)  # longer than the cell may take
            return ElicitResult(action="accept", content={"answer": "Ada"})

        async with self.connect(elicitation_callback=think) as client:
            result = await client.call_tool("eval", {"code": "input('who? ')", "timeout": 1})
            self.assertTrue(text(result).startswith("'Ada'\n"), text(result))

    async def test_roots_of_the_client_bound_its_files(self):
        inside = self.folder.path / "inside"
        inside.mkdir()
        (inside / "a.txt").write_text("in")
        (self.folder.path / "b.txt").write_text("out")

        here, moved = inside, asyncio.Event()

        async def roots(context) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri=here.as_uri())])

        async def log(params) -> None:
            if params.data == f"working in {self.folder.path}":
                moved.set()

        async with self.connect(list_roots_callback=roots, logging_callback=log) as client:
            self.assertEqual(text(await client.call_tool("read", {"path": "a.txt"})), "in")
            refused = await client.call_tool("read", {"path": "../b.txt"})
            self.assertTrue(refused.is_error)
            self.assertIn("outside the workspace", text(refused))
            here = self.folder.path
            await client.send_roots_list_changed()
            await asyncio.wait_for(moved.wait(), 30)
            self.assertEqual(text(await client.call_tool("read", {"path": "b.txt"})), "out")

    async def test_roots_that_do_not_exist_do_not_open_the_start_folder(self):
        (self.folder.path / "a.txt").write_text("not named")
        missing = self.folder.path / "missing"

        async def roots(context) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri=missing.as_uri())])

        async with self.connect(list_roots_callback=roots) as client:
            refused = await client.call_tool("read", {"path": str(self.folder.path / "a.txt")})
            self.assertTrue(refused.is_error)
            self.assertIn(f"the workspace is {missing}, which is not a folder here", text(refused))
            self.assertIn("42", text(await client.call_tool("eval", {"code": "6 * 7"})))

    async def test_folders_are_fixed_or_opened_by_whoever_starts_the_server(self):
        inside = self.folder.path / "inside"
        inside.mkdir()
        (inside / "a.txt").write_text("in")
        (self.folder.path / "b.txt").write_text("out")

        async def roots(context) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri=self.folder.path.as_uri())])

        async with self.connect("--root", str(inside), list_roots_callback=roots) as client:
            self.assertEqual(text(await client.call_tool("read", {"path": str(inside / "a.txt")})), "in")
            refused = await client.call_tool("read", {"path": str(self.folder.path / "b.txt")})
            self.assertIn("outside the workspace", text(refused))
        (self.folder.path.parent / "c.txt").write_text("far out")
        async with self.connect("--allow-outside") as client:
            self.assertEqual(text(await client.call_tool("read", {"path": "../c.txt"})), "far out")

    async def test_logging_is_as_loud_as_asked(self):
        told: list[tuple[str, str]] = []
        changed = asyncio.Queue()

        async def log(params) -> None:
            told.append((params.level, params.data))

        async def message(message) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.put_nowait(message)

        self.folder.python = str(self.folder.path / "python")
        options = {"logging_callback": log, "message_handler": message, "mode": "legacy"}
        async with self.connect("--no-warm-up", **options) as client:

            async def python_changes() -> None:
                """What is said of it comes before what follows from it."""
                await client.call_tool("eval", {"code": "1"})
                await asyncio.wait_for(changed.get(), 30)

            await client.set_logging_level("error")
            await python_changes()
            self.assertEqual(told, [])
            await client.set_logging_level("debug")
            (self.folder.path / "python").symlink_to(PYTHON)
            await python_changes()
            self.assertEqual(told, [("info", "Python works")])

    async def test_a_session_of_the_daemon_outlives_its_client_and_is_met_by_others(self):
        self.addCleanup(self.folder.end_daemon)
        async with self.connect("--session", "work") as client:
            await client.call_tool("eval", {"code": "x = 41"})
        async with self.connect("--session", "work") as one, self.connect("--session", "work") as two:
            self.assertTrue(text(await one.call_tool("eval", {"code": "x + 1"})).startswith("42\n"))
            (self.folder.path / "a.txt").write_text("of the client")
            tool = await one.call_tool("eval", {"code": "tool.read(path='a.txt')['text']"})
            self.assertTrue(text(tool).startswith("'of the client'\n"), text(tool))
            cell = "# %% [code]\nlen(tool.read(path='a.txt')['text'])\n"
            await one.call_tool("write", {"path": "a.ipynb", "content": cell})
            ran = await one.call_tool("notebook", {"action": "run", "path": "a.ipynb"})
            self.assertIn("13\n", text(ran))
            await two.call_tool("eval", {"code": "x = 1"})
            self.assertTrue(text(await one.call_tool("eval", {"code": "x"})).startswith("1\n"))
            shell = [CELLWRIGHT, "tool", "eval", '{"code": "x + 2"}', "--session", "work"]
            run = await asyncio.create_subprocess_exec(
                *shell,
                cwd=self.folder.path,
                env=self.folder.environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            self.assertEqual((await run.communicate())[0], b"3\n")
            await one.call_tool("kernel", {"action": "shutdown"})

    async def test_two_clients_at_once_keep_to_themselves(self):
        async with self.connect() as one, self.connect() as two:
            clients = {"one": one, "two": two}
            await asyncio.gather(
                *(client.call_tool("eval", {"code": f"me = '{name}'"}) for name, client in clients.items())
            )
            for name, client in clients.items():
                self.assertIn(f"'{name}'", text(await client.call_tool("eval", {"code": "me"})))

    async def test_resources_and_prompts(self):
        (self.folder.path / "deep").mkdir()
        (self.folder.path / "deep/n.ipynb").write_text(json.dumps(NOTEBOOK))
        async with self.connect() as client:
            resources = {
                str(resource.name): resource for resource in (await client.list_resources()).resources
            }
            contents = (await client.read_resource(resources["deep/n.ipynb"].uri)).contents
            self.assertEqual(contents[0].text, "# %% [code] cell:0\nn = 10\n")
            self.assertEqual(contents[0].mime_type, resources["deep/n.ipynb"].mime_type)
            long = await client.call_tool("eval", {"code": "for i in range(50_000): print(i)"})
            artifact = re.search(r"artifact://\w+", text(long)).group()
            contents = (await client.read_resource(f"{artifact}:40001-40002")).contents
            self.assertEqual(contents[0].text, "40000\n40001\n")
            listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
            self.assertIn(artifact, listed)
            with self.assertRaises(MCPError):
                await client.read_resource("file:///etc/passwd")
            [prompt] = (await client.list_prompts()).prompts
            message = (await client.get_prompt(prompt.name, {"path": "deep/n.ipynb"})).messages[0]
            self.assertIn("# %% [code] cell:0\nn = 10\n", message.content.text)

    async def test_python_is_tried_without_being_asked(self):
        changed = asyncio.Event()

        async def message(message) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        self.folder.python = "/nowhere/python"
        async with self.connect("--tools", "py-only", message_handler=message, mode="legacy") as client:

            async def tools() -> dict[str, str]:
                listed = (await client.list_tools(cache_mode="bypass")).tools
                return {tool.name: tool.description for tool in listed}

            # It may have been tried before we came.
            if "bash" not in await tools():
                await asyncio.wait_for(changed.wait(), 30)
            offered = await tools()
            self.assertIn("bash", offered)
            self.assertIn("/nowhere/python", offered["eval"])

    async def test_a_missing_python_is_told_by_list_and_reply(self):
        changed = asyncio.Event()

        async def message(message) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        self.folder.python = "/nowhere/python"
        async with self.connect(
            "--tools", "py-only", "--no-warm-up", message_handler=message, mode="legacy"
        ) as client:
            self.assertNotIn("bash", [tool.name for tool in (await client.list_tools()).tools])
            result = await client.call_tool("eval", {"code": "1"})
            self.assertTrue(result.is_error)
            self.assertIn("/nowhere/python", text(result))
            await asyncio.wait_for(changed.wait(), 30)
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            self.assertIn("Does not work at the moment", tools["eval"].description)
            self.assertEqual(text(await client.call_tool("bash", {"command": "echo works"})), "works\n")
