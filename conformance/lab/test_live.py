"""The agent changes the notebook that is open in the real JupyterLab, where the person sees it and can undo it."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from lab import PANEL, LabTest, cell

CELLS = f"JSON.stringify({PANEL}.content.model.toJSON().cells.map(cell => [cell.id, cell.source]))"


class LivePageTest(LabTest):
    """Tests in which the agent changes the notebook that is open."""

    def cells(self) -> list[list[str]]:
        return json.loads(self.lab.browser.js(CELLS))

    def open(self, name: str, *cells: str) -> None:
        """A notebook with these cells, of which the first lets the agent write files."""
        self.lab.notebook(name, "%permissions auto", *cells)
        self.lab.start()
        self.lab.finished()

    def agent(self, name: str, number: int, **work) -> dict:
        """Lets the agent make a change from the prompt in this cell."""
        order = f"notebook {self.lab.home / name}.ipynb {json.dumps(work)}"
        source = f"{cell(number)}.model.sharedModel"
        self.lab.browser.js(f"{source}.setSource({json.dumps(order)}); 0")
        self.lab.start(number)
        shown = self.lab.finished(number)
        self.lab.browser.until(f"{cell(number)}.outputArea.node.innerText.includes('}}')")
        shown = self.lab.shown(number)
        return json.loads(shown[shown.index("{") : shown.rindex("}") + 1])


class LiveNotebook(LivePageTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.lab.extension("install")

    def test_an_edit_is_seen_at_once_keeps_the_cursor_and_is_one_step_to_undo(self):
        lab, browser = self.lab, self.lab.browser
        self.open("edit", "prompt", "say 1\nsay 2\nsay 3")
        lab.start(2)
        lab.finished(2)
        before = self.cells()
        edited = before[2][0]
        told = self.agent("edit", 1, do="edit", id=edited, add="\nsay 4")
        self.assertEqual(told, {"done": edited})
        self.assertEqual(self.cells()[2][1], "say 1\nsay 2\nsay 3\nsay 4")
        # What the old code printed does not stand under the new code.
        self.assertEqual(lab.shown(2), "")
        self.assertTrue(browser.js(f"{cell(2)}.node.classList.contains('cellwright-touched')"))
        browser.js(f"{PANEL}.content.activeCellIndex = 2; {PANEL}.content.mode = 'edit'; 0")
        browser.undo()
        browser.until(f"{cell(2)}.model.sharedModel.getSource() == 'say 1\\nsay 2\\nsay 3'")
        self.assertEqual(self.cells()[2], before[2])

    def test_cells_that_come_and_go_are_one_step_to_undo(self):
        lab, browser = self.lab, self.lab.browser
        self.open("cells", "prompt", "say a", "say b")
        a, b = (one[0] for one in self.cells()[2:])
        self.assertEqual(
            self.agent("cells", 1, do="insert", id=a, new="new-one", source="say new"), {"done": "new-one"}
        )
        self.assertEqual([one[0] for one in self.cells()[2:]], [a, "new-one", b])
        self.assertEqual(self.agent("cells", 1, do="delete", id=b), {"done": b})
        self.assertEqual([one[0] for one in self.cells()[2:]], [a, "new-one"])
        browser.js(f"{PANEL}.content.mode = 'command'; {PANEL}.content.node.focus(); 0")
        browser.undo(of_cells=True)
        browser.until(f"{PANEL}.content.widgets.length == 5")
        self.assertEqual([one[0] for one in self.cells()[2:]], [a, "new-one", b])
        browser.undo(of_cells=True)
        browser.until(f"{PANEL}.content.widgets.length == 4")
        self.assertEqual([one[0] for one in self.cells()[2:]], [a, b])
        saved = lab.saved("cells")
        self.assertEqual([one.id for one in saved.cells[2:]], [a, b])

    def test_what_the_person_typed_since_is_not_overwritten(self):
        lab, browser = self.lab, self.lab.browser
        self.open("both", "prompt", "say mine")
        target = self.cells()[2][0]
        path = str(lab.home / "both.ipynb")
        # The agent reads, the person types, and the agent writes what it made of the old text.
        order = f"notebook_late {path} {target}"
        browser.js(f"{cell(1)}.model.sharedModel.setSource({json.dumps(order)}); 0")
        lab.start(1)
        lab.shows("has read", 1)
        browser.js(f"{cell(2)}.model.sharedModel.setSource('say mine, and more'); 0")
        Path(f"{path}.go").touch()
        lab.finished(1)
        lab.shows("changed in the page", 1)
        self.assertEqual(self.cells()[2], [target, "say mine, and more"])

    def test_the_person_can_switch_it_off_and_on(self):
        browser = self.lab.browser
        self.open("off", "prompt", "say x")
        target = self.cells()[2][0]
        self.agent("off", 1, do="read", short=True)
        sign = f"{PANEL}.toolbar.node.querySelector('.cellwright-status')"
        browser.until(f"{sign}.textContent == 'Agent: on'")
        browser.js(f"{sign}.click(); 0")
        told = self.agent("off", 1, do="edit", id=target, add="!")
        self.assertIn("switched the agent off", told["error"])
        self.assertEqual(self.cells()[2], [target, "say x"])
        browser.js(f"{sign}.click(); 0")
        self.assertEqual(self.agent("off", 1, do="edit", id=target, add="!"), {"done": target})

    def test_a_restart_leaves_no_dead_buttons(self):
        lab, browser = self.lab, self.lab.browser
        lab.notebook("asked", "permission edit src/a.py", "survey")
        for number, first in ((0, "Allow"), (1, "Send")):
            lab.start(number)
            buttons = f"[...{cell(number)}.outputArea.node.querySelectorAll('button.jupyter-button')]"
            browser.until(f"{buttons}.some(button => button.innerText == '{first}')")
            browser.js(f"{PANEL}.sessionContext.restartKernel()")
            lab.shows("not answered: the kernel was restarted", number)
            self.assertEqual(browser.js(f"{buttons}.length"), 0)
            browser.until(f"{PANEL}.sessionContext.session.kernel.status == 'idle'")

    def test_a_large_notebook_comes_in_pieces(self):
        self.open("large", "prompt", "say x")
        text = "x" * 3_000_000
        self.lab.browser.js(f"{cell(2)}.model.sharedModel.setSource('# ' + 'x'.repeat(3000000)); 0")
        told = self.agent("large", 1, do="read", short=True)
        self.assertEqual(told["length"], len(text) + 2)


class KeptCode(LivePageTest):
    """The agent has the tools of the notebook, which other tests of pages do without."""

    TOOLS = "notebook"

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.lab.extension("install")

    def test_kept_code_appears_below_its_prompt_with_its_outputs(self):
        lab, browser = self.lab, self.lab.browser
        code = "eval y = 41 + 1\\nprint(y)"
        self.open("keep", code, "%keep")
        lab.start(1)
        lab.shows("42", 1)
        lab.finished(1)
        lab.start(2)
        browser.until(
            f"{PANEL}.content.widgets.length >= 4 && {PANEL}.content.widgets[2].model.id.length == 8"
        )
        self.assertEqual(self.cells()[2][1], "%%python\ny = 41 + 1\nprint(y)")
        lab.shows("42", 2)
        saved = lab.saved("keep").cells[2]
        self.assertEqual([output["text"] for output in saved.outputs], ["42\n"])
        lab.start(2)
        lab.finished(2)
        lab.shows("42", 2)


class WithoutExtension(LivePageTest):
    """In a page without the extension the file is not written, until the person lets the agent into the page."""

    def test_the_file_is_left_alone_while_it_is_open(self):
        self.open("closed", "prompt", "say x")
        target = self.cells()[2][0]
        before = (self.lab.home / "closed.ipynb").read_bytes()
        told = self.agent("closed", 1, do="edit", id=target, add="!")
        self.assertIn("open in a page", told["error"])
        self.assertEqual((self.lab.home / "closed.ipynb").read_bytes(), before)

    def test_one_yes_lets_the_agent_into_the_page_and_leaves_no_trace(self):
        lab = self.lab
        self.open("injected", "%agent page allow", "prompt", "say x")
        lab.start(1)
        lab.finished(1)
        lab.shows("shows injected.ipynb", 1)
        target = self.cells()[3][0]
        self.assertEqual(self.agent("injected", 2, do="edit", id=target, add="!"), {"done": target})
        self.assertEqual(self.cells()[3], [target, "say x!"])
        saved = lab.saved("injected").cells[1].outputs
        self.assertNotIn("javascript", json.dumps(saved))


if __name__ == "__main__":
    unittest.main()
