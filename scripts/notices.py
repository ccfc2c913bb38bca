"""Writes the licences of everything that the binary contains: `python scripts/notices.py [--check] [FILE]`.

The page lists every third-party package that is linked into `cellwright`, with its version, its licence and the texts
that its authors ship. Packages with the same text share one copy of it. Without FILE the page goes to standard output.
With `--check` the script only verifies that every package has a text.

Needs the sources of the packages, which Cargo fetches if they are missing. Nothing is built.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
ROOT = "cellwright-cli"
TEXTS = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")

# Packages that ship no text, with the file of ours that has the licence they name.
WITHOUT_TEXT = {"agent-client-protocol-schema": ("Apache-2.0", "LICENSE-APACHE")}


def linked(metadata: dict) -> list[dict]:
    """The third-party packages that are linked into the program, by name.

    Packages that only run while it is built, and those of tests, are left out.
    """
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] == ROOT]
    found: set[str] = set()
    while waiting:
        identity = waiting.pop()
        if identity in found or is_macro(packages[identity]):
            continue
        found.add(identity)
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    foreign = [packages[identity] for identity in found if packages[identity]["source"]]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def is_macro(package: dict) -> bool:
    """Whether the package runs inside the compiler and leaves nothing of itself in the program.

    >>> is_macro({"targets": [{"kind": ["proc-macro"]}]}), is_macro({"targets": [{"kind": ["lib"]}]})
    (True, False)
    """
    return any("proc-macro" in target["kind"] for target in package["targets"])


def texts(package: dict) -> list[tuple[str, str]]:
    """The name and the text of each file in which the package states its licence."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(
        path for path in folder.iterdir() if path.name.upper().startswith(TEXTS) and path.is_file()
    )
    # Some authors keep one file for each licence in a folder of that name.
    for subfolder in (
        path for path in folder.iterdir() if path.is_dir() and path.name.upper().startswith(TEXTS)
    ):
        files += sorted(path for path in subfolder.iterdir() if path.is_file())
    found = [(path.name, path.read_text(errors="replace").strip()) for path in files]
    licence, ours = WITHOUT_TEXT.get(package["name"], (None, None))
    if not found and ours and package["license"] == licence:
        found = [(licence, (WORKSPACE / ours).read_text().strip())]
    return [(name, text) for name, text in found if text]


def page(packages: list[dict]) -> str:
    """All of it as one text: the list of packages, then each licence text once."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        for name, text in texts(package):
            by_text[text].append(f"{package['name']} {package['version']} ({name})")
    lines = ["Third-party software in cellwright", "", "Packages:", ""]
    lines += [f"  {package['name']} {package['version']}: {package['license']}" for package in packages]
    for text, users in by_text.items():
        lines += ["", "=" * 80, *users, "-" * 80, "", text]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only verify that every package has a text")
    parser.add_argument("file", nargs="?", type=Path, help="where to write the page")
    arguments = parser.parse_args()
    command = [
        "cargo",
        "metadata",
        "--offline",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        TARGET,
    ]
    metadata = json.loads(subprocess.run(command, cwd=WORKSPACE, check=True, capture_output=True).stdout)
    packages = linked(metadata)
    bare = [f"{package['name']} ({package['license']})" for package in packages if not texts(package)]
    if bare:
        print(f"without the text of a licence: {', '.join(bare)}", file=sys.stderr)
        print("find the text and name it in WITHOUT_TEXT of scripts/notices.py", file=sys.stderr)
        return 1
    if arguments.check:
        print(f"{len(packages)} packages, each with the text of its licence")
    elif arguments.file:
        arguments.file.write_text(page(packages))
    else:
        sys.stdout.write(page(packages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
