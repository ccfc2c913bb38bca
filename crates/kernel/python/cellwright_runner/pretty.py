"""`text/plain` of a value, laid out as IPython does: its repr, but containers are broken into lines and cut when huge,
functions come with their signature, and classes that have `_repr_pretty_` print themselves.

Without IPython, lists of short items are filled line by line instead: a thousand numbers are not a thousand lines.
"""

WIDTH = 79
ITEMS = 1000  # of one container
TOTAL = 100_000  # leaves in all
DEPTH = 50
BUILT_IN = ("builtins", "exceptions", None)
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"), dict: ("{", "}")}


def pretty(value, fill: bool = True) -> str:
    """May raise what the value's `__repr__` raises."""
    kind = type(value)
    if kind is str:
        return repr(value)
    printer = Printer(fill)
    printer.pretty(value)
    return printer.finish()


class Group:
    """What is broken into lines together, or not at all."""

    def __init__(self, depth: int, fill: bool):
        self.depth = depth
        self.fill = fill
        self.breaks: list = []  # those of its places for a line break that were not decided on yet
        self.broken = False


class Break:
    """A place for a line break: a space where the line goes on."""

    def __init__(self, space: str, indentation: int, group: Group):
        self.space = space
        self.indentation = indentation
        self.group = group


class Printer:
    """Lays text out in lines. The methods are those that `_repr_pretty_(p, cycle)` of other people's classes call."""

    max_width = WIDTH
    max_seq_length = ITEMS
    newline = "\n"
    verbose = False

    def __init__(self, fill: bool):
        self.fill = fill
        self.out: list = []
        self.column = 0
        self.held: list = []  # texts and breaks after the first break that was not decided on
        self.held_width = 0
        self.indentation = 0
        self.groups = [Group(0, False)]
        self.open: list = [self.groups[0]]  # groups with breaks to decide on, in the order they began
        self.left = TOTAL
        self.stack: list = []  # the values that are being printed

    # What classes call

    def text(self, text: str) -> None:
        if self.held:
            self.held.append(text)
            self.held_width += len(text)
            self._break_if_too_wide()
        else:
            self._emit(text)

    def breakable(self, sep: str = " ") -> None:
        group = self.groups[-1]
        if group.broken and not group.fill:
            self._flush()
            self._new_line(self.indentation)
            return
        place = Break(sep, self.indentation, group)
        group.breaks.append(place)
        if group not in self.open:
            self.open.append(group)
        self.held.append(place)
        self.held_width += len(sep)
        self._break_if_too_wide()

    def break_(self) -> None:
        self._break_outermost()
        self._flush()
        self._new_line(self.indentation)

    def begin_group(self, indent: int = 0, open: str = "") -> None:
        if open:
            self.text(open)
        group = Group(self.groups[-1].depth + 1, False)
        self.groups.append(group)
        self.indentation += indent

    def end_group(self, dedent: int = 0, close: str = "") -> None:
        self.indentation -= dedent
        self.groups.pop()
        if close:
            self.text(close)

    def group(self, indent: int = 0, open: str = "", close: str = ""):
        return _Within(lambda: self.begin_group(indent, open), lambda: self.end_group(indent, close))

    def indent(self, indent: int):
        def change(by: int) -> None:
            self.indentation += by

        return _Within(lambda: change(indent), lambda: change(-indent))

    def pretty(self, value) -> None:
        self.left -= 1
        cycle = any(value is other for other in self.stack) or len(self.stack) >= DEPTH
        self.stack.append(value)
        try:
            _printer_of(value)(self, value, cycle)
        finally:
            self.stack.pop()

    # Lines

    def finish(self) -> str:
        self._flush()
        return "".join(self.out)

    def _emit(self, text: str) -> None:
        self.out.append(text)
        line = text.rfind("\n")
        self.column = self.column + len(text) if line < 0 else len(text) - line - 1

    def _new_line(self, indentation: int) -> None:
        self.out.append("\n" + " " * indentation)
        self.column = indentation

    def _flush(self) -> None:
        """Everything that was not decided on stays on the line."""
        for piece in self.held:
            if type(piece) is Break:
                piece.group.breaks.clear()
                self._emit(piece.space)
            else:
                self._emit(piece)
        self.held, self.held_width, self.open = [], 0, []

    def _break_if_too_wide(self) -> None:
        while self.held and self.column + self.held_width > WIDTH:
            if not self._break_outermost():
                return

    def _break_outermost(self) -> bool:
        """Breaks the outermost group that has places for it; whether there was one."""
        outermost = min((group for group in self.open if group.breaks), key=lambda group: group.depth, default=None)
        for group in self.groups:
            if outermost is None or group.depth <= outermost.depth:
                group.broken = True  # also one whose first place for a break is still to come
        if outermost is not None:
            outermost.broken = True
            self._take_breaks_of(outermost)
        return outermost is not None

    def _take_breaks_of(self, group: Group) -> None:
        """Ends the line at the places of a group: at each one, or where it is filled only at the last."""
        last = group.breaks[-1]
        fills = group.fill and len(group.breaks) > 1
        while self.held:
            piece = self.held.pop(0)
            if type(piece) is not Break:
                self.held_width -= len(piece)
                self._emit(piece)
                continue
            self.held_width -= len(piece.space)
            piece.group.breaks.remove(piece)
            if piece.group is group and not (fills and piece is not last):
                self._new_line(piece.indentation)
            else:
                self._emit(piece.space)
            if piece is last:
                break
        while self.held and type(self.held[0]) is not Break:
            piece = self.held.pop(0)
            self.held_width -= len(piece)
            self._emit(piece)


