"""Notebooks as documents: kinds of cells, versions of the format, odd sources."""

from .cells import markdown, raw, written

DOCUMENTS = [
    written(
        "markdown-and-raw-cells-are-left-alone",
        markdown("# Title\n\n1 / 0"),
        raw("raise"),
        "'code'",
        markdown(""),
    ),
    written("empty-cells-are-not-run", "", "   \n\n", "# only a comment", "'counted'"),
    written("a-notebook-without-cells"),
    written("a-notebook-without-code", markdown("only text")),
    *(
        written(f"nbformat-4.{minor}", markdown("# Title"), "print('x')\n1", raw("r"), minor=minor)
        for minor in range(6)
    ),
    written("old-outputs-are-replaced", "print('new')", "x = 1", old_outputs=True),
    written("sources-that-end-in-newlines", "print('a')\n\n\n", "1\n"),
    written("sources-with-unicode-line-ends", "x = 'a\u2028b'\nprint(len(x))\n'\x0c'"),
    written("sources-with-carriage-returns", "print('a')\r\nprint('b')\r\n1"),
    written("sources-with-tabs", "if True:\n\tprint('tab')\n\t1"),
    written("fifty-cells-count-to-fifty", *(f"{n}" for n in range(1, 51))),
]
