"""Describes a value for an agent: a table by its columns and first rows, a picture as a picture. Prints one line of JSON.

It runs inside the person's kernel, with `value` set. It changes nothing and never calls what is not cheap.
"""

from __future__ import annotations

import base64
import io
import json
import reprlib

TEXT = 8000  # characters
ROWS = 8
COLUMNS = 60
PICTURE = 1024  # pixels


def short(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}\n[… {len(text) - TEXT} characters left out …]"


def table(value) -> str:
    """The schema of a dataframe of pandas or polars, and its first rows."""
    columns = list((value.schema if hasattr(value, "schema") else value.dtypes).items())
    schema = "\n".join(f"  {name}: {dtype}" for name, dtype in columns[:COLUMNS])
    if len(columns) > COLUMNS:
        schema += f"\n  … and {len(columns) - COLUMNS} more"
    head = value.head(ROWS)
    rows = head.to_string(max_cols=20) if hasattr(head, "to_string") else str(head)
    shape = f"{value.shape[0]:,} rows x {value.shape[1]:,} columns"
    return f"{shape}\ncolumns:\n{schema}\nfirst rows:\n{rows}"


def array(value) -> str:
    about = f"shape {tuple(value.shape)}, dtype {value.dtype}"
    if (
        getattr(value, "size", 0)
        and 0 < value.size <= 10_000_000
        and getattr(value.dtype, "kind", "") in "iuf"
    ):
        about += f", min {value.min()}, max {value.max()}, mean {value.mean()}"
    return f"{about}\n{value}"


def picture(value) -> bytes | None:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "thumbnail") and hasattr(value, "save") and hasattr(value, "copy"):  # PIL
        small = value.copy()
        small.thumbnail((PICTURE, PICTURE))
        out = io.BytesIO()
        small.convert("RGBA" if "A" in small.mode else "RGB").save(out, "PNG")
        return out.getvalue()
    if kind.startswith("matplotlib.") and hasattr(value, "savefig"):
        out = io.BytesIO()
        value.savefig(out, format="png", dpi=80)
        return out.getvalue()
    shown = getattr(value, "_repr_png_", None)
    png = shown() if callable(shown) and not isinstance(value, type) else None
    return png if isinstance(png, bytes) else None


def text(value) -> str:
    if (
        hasattr(value, "columns")
        and hasattr(value, "dtypes")
        and hasattr(value, "head")
        and hasattr(value, "shape")
    ):
        return table(value)
    if hasattr(value, "shape") and hasattr(value, "dtype") and not hasattr(value, "head"):
        return array(value)
    if hasattr(value, "dtype") and hasattr(value, "head") and hasattr(value, "name"):  # a column
        return f"{len(value):,} values, dtype {value.dtype}\n{value.head(ROWS)}"
    if isinstance(value, str):
        return value
    if callable(value):
        import inspect

        try:
            return inspect.getsource(value)
        except (OSError, TypeError):
            return f"{value!r}\n{inspect.getdoc(value) or ''}"
    if isinstance(value, (list, tuple, dict, set, frozenset, bytes)):
        limits = reprlib.Repr()
        for name in ("maxlist", "maxtuple", "maxdict", "maxset", "maxfrozenset"):
            setattr(limits, name, 50)
        limits.maxstring = limits.maxother = 400
        more = f" of {len(value):,}" if len(value) > 50 else ""
        return f"{type(value).__name__}{more}: {limits.repr(value)}"
    return repr(value)


def describe(value) -> dict:
    answer = {"type": f"{type(value).__module__}.{type(value).__qualname__}"}
    try:
        png = picture(value)
        if png:
            answer["png"] = base64.b64encode(png).decode()
    except Exception as error:
        answer["text"] = f"[its picture could not be made: {error}]"
    try:
        answer["text"] = short(text(value))
    except Exception as error:
        answer.setdefault("text", f"[it cannot be shown: {type(error).__name__}: {error}]")
    return answer


print(json.dumps(describe(value)), flush=True)  # noqa: F821
