"""The user's variables, listed without running any of the user's code.

A listing may come while a cell runs, and from another thread than the cell's. So nothing is called that a class of
the user or of a library defines: `len()` of a lazy table may take minutes, `repr()` of a query may send it. What is
shown of a value comes from built-in types, and from a few library types whose shape is known to be there already.
"""

import sys
import types
from itertools import islice

LONGEST = 200
TEXT = 100  # characters of one string, number or the like
ITEMS = 6
DEPTH = 4
IMMORTAL = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not set for types that are part of the interpreter or of C modules

# Package → classes whose `shape` and `dtype` (or `dtypes`) are stored, not computed.
SHAPED = {
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series", "Index"),
    "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",),
    "tensorflow": ("EagerTensor",),
    "jaxlib": ("ArrayImpl",),
    "cupy": ("ndarray",),
    "scipy": ("csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "coo_array"),
    "pyarrow": ("Table", "RecordBatch"),
}
# Where a `__len__` or `__repr__` comes from that only looks at what is there.
LENGTHS = ("builtins", "collections", "array")
BRACKETS = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}
# Types whose repr is C code, or short code of the standard library, that calls nothing of anyone else's.
PRINTED = {
    "builtins": ("range", "function", "builtin_function_or_method", "generator", "coroutine", "async_generator",
                 "ellipsis", "NotImplementedType", "code", "frame", "cell", "bytearray"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath", "PureWindowsPath"),
    "uuid": ("UUID",),
    "re": ("Pattern",),
    "ipaddress": ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"),
}  # fmt: skip

_type_module = type.__dict__["__module__"].__get__
_type_name = type.__dict__["__qualname__"].__get__
_type_mro = type.__dict__["__mro__"].__get__
_type_names = type.__dict__["__dict__"].__get__


def variables(kernel, message: dict) -> dict:
    """The user's names, without modules and without what we put there."""
    found = []
    for name, value in list(kernel.namespace.items()):
        # `isinstance` would ask the value for its class, and a lazy one would make itself to answer.
        if type(name) is not str or name.startswith("_") or issubclass(type(value), types.ModuleType):
            continue
        if name in kernel.hidden and kernel.hidden[name] is value:
            continue
        found.append((name, value))
    limit = message.get("limit")
    return {
        "variables": [_variable(name, value) for name, value in (found if limit is None else found[:limit])],
        "total": len(found),
    }


def _variable(name: str, value) -> dict:
    listed = {"name": name, "type": type_name(type(value))}
    try:
        shape = shape_of(value)
        if shape is not None:
            listed["shape"] = shape
        else:
            size = size_of(value)
            if size is not None:
                listed["size"] = size
        listed["preview"] = preview(value, shape)
    except Exception:  # it changed while it was looked at: a cell is running
        listed["preview"] = "<%s>" % listed["type"]
    return listed


def type_name(kind: type) -> str:
    """The name of a type as people know it: pandas.core.frame.DataFrame is known as pandas.DataFrame."""
    package, name = _package(kind), _type_name(kind)
    return name if package in ("builtins", "__main__") else "%s.%s" % (package, name)


def _package(kind: type) -> str:
    module = _module(kind)
    return module.partition(".")[0]


def _module(kind: type) -> str:
    module = _type_module(kind)
    return module if type(module) is str else "?"


def _owner(kind: type, attribute: str) -> "type | None":
    """The class that defines an attribute for values of this type."""
    for base in _type_mro(kind):
        if attribute in _type_names(base):
            return base
    return None


def shape_of(value) -> "list | None":
    """The dimensions of arrays and tables that are known to have them at hand."""
    kind = type(value)
    if not any(_type_name(base) in SHAPED.get(_package(base), ()) for base in _type_mro(kind)):
        return None
    owner = _owner(kind, "shape")
    if owner is None or _package(owner) not in SHAPED or _overrides_lookup(kind):
        return None
    shape = value.shape
    if issubclass(type(shape), tuple) and all(type(length) is int for length in shape):
        return list(shape)
    return None


def _overrides_lookup(kind: type) -> bool:
    owner = _owner(kind, "__getattribute__")
    return owner is not object and _package(owner) not in SHAPED


def size_of(value) -> "int | None":
    """The number of elements, where the interpreter itself keeps it."""
    owner = _owner(type(value), "__len__")
    if owner is None or owner.__flags__ & IMMORTAL or _module(owner) not in LENGTHS:
        return None
    return len(value)


def preview(value, shape=None) -> str:
    """The beginning of how the value prints."""
    if shape is not None:
        dtype = value.dtype if _owner(type(value), "dtype") is not None else None
        size = " x ".join(map(str, shape)) or "scalar"
        return "%s %s%s" % (_type_name(type(value)), size, " %s" % dtype if dtype is not None else "")
    text = " ".join(_text(value, DEPTH).split("\n"))
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _text(value, depth: int) -> str:
    kind = type(value)
    if value is None or kind in (bool, float, complex):
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= 1000 else "<int of %d bits>" % value.bit_length()
    if kind in (str, bytes):
        return repr(value) if len(value) <= TEXT else repr(value[: TEXT - 3]) + "…"
    if kind in BRACKETS:
        return _container(value, kind, depth)
    if issubclass(kind, type):
        return "<class %r>" % ("%s.%s" % (_module(value), _type_name(value))).replace("builtins.", "")
    if _type_name(kind) in PRINTED.get(_module(kind), ()):
        return _cut(repr(value))
    if _package(kind) == "numpy" and "numpy" in sys.modules and issubclass(kind, sys.modules["numpy"].generic):
        return _cut(repr(value))
    return _instance(value, kind, depth)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _container(value, kind: type, depth: int) -> str:
    opening, closing = BRACKETS[kind]
    if not value:
        return repr(value)
    if depth <= 0:
        return opening + "..." + closing
    if kind is dict:
        items = list(islice(value.items(), ITEMS))
        texts = ["%s: %s" % (_text(key, depth - 1), _text(item, depth - 1)) for key, item in items]
    else:
        texts = [_text(item, depth - 1) for item in list(islice(value, ITEMS))]
    if len(value) > ITEMS:
        texts.append("...")
    elif kind is tuple and len(value) == 1:
        closing = ",)"
    return opening + ", ".join(texts) + closing


def _instance(value, kind: type, depth: int) -> str:
    """A value of a class of somebody's: what it is, and its fields where they say all there is to say."""
    base = next((base for base in (list, tuple, set, frozenset, dict, str, int, float) if issubclass(kind, base)), None)
    names = _type_names(kind)
    if _module(type(kind)) == "enum" and "_name_" in object.__getattribute__(value, "__dict__"):
        return "%s.%s" % (_type_name(kind), object.__getattribute__(value, "__dict__")["_name_"])
    if base is tuple and type(names.get("_fields")) is tuple and depth > 0:
        pairs = zip(names["_fields"], tuple.__iter__(value))
        return "%s(%s)" % (_type_name(kind), _fields(pairs, depth))
    if "__dataclass_fields__" in names and depth > 0:
        try:
            fields = object.__getattribute__(value, "__dict__")
        except AttributeError:  # it has slots
            fields = None
        if type(fields) is dict:
            return "%s(%s)" % (_type_name(kind), _fields(list(islice(fields.items(), ITEMS)), depth))
    size = "" if base is None or base in (str, int, float) else " of %d" % base.__len__(value)
    return "<%s%s>" % (type_name(kind), size)


def _fields(pairs, depth: int) -> str:
    return ", ".join("%s=%s" % (name, _text(item, depth - 1)) for name, item in pairs)
