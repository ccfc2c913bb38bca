"""Random histories of a person and an agent at one notebook in the real JupyterLab, and the check of what is left.

The person types, runs, saves, undoes, moves cells, loses the connection, closes and reopens. The agent edits, inserts,
deletes and moves meanwhile. Every text is unique. At the end each cell and each text is there exactly once, unless
somebody took it away, and no output stands under code that did not make it.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from pathlib import Path

import nbformat
from lab import PANEL, Lab, cell

TEXT = re.compile(r"\b[pa]\d+\b")


def problems(initial: list, events: list[dict], final: list[dict]) -> list[str]:
    """What is wrong with a notebook after these events. Cells are pairs of an id and a source, those of `final` have
    outputs, too.

    An event of the person has what was there before and after it, taken at one moment. An event of the agent counts from
    its beginning: what the person did to it came later.
    """
    found = []
    ids = {one: True for one, _ in initial}
    texts: dict[str, bool | None] = {}
    homes: dict[str, str] = {}
    touched: set[str] = set()
    for event in sorted(events, key=lambda event: event["time"]):
        if event["by"] == "person":
            if "ran" in event:
                touched.discard(event["ran"])
                continue
            before, after = dict(event["before"]), dict(event["after"])
            ids.update(dict.fromkeys(before.keys() - after.keys(), False))
            ids.update(dict.fromkeys(after.keys() - before.keys(), True))
            had = {text: one for one, source in before.items() for text in TEXT.findall(source)}
            has = {text: one for one, source in after.items() for text in TEXT.findall(source)}
            texts.update(dict.fromkeys(had.keys() - has.keys(), False))
            texts.update(dict.fromkeys(has.keys() - had.keys(), True))
            homes.update(has)
            touched |= {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}
            continue
        work, answer = event["work"], event["answer"]
        is_open = "not known" in answer.get("error", "")
        if "error" in answer and not is_open:
            if work["do"] == "insert":
                ids.setdefault(work["new"], False)
            if "text" in work:
                texts.setdefault(work["text"], False)
            continue
        one = answer.get("done", answer.get("id"))
        if work["do"] == "delete":
            ids[one] = None if is_open else False
        if work["do"] == "insert":
            ids[one] = None if is_open else True
        if "text" in work:
            texts[work["text"]] = None if is_open else True
            homes[work["text"]] = one
            touched.discard(one)
    there = [one["id"] for one in final]
    for one in sorted(set(there)):
        if there.count(one) > 1:
            found.append(f"cell {one} is there {there.count(one)} times")
        if one not in ids:
            found.append(f"nobody made cell {one}")
        elif ids[one] is False:
            found.append(f"cell {one} is there, although it was taken away or refused")
    found += [f"cell {one} is lost" for one, alive in ids.items() if alive and one not in there]
    whole = " ".join(one["source"] for one in final)
    for text, alive in texts.items():
        count = len(re.findall(rf"\b{text}\b", whole))
        if count > 1:
            found.append(f"{text} is there {count} times")
        if count == 0 and alive and homes.get(text) in there:
            found.append(f"{text} is lost from cell {homes[text]}")
        if count and alive is False:
            found.append(f"{text} is there, although it was taken away or refused")
    for one in final:
        made = one["source"].removeprefix("say ").strip()
        if one["outputs"] and one["id"] not in touched and one["outputs"].strip() != made:
            found.append(f"cell {one['id']} says {made!r} and shows {one['outputs'].strip()!r}")
    return found


class History:
    """One notebook, one person, one agent."""

    def __init__(self, lab: Lab, name: str, seed: int, bridge: str) -> None:
        self.lab, self.browser, self.name = lab, lab.browser, name
        self.bridge = bridge
        self.person, self.agent = random.Random(seed), random.Random(seed + 1_000_000)
        self.path = lab.home / f"{name}.ipynb"
        self.folder = lab.home / f"orders-{name}"
        self.folder.mkdir()
        self.events: list[dict] = []
        self.failed: list[BaseException] = []
        # While a page is being opened or closed, the agent's orders wait: see docs/live-notebook.md on that moment.
        self.turning = threading.Lock()
        self.next = 0

    def run(self, steps: int) -> list[str]:
        setting = [
            "%permissions auto",
            "%session new driver",
            f"%%agent driver --background\nobey {self.folder}",
        ]
        setting += ["%session use main", "%agent page allow" if self.bridge == "injected" else "%agent page"]
        self.lab.notebook(self.name, *setting, *[f"say w{number}" for number in range(4)])
        for number in range(len(setting)):
            self.lab.start(number)
            self.browser.until(f"{cell(number)}.model.executionCount == {number + 1}")
        self.fixed = [one for one, _ in self.cells()][: len(setting)]
        self.initial = self.cells()
        agent = threading.Thread(target=self.act, args=(steps,))
        agent.start()
        try:
            for _ in range(steps):
                getattr(self, self.person.choice(self.habits()))()
                # A person takes a moment, and the agent works meanwhile.
                time.sleep(self.person.random() * 0.2)
        finally:
            agent.join()
        if self.failed:
            raise self.failed[0]
        self.order({"do": "end"}, wait=False)
        self.browser.until(f"{PANEL}.sessionContext.session.kernel.status == 'idle'")
        self.idle()
        self.save()
        notebook = nbformat.read(self.path, as_version=4)
        nbformat.validate(notebook)
        final = [
            {"id": one.id, "source": one.source, "outputs": shown(one)}
            for one in notebook.cells
            if one.id not in self.fixed
        ]
        initial = [pair for pair in self.initial if pair[0] not in self.fixed]
        return problems(initial, self.events, final)

    def habits(self) -> list[str]:
        return (
            ["types"] * 5 + ["runs"] * 3 + ["saves", "undoes", "undoes", "moves", "goes_offline", "reopens"]
        )

    # The agent.

    def act(self, steps: int) -> None:
        try:
            for number in range(steps):
                work = {"do": self.agent.choice(["edit", "edit", "insert", "insert", "delete", "move"])}
                work |= {
                    "at": self.agent.randrange(100),
                    "spare": self.fixed,
                    "path": str(self.path),
                }
                text = f"a{number}"
                if work["do"] == "edit":
                    work |= {"add": f" {text}", "text": text}
                if work["do"] == "insert":
                    work |= {"from_end": self.agent.randrange(2), "new": f"new-{number}"}
                    work |= {"source": f"say {text}", "text": text}
                with self.turning:
                    began = time.monotonic()
                    answer = self.order(work)
                self.events.append({"by": "agent", "time": began, "work": work, "answer": answer})
        except BaseException as error:
            self.failed.append(error)

    def order(self, work: dict, *, wait: bool = True) -> dict:
        order = self.folder / f"{self.next}.json"
        self.next += 1
        part = order.with_suffix(".new")
        part.write_text(json.dumps(work))
        part.rename(order)
        done, deadline = order.with_suffix(".done"), time.monotonic() + 120
        while wait and not done.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(json.dumps(work))
            time.sleep(0.01)
        return json.loads(done.read_text()) if wait else {}

    # The person.

    def cells(self) -> list:
        return json.loads(
            self.browser.js(
                f"JSON.stringify({PANEL}.content.model.toJSON().cells.map(c => [c.id, c.source]))"
            )
        )

    def does(self, what: str) -> None:
        """Something that the page does at once with its active cell, with the cells before and after it."""
        cells = f"{PANEL}.content.model.toJSON().cells.map(c => [c.id, c.source])"
        # JupyterLab gives a cell its editor when the cell comes into sight. The agent may remove the cell meanwhile:
        # then it is never ready, and another one is active.
        seen = "Promise.race([content.activeCell.ready, new Promise(resolve => setTimeout(resolve, 2000))])"
        script = (
            f"(async () => {{ {self.at()} content.scrollToItem(at); await {seen};"
            f"if (!content.activeCell?.editor || content.activeCellIndex < {len(self.fixed)})"
            "{ return JSON.stringify([[], []]) }"
            f"const before = {cells}; {what}; return JSON.stringify([before, {cells}]) }})()"
        )
        before, after = json.loads(self.browser.js(script))
        self.events.append({"by": "person", "time": time.monotonic(), "before": before, "after": after})

    def at(self) -> str:
        """Makes one of the cells at work the active one."""
        number = self.person.randrange(100)
        first = len(self.fixed)
        return (
            f"const {{ content }} = {PANEL};"
            f"const at = {first} + {number} % Math.max(1, content.widgets.length - {first});"
            "if (at >= content.widgets.length) return JSON.stringify([[], []]);"
            "content.deselectAll(); content.activeCellIndex = at;"
        )

    def types(self) -> None:
        text = f"p{sum('before' in event for event in self.events)}"
        key = "new KeyboardEvent('keydown', {key: 'x', bubbles: true})"
        self.does(
            "content.mode = 'edit'; const { editor } = content.activeCell;"
            f"content.node.dispatchEvent({key});"
            "const end = editor.getPositionAt(editor.model.sharedModel.getSource().length);"
            f"editor.setCursorPosition(end); editor.replaceSelection(' {text}')"
        )

    def runs(self) -> None:
        ran = self.browser.js(
            f"(() => {{ {self.at()} const {{ id }} = content.activeCell.model;"
            "window.jupyterapp.commands.execute('notebook:run-cell'); return id })()"
        )
        self.events.append({"by": "person", "time": time.monotonic(), "ran": ran})

    def saves(self) -> None:
        self.browser.js(f"void {PANEL}.context.save()")

    def undoes(self) -> None:
        of_cells = "content.mode = 'command'; window.jupyterapp.commands.execute('notebook:undo-cell-action')"
        in_cell = "content.mode = 'edit'; content.activeCell.editor.undo()"
        self.does(self.person.choice([of_cells, in_cell]))

    def moves(self) -> None:
        way = self.person.choice(["down", "down", "up"])
        # Above the first cells it would be spared by the agent and by the person.
        guard = f"if ('{way}' == 'up' && content.activeCellIndex <= {len(self.fixed)}) return JSON.stringify([[], []]);"
        self.does(f"{guard} window.jupyterapp.commands.execute('notebook:move-cell-{way}')")

    def goes_offline(self) -> None:
        self.browser.js(f"void {PANEL}.sessionContext.session.kernel._ws?.close()")

    def reopens(self) -> None:
        with self.turning:
            self.save()
            self.browser.js(f"{PANEL}.dispose(); 0")
            self.browser.open(
                f"{self.lab.address}/lab/workspaces/{self.name}/tree/{self.name}.ipynb?token=t&reset"
            )
            kernel = f"{PANEL}.sessionContext.session.kernel"
            self.browser.until(f"{PANEL}.context.path == '{self.name}.ipynb' && {kernel}.status == 'idle'")
            if self.bridge == "injected":
                number = len(self.fixed) - 1
                count = self.browser.js(f"{cell(number)}.model.executionCount")
                self.lab.start(number)
                self.browser.until(
                    f"{cell(number)}.model.executionCount > {count or 0} && {cell(number)}.outputArea.node.innerText"
                )
                self.idle()

    def idle(self) -> None:
        """Waits until nothing runs. A cell whose reply was lost with the connection looks as if it ran for ever."""
        kernel = f"{PANEL}.sessionContext.session.kernel"
        self.browser.until(f"{kernel}.status == 'idle' && {kernel}.connectionStatus == 'connected'")
        running = "one => one.inputArea?.promptNode?.textContent.includes('*')"
        for _ in range(50):
            if not self.browser.js(f"{PANEL}.content.widgets.some({running})"):
                return
            time.sleep(0.1)

    def save(self) -> None:
        self.idle()
        context = f"{PANEL}.context"
        self.browser.js(f"(async () => {{ do await {context}.save(); while ({context}.model.dirty) }})()")


def shown(one) -> str:
    outputs = one.get("outputs", [])
    return "".join(
        str(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in outputs
    )


def break_extension(lab: Lab, good: str, bad: str) -> None:
    """Spoils the extension that is installed: a checker that finds nothing proves nothing."""
    (script,) = Path(lab.home).glob(".local/share/jupyter/labextensions/cellwright/static/*.js")
    text = script.read_text()
    assert good in text, good
    script.write_text(text.replace(good, bad))
