"""A person and an agent at one notebook: random histories, and a checker that finds what a broken bridge breaks."""

from __future__ import annotations

import unittest

from histories import History, break_extension, problems
from lab import LabTest

STEPS = 8


class Checker(unittest.TestCase):
    """The checker, on histories that are known."""

    def test_what_is_right_is_right(self):
        events = [
            {
                "by": "agent",
                "time": 1,
                "work": {"do": "insert", "new": "n", "text": "a1"},
                "answer": {"done": "n"},
            },
            {"by": "person", "time": 2, "before": [["c", "say w"]], "after": [["c", "say w p1"]]},
            {"by": "person", "time": 3, "ran": "c"},
            {"by": "agent", "time": 4, "work": {"do": "delete"}, "answer": {"error": "it is running"}},
        ]
        final = [
            {"id": "c", "source": "say w p1", "outputs": "w p1\n"},
            {"id": "n", "source": "say a1", "outputs": ""},
        ]
        self.assertEqual(problems([["c", "say w"]], events, final), [])

    def test_every_kind_of_loss_is_found(self):
        insert = {"by": "agent", "time": 1, "work": {"do": "insert", "new": "n", "text": "a1"}}
        done, refused = {**insert, "answer": {"done": "n"}}, {**insert, "answer": {"error": "no"}}
        kept = {"id": "c", "source": "say w", "outputs": ""}
        new = {"id": "n", "source": "say a1", "outputs": ""}

        def found(events, *final):
            return " ".join(problems([["c", "say w"]], events, list(final)))

        self.assertIn("cell n is lost", found([done], kept))
        self.assertIn("n is there 2 times", found([done], kept, new, new))
        self.assertIn("a1 is there 2 times", found([done], {**kept, "source": "a1"}, new))
        self.assertIn("a1 is lost", found([done], kept, {**new, "source": "say"}))
        self.assertIn("taken away or refused", found([refused], kept, new))
        self.assertIn("nobody made cell x", found([], kept, {**new, "id": "x"}))
        self.assertIn("shows 'other'", found([], {**kept, "outputs": "other\n"}))


class Histories(LabTest):
    def histories(self, bridge: str, count: int = 3) -> None:
        for seed in range(count):
            with self.subTest(seed=seed):
                history = History(self.lab, f"{bridge}-{seed}", seed, bridge)
                self.assertEqual(history.run(STEPS), [], f"{bridge}, seed {seed}: {history.events}")

    def test_with_the_extension(self):
        self.lab.extension("install")
        self.addCleanup(self.lab.extension, "uninstall")
        self.histories("extension")

    def test_without_a_bridge(self):
        self.histories("nothing")

    def test_a_broken_bridge_is_found_out(self):
        self.lab.extension("install")
        self.addCleanup(self.lab.extension, "uninstall")
        # A page that adds each cell twice, and forgets what it was to compare.
        insert = "model.insertCell(after, step.cell)"
        twice = f"{insert}, model.insertCell(after, {{ ...step.cell, id: `${{step.cell.id}}-twin` }})"
        break_extension(self.lab, insert, twice)
        found = History(self.lab, "broken", 1, "extension").run(STEPS)
        self.assertTrue(any("times" in problem or "nobody made" in problem for problem in found), found)


if __name__ == "__main__":
    unittest.main()
