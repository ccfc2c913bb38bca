"""What an agent says cannot run in the page of the person who reads it, and fetches nothing."""

from __future__ import annotations

import http.server
import json
import threading
import unittest
from pathlib import Path

from lab import PANEL, LabTest, cell

CORPUS = Path(__file__).resolve().parents[2] / "fuzz/corpus/markdown"

# What a page must not hold below an output: anything that runs, loads, covers the page or commands it.
# Buttons and details without handlers are ours.
FOUND = """
(() => {
  const found = [];
  for (const node of document.querySelectorAll('.jp-OutputArea-output *')) {
    for (const name of node.getAttributeNames()) {
      const value = node.getAttribute(name);
      if (name.startsWith('on') || name.startsWith('data-commandlinker') || name === 'srcdoc' || name === 'formaction')
        found.push(`${name}=${value}`);
      if (['href', 'src', 'action', 'data', 'xlink:href'].includes(name) && /^\\s*(javascript|vbscript|data:text)/i.test(value))
        found.push(`${name}=${value}`);
      if (name === 'src' && /^(https?:)?\\/\\//.test(value) && !value.startsWith(location.origin)) found.push(`${name}=${value}`);
    }
    if (['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'STYLE', 'FORM', 'LINK', 'META', 'BASE', 'VIDEO'].includes(node.tagName)
        && !node.closest('mjx-container, svg, .jp-RenderedMermaid'))
      found.push(node.outerHTML);
  }
  return found.slice(0, 5);
})()
"""

# Everything that a person who reads does: the mouse passes over all of it.
HOVER = """
document.querySelectorAll('.jp-OutputArea-output *').forEach(node => {
  for (const kind of ['mouseover', 'mouseenter', 'mousemove', 'focus'])
    node.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
}); 0
"""


class Visits:
    """A web server of somebody else. It notes who came."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_arguments) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Harmless(LabTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.visits = Visits()
        cls.addClassCleanup(cls.visits.close)

    def payloads(self) -> list[str]:
        texts = [path.read_text() for path in sorted(CORPUS.glob("*.md"))]
        self.assertGreaterEqual(len(texts), 30)
        act = f"(top.ran = 1, fetch('{self.visits.address}/ran'))"
        return [
            text.replace("alert(1)", act).replace("https://evil.example", self.visits.address)
            for text in texts
        ]

    def check(self) -> None:
        browser = self.lab.browser
        browser.js(HOVER)
        # What would run does so within a few frames; what loads has begun by then.
        browser.until(
            "new Promise(resolve => requestIdleCallback(() => setTimeout(() => resolve(true), 300)))"
        )
        self.assertEqual(browser.js(FOUND), [])
        self.assertIsNone(browser.js("window.ran"))
        self.assertEqual(self.visits.seen, [])

    def test_what_an_agent_says_does_not_run_in_the_page(self):
        lab, browser = self.lab, self.lab.browser
        payloads = self.payloads()
        groups = [payloads[start : start + 4] for start in range(0, len(payloads), 4)]
        prompts = [
            "\n".join(f"inject {json.dumps(text)}" for text in group) + "\nsay the end" for group in groups
        ]
        lab.notebook("harmless", *prompts)
        for number in range(len(prompts)):
            lab.start(number)
            lab.finished(number)
            lab.shows("the end", number)
            self.check()
        lab.saved("harmless")
        browser.open(f"{lab.address}/lab/workspaces/again/tree/harmless.ipynb?token=t&reset")
        browser.until(
            f"{PANEL}.context.path == 'harmless.ipynb' && {PANEL}.sessionContext.session.kernel.status == 'idle'"
        )
        for number in range(len(prompts)):
            browser.js(
                f"{PANEL}.content.activeCellIndex = {number}; {PANEL}.content.scrollToItem({number}); 0"
            )
            lab.shows("the end", number)
            # Lab trusts what the person ran, also when it is opened again: it is ours to make it harmless.
            self.assertTrue(browser.js(f"{cell(number)}.model.trusted"))
        self.check()

    def test_the_page_can_run_what_these_texts_hold(self):
        """Without this, the other test could pass in a page that runs nothing at all."""
        browser = self.lab.browser
        self.lab.notebook("control", "say here")
        self.lab.start()
        self.lab.finished()
        output = f"{cell(0)}.outputArea.node.querySelector('.jp-OutputArea-output')"
        self.lab.shows("here")
        browser.js(f"{output}.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">'); 0")
        browser.until("window.ran == 1")
        self.assertNotEqual(browser.js(FOUND), [])

    def test_answers_look_as_they_were_written(self):
        lab = self.lab
        text = (
            "List<String> <think>hm</think> `vector<int>` Set $HOME and $PATH, $5 to $10\n\n"
            "\\(E=mc^2\\)\n\n\\[a<b\\]\n\n```html\n<b>bold</b>\n```\n\n1. step\n\n   ```html\n   <i>x</i>\n   y\n   ```\n"
        )
        lab.notebook("written", f"inject {json.dumps(text)}")
        lab.start()
        lab.finished()
        output = f"{cell(0)}.outputArea.node.querySelector('.jp-RenderedMarkdown')"
        lab.browser.until(f"{output}.querySelectorAll('mjx-container').length == 2")
        shown = lab.browser.js(f"{output}.innerText")
        for part in [
            "List<String> <think>hm</think> vector<int> Set $HOME and $PATH, $5 to $10",
            "<b>bold</b>",
            "<i>x</i>\ny",
        ]:
            self.assertIn(part, shown)


if __name__ == "__main__":
    unittest.main()
