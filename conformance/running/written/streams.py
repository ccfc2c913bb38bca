"""What cells print, and how it reaches the document."""

from .cells import written

STREAMS = [
    written("prints-of-one-cell-are-one-stream", "print(1)\nprint(2)\nprint(3, flush=True)\nprint(4)"),
    written(
        "stdout-and-stderr-take-turns",
        """
        import sys
        for i in range(3):
            print("out", i, flush=True)
            print("err", i, file=sys.stderr, flush=True)
        """,
    ),
    written("text-without-a-newline-stays-without-one", "print('no newline', end='')", "print('next cell')"),
    written("text-comes-before-the-result", "print('text', end='')\n6 * 7"),
    written(
        "text-around-a-display-keeps-its-place",
        "print('before')\ndisplay('between')\nprint('after')",
    ),
    written("a-carriage-return-overwrites-the-line", "print('first\\rsecond')\nprint('100%\\r  5%')"),
    written(
        "a-carriage-return-before-a-newline-is-kept-out", "print('dos line\\r\\nnext line\\r\\n', end='')"
    ),
    written("a-backspace-takes-a-character-back", "print('abcd\\b\\bX')\nprint('12\\b\\b\\b3')"),
    written(
        "a-progress-bar-is-one-line",
        """
        import time
        for i in range(0, 101, 20):
            print(f"\\r{i:3d}% done", end="", flush=True)
            time.sleep(0.01)
        print()
        """,
    ),
    written(
        "a-tqdm-bar",
        """
        from tqdm import tqdm
        total = 0
        for i in tqdm(range(5), bar_format="{l_bar}{bar}|", ncols=40):
            total += i
        total
        """,
    ),
    written(
        "colours-are-kept",
        r"""print("\x1b[31mred\x1b[0m and \x1b[1;32mbold green\x1b[0m")""",
    ),
    written(
        "a-clear-takes-back-what-was-shown",
        """
        from IPython.display import clear_output
        print("gone")
        display("gone too")
        clear_output()
        print("stays")
        """,
    ),
    written(
        "a-clear-that-waits-and-then-text",
        """
        from IPython.display import clear_output
        for i in range(3):
            clear_output(wait=True)
            print("round", i, flush=True)
        """,
    ),
    written(
        "a-clear-that-waits-for-nothing-clears-nothing",
        """
        from IPython.display import clear_output
        print("stays")
        clear_output(wait=True)
        """,
        "print('the next cell is not touched')",
    ),
    written(
        "a-clear-that-waits-is-ended-by-a-display",
        """
        from IPython.display import clear_output
        print("gone")
        clear_output(wait=True)
        display({"shown": True})
        """,
    ),
    written(
        "a-clear-that-waits-is-ended-by-an-error",
        """
        from IPython.display import clear_output
        print("gone")
        clear_output(wait=True)
        raise ValueError("shown")
        """,
        allow_errors=True,
    ),
    written(
        "logging-goes-to-stderr",
        """
        import logging
        logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
        logging.getLogger("study").info("started")
        logging.warning("careful")
        """,
        "logging.getLogger('study').error('in a later cell')",
    ),
    written(
        "warnings-name-the-line",
        """
        import warnings
        warnings.warn("this is old", DeprecationWarning)
        warnings.warn("take care")
        """,
    ),
    written(
        "threads-print-into-their-cell",
        """
        import threading
        def work(name):
            print("from", name, flush=True)
        for name in "abc":
            thread = threading.Thread(target=work, args=(name,))
            thread.start()
            thread.join()
        """,
    ),
    written(
        "children-write-to-stdout-and-stderr",
        """
        import subprocess, sys
        code = "import sys; print('from a child'); print('its error', file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
        """,
    ),
    written("a-child-writes-to-our-stdout", "import os\nstatus = os.system('echo from the shell')\nstatus"),
    written(
        "bytes-written-to-the-descriptor", "import os\nwritten = os.write(1, b'straight to 1\\n')\nwritten"
    ),
    written(
        "text-of-every-script",
        "print('naïve café ☕ 中文 العربية 😀 \\u2028 end')\n'naïve ☕'",
    ),
    written("control-characters-in-text", r"print('tab\there\x07 bell \x0b feed \x0c nul \x00 end')"),
    written("a-thousand-lines", "for i in range(1000):\n    print('line', i)"),
    written("a-line-of-a-hundred-thousand-characters", "print('x' * 100_000)"),
    written("a-million-bytes", "for i in range(10_000):\n    print(f'{i:0>99}')"),
    written(
        "writelines-and-write-return-as-files-do",
        """
        import sys
        n = sys.stdout.write("written\\n")
        sys.stdout.writelines(["a\\n", "b\\n"])
        n, sys.stdout.encoding.lower(), sys.stdout.isatty(), sys.stdout.writable()
        """,
    ),
    written(
        "redirected-text-is-not-shown",
        """
        import contextlib, io
        with contextlib.redirect_stdout(io.StringIO()) as caught:
            print("hidden")
        caught.getvalue()
        """,
    ),
    written(
        "pretty-printed-structures", "import pprint\npprint.pprint({i: 'x' * i for i in range(12)}, width=40)"
    ),
    written("printing-nothing-leaves-no-output", "print('', end='')", "x = 1", "None"),
]
