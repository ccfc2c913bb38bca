"""Rare changes to a cell's syntax tree."""

import ast


def keep_value(tree: ast.Module, last: "ast.Expression | None", name: str) -> None:
    """Makes the last expression an assignment, so that it can be part of the cell's one coroutine."""
    if last is not None:
        keep = ast.Assign([ast.Name(name, ast.Store())], last.body)
        tree.body.append(ast.fix_missing_locations(ast.copy_location(keep, last.body)))


def features(tree: ast.Module) -> int:
    """The compiler flags of the `from __future__ import` statements in a cell."""
    import __future__

    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                feature = getattr(__future__, alias.name, None)
                flags |= getattr(feature, "compiler_flag", 0)
    return flags
