"""One cell: compiled, run in `__main__`, its last expression shown, its outcome reported."""

import builtins
import sys

from . import part
from .interrupts import uninterruptible
from .wire import encode, quote

# Constants of `ast` and `inspect`, which are not imported for them.
ONLY_AST = 0x400
ALLOW_TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80
VALUE = "__cellwright_value__"  # where a coroutine leaves the value of its last expression
PLAIN = (int, float, bool, complex)  # types whose whole display is their repr


class Cell:
    """What is known of the cell that runs."""

    def __init__(self, message: dict):
        self.id = str(message["id"]) if type(message["id"]) is int else encode(message["id"])
        self.code = message["code"]
        self.silent = bool(message.get("silent"))
        self.stored = not self.silent and message.get("store_history", True)
        self.allow_stdin = bool(message.get("allow_stdin"))
        self.env = message.get("env")  # variables that this cell alone finds set
        self.file = ""
        self.result: str | None = None  # the `result` frame, held back so that it leaves together with `done`


class Cells:
    def __init__(self, kernel):
        self.kernel = kernel
        self.history = History(kernel.namespace, kernel.hidden)
        self.count = 0
        self.unstored = 0
        self.current = None
        self.script: str | None = None  # the file they come from, whose lines they count
        self.features = 0  # flags of `from __future__ import`, which last as at the prompt

    @uninterruptible
    def execute(self, message: dict) -> None:
        kernel = self.kernel
        self.current = cell = Cell(message)
        if cell.stored:
            self.count += 1
            cell.file = _file(self.count, message.get("title"), self.script)
        else:
            self.unstored += 1
            cell.file = "<unnumbered cell %d>" % self.unstored
        kernel.interrupts.install()
        kernel.interrupts.begin()
        kernel.wire.send_started(kernel.streams.settle_at_start)
        status, error_frame = "ok", None
        undo = part("setup").patch_environment(cell.env) if cell.env else None
        try:
            kernel.interrupts.call(self._run, cell)
        except BaseException as error:
            if kernel.wire.fd < 0:
                part("errors").leave_child(error)
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
            error_frame = self._report(cell, error)
        if kernel.wire.fd < 0:
            raise SystemExit  # a child that the cell forked ran to its end
        if undo is not None:
            undo()
        if kernel.streams.modules != len(sys.modules):
            kernel.streams.look_for_c_output()
        done = '{"type":"done","id":%s,"status":"%s","count":%d' % (cell.id, status, self.count)
        self.current = None
        if not kernel.spare.held:
            kernel.spare.renew()
        frames = [done] if error_frame is None else [error_frame, done]
        if cell.result is not None:
            frames.insert(0, cell.result)
        kernel.wire.send_marked(kernel.streams.settle, *frames)

    def _run(self, cell: Cell) -> None:
        self.history.enter(cell)
        if self.kernel.streams.threaded:
            self.kernel.streams.forget_threads()
        try:
            if self.kernel.loop is not None:
                self.kernel.loop.make_current()
            if self.kernel.shell is not None:
                self.kernel.shell.before(cell)
            value = self._evaluate(cell)
            if value is not None and not cell.silent:
                if sys.displayhook == self.displayhook:
                    self._show(cell, value)
                else:
                    sys.displayhook(value)
        finally:
            figures = sys.modules.get("cellwright_runner.figures")
            if figures is not None:
                figures.show()
            if self.kernel.shell is not None:
                self.kernel.shell.after(cell)

    def _evaluate(self, cell: Cell):
        """Runs the code; the value of its last expression, or None."""
        namespace = self.kernel.namespace
        if "get_ipython" in cell.code:
            part("magics").need_shell(self.kernel)
        codes = self._compile(cell)
        if codes[-1].co_flags & COROUTINE:
            part("eventloop").ensure(self.kernel).run(eval(codes[-1], namespace))
            return namespace.pop(VALUE, None)
        value = None
        for code in codes:
            value = eval(code, namespace)
        return value

    def _compile(self, cell: Cell) -> list:
        """The cell as code objects, the last one an expression; or as one coroutine that leaves its value in a name."""
        source, file, flags = cell.code, cell.file, ALLOW_TOP_LEVEL_AWAIT | self.features
        if "\n" not in source and self.kernel.shell is None:
            # A lone expression needs no syntax tree, whose types take a millisecond to set up.
            try:
                code = compile(source, file, "eval", flags, True)
                if not code.co_flags & COROUTINE:
                    return [code]
            except (SyntaxError, ValueError):
                pass  # a statement, or an error that is told below
        tree = None
        try:
            if source.lstrip().startswith(("In [", "pip --", "conda --")):  # happens to be Python as well
                source = part("magics").translate(self.kernel, source) or source
            tree = compile(source, file, "exec", flags | ONLY_AST, True)
        except SyntaxError:
            # No valid Python is a magic, so only what does not parse is looked at again.
            translated = part("magics").translate(self.kernel, source)
            if translated is None:
                raise
            # Empty lines in front stand for a script's earlier cells; IPython drops them.
            source = "\n" * max(0, _lines_before(source) - _lines_before(translated)) + translated
            self.history.parsed_as(cell, source)
        if tree is None:
            tree = compile(source, file, "exec", flags | ONLY_AST, True)
        if self.kernel.shell is not None:
            tree = self.kernel.shell.transform(tree)
        from _ast import Expr, Expression

        body, last = tree.body, None
        if body and isinstance(body[-1], Expr) and not _silenced(source, body[-1]):
            last = Expression(body.pop().value)
        if "__future__" in source:
            self.features |= part("asts").features(tree)
            flags |= self.features
        codes = [compile(tree, file, "exec", flags, True)]
        if last is not None:
            codes.append(compile(last, file, "eval", flags, True))
        if any(code.co_flags & COROUTINE for code in codes):
            # One coroutine for the whole cell, so that it is one task with one context.
            part("asts").keep_value(tree, last, VALUE)
            return [compile(tree, file, "exec", flags, True)]
        return codes

    def _report(self, cell: Cell, error: BaseException) -> str:
        for _ in range(2):
            try:
                return part("errors").report(self.kernel, cell, error)
            except BaseException as trouble:  # out of memory or of descriptors, or a module of the user's in our way
                failure = trouble
                self.kernel.spare.release()
        name = type(error).__name__
        try:
            text = str(error)
        except Exception:
            text = ""
        lines = ["Traceback (most recent call last):"] + self._places(error)
        lines.append("%s: %s" % (name, text) if text else name)
        lines.append("(told without details: %s: %s)" % (type(failure).__name__, failure))
        line = next((step for step in reversed(self._steps(error)) if step[0] == cell.file), None)
        return '{"type":"error","id":%s,"ename":%s,"evalue":%s,"traceback":%s%s' % (
            *(cell.id, quote(name), quote(text), encode(lines)),
            "" if line is None else ',"line":%d' % line[1],
        )

    def _steps(self, error: BaseException) -> list:
        steps, step = [], error.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            steps.append((code.co_filename, step.tb_lineno, code.co_name))
            step = step.tb_next
        return steps

    def _places(self, error: BaseException) -> list:
        """A traceback without the modules that make one."""
        lines = []
        for file, line, name in self._steps(error):
            source = self.history.sources.get(file)
            if source is not None:
                lines.append('  File "%s", line %d, in %s' % (file, line, name))
                lines += ["    " + text.strip() for text in source.split("\n")[line - 1 : line]]
        return lines

    def run_nested(self, source: str):
        """Runs code on behalf of the running cell (`%time`, `%run`); its value."""
        self.unstored += 1
        cell = Cell({"id": None, "code": source, "store_history": False})
        cell.file = "<unnumbered cell %d>" % self.unstored
        self.history.enter(cell)
        return self._evaluate(cell)

    def displayhook(self, value) -> None:
        """`sys.displayhook`: shows a value as the cell's result would be."""
        cell = self.current
        if value is None:
            return
        if cell is None:
            part("display").display(value)
            return
        self._show(cell, value)
        self.release_result(cell)

    def _show(self, cell: Cell, value) -> None:
        data = None
        if type(value) in PLAIN and self.kernel.shell is None:
            try:
                data = '{"text/plain":%s},"metadata":{}' % quote(repr(value))
            except ValueError:
                pass  # an integer with too many digits
        if data is None:
            data = part("formats").result(self.kernel, value)
        if cell.stored:
            self.history.keep(value, self.count)
        if data is not None:
            cell.result = '{"type":"result","id":%s,"count":%d,"data":%s' % (cell.id, self.count, data)

    def release_result(self, cell: Cell) -> None:
        """Sends the held back `result` now, because something else is to come after it."""
        if cell is not None and cell.result is not None:
            frame, cell.result = cell.result, None
            self.kernel.wire.send_marked(self.kernel.streams.settle, frame)
            self.kernel.interrupts.deliver()


