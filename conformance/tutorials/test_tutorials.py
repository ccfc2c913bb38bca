"""A part of the tutorials, side by side with ipykernel in this Python; `side_by_side.py` runs them all."""

import asyncio
import sys
import unittest

import side_by_side

# What needs no big library: those take their time to import, three times each.
QUICK = ["language", "magics", "display", "concurrency"]


class Tutorials(unittest.TestCase):
    def test_cells_show_what_they_show_in_ipykernel_or_the_table_has_a_verdict(self) -> None:
        python = ".".join(map(str, sys.version_info[:2]))
        found = asyncio.run(side_by_side.run_all(sys.executable, None, QUICK))
        unknown, stale = side_by_side.compare(python, found)
        self.assertFalse(unknown, "no verdict:\n" + "\n".join(map(str, unknown)))
        self.assertFalse(stale, "no difference any more")

    def test_there_are_enough_cells_and_each_is_known_by_its_first_line(self) -> None:
        tutorials = side_by_side.tutorials()
        self.assertGreaterEqual(sum(map(len, tutorials.values())), 150)
        for name, cells in tutorials.items():
            with self.subTest(name):
                firsts = list(map(side_by_side.first_line, cells))
                self.assertEqual(sorted(set(firsts)), sorted(firsts))

    def test_every_row_names_a_cell_and_has_a_verdict_and_a_reason(self) -> None:
        tutorials = side_by_side.tutorials()
        for row in side_by_side.differences():
            with self.subTest(row.code, tutorial=row.tutorial):
                self.assertIn(row.code, list(map(side_by_side.first_line, tutorials[row.tutorial])))
                self.assertIn(row.verdict, side_by_side.VERDICTS)
                self.assertIn(row.where, ("with", "without", "both"))
                self.assertTrue(row.why and row.ours)

    def test_the_page_is_up_to_date(self) -> None:
        self.assertEqual(
            side_by_side.page(), side_by_side.PAGE.read_text(), "run side_by_side.py --page to rewrite it"
        )


if __name__ == "__main__":
    unittest.main()
