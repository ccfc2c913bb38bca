"""Which MIME types a value offers, and their data as the protocol carries it."""

import binascii
import sys

from . import part, running
from .wire import encode

# Method → MIME type, the way IPython and therefore everyone's objects spell them.
METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_pdf_": "application/pdf",
    "_repr_jpeg_": "image/jpeg",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
NUMBERS = frozenset((int, float, complex, bool))
PLAIN = frozenset(
    (int, float, bool, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None), type)
)


def result(kernel, value) -> "str | None":
    """The `data` and `metadata` of a `result` frame, or None when the object has displayed itself."""
    bundle = bundle_of(kernel, value)
    return None if bundle is None else encode_bundle(*bundle)


def bundle_of(kernel, value, include=None, exclude=None) -> "tuple | None":
    """(data, metadata) of a value, or None when it has displayed itself."""
    shows_itself = type(value) not in PLAIN and _method(value, "_ipython_display_") is not None
    if shows_itself and _displayed_itself(value):
        return None
    shell = kernel.shell
    if shell is None and hasattr(type(value), "_repr_pretty_") and kernel.imports.has_ipython():
        shell = part("magics").need_shell(kernel)  # its printer is what such classes are written for
    if shell is not None and shell.formatter is not None and not shows_itself:
        data, metadata = shell.formatter.format(value, include=include, exclude=exclude)
        _add_figure(value, data, metadata)
    else:
        data, metadata = _own_bundle(value, include, exclude)
    if "image/png" in data and not (include and "image/jpeg" in include):
        data.pop("image/jpeg", None)  # the same picture a second time
    if not data:
        data = {"text/plain": object.__repr__(value)}
    return data, metadata


def encode_bundle(data: dict, metadata: dict) -> str:
    """`data` and `metadata` as JSON, without the name of the first."""
    text = encode({mime: _carried(mime, item) for mime, item in data.items()})
    text += ',"metadata":' + encode(metadata)
    limit = running().largest_display
    if len(text) * 4 > limit and len(text.encode("utf-8", "replace")) > limit:
        plain = data.get("text/plain")
        start = plain[: min(1 << 20, limit // 8)] if isinstance(plain, str) else ""
        note = "%s… (%d characters: too large to display)" % (start, len(text))
        text = encode({"text/plain": note}) + ',"metadata":{}'
    return text


def _carried(mime: str, item):
    """Text as str, everything binary as base64, JSON as it is."""
    if isinstance(item, (bytes, bytearray, memoryview)):
        if mime.startswith("text/") or mime.endswith("+xml") or mime == "application/javascript":
            return bytes(item).decode("utf-8", "replace")
        return binascii.b2a_base64(bytes(item), newline=False).decode("ascii")
    if isinstance(item, str) or mime == "application/json" or mime.endswith("+json"):
        return item
    if mime.startswith(("text/", "image/")):
        return str(item)
    return item


def _own_bundle(value, include, exclude) -> tuple:
    data: dict = {}
    metadata: dict = {}
    if type(value) not in PLAIN and not isinstance(value, type):
        given = _call(value, "_repr_mimebundle_", include=include, exclude=exclude)
        if isinstance(given, tuple) and len(given) == 2:
            given, metadata = given[0], dict(given[1] or {})
        if isinstance(given, dict):
            data.update(given)
        # A bundle with more than text says all there is to say: plotly's HTML would add megabytes of script.
        for method, mime in METHODS.items() if not set(data) - {"text/plain"} else ():
            if not _wanted(mime, include, exclude):
                continue
            item = _call(value, method)
            if isinstance(item, tuple) and len(item) == 2:
                item, about = item
                if about:
                    metadata[mime] = about
            if item is not None:
                data[mime] = item
        _add_figure(value, data, metadata)
    if "text/plain" not in data and _wanted("text/plain", include, exclude):
        data["text/plain"] = plain_text(value)
    if include or exclude:
        data = {mime: item for mime, item in data.items() if _wanted(mime, include, exclude)}
    return data, metadata


def plain_text(value) -> str:
    """The repr, or what can be said when there is none."""
    kernel = running()
    try:
        if kernel.print_formula is not None and _is_formula(value):
            return kernel.print_formula(value)
        return part("pretty").pretty(value, fill=not kernel.imports.has_ipython())
    except Exception as error:
        _tell(error)
        return object.__repr__(value)


def _is_formula(value) -> bool:
    """Whether sympy made it, or it is a container with nothing but such values and numbers."""
    if type(value) in (list, tuple, set, frozenset, dict):
        items = list(value.values()) + list(value) if type(value) is dict else value
        return any(type(item) not in NUMBERS for item in items) and all(
            type(item) in NUMBERS or _is_formula(item) for item in items
        )
    return any(base.__name__ == "Printable" and base.__module__.startswith("sympy.") for base in type(value).__mro__)


def _wanted(mime: str, include, exclude) -> bool:
    return (not include or mime in include) and not (exclude and mime in exclude)


def _displayed_itself(value) -> bool:
    try:
        value._ipython_display_()
        return True
    except Exception as error:
        # plotly raises here when IPython or nbformat is missing; its data is offered by other methods too.
        if _method(value, "_repr_mimebundle_") is None:
            _tell(error)
        return False


def _call(value, name: str, **options):
    """What a display method returns; a failing one costs its own type only."""
    method = _method(value, name)
    if method is None:
        return None
    try:
        return method(**options)
    except NotImplementedError:
        return None
    except Exception as error:
        _tell(error)
        return None


def _method(value, name: str):
    """A display method, if the object has one and does not merely answer to every name."""
    if isinstance(value, type):
        return None
    try:
        method = getattr(value, name, None)
        if method is None or not callable(method):
            return None
        if getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        return method
    except Exception:
        return None


def _add_figure(value, data: dict, metadata: dict) -> None:
    """matplotlib leaves its figures to whoever displays them."""
    library = sys.modules.get("matplotlib.figure")
    if library is None or not isinstance(value, library.Figure):
        return
    if data.keys() & {"image/png", "image/svg+xml", "image/jpeg", "application/pdf"}:
        value._cellwright_shown = True
        value.stale = False
    else:
        try:
            pictures, about = part("figures").pictures(value)
            data.update(pictures)
            metadata.update(about)
        except Exception as error:
            _tell(error)


def _tell(error: Exception) -> None:
    kernel = running()
    print("\n".join(part("errors").lines_of(error, kernel.cells.history.sources)), file=sys.stderr)
