"""Checks what the packages say of themselves: `python scripts/packages.py [--check | --notes]`.

With `--check`, every manifest must name the version of the workspace, name the same server, and be of a form that its
reader takes. With `--notes`, prints the newest section of CHANGELOG.md: the notes of a release.
"""

import json
import re
import sys
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent

# The manifests with a version, and where in them it stands.
VERSIONS = {
    "plugins/cellwright/.claude-plugin/plugin.json": [["version"]],
    "plugins/cellwright/.codex-plugin/plugin.json": [["version"]],
    "packaging/mcpb/manifest.json": [["version"]],
    "packaging/server.json": [["version"], ["packages", 0, "version"]],
}
# Files of a plugin that its manifests name.
PLUGIN = WORKSPACE / "plugins/cellwright"


def load(path: str) -> dict:
    return json.loads((WORKSPACE / path).read_text())


def at(value: object, keys: list) -> object:
    """What stands at the end of a path of keys.

    >>> at({"a": [{"b": 1}]}, ["a", 0, "b"])
    1
    """
    for key in keys:
        value = value[key]
    return value


def front_matter(text: str) -> dict[str, str]:
    """The fields at the top of a skill.

    >>> front_matter("---\\nname: x\\ndescription: does: it\\n---\\ntext")
    {'name': 'x', 'description': 'does: it'}
    """
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if not match:
        return {}
    return dict(line.split(": ", 1) for line in match[1].splitlines())


def newest_notes(changelog: str) -> str:
    """The newest section of a changelog, without its heading.

    >>> newest_notes("# Changes\\n\\n## Unreleased\\n\\n## 0.2.0\\n\\n- new\\n\\n## 0.1.0\\n- old\\n")
    '- new'
    """
    sections = re.split(r"^## .*$", changelog, flags=re.MULTILINE)[1:]
    return next((section.strip() for section in sections if section.strip()), "")


def problems() -> list[str]:
    """What is wrong with the manifests."""
    found = []
    version = re.search(r'^version = "(.*)"', (WORKSPACE / "Cargo.toml").read_text(), re.MULTILINE)[1]
    for path, places in VERSIONS.items():
        for keys in places:
            if (named := at(load(path), keys)) != version:
                found.append(
                    f"{path}: {'.'.join(map(str, keys))} is {named}, the workspace's version is {version}"
                )
    for skill in (PLUGIN / "skills").iterdir():
        fields = front_matter((skill / "SKILL.md").read_text())
        # The limits of the format's own checker.
        if fields.get("name") != skill.name or not 0 < len(fields.get("description", "")) <= 1024:
            found.append(
                f"{skill.name}/SKILL.md: needs its folder's name and a description of at most 1024 characters"
            )
    servers = load("plugins/cellwright/.mcp.json")["mcpServers"]
    if servers != {"cellwright": {"command": "cellwright", "args": ["mcp"]}}:
        found.append("plugins/cellwright/.mcp.json: names another server")
    for marketplace in (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"):
        for plugin in load(marketplace)["plugins"]:
            source = plugin["source"]
            path = source if isinstance(source, str) else source["path"]
            if not (WORKSPACE / path / ".mcp.json").is_file():
                found.append(f"{marketplace}: {path} is not a plugin")
    return found


if __name__ == "__main__":
    if "--notes" in sys.argv[1:]:
        print(newest_notes((WORKSPACE / "CHANGELOG.md").read_text()))
    elif found := problems():
        sys.exit("\n".join(found))
