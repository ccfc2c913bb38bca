"""Where a notebook's cells and their fields sit in the text, found by Python's JSON scanner.

Independent of Cellwright's parser on purpose: it is the judge of what that one changed.
"""

import json
from dataclasses import dataclass
from json.decoder import WHITESPACE, scanstring

SCANNER = json.JSONDecoder()


@dataclass
class Cell:
    value: dict
    fields: dict[str, tuple[int, int]]
    """Where each field's value sits; of a repeated key the last, which is the one that counts."""


def cells_with_spans(text: str) -> list[Cell]:
    start = after_blanks(text, 1 if text.startswith("\ufeff") else 0)
    position = fields_of(text, start)["cells"][0] + 1
    cells = []
    while text[position := after_blanks(text, position)] != "]":
        if text[position] == ",":
            position = after_blanks(text, position + 1)
        value, end = SCANNER.raw_decode(text, position)
        cells.append(Cell(value, fields_of(text, position)))
        position = end
    return cells


def blanked(text: str, cell: Cell, names: list[str]) -> str:
    """The text without the values of these fields of the cell."""
    for start, end in sorted((cell.fields[name] for name in names if name in cell.fields), reverse=True):
        text = text[:start] + text[end:]
    return text


def fields_of(text: str, start: int) -> dict[str, tuple[int, int]]:
    """The spans of the values of the object that starts here."""
    fields = {}
    position = after_blanks(text, start + 1)
    while text[position] != "}":
        if text[position] == ",":
            position = after_blanks(text, position + 1)
        name, position = scanstring(text, position + 1, False)
        position = after_blanks(text, after_blanks(text, position) + 1)
        _, end = SCANNER.raw_decode(text, position)
        fields[name] = (position, end)
        position = after_blanks(text, end)
    return fields


def after_blanks(text: str, position: int) -> int:
    return WHITESPACE.match(text, position).end()
