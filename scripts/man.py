"""Writes man pages from the program's own help: `python scripts/man.py BINARY FOLDER`.

There is a page for the program and one for each of its commands. The commands below a command are sections of its page.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HEADING = re.compile(r"^([A-Z][\w ]*):(?: (.*))?$")


@dataclass
class Help:
    """What `--help` prints, by its parts."""

    about: list[str] = field(default_factory=list)
    usage: list[str] = field(default_factory=list)
    sections: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Help":
        """The parts of a help text.

        >>> help = Help.parse("Shows it\\n\\nAll of it.\\n\\nUsage: x show [PATH]\\n\\nOptions:\\n  -h  Print help\\n")
        >>> help.about, help.usage, help.sections
        (['Shows it', '', 'All of it.'], ['x show [PATH]'], {'Options': ['  -h  Print help']})
        """
        help, into = cls(), None
        for line in text.rstrip().splitlines():
            heading = HEADING.match(line)
            if heading and heading[1] == "Usage":
                into = help.usage
                into.extend([heading[2]] if heading[2] else [])
            elif heading and not heading[2]:
                into = help.sections.setdefault(heading[1], [])
            else:
                (help.about if into is None else into).append(line)
        for part in (help.about, help.usage, *help.sections.values()):
            while part and not part[-1].strip():
                part.pop()
        return help

    def commands(self) -> list[str]:
        """The names of the commands below this one."""
        lines = self.sections.get("Commands", [])
        names = [match[1] for line in lines if (match := re.match(r"^  ([a-z][\w-]*)", line))]
        return [name for name in names if name != "help"]


def roff(text: str) -> str:
    """A line of text for roff.

    >>> roff(".x --flag 'a'")
    "\\\\&.x \\\\-\\\\-flag 'a'"
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def help_of(binary: str, words: list[str]) -> Help:
    run = subprocess.run(
        [binary, *words, "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "100"}
    )
    return Help.parse(run.stdout)


def body(help: Help) -> list[str]:
    """Everything of a help text but its first line."""
    lines: list[str] = []
    for line in help.about[1:]:
        lines.append(roff(line) if line.strip() else ".PP")
    for name, section in help.sections.items():
        lines += [".PP", f"\\fB{name}\\fR", ".PP", ".nf", *map(roff, section), ".fi"]
    return lines


def page(binary: str, words: list[str], version: str) -> str:
    """The man page of a command, with those below it."""
    help = help_of(binary, words)
    name = "-".join(["cellwright", *words])
    lines = [f'.TH "{name.upper()}" "1" "" "cellwright {version}"', ".SH NAME"]
    lines.append(f"{roff(name)} \\- {roff(help.about[0])}")
    lines += [".SH SYNOPSIS", ".nf", *(roff(line.strip()) for line in help.usage), ".fi"]
    lines += [".SH DESCRIPTION", *body(help)]
    if words:
        for below in help.commands():
            part = help_of(binary, [*words, below])
            lines += [f'.SH "{" ".join([*words, below]).upper()}"', roff(part.about[0]), ".PP"]
            lines += [".nf", *(roff(line.strip()) for line in part.usage), ".fi", *body(part)]
        lines += [".SH SEE ALSO", "cellwright(1)"]
    else:
        lines += [".SH SEE ALSO", ", ".join(f"cellwright\\-{roff(below)}(1)" for below in help.commands())]
    return "\n".join(lines) + "\n"


def main(binary: str, folder: str) -> None:
    version = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for words in [[], *([name] for name in help_of(binary, []).commands())]:
        (target / f"{'-'.join(['cellwright', *words])}.1").write_text(page(binary, words, version))


if __name__ == "__main__":
    main(*sys.argv[1:])