class _Within:
    def __init__(self, enter, leave):
        self.__enter__, self.__exit__ = enter, leave
        self.enter, self.leave = enter, leave

    def __enter__(self):
        self.enter()

    def __exit__(self, *_error):
        self.leave()


def _printer_of(value):
    kind = type(value)
    for base in kind.__mro__:
        printer = PRINTERS.get(base) or PRINTERS_BY_NAME.get((base.__module__, base.__qualname__))
        if printer is not None:
            return printer
        names = base.__dict__
        if callable(names.get("_repr_pretty_")):
            return _by_itself
        if base is not object and callable(names.get("__repr__")):
            return _by_repr
    return _by_default


def _by_repr(printer: Printer, value, cycle: bool) -> None:
    lines = repr(value).splitlines()
    with printer.group():
        for number, line in enumerate(lines):
            if number:
                printer.break_()
            printer.text(line)


def _by_itself(printer: Printer, value, cycle: bool) -> None:
    value._repr_pretty_(printer, cycle)


def _by_default(printer: Printer, value, cycle: bool) -> None:
    kind = type(value)
    printer.text("<%s at 0x%x>" % (_name(kind), id(value)))


def _name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module in BUILT_IN else "%s.%s" % (module, kind.__qualname__)


def _container(printer: Printer, value, cycle: bool) -> None:
    base = next(base for base in type(value).__mro__ if base in BRACKETS)
    if type(value) is not base and type(value).__repr__ is not base.__repr__:
        return printer.text(repr(value))
    opening, closing = BRACKETS[base]
    if cycle:
        return printer.text(opening + "..." + closing)
    if base in (set, frozenset) and not value:
        return printer.text(base.__name__ + "()")
    printer.begin_group(len(opening), opening)
    printer.groups[-1].fill = printer.fill and base is not dict and _are_short(value)
    for number, item in enumerate(_ordered(value, base)):
        if number:
            printer.text(",")
            printer.breakable()
        if number == ITEMS or printer.left <= 0:
            printer.text("...")
            break
        printer.pretty(item)
        if base is dict:
            printer.text(": ")
            printer.pretty(value[item])
    if base is tuple and len(value) == 1:
        printer.text(",")
    return printer.end_group(len(opening), closing)


