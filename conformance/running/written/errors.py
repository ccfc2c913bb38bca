"""Exceptions, and what becomes of the cells after them."""

from .cells import code, written

ERRORS = [
    written("an-error-stops-the-run", "print('before')", "1 / 0", "print('never')"),
    written("allowed-errors-do-not-stop-the-run", "1 / 0", "print('reached')", allow_errors=True),
    written(
        "an-error-keeps-the-text-before-it",
        "print('done so far')\nraise RuntimeError('and then')",
        allow_errors=True,
    ),
    written(
        "a-tagged-cell-may-raise",
        code("raise KeyError('expected')", "raises-exception"),
        "print('goes on')",
        code("print('need not raise')", "raises-exception"),
    ),
    written(
        "a-tagged-cell-is-skipped",
        "print('runs')",
        code("raise SystemError('never run')", "skip-execution"),
        "print('runs too')",
    ),
    written("a-skipped-cell-keeps-its-old-outputs", code("1", "skip-execution"), "2", old_outputs=True),
    written("cells-after-a-failure-keep-their-old-outputs", "1 / 0", "print('never')", old_outputs=True),
    written(
        "a-traceback-through-functions",
        """
        def outer(n):
            return inner(n) + 1

        def inner(n):
            return 1 / n
        """,
        "outer(0)",
        allow_errors=True,
    ),
    written(
        "a-traceback-of-a-library",
        "import json\njson.loads('{broken')",
        allow_errors=True,
    ),
    written(
        "causes-and-contexts",
        """
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("worse") from error
        """,
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    int('x')",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise TypeError('alone') from None",
        allow_errors=True,
    ),
    written("a-syntax-error", "x = = 1", "print('unclosed'", "def f():\nreturn 1", allow_errors=True),
    written("a-name-nobody-knows", "print(undefined_name)", allow_errors=True),
    written(
        "an-exception-of-our-own",
        "class OwnError(Exception):\n    pass",
        "raise OwnError('with', 2, 'parts')",
        "raise OwnError",
        allow_errors=True,
    ),
    written(
        "an-error-in-many-lines",
        "raise ValueError('first line\\nsecond line\\n\\nlast ☕')",
        allow_errors=True,
    ),
    written("an-assertion", "assert 1 + 1 == 3, 'sums are wrong'", "assert []", allow_errors=True),
    written(
        "an-exception-group",
        "raise ExceptionGroup('many', [ValueError(1), TypeError('two')])",
        allow_errors=True,
    ),
    written(
        "an-exception-with-notes",
        "e = ValueError('noted')\ne.add_note('look here')\nraise e",
        allow_errors=True,
    ),
    written("too-deep-a-recursion", "def f(n):\n    return f(n + 1)\nf(0)", allow_errors=True),
    written(
        "an-exit-is-an-error", "import sys", "sys.exit(3)", "print('the kernel lives')", allow_errors=True
    ),
    written("an-exit-stops-the-run", "raise SystemExit('enough')", "print('never')"),
    written(
        "a-keyboard-interrupt-of-the-code-itself",
        "raise KeyboardInterrupt('own')",
        "print('on')",
        allow_errors=True,
    ),
    written("input-is-refused", "input('name? ')", "import getpass\ngetpass.getpass()", allow_errors=True),
    written(
        "an-error-in-a-repr",
        "class Bad:\n    def __repr__(self):\n        raise ValueError('no repr')\nBad()",
        "print('on')",
        allow_errors=True,
    ),
    written(
        "errors-of-threads-go-to-stderr",
        """
        import threading, sys
        threading.excepthook = lambda args: print("in a thread:", args.exc_value, file=sys.stderr)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        """,
    ),
    written("an-error-counts-as-a-cell", "1 / 0", "'count'", allow_errors=True),
    written("a-variable-set-before-the-error-stays", "x = 1\n1 / 0\nx = 2", "x", allow_errors=True),
]
