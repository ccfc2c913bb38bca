"""Widgets of the agent kernel in the real JupyterLab: forms, menus, and what is left of them."""

from __future__ import annotations

import json
import unittest

from lab import SHOTS, WIDGET, LabTest, cell


class Widgets(LabTest):
    def all(self, selector: str, number: int = 0) -> str:
        return f"[...{cell(number)}.outputArea.node.querySelectorAll({json.dumps(selector)})]"

    def click(self, label: str) -> None:
        button = f"{self.all('button.jupyter-button')}.find(button => button.innerText == '{label}')"
        self.lab.browser.js(f"{button}.click(); 0")

    def choose(self, at: int, index: int) -> None:
        """Chooses from the drop-down at this place."""
        select = f"{self.all('.widget-dropdown select')}[{at}]"
        changed = "dispatchEvent(new Event('change', {bubbles: true}))"
        self.lab.browser.js(f"{select}.selectedIndex = {index}; {select}.{changed}; 0")

    def no_widgets_are_left(self, name: str) -> None:
        self.lab.browser.until(f"{self.all('.jupyter-widgets')}.length == 0")
        for output in self.lab.saved(name).cells[0].outputs:
            self.assertNotIn(WIDGET, output.get("data", {}))

    def test_a_form_has_fields_drop_downs_and_reasons(self):
        lab, browser = self.lab, self.lab.browser
        lab.notebook("form", "survey")
        lab.start()
        browser.until(f"{self.all('.widget-text input')}.length == 2")
        for part in (
            "A few questions",
            "Your name",
            "As on <b>your</b> card",
            "Small: for trying things out",
        ):
            lab.shows(part)
        self.assertEqual(browser.js(f"{self.all('.widget-text input')}[1].value"), "5432")
        self.look("form")
        self.click("Send")
        lab.shows("an answer is required")
        lab.shows("choose one")
        self.look("form-refused")
        browser.js(f"{self.all('.widget-text input')}[0].focus(); 0")
        browser.type("Bob")
        self.choose(0, 2)
        browser.js(f"{self.all('.widget-checkbox input')}[0].click(); 0")
        self.click("Send")
        lab.finished()
        lab.shows("answered: Your name: Bob · Port: 5432 · Size: Large · Are you sure?: no")
        lab.shows('"content": {"a_name": "Bob", "b_port": 5432, "c_size": "l", "e_sure": false}')
        self.look("form-answered")
        self.no_widgets_are_left("form")

    def test_the_options_are_a_menu(self):
        lab, browser = self.lab, self.lab.browser
        lab.notebook("menu", "%agent options", "%agent model", "%agent options")
        lab.start()
        lab.finished()
        browser.until(f"{self.all('.widget-dropdown select')}.length == 2")
        self.look("menu")
        self.choose(1, 1)
        lab.shows("Model: large")
        lab.start(1)
        lab.finished(1)
        lab.shows("* large", 1)
        # A new menu takes the place of the first one.
        lab.start(2)
        lab.finished(2)
        browser.until(f"{self.all('.widget-dropdown select', 2)}.length == 2")
        lab.shows("model  large  Model")
        self.assertEqual(browser.js(f"{self.all('.widget-dropdown select')}.length"), 0)

    def test_thousands_of_headings_are_shown_and_few_are_in_the_table_of_contents(self):
        lab, browser = self.lab, self.lab.browser
        lab.notebook("headings", "headings 9000")
        browser.js(
            "window.longest = 0; window.last = performance.now();"
            "setInterval(() => { const now = performance.now();"
            "window.longest = Math.max(window.longest, now - window.last); window.last = now }, 20); 0"
        )
        lab.start()
        lab.finished()
        lab.shows("Heading 99")
        outputs = lab.saved("headings").cells[0].outputs
        text = "".join(output.data["text/plain"] for output in outputs)
        self.assertEqual(text.count("## Heading "), 9000)
        markdown = "".join(output.data["text/markdown"] for output in outputs)
        self.assertEqual(markdown.count("# Heading "), 9000)
        self.assertEqual(sum(line.startswith("#") for line in markdown.splitlines()), 100)
        if SHOTS:
            print("the page was blocked for", browser.js("window.longest"), "ms at most")
        self.look("headings")


if __name__ == "__main__":
    unittest.main()