class History:
    """`In`, `Out` and their underscores, bounded: an old result must not keep memory that nobody can name."""

    inputs = 1000

    def __init__(self, namespace: dict, hidden: dict):
        self.namespace = namespace
        self.outputs = 256
        self.source_bytes = 16 << 20
        self.sources: dict = {}  # file name → source, for tracebacks and inspect
        self.translations: dict = {}  # file name → what Python parsed instead, line by line, of cells with magics
        self.held_bytes = 0
        self.entered = [""]
        self.results: dict = {}
        self.oldest = 0  # no result before this is left
        hidden.update(In=self.entered, Out=self.results, _ih=self.entered, _oh=self.results)
        namespace.update(hidden)
        namespace.update(_="", __="", ___="", _i="", _ii="", _iii="")
        self.recent = ["", "", ""]

    def enter(self, cell: Cell) -> None:
        code, entered = cell.code, self.entered
        if cell.stored:
            names = self.namespace
            names["_iii"], names["_ii"], names["_i"] = names.get("_ii", ""), names.get("_i", ""), entered[-1]
            entered.append(code)
            if len(entered) > self.inputs:
                entered[len(entered) - self.inputs] = ""
        self.sources[cell.file] = code
        self.held_bytes += len(code)
        linecache = sys.modules.get("linecache")  # slow to import; it is told of earlier cells when someone does
        while self.held_bytes > self.source_bytes and len(self.sources) > 1:
            oldest = next(iter(self.sources))
            self.held_bytes -= len(self.sources.pop(oldest))
            self.translations.pop(oldest, None)
            if linecache is not None:
                linecache.cache.pop(oldest, None)
        if linecache is not None:
            linecache.cache[cell.file] = lines(code, cell.file)

    def parsed_as(self, cell: Cell, translated: str) -> None:
        """Keeps a translation for `inspect`, unless it has other lines than the cell."""
        if translated.rstrip("\n").count("\n") == cell.code.rstrip("\n").count("\n"):
            self.translations[cell.file] = translated

    def forget(self) -> None:
        """Lets go of every result."""
        self.results.clear()
        self.recent = ["", "", ""]

    def keep(self, value, count: int) -> None:
        names, results = self.namespace, self.results
        results[count] = value
        names["_%d" % count] = value
        while len(results) > self.outputs and self.oldest < count:
            results.pop(self.oldest, None)
            names.pop("_%d" % self.oldest, None)
            self.oldest += 1
        # A `_` that the user or gettext made is theirs.
        if "_" not in builtins.__dict__ and names.get("_", self.recent[0]) is self.recent[0]:
            self.recent = [value] + self.recent[:2]
            names["_"], names["__"], names["___"] = self.recent


def lines(source: str, file: str) -> tuple:
    """A source as `linecache` keeps it."""
    return (len(source), None, (source + "\n").splitlines(True), file)


def _file(count: int, title: "str | None", script: "str | None") -> str:
    """What tracebacks call a cell: by the name its reader has for it, `cell 4` of a notebook, if there is one."""
    if script is not None:
        return "<%s, cell %d>" % (_one_line(script), count)
    if not title:
        return "<cell %d>" % count
    if title.startswith("cell "):
        return "<%s, In [%d]>" % (_one_line(title), count)
    return "<cell %d: %s>" % (count, _one_line(title))


def _one_line(title: str) -> str:
    return " ".join(title.split())[:80]


def _lines_before(source: str) -> int:
    return len(source) - len(source.lstrip("\n"))


def _silenced(source: str, statement) -> bool:
    """Whether a semicolon follows the last expression."""
    if ";" not in source:
        return False
    # Lines as Python's own parser counts them: not at form feeds and the like.
    line = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")[statement.end_lineno - 1].encode("utf-8")
    return line[statement.end_col_offset :].lstrip().startswith(b";")
