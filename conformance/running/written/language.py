"""What a notebook cell may say beyond Python."""

from .cells import written

LANGUAGE = [
    written("state-is-shared-by-cells", "x = 1", "x += 1", "def f():\n    return x\nf()"),
    written(
        "top-level-await",
        "import asyncio\nasync def work():\n    await asyncio.sleep(0.01)\n    return 'awake'\nawait work()",
        "async with asyncio.timeout(5):\n    await asyncio.sleep(0)\nprint('left')",
        "[x async for x in aiter_of(3)] if 'aiter_of' in globals() else 'no iterator'",
    ),
    written(
        "tasks-go-on-in-later-cells",
        "import asyncio\nresults = []\nasync def work():\n    await asyncio.sleep(0.01)\n    results.append('done')\ntask = asyncio.create_task(work())",
        "await task\nresults",
    ),
    written(
        "gathered-tasks-print-in-order",
        "import asyncio\nasync def say(n):\n    await asyncio.sleep(n / 50)\n    print(n)\nawait asyncio.gather(say(2), say(1), say(0))",
    ),
    written(
        "shell-commands",
        "!echo from the shell",
        "lines = !printf 'a\\nb\\n'\nlist(lines)",
        "!exit 3",
        "_exit_code",
    ),
    written("a-shell-command-that-prints-to-stderr", "!echo wrong >&2"),
    written("a-shell-command-with-variables", "name = 'world'\n!echo hello {name} $name"),
    written("bash-cells", "%%bash\necho one\necho two", "%%bash\nexit 3", allow_errors=True),
    written(
        "magics-that-answer",
        "%pwd\n'after'",
        "x = 5\n%who_ls int",
        "%env CELLWRIGHT_PROBE=1\nimport os\nos.environ['CELLWRIGHT_PROBE']",
    ),
    written("timing-magics", "%time sum(range(10))", "%%time\nx = 1\nx + 1"),
    written("captured-cells", "%%capture caught\nprint('hidden')\n1", "caught.stdout, len(caught.outputs)"),
    written("files-written-by-a-cell", "%%writefile note.txt\nfirst\nsecond", "open('note.txt').read()"),
    written(
        "a-cell-of-html",
        "%%html\n<b>bold</b>",
        "%%markdown\n*soft*",
        "%%latex\n$x$",
        "%%javascript\n1",
        "%%svg\n<svg/>",
    ),
    written("a-magic-nobody-knows", "%no_such_magic", "%%no_such_cell_magic\nx", allow_errors=True),
    written(
        "help-with-a-question-mark", "def documented():\n    'What it does.'\ndocumented?", "print('after')"
    ),
    written(
        "percent-signs-in-strings-are-text",
        "text = '''\n%d items\n!not a command\n'''\nprint(text, 7 % 3, '%s' % 1)",
    ),
    written(
        "classes-can-be-pickled", "import pickle\nclass P:\n    x = 1\npickle.loads(pickle.dumps(P())).x"
    ),
    written(
        "the-source-of-a-function",
        "import inspect\ndef f(a):\n    # a comment\n    return a\nprint(inspect.getsource(f))",
    ),
    written("names-of-the-module", "__name__, '__file__' in globals()"),
    written(
        "the-folder-is-the-notebooks", "import os\nos.path.basename(os.getcwd()) != '', os.path.exists('.')"
    ),
    written(
        "a-changed-folder-stays-changed",
        "import os\nos.mkdir('below')\nos.chdir('below')",
        "os.path.basename(os.getcwd())",
    ),
    written(
        "dataclasses-and-enums",
        "import dataclasses, enum\n@dataclasses.dataclass\nclass D:\n    x: int = 1\nclass E(enum.Enum):\n    A = 1\nD(), E.A",
    ),
    written("semicolons-hide-the-result", "1;", "2; 3", "4 # comment; \n", "'a;b'"),
    written("a-value-after-a-comment", "5\n# the last line is a comment\n", "6\n\n\n"),
    written("generators-and-lambdas-name-themselves", "str(x for x in 'a')[:11], (lambda: 0).__name__"),
    written(
        "multiprocessing-with-fork",
        "import multiprocessing\ndef square(n):\n    return n * n\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    out = pool.map(square, range(4))\nout",
    ),
    written(
        "an-at-exit-handler", "import atexit\natexit.register(print, 'at exit') and None", "print('last')"
    ),
]
