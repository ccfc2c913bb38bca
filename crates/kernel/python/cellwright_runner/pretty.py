"""`text/plain` of a value: its repr, except that built-in containers are broken into lines and cut when huge."""

WIDTH = 80
ITEMS = 1000  # of one container
TOTAL = 100_000  # leaves in all
DEPTH = 50
BRACKETS = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: "{}"}


def pretty(value) -> str:
    """May raise what the value's `__repr__` raises."""
    if type(value) not in BRACKETS:
        return repr(value)
    return "".join(_Printer().lines(value, 0, 0))


class _Printer:
    def __init__(self):
        self.left = TOTAL
        self.inside: set = set()

    def lines(self, value, indent: int, used: int) -> list:
        """Pieces of text for `value`, which starts at column `indent` and is followed by `used` characters."""
        kind = type(value)
        if kind not in BRACKETS:
            self.left -= 1
            return [repr(value)]
        if not value:
            return [repr(value)]
        if id(value) in self.inside or len(self.inside) >= DEPTH:
            return ["%s...%s" % (BRACKETS[kind][0], BRACKETS[kind][1])]
        self.inside.add(id(value))
        try:
            return self._container(value, kind, indent, used)
        finally:
            self.inside.discard(id(value))

    def _container(self, value, kind, indent: int, used: int) -> list:
        opening, closing = BRACKETS[kind]
        if kind is frozenset:
            opening, closing = "frozenset({", "})"
        column = indent + len(opening)
        items = []
        for number, item in enumerate(_ordered(value, kind)):
            if number == ITEMS or self.left <= 0:
                items.append("...")
                break
            if kind is dict:
                key = "".join(self.lines(item, column, 1)) + ": "
                start = column + (len(key) if "\n" not in key else 0)
                items.append(key + "".join(self.lines(value[item], start, 1)))
            else:
                items.append("".join(self.lines(item, column, 1)))
        if kind is tuple and len(items) == 1:
            closing = ",)"
        breaks = any("\n" in item for item in items)
        if not breaks and column + sum(map(len, items)) + 2 * len(items) + used <= WIDTH:
            return [opening, ", ".join(items), closing]
        if breaks or kind is dict or max(map(len, items)) > WIDTH // 4:
            return [opening, (",\n" + " " * column).join(items), closing]
        return [opening, _filled(items, column), closing]


def _filled(items: list, column: int) -> str:
    """Short items, as many on a line as fit."""
    lines = [items[0]]
    for item in items[1:]:
        if column + len(lines[-1]) + len(item) + 3 > WIDTH:
            lines.append(item)
        else:
            lines[-1] += ", " + item
    return (",\n" + " " * column).join(lines)


def _ordered(value, kind):
    if kind in (set, frozenset) and len(value) <= ITEMS:
        try:
            return sorted(value)
        except Exception:
            pass  # not all comparable
    return value
