"""Checks every dependency's licence, source and name against deny.toml, without the network, and how tests are laid out.

The part of `cargo deny check` that must run on every machine. What it cannot do offline, the
advisory database, stays with cargo-deny.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent


def allowed(expression: str, allow: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied by allowed licences alone.

    >>> allowed("MIT OR Apache-2.0", {"MIT"}), allowed("MIT/Apache-2.0", {"MIT"})
    (True, True)
    >>> allowed("(MIT OR GPL-3.0) AND Unicode-3.0", {"MIT"})
    False
    >>> allowed("(MIT OR GPL-3.0) AND Unicode-3.0", {"MIT", "Unicode-3.0"})
    True
    >>> allowed("GPL-2.0 AND MIT OR ISC", {"ISC"})
    True
    >>> allowed("Apache-2.0 WITH LLVM-exception", {"Apache-2.0"})
    False
    >>> allowed("MIT OR", {"MIT"}), allowed("", {"MIT"})
    (False, False)
    """
    # Before SPDX, Cargo wrote `/` for OR.
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def take(token: str) -> bool:
        nonlocal position
        found = position < len(tokens) and tokens[position] == token
        position += found
        return found

    def either() -> bool:
        satisfied = both()
        while take("OR"):
            satisfied = both() or satisfied
        return satisfied

    def both() -> bool:
        satisfied = licence()
        while take("AND"):
            satisfied = licence() and satisfied
        return satisfied

    def licence() -> bool:
        nonlocal position
        if take("("):
            satisfied = either()
            return take(")") and satisfied
        name = " ".join(tokens[position : position + 1])
        position += 1
        if take("WITH"):
            name += " WITH " + " ".join(tokens[position : position + 1])
            position += 1
        return name in allow

    return either() and position == len(tokens)


def violations(packages: list[dict], rules: dict) -> list[str]:
    """One line for each package that breaks a rule; path dependencies are ours and pass."""
    licences = set(rules["licenses"]["allow"])
    registries = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
    banned = {ban["name"]: ban["reason"] for ban in rules["bans"]["deny"]}
    found = []
    for package in packages:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        if not allowed(package["license"] or "", licences):
            found.append(f"{name}: licence {package['license']!r} is not allowed by deny.toml")
        if package["source"] not in registries:
            found.append(f"{name}: source {package['source']} is not allowed by deny.toml")
        if package["name"] in banned:
            found.append(f"{name}: banned, {banned[package['name']]}")
    return found


def test_layout(packages: list[dict]) -> list[str]:
    """One line for each of our crates with more than one program of integration tests, and for each file in none."""
    found = []
    for package in packages:
        if package["source"] is not None:
            continue
        programs = [target["src_path"] for target in package["targets"] if target["kind"] == ["test"]]
        if len(programs) > 1:
            found.append(
                f"{package['name']}: one program for all integration tests, not {len(programs)}: {programs}"
            )
        folder = Path(package["manifest_path"]).parent / "tests"
        files = [file for file in folder.rglob("*.rs") if str(file) not in programs]
        named = {
            name
            for file in folder.rglob("*.rs")
            for name in re.findall(r"^mod (\w+);", file.read_text(), re.M)
        }
        found += [
            f"{file}: no `mod {file.stem};` names it, so it never runs"
            for file in files
            if file.stem not in named
        ]
    return found


def main() -> int:
    rules = tomllib.loads((WORKSPACE / "deny.toml").read_text())
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--all-features"]
    metadata = subprocess.run(command, cwd=WORKSPACE, stdout=subprocess.PIPE, check=True).stdout
    packages = json.loads(metadata)["packages"]
    found = violations(packages, rules) + test_layout(packages)
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(packages)} packages checked against deny.toml, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
