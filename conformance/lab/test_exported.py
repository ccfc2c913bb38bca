"""A page that `cellwright export` made, in a browser: it runs nothing, loads nothing, and is readable by day and by night."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import nbformat
from browser import Browser
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from test_harmless import CORPUS, Visits
from workspace import CELLWRIGHT

# What a page must not hold: anything that runs, loads or sends.
FOUND = """
(() => {
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    for (const name of node.getAttributeNames()) {
      const value = node.getAttribute(name);
      if (name.startsWith('on') || ['srcdoc', 'srcset', 'action', 'formaction', 'ping'].includes(name))
        found.push(`${name}=${value}`);
      if (['href', 'xlink:href'].includes(name) && /^\\s*(javascript|vbscript|data):/i.test(value))
        found.push(`${name}=${value}`);
      if (name === 'src' && !value.startsWith('data:image/')) found.push(`${name}=${value}`);
    }
    if (/^(script|iframe|object|embed|form|link|meta|base|video|audio|foreignobject)$/i.test(node.tagName))
      found.push(node.outerHTML);
  }
  return found;
})()
"""

# How far apart the lightness of words and ground is, by WCAG: 4.5 is easy to read.
CONTRAST = """
(() => {
  const light = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
    const [r, g, b] = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const poor = [];
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) poor.push([node.textContent.slice(0, 40), contrast]);
  }
  return poor;
})()
"""

BEACON = """<style>@import '{0}/a'; td {{ background: url({0}/b) }} b {{ position: fixed; color: teal }}</style>
<b style="background-image: url('{0}/c')">words</b><img src="{0}/d" srcset="{0}/e 2x" onerror="fetch('{0}/f')">
<svg><image href="{0}/g"/><use href="{0}/h#a"/><script>fetch('{0}/i')</script></svg><iframe src="{0}/j"></iframe>
<link rel=stylesheet href="{0}/k"><meta http-equiv=refresh content="0;url={0}/l"><video src="{0}/m"></video>
<math><mtext><table><mglyph><style><!--</style><img src=x onerror="fetch('{0}/n')"></style></table></mtext></math>
<table background="{0}/o"><tr><td>cell</td></tr></table><object data="{0}/p"></object><embed src="{0}/q">"""


class Exported(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.visits = Visits()
        cls.addClassCleanup(cls.visits.close)

    def page(self, cells: list[nbformat.NotebookNode]) -> None:
        """Opens the page of a notebook."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cellwright-")))
        path = folder / "a.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        run = subprocess.run([CELLWRIGHT, "export", str(path)], capture_output=True, text=True)
        self.assertEqual((0, ""), (run.returncode, run.stderr))
        self.browser.open(f"file://{folder}/a.html")
        self.browser.until("document.readyState == 'complete' && document.querySelector('main') != null")

    def test_nothing_of_a_notebook_runs_or_loads(self) -> None:
        texts = [path.read_text() for path in sorted(CORPUS.glob("*.md"))]
        texts = [text.replace("https://evil.example", self.visits.address) for text in texts]
        texts.append(BEACON.format(self.visits.address))
        cells = [new_markdown_cell(text) for text in texts]
        for text in texts:
            shown = [new_output("display_data", data={mime: text}) for mime in ("text/html", "text/markdown")]
            svg = f'<svg xmlns="http://www.w3.org/2000/svg" onload="fetch(\'{self.visits.address}/s\')">{text}</svg>'
            shown.append(new_output("display_data", data={"image/svg+xml": svg}))
            cells.append(new_code_cell("x", outputs=shown))
        self.page(cells)
        self.assertEqual([], self.browser.js(FOUND))
        self.assertGreater(self.browser.js("document.querySelectorAll('section').length"), len(texts))
        # What would load has begun by then.
        self.browser.until(
            "new Promise(resolve => requestIdleCallback(() => setTimeout(() => resolve(true), 300)))"
        )
        self.assertEqual([], self.visits.seen)
        # Without this, the server could be one that nobody reaches.
        self.browser.open("about:blank")
        self.browser.until(
            f"await fetch({json.dumps(self.visits.address + '/again')}, {{mode: 'no-cors'}}) != null"
        )
        self.assertIn("/again", self.visits.seen)

    def test_words_stand_out_by_day_and_by_night(self) -> None:
        styled = "<style>td {background: gold} th {background: #fffbe0}</style><table><tr><th>h</th><td>1</td></tr></table>"
        stream = "".join(
            f"\x1b[{code}mcolour {code}\x1b[0m\n" for code in (1, 2, *range(30, 38), *range(90, 98))
        )
        outputs = [
            new_output("stream", name="stdout", text=stream),
            new_output("stream", name="stderr", text="careful\n"),
            new_output("error", ename="E", evalue="v", traceback=["\x1b[1;31mE\x1b[0m: v"]),
            new_output("display_data", data={"text/html": styled}),
            new_output(
                "display_data",
                data={"text/html": "<table class=dataframe><tr><th>a</th><td>1</td></tr></table>"},
            ),
        ]
        source = "@cache\ndef f(x: int) -> str:  # why\n    return 'text' if x else None\n%time f(12)"
        prose = (
            "# Title\n\nwords with `code`, [a link](https://x.example)\n\n> a quote\n\n| a |\n|---|\n| 1 |\n"
        )
        self.page([new_markdown_cell(prose), new_code_cell(source, outputs=outputs, execution_count=3)])
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            self.browser.call("Emulation.setEmulatedMedia", features=features)
            self.assertEqual([], self.browser.js(CONTRAST), scheme)
            ground = self.browser.js("getComputedStyle(document.body).backgroundColor")
            self.assertEqual({"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme], ground)


if __name__ == "__main__":
    unittest.main()
