"""Measures how the house is kept: `python scripts/house.py [--check]`.

Prints the figures that the project steers by: the sizes of files, type names that a search cannot tell apart, results
whose error is a bare string, and words of a dialect that the project is leaving. Run it before and after a change.

With `--check` it fails when a type name appears in a second crate, when a type that mirrors another for serde returns,
or when a type on the way of a cell or an output is gone or not in ARCHITECTURE.md.
"""

import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent

TYPE = re.compile(r"^\s*(?:pub(?:\([a-z: ]+\))?\s+)?(?:struct|enum|trait|type|union)\s+([A-Z]\w*)")
STRING_ERROR = re.compile(r"\bResult<.*,\s*(?:String|&'static str)>")
MIRROR = re.compile(r"#\[serde\(remote\b")

# The types that hold a cell's code on its way from a tool call to Python, and an output's content on its way back.
# What wraps them copies nothing. MCP's own content comes last and is not ours.
JOURNEYS = {
    "a cell's code": ("CellArguments", "CellSource", "ToRunner"),
    "an output": ("FrameFields", "OutputChange", "CollectedOutput", "ReplyPart"),
}

DIALECT = {
    "tell, tells, told": re.compile(r"\b(?:tell|tells|told)\b"),
    "who, whoever": re.compile(r"//.*\b(?:who|whoever|Who|Whoever)\b"),
    "can not": re.compile(r"\b[Cc]an not\b"),
}


def words(name: str) -> int:
    """How many words a type name has.

    >>> words("Kernel"), words("SessionKey"), words("MimeBundle"), words("XPub"), words("ToolCallId")
    (1, 2, 2, 2, 3)
    """
    return len(re.findall(r"[A-Z][a-z0-9]*", name))


def shipped(source: str) -> str:
    """The part of a source file that is not its tests.

    >>> shipped("struct A;\\n#[cfg(test)]\\nmod tests {\\n    struct B;\\n}\\n")
    'struct A;\\n'
    """
    return re.split(r"^#\[cfg\(test\)\]\n(?:#.*\n)*mod \w+ \{", source, maxsplit=1, flags=re.MULTILINE)[0]


def test_modules(source: str) -> set[str]:
    """The files beside this one that only tests contain.

    >>> sorted(test_modules("#[cfg(test)]\\nmod law;\\nmod plain;\\n#[cfg(test)]\\nmod tests;\\n"))
    ['law', 'tests']
    """
    return set(re.findall(r"^#\[cfg\(test\)\]\nmod (\w+);", source, flags=re.MULTILINE))


def sources() -> dict[Path, str]:
    """Every source file that is shipped, without tests."""
    files = sorted((WORKSPACE / "crates").glob("*/src/**/*.rs"))
    is_test = {"testkit", "features"}
    texts = {path: path.read_text() for path in files if path.relative_to(WORKSPACE).parts[1] not in is_test}
    # `mod a;` in b.rs is b/a.rs, and in lib.rs it is a.rs.
    inside = {path: path.parent if path.stem in {"lib", "main"} else path.with_suffix("") for path in texts}
    tests = {inside[path] / f"{name}.rs" for path, text in texts.items() for name in test_modules(text)}
    return {path: shipped(text) for path, text in texts.items() if path not in tests}


def declarations(files: dict[Path, str]) -> list[tuple[str, str]]:
    """The name and the crate of every type."""
    found = []
    for path, source in files.items():
        crate = path.relative_to(WORKSPACE).parts[1]
        for line in source.splitlines():
            if declared := TYPE.match(line):
                # A type inside an implementation of a trait is named by the trait.
                if "type " in line and line.startswith((" ", "\t")):
                    continue
                found.append((declared[1], crate))
    return found


def shared_by_crates(types: list[tuple[str, str]]) -> dict[str, set[str]]:
    """The names that more than one crate declares.

    >>> shared_by_crates([("A", "cli"), ("A", "mcp"), ("B", "cli"), ("B", "cli")]) == {"A": {"cli", "mcp"}}
    True
    """
    crates = defaultdict(set)
    for name, crate in types:
        crates[name].add(crate)
    return {name: found for name, found in crates.items() if len(found) > 1}


def figures() -> str:
    files = sources()
    lengths = {path: len(source.splitlines()) for path, source in files.items()}
    longest = max(lengths, key=lambda path: lengths[path])
    types = declarations(files)
    names = Counter(name for name, _ in types)
    sharing = sum(names[name] > 1 for name, _ in types)
    one_word = sum(words(name) == 1 for name, _ in types)
    whole = "\n".join(files.values())
    rows = [
        ("lines of source", sum(lengths.values())),
        ("files", len(files)),
        ("lines of a file, median", int(statistics.median(lengths.values()))),
        ("lines of a file, longest", f"{lengths[longest]} ({longest.relative_to(WORKSPACE)})"),
        ("types", len(types)),
        ("types that share their name", f"{sharing} ({sharing / len(types):.0%})"),
        ("type names in several crates", len(shared_by_crates(types))),
        ("types named by one word", f"{one_word} ({one_word / len(types):.0%})"),
        ("results with a string as error", len(STRING_ERROR.findall(whole))),
        ("mirror types for serde", len(MIRROR.findall(whole))),
        *((f"types on the way of {what}", len(way)) for what, way in JOURNEYS.items()),
        *((f"words: {words}", len(pattern.findall(whole))) for words, pattern in DIALECT.items()),
    ]
    return "\n".join(f"{name:32} {value}" for name, value in rows)


def check() -> list[str]:
    """What is wrong with types, one line each."""
    files = sources()
    types = declarations(files)
    declared = {name for name, _ in types}
    page = (WORKSPACE / "ARCHITECTURE.md").read_text()
    wrong = [
        f"the type name {name} is in several crates ({', '.join(sorted(crates))}): give the new one a name of its own"
        for name, crates in sorted(shared_by_crates(types).items())
    ]
    wrong += [
        f"{path}: serialize the type itself, not a mirror of it"
        for path, text in files.items()
        if MIRROR.search(text)
    ]
    wrong += [
        f"{name}, on the way of {what}, is not {'declared' if name not in declared else 'in ARCHITECTURE.md'}"
        for what, way in JOURNEYS.items()
        for name in way
        if name not in declared or f"`{name}`" not in page
    ]
    return wrong


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        if wrong := check():
            sys.exit("\n".join(wrong))
    else:
        print(figures())


if __name__ == "__main__":
    main()
