"""Checks the pages that people read: `python scripts/docs.py`.

Links, source files and tests that a page names must exist, and prose lines end by column 100. Tables, code and headings
may be longer.
"""

import re
import subprocess
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
WIDTH = 100

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# `crates/notebook/src/text.rs`, `src/text.rs: test_name`, `text.rs`, `tests/`
FILE = re.compile(r"`((?:[\w.-]+/)*(?:[\w-]+\.(?:rs|py|sh|toml|md)|[\w-]+/))(?::[^`]*)?`")
RUST_TEST = re.compile(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)")
PYTHON_TEST = re.compile(r"\bdef (test_\w+)")
# A name in code with at least three words is that of a test, in the pages that name tests.
NAMED_TEST = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+){3,}\b")


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading.

    >>> anchor("When others change the notebook, too"), anchor("`%agent` and *more*")
    ('when-others-change-the-notebook-too', 'agent-and-more')
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def prose(text: str) -> list[tuple[int, str]]:
    """The lines of a page, with their numbers, that are neither code nor part of a table.

    >>> prose("a\\n```\\ncode\\n```\\n| x |\\n    code\\nb")
    [(1, 'a'), (7, 'b')]
    """
    lines, in_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith(("|", "    ", "#", "<!--")):
            lines.append((number, line))
    return lines


def headings(text: str) -> set[str]:
    """The anchors of a page.

    >>> sorted(headings("# A page\\n## Part one\\n"))
    ['a-page', 'part-one']
    """
    return {anchor(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}


def files() -> list[Path]:
    """What the repository holds, with what is new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=WORKSPACE,
        check=True,
        capture_output=True,
        text=True,
    )
    return [WORKSPACE / name for name in listed.stdout.splitlines() if (WORKSPACE / name).is_file()]


def wrong_links(page: Path, text: str) -> list[str]:
    wrong = []
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, part = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            wrong.append(f"links to {target}, which does not exist")
        elif part and path.suffix == ".md" and part not in headings(path.read_text()):
            wrong.append(f"links to {target}, but {path.name} has no such heading")
    return wrong


def wrong_files(text: str, known: list[str]) -> list[str]:
    """The files and folders a page names in code that are nowhere in the repository.

    >>> wrong_files("`src/text.rs`, `text.rs: a_test`, `tests/`, `no.rs`, `a/b`", ["/crates/x/src/text.rs", "/x/tests/y"])
    ['names no.rs, which does not exist']
    """
    named = {name.strip("/") for name in FILE.findall(text) if not name.startswith("target/")}
    exists = {name for name in named for path in known if path.endswith(f"/{name}") or f"/{name}/" in path}
    return [f"names {name}, which does not exist" for name in sorted(named - exists)]


def main() -> None:
    known = files()
    names = [f"/{path.relative_to(WORKSPACE)}" for path in known]
    tests = {name for path in known if path.suffix == ".rs" for name in RUST_TEST.findall(path.read_text())}
    tests |= {
        name for path in known if path.suffix == ".py" for name in PYTHON_TEST.findall(path.read_text())
    }
    pages = [
        path for path in known if path.suffix == ".md" and path.parent in (WORKSPACE, WORKSPACE / "docs")
    ]
    wrong = []
    for page in pages:
        text = page.read_text()
        found = wrong_links(page, text)
        if page.name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "hazards.md", "founding.md"):
            found += wrong_files(text, names)
        if page.name in ("hazards.md", "founding.md"):
            code = " ".join(re.findall(r"`([^`]+)`", text))
            named = sorted(set(NAMED_TEST.findall(code)) - tests)
            found += [f"names the test {name}, which does not exist" for name in named]
        found += [
            f"line {number} is longer than {WIDTH}" for number, line in prose(text) if len(line) > WIDTH
        ]
        wrong += [f"{page.relative_to(WORKSPACE)} {what}" for what in found]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
