"""Any Python value as the nearest value JSON can carry. Never raises, never runs away."""

import base64

DEPTH = 100
ITEMS = 100_000


def jsonable(value, path=(), depth: int = 0):
    """NaN and infinities become null, sets and tuples lists, keys strings, bytes base64, cycles and strangers text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 10_000 else _text(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if depth > DEPTH:
        return "…"
    if id(value) in path:
        return "<cycle>"
    inside = path + (id(value),)
    try:
        if isinstance(value, dict):
            items = list(value.items())[:ITEMS]
            return {_key(key): jsonable(item, inside, depth + 1) for key, item in items}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [jsonable(item, inside, depth + 1) for item in list(value)[:ITEMS]]
        for plain in ("tolist", "item", "isoformat"):  # numpy and pandas scalars and arrays, dates
            method = getattr(type(value), plain, None)
            if method is not None:
                return jsonable(method(value), inside, depth + 1)
    except Exception:
        pass  # a container that fails when looked into is shown as text
    return _text(value)


def _key(key) -> str:
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return _text(key)


def _text(value) -> str:
    try:
        return str(value)[:10_000]
    except Exception:
        return object.__repr__(value)
