"""The agent kernel in the real JupyterLab, in a real browser."""

from __future__ import annotations

import unittest

from lab import PANEL, WIDGET, LabTest, cell


class InLab(LabTest):
    def test_a_turn_with_everything(self):
        lab = self.lab
        lab.notebook(
            "everything",
            "think **Looking** for it\nplan Change the code\nsay # Heading\nsay Some *text*\ntool src/a.py\ndiff src/a.py\nimage\nusage",
        )
        lab.start()
        lab.finished()
        # Lab renders text after it has come.
        for part in [
            "Thought: Looking",
            "Plan (1 of 1 done)",
            "Heading",
            "Read src/a.py",
            "three",
            "1,200 of 200,000 tokens",
        ]:
            lab.shows(part)
        # Markdown is rendered, and what a tool printed is not markup.
        node = f"{cell(0)}.outputArea.node"
        self.assertEqual(lab.browser.js(f"{node}.querySelector('h1').innerText"), "Heading")
        self.assertIn("<b>what it read</b>", lab.browser.js(f"{node}.textContent"))
        lab.browser.until(f"{node}.querySelectorAll('img').length == 1")
        self.look("everything")
        outputs = lab.saved("everything").cells[0].outputs
        self.assertTrue(all("text/plain" in output.data for output in outputs))

    def test_text_shows_while_the_turn_goes_on_and_an_interrupt_ends_it(self):
        lab = self.lab
        lab.notebook("interrupt", "say begun\nwait", "say again")
        lab.start()
        lab.shows("begun")
        lab.browser.js("window.jupyterapp.commands.execute('notebook:interrupt-kernel')")
        lab.finished()
        lab.shows("interrupted")
        lab.start(1)
        lab.finished(1)
        lab.shows("again", 1)
        self.assertEqual(lab.shown(1).strip(), "again")

    def test_a_permission_is_given_by_a_button_which_does_not_outlive_it(self):
        lab = self.lab
        lab.notebook("button", "permission edit src/a.py")
        lab.start()
        buttons = f"[...{cell(0)}.outputArea.node.querySelectorAll('button.jupyter-button')]"
        lab.browser.until(f"{buttons}.length == 3")
        self.look("button")
        lab.browser.js(f"{buttons}.find(button => button.innerText == 'Allow').click(); 0")
        lab.finished()
        lab.shows("permission: once")
        lab.shows("allowed by you (Allow)")
        self.look("decided")
        self.assertEqual(lab.browser.js(f"{buttons}.length"), 0)
        outputs = lab.saved("button").cells[0].outputs
        self.assertFalse([output for output in outputs if WIDGET in output.get("data", {})])

    def test_a_restarted_kernel_continues_the_conversation_of_its_notebook(self):
        lab = self.lab
        lab.notebook("restart", "remember the cat", "recall")
        lab.start()
        lab.finished()
        lab.browser.js(f"{PANEL}.sessionContext.restartKernel()")
        lab.browser.until(f"{PANEL}.sessionContext.session.kernel.status == 'idle'")
        lab.start(1)
        lab.finished(1)
        lab.shows("the conversation of this notebook continues", 1)
        lab.shows("the cat", 1)

    def test_the_end_of_a_long_turn_is_in_sight(self):
        lab = self.lab
        lab.notebook("long", "tools 100\nsay That was all.")
        lab.start()
        lab.finished()
        lab.shows("That was all.")
        shown = lab.shown()
        for number in range(100):
            self.assertIn(f"Step {number}", shown)
        self.look("long")
        self.assertIsNone(lab.browser.js(f"{cell(0)}.outputArea.node.querySelector('.jp-TrimmedOutputs')"))

    def test_a_hundred_thousand_chunks_are_shown_completely(self):
        lab = self.lab
        lab.notebook("chunks", "chunks 100000 50")
        lab.start()
        lab.finished()
        outputs = lab.saved("chunks").cells[0].outputs
        text = "".join(output.data.get("text/markdown", "") for output in outputs)
        self.assertEqual(len(text), 5_000_000)
        self.assertEqual([line.split()[0] for line in text.splitlines()], [str(n) for n in range(100_000)])
        self.assertNotIn("rate exceeded", "".join(lab.log))
        # Lab shows 50 outputs of a cell and the rest on demand.
        more = f"{cell(0)}.outputArea.node.querySelector('.jp-TrimmedOutputs button, .jp-TrimmedOutputs a')"
        lab.browser.js(f"{more}.click(); 0")
        shown = f"{cell(0)}.outputArea.node.textContent"
        lab.browser.until(f"{shown}.includes('99999 xxx')")
        numbers = lab.browser.js(f"{shown}.match(/[0-9]+ xxx/g).length")
        self.assertEqual(numbers, 100_000)

    def test_without_widgets_a_permission_is_given_by_typing(self):
        lab = self.lab
        lab.without_widgets()
        self.addCleanup(lab.with_widgets)
        lab.notebook("typing", "permission edit src/a.py", "say next")
        lab.start()
        field = f"{cell(0)}.outputArea.node.querySelector('input.jp-Stdin-input')"
        lab.browser.until(f"{field} && ({field}.focus(), true)")
        self.assertIsNone(lab.browser.js(f"{cell(0)}.outputArea.node.querySelector('button.jupyter-button')"))
        lab.browser.type("n")
        lab.browser.press_enter()
        lab.finished()
        lab.shows("permission: no")
        lab.start(1)
        lab.finished(1)
        lab.shows("next", 1)
        self.assertEqual(lab.shown(1).strip(), "next")


if __name__ == "__main__":
    unittest.main()
