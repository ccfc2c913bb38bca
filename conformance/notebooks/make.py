"""Notebooks as the programs people use write them, made by those programs.

    python conformance/notebooks/make.py FOLDER

Each function writes one or more `.ipynb` files through the real library. The one exception is VS Code, which
is no library: `vscode` follows what its ipynb extension does when it saves (keys sorted, indent 1, sources
split at `\\n` alone, numbers as JavaScript prints them) and stands for nothing beyond that.
"""

import json
import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat
import papermill
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from nbformat import v4

PERCENT_SCRIPT = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a script
#
# Größe in €

# %% tags=["parameters"]
alpha = 0.1

# %%
def area(r):
    return 3 * r * r


print(area(alpha))
# %% [raw]
# raw text
"""


def every_kind_of_cell() -> nbformat.NotebookNode:
    """A notebook of every cell and output type, with text that tempts a printer to rewrite it."""
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==\n"
    outputs = [
        v4.new_output("stream", name="stdout", text="café ☕\nsecond line\n"),
        v4.new_output("stream", name="stderr", text="50%\r100%\n"),
        v4.new_output(
            "execute_result", {"text/plain": "1.0", "text/html": "<b>1.0</b>\n"}, execution_count=1
        ),
        v4.new_output("display_data", {"image/png": png, "application/json": {"x": [1.0, None, 10**20]}}),
        v4.new_output("error", ename="ValueError", evalue="no", traceback=["\x1b[31mValueError\x1b[0m: no"]),
    ]
    cells = [
        v4.new_markdown_cell("# Title\n\nnaïve 😀 text\n"),
        v4.new_code_cell("x = 1.0\n\nprint('café ☕')\nx", outputs=outputs, execution_count=1),
        v4.new_code_cell("# %% [code] cell:0\ny = 2", metadata={"tags": ["a"], "weight": 1.0}),
        v4.new_raw_cell("---\ntitle: x\n---", metadata={"raw_mimetype": "text/plain"}),
        v4.new_code_cell(""),
        v4.new_code_cell("a = 'line\u2028separator'\nform = '\x0c'\n"),
    ]
    kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})


def of_minor(notebook: nbformat.NotebookNode, minor: int) -> nbformat.NotebookNode:
    notebook.nbformat_minor = minor
    if minor < 5:
        for cell in notebook.cells:
            del cell["id"]
    return notebook


def nbformats(folder: Path) -> None:
    for minor in range(6):
        nbformat.write(of_minor(every_kind_of_cell(), minor), folder / f"nbformat-4.{minor}.ipynb")


def jupyterlab(folder: Path) -> None:
    """JupyterLab sends its model, sources as strings; the server's contents manager writes the file."""
    content = json.loads(json.dumps(every_kind_of_cell()))
    for cell in content["cells"]:
        cell["metadata"]["trusted"] = True
    model = {"type": "notebook", "format": "json", "content": content}
    LargeFileManager(root_dir=str(folder)).save(model, "jupyterlab.ipynb")


def vscode(folder: Path) -> None:
    notebook = json.loads(v4.writes(of_minor(every_kind_of_cell(), 2)), parse_float=javascript_number)
    for cell in notebook["cells"]:
        cell["source"] = split_at_newlines("".join(cell["source"]))
        cell["metadata"] = {"vscode": {"languageId": "python"}} if cell["cell_type"] == "code" else {}
    notebook["metadata"]["orig_nbformat"] = 4
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "vscode.ipynb").write_text(text + "\n", encoding="utf-8", newline="")


def javascript_number(digits: str) -> int | float:
    number = float(digits)
    return int(number) if number.is_integer() else number


def split_at_newlines(source: str) -> list[str]:
    *lines, last = source.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def jupytexts(folder: Path) -> None:
    notebook = jupytext.reads(PERCENT_SCRIPT, fmt="py:percent")
    jupytext.write(notebook, folder / "jupytext.ipynb")


def papermills(folder: Path) -> None:
    """Runs what jupytext made: timings, parameters and outputs as papermill leaves them."""
    papermill.execute_notebook(
        folder / "jupytext.ipynb", folder / "papermill.ipynb", parameters={"alpha": 0.5}, progress_bar=False
    )


def nbclients(folder: Path) -> None:
    notebook = jupytext.reads(PERCENT_SCRIPT, fmt="py:percent")
    notebook.cells.append(v4.new_code_cell("import sys\nprint('err', file=sys.stderr)\n{'a': float('nan')}"))
    notebook.cells.append(v4.new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}))
    nbclient.NotebookClient(notebook, timeout=60).execute()
    nbformat.write(notebook, folder / "nbclient.ipynb")


def make(folder: Path) -> list[Path]:
    """Writes all of them into `folder` and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for writer in (nbformats, jupyterlab, vscode, jupytexts, papermills, nbclients):
        writer(folder)
    return sorted(folder.glob("*.ipynb"))


if __name__ == "__main__":
    for path in make(Path(sys.argv[1])):
        print(path)
