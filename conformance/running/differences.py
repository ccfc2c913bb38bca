"""Where `cellwright run` and nbclient leave different notebooks, on purpose.

One row for each difference: what it is called in docs/running-notebooks.md, on which kernels and in which notebooks it
shows, and what makes the two alike. Rows are applied to both sides before they are compared; a row without
which everything is alike is stale, and the test says so.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

Outputs = list[dict]

# What a run left: its code cells, and whether an error ended it.
Left = dict


@dataclass(frozen=True)
class Difference:
    title: str
    """As in the table of docs/running-notebooks.md."""
    alike: Callable[[Left], Left]
    kernels: tuple[str, ...]
    notebooks: tuple[str, ...] = ()
    """None: all."""
    always: bool = True
    """Whether every run shows it; some are races of the kernel's."""

    def concerns(self, notebook: str, kernel: str) -> bool:
        return kernel in self.kernels and (not self.notebooks or notebook in self.notebooks)


def in_outputs(alike: Callable[[Outputs], Outputs]) -> Callable[[Left], Left]:
    def in_all(left: Left) -> Left:
        cells = [cell | {"outputs": alike(cell["outputs"])} for cell in left["cells"]]
        return left | {"cells": cells}

    return in_all


def replaced(pattern: str, by: str) -> Callable[[Left], Left]:
    """Wherever it stands in the JSON."""
    return lambda left: json.loads(re.sub(pattern, by, json.dumps(left, ensure_ascii=False)))


def without(is_left_out: Callable[[dict], bool]) -> Callable[[Left], Left]:
    """Without such outputs."""
    return in_outputs(lambda outputs: [output for output in outputs if not is_left_out(output)])


def without_text(part: str) -> Callable[[Left], Left]:
    return without(lambda output: part in text_of(output.get("text", "")))


def without_types(part: str) -> Callable[[Left], Left]:
    """Without representations of such a MIME type."""

    def alike(outputs: Outputs) -> Outputs:
        return [
            output | {"data": {mime: value for mime, value in output["data"].items() if part not in mime}}
            if "data" in output
            else output
            for output in outputs
        ]

    return in_outputs(alike)


