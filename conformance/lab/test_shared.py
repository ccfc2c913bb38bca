"""An agent and a person at one notebook in the real JupyterLab: one kernel, one document."""

from __future__ import annotations

import json
import sys
import unittest

from lab import PANEL, ROOT, Lab, LabTest, cell

AGENT = [sys.executable, str(ROOT / "conformance/agent_kernel/tools_agent.py")]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PLOT = f"""eval y = x + 1
class Plot:
    def _repr_png_(self):
        import base64
        return base64.b64decode("{PIXEL}")
display(Plot())
y"""


class OneNotebook(LabTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.lab = Lab(AGENT)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.extension("install")

    def test_code_of_both_runs_in_one_kernel_and_is_saved_with_what_it_shows(self):
        lab = self.lab
        lab.notebook("shared", "%%python\nx = 41", f"%permissions allow run\n{PLOT}", "%%python\ny + 1")
        for number in range(3):
            lab.start(number)
            lab.finished(number)
        lab.shows("42", 1)
        lab.shows("answered", 1)
        lab.shows("43", 2)
        images = lab.browser.js(f"{cell(1)}.outputArea.node.querySelectorAll('img').length")
        self.assertEqual(images, 1)
        self.look("shared")
        outputs = lab.saved("shared").cells[1].outputs
        kinds = [
            next(iter({"image/png", "text/html"} & set(output.data)), "text")
            for output in outputs
            if "data" in output
        ]
        self.assertIn("image/png", kinds)
        self.assertEqual([output.data["text/plain"] for output in outputs if "data" in output].count("42"), 1)

    def test_the_agent_inserts_a_cell_that_is_seen_and_undone_in_the_page(self):
        lab = self.lab
        source = "%%python\n6 * 7"
        order = {"action": "insert", "source": source}
        lab.notebook("inserted", "%permissions auto", f"call notebook {json.dumps(order)}")
        for number in range(2):
            lab.start(number)
            lab.finished(number)
        lab.shows("answered", 1)
        lab.browser.until(f"{PANEL}.content.widgets.length == 3")
        self.assertEqual(lab.browser.js(f"{cell(2)}.model.sharedModel.getSource()"), source)
        lab.start(2)
        self.assertIn("42", lab.finished(2))
        lab.browser.js(f"{PANEL}.content.mode = 'command'; {PANEL}.content.node.focus(); 0")
        lab.browser.undo(of_cells=True)
        lab.browser.until(f"{PANEL}.content.widgets.length == 2")


if __name__ == "__main__":
    unittest.main()
