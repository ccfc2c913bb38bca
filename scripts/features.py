"""Keeps `cargo test -p CRATE` from building other people's crates again: `python scripts/features.py [--check]`.

Cargo enables the features that the packages it was asked for need, so the tests of one crate would build third parties with
fewer features than the tests of all, and again after each change from one to the other. `crates/features` names the
features of all; every crate's tests depend on it. This script writes that list. With `--check` it says what is missing.

The features come from Cargo's own plan of a build (`--unit-graph`), which it gives without building anything.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
MANIFEST = WORKSPACE / "crates/features/Cargo.toml"
TARGET = "x86_64-unknown-linux-gnu"
HEADER = """\
# Written by scripts/features.py, which says what it is for.
[package]
name = "cellwright-features"
description = "The features of other people's crates that the workspace's tests need, all of them"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true

[lints]
workspace = true
"""
SECTIONS = {
    "target": f"[target.{TARGET}.dependencies]",
    "host": f"[target.{TARGET}.build-dependencies]",
}

# A package with its version, for the target or for programs that run while it is built.
Unit = tuple[str, str, str]


def plan(*packages: str) -> dict[Unit, set[str]]:
    """The features of other people's packages in a build of tests."""
    command = [
        "cargo",
        "test",
        "--no-run",
        "--offline",
        f"--target={TARGET}",
        "-Zunstable-options",
        "--unit-graph",
    ]
    environment = dict(
        os.environ, RUSTC_BOOTSTRAP="1"
    )  # the plan is the one thing asked of it that is not stable
    planned = subprocess.run(
        [*command, *packages], cwd=WORKSPACE, env=environment, stdout=subprocess.PIPE, check=True
    )
    features: dict[Unit, set[str]] = {}
    for unit in json.loads(planned.stdout)["units"]:
        source, _, name = unit["pkg_id"].rpartition("#")
        if not source.startswith("path+") and unit["target"]["kind"] != ["custom-build"]:
            package, _, version = name.partition("@")
            unit_key = (package, version, "target" if unit["platform"] else "host")
            features.setdefault(unit_key, set()).update(unit["features"])
    return features


def members() -> list[str]:
    command = ["cargo", "metadata", "--format-version=1", "--offline", "--no-deps"]
    metadata = subprocess.run(command, cwd=WORKSPACE, stdout=subprocess.PIPE, check=True).stdout
    return [package["name"] for package in json.loads(metadata)["packages"]]


def differing() -> tuple[dict[Unit, set[str]], dict[str, list[str]]]:
    """The features of everything whose features depend on which package is asked for; and whom that concerns."""
    together = plan("--workspace")
    found: dict[Unit, set[str]] = {}
    concerned: dict[str, list[str]] = {}
    for member in members():
        for unit, features in plan("--package", member).items():
            if features != together[unit]:
                found[unit] = together[unit]
                concerned.setdefault(member, []).append(unit[0])
    return found, concerned


def compatible(version: str) -> str:
    """The shortest requirement that this version meets and the next incompatible one does not.

    >>> compatible("1.54.1"), compatible("0.31.3"), compatible("0.0.7+x")
    ('1', '0.31', '0.0.7')
    """
    parts = re.split(r"[-+]", version)[0].split(".")
    significant = next((place for place, part in enumerate(parts) if part != "0"), 2)
    return ".".join(parts[: significant + 1])


def write(units: dict[Unit, set[str]]) -> None:
    text = HEADER
    for kind, section in SECTIONS.items():
        lines = []
        for (package, version, where), features in units.items():
            if where == kind:
                required = compatible(version)
                key = f"{package}-{required.replace('.', '_')}"
                listed = ", ".join(f'"{feature}"' for feature in sorted(features))
                lines.append(
                    f'{key} = {{ package = "{package}", version = "{required}", default-features = false,'
                    f" features = [{listed}] }}"
                )
        text += "\n".join(["", section, *sorted(lines), ""])
    MANIFEST.write_text(text)


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        _, concerned = differing()
        for member, packages in concerned.items():
            print(f"-p {member} would build again: {', '.join(sorted(packages))}", file=sys.stderr)
        if concerned:
            print("run scripts/features.py", file=sys.stderr)
        return 1 if concerned else 0
    # With features come dependencies, whose features may differ in turn.
    units: dict[Unit, set[str]] = {}
    write(units)
    while True:
        found, concerned = differing()
        if not concerned:
            print(f"{len(units)} packages in {MANIFEST.relative_to(WORKSPACE)}")
            return 0
        if not found.keys() - units.keys():
            print(f"no features make these alike: {concerned}", file=sys.stderr)
            return 1
        units |= found
        write(units)


if __name__ == "__main__":
    sys.exit(main())