def text_of(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def shows(output: dict, plain: str) -> bool:
    return plain in text_of(output.get("data", {}).get("text/plain", ""))


def is_error(output: dict) -> bool:
    return output["output_type"] == "error"


def streams_joined(outputs: Outputs) -> Outputs:
    """Neighbouring outputs of one stream as one."""
    joined: Outputs = []
    for output in outputs:
        if output["output_type"] != "stream":
            joined.append(output)
            continue
        output = output | {"text": text_of(output["text"])}
        last = joined[-1] if joined else {}
        if last.get("output_type") == "stream" and last["name"] == output["name"]:
            joined[-1] = last | {"text": last["text"] + output["text"]}
        else:
            joined.append(output)
    return joined


def as_on_a_terminal(outputs: Outputs) -> Outputs:
    """Carriage returns and backspaces applied."""
    return [
        output | {"text": "\n".join(map(overwritten, text_of(output["text"]).split("\n")))}
        if output["output_type"] == "stream"
        else output
        for output in outputs
    ]


def overwritten(line: str) -> str:
    """What one line shows in the end.

    >>> overwritten("100%\\r  5%"), overwritten("ab\\b\\bX"), overwritten("dos\\r")
    ('  5%', 'Xb', 'dos')
    """
    shown: list[str] = []
    column = 0
    for character in line:
        if character == "\r":
            column = 0
        elif character == "\b":
            column = max(0, column - 1)
        else:
            shown[column : column + 1] = character
            column += 1
    return "".join(shown)


def tracebacks_in_lines(outputs: Outputs) -> Outputs:
    return [
        output | {"traceback": "\n".join(output["traceback"]).split("\n")} if is_error(output) else output
        for output in outputs
    ]


def without_tracebacks(outputs: Outputs) -> Outputs:
    return [output | {"traceback": []} if is_error(output) else output for output in outputs]


def is_usage_error(output: dict) -> bool:
    return output.get("ename") == "UsageError" or text_of(output.get("text", "")).startswith("UsageError: ")


def only_cells(count: int) -> Callable[[Left], Left]:
    """Of the last cells, and of how the run ended, nothing is compared."""
    return lambda left: left | {"cells": left["cells"][:count], "stopped": None}


EXITS = ("an-exit-is-an-error", "an-exit-stops-the-run", "sysexit", "sysexit0", "sysexit1", "systemexit")
RUNNER = ("runner",)
BOTH = ("ipykernel", "runner")

DIFFERENCES: list[Difference] = [
    # On every kernel: what is ours to decide.
    Difference("Neighbouring texts of one stream are one output", in_outputs(streams_joined), BOTH),
    Difference("Carriage returns and backspaces are applied", in_outputs(as_on_a_terminal), BOTH),
    Difference("Tracebacks are kept line by line", in_outputs(tracebacks_in_lines), ("ipykernel",)),
    # On the runner: where it is not IPython.
    Difference(
        "Tracebacks are Python's own",
        in_outputs(without_tracebacks),
        RUNNER,
    ),
    Difference(
        "A cell's code has a name, not a file",
        replaced(r"CELLFILE|<cell \d+(?:, In \[\d+\])?>", "CELL"),
        RUNNER,
        ("warnings-name-the-line",),
    ),
    Difference(
        "A syntax error says in its traceback where it is",
        replaced(r" \([^()]*, line \d+\)\"", '"'),
        RUNNER,
        ("a-syntax-error", "broken", "complex_parameters"),
    ),
    Difference(
        "An unfinished statement is reported in Python's words",
        replaced(r"incomplete input|'\(' was never closed", "UNFINISHED"),
        RUNNER,
        ("a-syntax-error",),
    ),
    Difference(
        "An unknown magic is an error",
        without(is_usage_error),
        BOTH,
        ("a-magic-nobody-knows", "line_magic_error"),
    ),
    Difference(
        "An exception group is an error",
        without(lambda output: True),
        BOTH,
        ("an-exception-group",),
    ),
    Difference("No advice on how to exit", without_text("To exit: use"), BOTH, EXITS),
    Difference(
        "A representation that fails is a note on stderr",
        only_cells(0),
        RUNNER,
        ("a-representation-that-fails-is-told", "an-error-in-a-repr"),
    ),
    Difference(
        "`raise KeyboardInterrupt` stops the run",
        only_cells(1),
        BOTH,
        ("a-keyboard-interrupt-of-the-code-itself",),
    ),
    Difference(
        "`input()` is refused with advice",
        replaced(r'"ename": "(StdinNotImplementedError|EOFError)", "evalue": "[^"]*"', '"ename": ""'),
        RUNNER,
        ("input-is-refused",),
    ),
    Difference(
        "Text written to file descriptors appears where it was written",
        without(lambda output: output["output_type"] == "stream"),
        BOTH,
        ("bytes-written-to-the-descriptor", "a-child-writes-to-our-stdout"),
        always=False,
    ),
    Difference(
        "A recursion ends a few frames earlier",
        in_outputs(without_tracebacks),
        ("ipykernel",),
        ("too-deep-a-recursion",),
    ),
    Difference(
        "Shell commands write to pipes, not to a terminal",
        replaced('"name": "stderr"', '"name": "stdout"'),
        RUNNER,
        ("a-shell-command-that-prints-to-stderr",),
    ),
    Difference(
        "Help is shown",
        without(
            lambda output: "Docstring:" in text_of(output.get("text", "")) or shows(output, "Docstring:")
        ),
        BOTH,
        ("help-with-a-question-mark",),
    ),
    Difference(
        "Warnings of IPython's own parser do not occur",
        without_text("make_tokens_by_line"),
        RUNNER,
        ("sources-with-unicode-line-ends",),
    ),
    Difference("A picture is kept once", without_types("image/jpeg"), RUNNER, ("a-pillow-image",)),
    Difference(
        "A figure without axes is shown when it is the result",
        without(lambda output: shows(output, "with 0 Axes>")),
        RUNNER,
        ("a-matplotlib-figure", "a-matplotlib-figure-as-the-result"),
    ),
    Difference(
        "Figures of a cell that fails come before its error",
        in_outputs(lambda outputs: sorted(outputs, key=is_error)),
        RUNNER,
        ("a-figure-of-a-failed-cell",),
    ),
    Difference("Altair charts are kept as data, too", without_types("vega"), RUNNER, ("an-altair-chart",)),
]
