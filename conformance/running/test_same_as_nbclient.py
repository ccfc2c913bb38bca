"""The same notebooks by nbclient and by `cellwright run`, on ipykernel and on our own runner.

What differs is in `differences.DIFFERENCES` and in docs/running-notebooks.md, or it is a failure.
"""

import json
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path

from differences import DIFFERENCES, Difference
from runs import NBCLIENT, OURS, WORKSPACE, Ran, run_all

DOCUMENT = WORKSPACE / "docs/running-notebooks.md"


def made_alike(ran: Ran, differences: Iterable[Difference]) -> dict:
    left = {"cells": ran.cells, "stopped": ran.stopped}
    for difference in differences:
        left = difference.alike(left)
    return left


class SameAsNbclient(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory(prefix="cellwright-") as folder:
            cls.ran = run_all(Path(folder))

    def pair(self, notebook: str, kernel: str, differences: Iterable[Difference]) -> tuple[dict, dict]:
        concerned = [difference for difference in differences if difference.concerns(notebook, kernel)]
        return (
            made_alike(self.ran[notebook, NBCLIENT], concerned),
            made_alike(self.ran[notebook, kernel], concerned),
        )

    def test_there_are_notebooks(self) -> None:
        for kernel in OURS:
            self.assertGreaterEqual(len(self.run_on(kernel)), 60)

    def run_on(self, kernel: str) -> list[str]:
        return sorted(notebook for notebook, by in self.ran if by == kernel)

    def test_every_notebook_is_left_as_nbclient_leaves_it(self) -> None:
        for kernel in OURS:
            for notebook in self.run_on(kernel):
                with self.subTest(notebook, kernel=kernel):
                    theirs, ours = self.pair(notebook, kernel, DIFFERENCES)
                    self.assertEqual(pretty(theirs), pretty(ours))

    def test_every_listed_difference_is_one(self) -> None:
        for difference in filter(lambda difference: difference.always, DIFFERENCES):
            others = [other for other in DIFFERENCES if other is not difference]
            for kernel in difference.kernels:
                with self.subTest(difference.title, kernel=kernel):
                    concerned = [name for name in self.run_on(kernel) if difference.concerns(name, kernel)]
                    alike = [name for name in concerned if self.is_alike(name, kernel, others)]
                    if difference.notebooks:
                        self.assertEqual([], alike, "it is none any more")
                    else:
                        self.assertLess(len(alike), len(concerned), "it is none any more")

    def is_alike(self, notebook: str, kernel: str, differences: Iterable[Difference]) -> bool:
        theirs, ours = self.pair(notebook, kernel, differences)
        return theirs == ours

    def test_every_listed_difference_is_explained(self) -> None:
        explained = DOCUMENT.read_text()
        for difference in DIFFERENCES:
            with self.subTest(difference.title):
                self.assertIn(difference.title, explained)


def pretty(value: dict) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)


if __name__ == "__main__":
    unittest.main()
