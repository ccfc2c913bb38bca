"""Prints, for each notebook of a corpus and for many that were changed at random, its text and what nbformat says of it.

verdicts.py CORPUS COUNT
"""

import copy
import json
import random
import sys
import warnings
from pathlib import Path

import nbformat
from nbformat.validator import ValidationError

VALUES = [
    None, True, False, 0, 1, -1, 1.0, 2.5, 10**20, "", "a", "a\n", "a,b", "a\nb", "auto", [], [""], ["a", "b"], ["a\n", "b"],
    ["a", "a"], [1], {}, {"a": 1}, {"text/plain": "x"}, {"text/plain": 1}, {"application/json": 1},
    {"application/x+json": [1]}, {"application/xjson": 1}, {"text/html": ["a", "b"]}, {"a.png": {"image/png": "QQ=="}},
    {"name": "python"}, {"name": "python", "display_name": "Python"}, {"name": 1},
    {"output_type": "stream", "name": "stdout", "text": "x"}, {"output_type": "plot"},
    [{"output_type": "stream", "name": "stdout", "text": ["a", 1]}],
    [{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}],
    [{"output_type": "error", "ename": "E", "evalue": "", "traceback": "x"}],
    [{"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}],
    [{"output_type": "execute_result", "data": {}, "metadata": {}, "execution_count": None}],
    [{"output_type": "execute_result", "data": {}, "metadata": {}}],
]  # fmt: skip
KEYS = [
    "id", "metadata", "source", "outputs", "execution_count", "attachments", "cell_type", "nbformat", "nbformat_minor",
    "cells", "tags", "name", "collapsed", "scrolled", "jupyter", "execution", "format", "kernelspec", "language_info",
    "codemirror_mode", "file_extension", "mimetype", "pygments_lexer", "orig_nbformat", "title", "authors", "data", "text",
    "ename", "evalue", "traceback", "output_type", "display_name", "iopub.status.busy", "text/plain", "application/json",
    "worksheets", "other",
]  # fmt: skip


def cell(random: random.Random, number: int) -> dict:
    kind = random.choice(["code", "markdown", "raw"])
    made = {
        "cell_type": kind,
        "metadata": {},
        "source": random.choice(["x", ["x\n", "y"]]),
        "id": f"c{number}",
    }
    if kind == "code":
        made |= {"outputs": [], "execution_count": random.choice([None, 3])}
        if random.random() < 0.5:
            made["outputs"] = copy.deepcopy(random.choice(VALUES[-6:]))
    return made


def notebook(random: random.Random) -> dict:
    minor = random.choice([0, 1, 2, 3, 4, 5, 5, 5, 6])
    cells = [cell(random, number) for number in range(random.randrange(4))]
    if minor < 5 and random.random() < 0.9:
        for made in cells:
            del made["id"]
    metadata = random.choice([{}, {"kernelspec": {"name": "python3", "display_name": "Python 3"}}])
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


def places(value: object) -> list:
    """Every object and list in a value."""
    found = []
    if isinstance(value, (dict, list)):
        found.append(value)
        for item in value.values() if isinstance(value, dict) else value:
            found += places(item)
    return found


def change(random: random.Random, value: dict) -> None:
    place = random.choice(places(value))
    new = copy.deepcopy(random.choice(VALUES))
    if isinstance(place, list):
        if place and random.random() < 0.3:
            place.pop(random.randrange(len(place)))
        elif place and random.random() < 0.3:
            place.append(copy.deepcopy(random.choice(place)))
        else:
            place.insert(random.randrange(len(place) + 1), new)
    elif place and random.random() < 0.3:
        del place[random.choice(list(place))]
    else:
        key = random.choice(list(place)) if place and random.random() < 0.3 else random.choice(KEYS)
        place[key] = new


def error(value: dict) -> str:
    """Nothing when nbformat accepts it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "" if nbformat.validator.isvalid(copy.deepcopy(value)) else "not valid"
    except (ValidationError, AssertionError, AttributeError, KeyError, TypeError, ImportError) as raised:
        return f"{type(raised).__name__}: {raised}"


def tell(text: str, value: dict) -> None:
    print(json.dumps({"notebook": text, "error": error(value)}))


def main() -> None:
    corpus, count = Path(sys.argv[1]), int(sys.argv[2])
    read = []
    for path in sorted(corpus.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8", errors="strict")
        value = json.loads(text.removeprefix("\ufeff"))
        try:
            json.dumps(value).encode()
            text.encode()
        except UnicodeError:
            continue
        tell(text, value)
        read.append(value)
    random_ = random.Random(14)
    for number in range(count):
        value = copy.deepcopy(random_.choice(read)) if number % 4 == 0 else notebook(random_)
        for _ in range(random_.choice([0, 1, 1, 1, 2, 3])):
            change(random_, value)
        tell(json.dumps(value), value)


main()
