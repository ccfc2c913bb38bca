"""How the notebooks of this folder are written down: a name, and its cells."""

from dataclasses import dataclass
from textwrap import dedent

import nbformat
from nbformat import v4

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Cell:
    kind: str
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """One notebook, named by the behaviour it shows."""

    name: str
    cells: tuple[Cell, ...]
    minor: int = 5
    allow_errors: bool = False
    """Whether it is run with `--allow-errors`."""
    old_outputs: bool = False
    """Whether its cells hold outputs of an earlier run."""

    def notebook(self) -> nbformat.NotebookNode:
        cells = [self._cell(cell) for cell in self.cells]
        for at, cell in enumerate(cells):
            if self.minor >= 5:
                cell["id"] = f"cell-{at}"
            else:
                del cell["id"]
        return v4.new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}, nbformat_minor=self.minor)

    def _cell(self, cell: Cell) -> nbformat.NotebookNode:
        metadata = {"tags": list(cell.tags)} if cell.tags else {}
        match cell.kind:
            case "markdown":
                return v4.new_markdown_cell(cell.source, metadata=metadata)
            case "raw":
                return v4.new_raw_cell(cell.source, metadata=metadata)
            case _ if self.old_outputs:
                old = v4.new_output("stream", name="stdout", text="of an earlier run\n")
                return v4.new_code_cell(cell.source, metadata=metadata, outputs=[old], execution_count=99)
            case _:
                return v4.new_code_cell(cell.source, metadata=metadata)


def written(name: str, *cells: str | Cell, **options: object) -> Written:
    """Plain strings are code cells."""
    return Written(name, tuple(code(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def code(source: str, *tags: str) -> Cell:
    return Cell("code", dedent(source).strip("\n"), tags)


def markdown(source: str) -> Cell:
    return Cell("markdown", source)


def raw(source: str) -> Cell:
    return Cell("raw", source)