def _are_short(value) -> bool:
    return all(type(item) not in BRACKETS and len(repr(item)) <= WIDTH // 4 for item, _ in zip(value, range(ITEMS)))


def _ordered(value, base: type):
    if base in (set, frozenset) and len(value) <= ITEMS:
        try:
            return sorted(value)
        except Exception:
            pass  # not all comparable
    return value


def _call(printer: Printer, name: str, *arguments, **named) -> None:
    """`Name(argument, name=argument)`."""
    printer.begin_group(len(name) + 1, name + "(")
    for number, (label, argument) in enumerate([("", item) for item in arguments] + list(named.items())):
        if number:
            printer.text(",")
            printer.breakable()
        label = label + "=" if label else ""
        printer.begin_group(len(label), label)
        printer.pretty(argument)
        printer.end_group(len(label))
    printer.end_group(len(name) + 1, ")")


class _Dots:
    def __repr__(self) -> str:
        return "..."


def _default_dict(printer: Printer, value, cycle: bool) -> None:
    _call(printer, type(value).__name__, *([_Dots()] if cycle else [value.default_factory, dict(value)]))


def _ordered_dict(printer: Printer, value, cycle: bool) -> None:
    items = [list(value.items())] if value else []
    _call(printer, type(value).__name__, *([_Dots()] if cycle else items))


def _deque(printer: Printer, value, cycle: bool) -> None:
    named = {} if value.maxlen is None else {"maxlen": value.maxlen}
    if cycle:
        return _call(printer, type(value).__name__, _Dots())
    return _call(printer, type(value).__name__, list(value), **named)


def _counter(printer: Printer, value, cycle: bool) -> None:
    items = [dict(value.most_common())] if value else []
    _call(printer, type(value).__name__, *([_Dots()] if cycle else items))


def _mapping_proxy(printer: Printer, value, cycle: bool) -> None:
    _call(printer, "mappingproxy", _Dots() if cycle else dict(value))


def _namespace(printer: Printer, value, cycle: bool) -> None:
    name = "namespace" if type(value).__name__ == "SimpleNamespace" else type(value).__name__
    if cycle:
        _call(printer, name, _Dots())
    else:
        _call(printer, name, **vars(value))


def _function(printer: Printer, value, cycle: bool) -> None:
    name = getattr(value, "__qualname__", None) or value.__name__
    module = value.__module__
    if module not in BUILT_IN:
        name = "%s.%s" % (module, name)
    try:
        from inspect import signature

        name += str(signature(value))
    except Exception:
        pass  # many functions in C have none
    printer.text("<function %s>" % name)


def _class(printer: Printer, value, cycle: bool) -> None:
    if any("__repr__" in base.__dict__ for base in type(value).__mro__[: type(value).__mro__.index(type)]):
        return _by_repr(printer, value, cycle)
    return printer.text(_name(value))


def _exception(printer: Printer, value, cycle: bool) -> None:
    _call(printer, _name(type(value)), *([_Dots()] if cycle else value.args))


def _pattern(printer: Printer, value, cycle: bool) -> None:
    import re

    names = [name for name in ("IGNORECASE", "LOCALE", "MULTILINE", "DOTALL", "UNICODE", "VERBOSE", "DEBUG")
             if value.flags & getattr(re, name)]  # fmt: skip
    if value.flags & getattr(re, "TEMPLATE", 0):
        names.insert(0, "TEMPLATE")
    pattern = repr(value.pattern)
    raw = "r" + pattern.replace("\\\\", "\\") if pattern[:1] in "'\"" else pattern
    printer.text("re.compile(%s%s)" % (raw, ", " + "|".join("re." + name for name in names) if names else ""))


PRINTERS = {
    type(lambda: None): _function,
    type(len): _function,
    type: _class,
    BaseException: _exception,
    type(type.__dict__): _mapping_proxy,
    **dict.fromkeys(BRACKETS, _container),
}
# Named, not imported.
PRINTERS_BY_NAME = {
    ("collections", "defaultdict"): _default_dict,
    ("collections", "OrderedDict"): _ordered_dict,
    ("collections", "deque"): _deque,
    ("collections", "Counter"): _counter,
    ("types", "SimpleNamespace"): _namespace,
    ("re", "Pattern"): _pattern,
}
