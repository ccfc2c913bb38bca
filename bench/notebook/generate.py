"""Writes a notebook of a given size, always the same bytes, the way Jupyter writes it.

    generate.py NOTEBOOK CELLS BYTES

Three cells in five are code; outputs are the mix notebooks carry: streams, HTML tables, base64 figures, JSON.
The middle cell is a code cell whose source holds `MIDDLE_CELL = 1`, once in the whole file.
"""

import base64
import json
import random
import sys

NAMES = ["alpha", "beta", "gamma", "delta", "total", "mean", "frame", "index"]
WORDS = [*NAMES, "column", "größe", "naïve", "☕", "result", "plot", "series", "of"]


def sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def source(chance: random.Random, index: int, lines: int) -> list[str]:
    made = [f"{chance.choice(NAMES)}_{index}_{n} = '{sentence(chance, 6)}'\n" for n in range(lines)]
    return [*made, f"last_{index}"]


def output(chance: random.Random, index: int, size: int) -> dict:
    kind = chance.choices(["image", "stream", "table", "json"], [5, 2, 2, 1])[0]
    if kind == "stream":
        text = [f"step {n}: {sentence(chance, 8)}\n" for n in range(size // 64)]
        return {"name": "stdout", "output_type": "stream", "text": text}
    if kind == "image":
        data = {
            "image/png": base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
            "text/plain": ["<Figure>"],
        }
    elif kind == "table":
        rows = [f"  <tr><td>{n}</td><td>{chance.random()}</td></tr>\n" for n in range(size // 56)]
        data = {"text/html": ["<table>\n", *rows, "</table>"], "text/plain": ["   a  b\n", "0  1  2"]}
    else:
        values = [chance.random() for _ in range(size // 32)]
        data = {"application/json": {"values": values}, "text/plain": ["<JSON>"]}
    return {"data": data, "execution_count": index, "metadata": {}, "output_type": "execute_result"}


def cell(chance: random.Random, index: int, cells: int, output_size: int) -> dict:
    identity = {"id": f"{chance.getrandbits(32):08x}", "metadata": {}}
    if index == cells // 2:
        text = ["MIDDLE_CELL = 1\n", *source(chance, index, 4)]
    elif index % 5 in (0, 3):
        text = [f"## {sentence(chance, 4)}\n", "\n", *source(chance, index, 3)]
        return {"cell_type": "markdown", **identity, "source": text}
    else:
        text = source(chance, index, chance.randint(2, 20))
    outputs = [output(chance, index, output_size)]
    return {"cell_type": "code", "execution_count": index, **identity, "outputs": outputs, "source": text}


def notebook(cells: int, output_size: int) -> bytes:
    chance = random.Random(2026)
    kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    made = {
        "cells": [cell(chance, index, cells, output_size) for index in range(cells)],
        "metadata": {"kernelspec": kernelspec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode()


def main(path: str, cells: int, size: int) -> None:
    # Size is linear in the size of an output: two samples give the line, the third notebook is on it.
    small, large = len(notebook(cells, 1_000)), len(notebook(cells, 5_000))
    per_byte = (large - small) / 4_000
    made = notebook(cells, round(1_000 + (size - small) / per_byte))
    with open(path, "wb") as file:
        file.write(made)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
