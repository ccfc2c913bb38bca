"""What a Python user would write to read a notebook as text, or to edit one cell and save.

    peers.py json|nbformat read NOTEBOOK
    peers.py json|nbformat edit NOTEBOOK INDEX SOURCE

Each library is imported only when asked for: the import is part of what its users wait for.
"""

import json
import sys


def load(library: str, path: str) -> dict:
    if library == "json":
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    import nbformat

    return nbformat.read(path, as_version=4)


def save(library: str, notebook: dict, path: str) -> None:
    if library == "json":
        with open(path, "w", encoding="utf-8") as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False)
            file.write("\n")
    else:
        import nbformat

        nbformat.write(notebook, path)


def print_as_text(notebook: dict) -> None:
    for index, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        sys.stdout.write(f"# %% [{cell['cell_type']}] cell:{index}\n{source}\n")


def edit(notebook: dict, index: int, source: str) -> None:
    cell = notebook["cells"][index]
    # nbformat holds a source as one string and splits it when it writes; the JSON holds lines.
    cell["source"] = source if isinstance(cell["source"], str) else source.splitlines(keepends=True)
    cell["outputs"] = []
    cell["execution_count"] = None


def main(library: str, action: str, path: str, *arguments: str) -> None:
    notebook = load(library, path)
    if action == "read":
        print_as_text(notebook)
    else:
        index, source = arguments
        edit(notebook, int(index), source)
        save(library, notebook, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
