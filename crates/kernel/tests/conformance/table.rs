//! The table: what a cell may do, and what is seen of it whatever runs it.

use std::time::Duration;

use super::case::{
    Answered, Cancelled, Case, Difference, Echoed, Interrupted, Plain, Refused, Run, Seen, Silent, Then,
    Within,
};
use super::kernels::Kind::{self, Ipc, JupyterServer, KernelGateway, Tcp};

/// ipykernel, however it is reached.
const IPYKERNEL: &[Kind] = &[Ipc, Tcp, KernelGateway, JupyterServer];
const GATEWAYS: &[Kind] = &[KernelGateway, JupyterServer];

const fn case(
    about: &'static str,
    cells: &'static [Run],
    seen: &'static str,
    differences: &'static [Difference],
) -> Case {
    Case { about, cells, seen, differences }
}

const fn differs(on: &'static [Kind], seen: &'static str, why: &'static str) -> Difference {
    Difference { on, seen: Seen::This(seen), why }
}

const fn unordered(on: &'static [Kind], lines: &'static [&'static str], why: &'static str) -> Difference {
    Difference { on, seen: Seen::Lines(lines), why }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "printed text is shown",
        &[Plain("print('one')\nprint('two')")],
        "out one\\ntwo\\n\n= completed",
        &[],
    ),
    case(
        "the environment, the prelude, extension modules and the folder are there before the first cell",
        &[Plain("import os\nenv('GREETING'), extended(), callable(bash), os.path.exists('extension.py')")],
        "result ('hello', 'by a module', True, True)\n= completed",
        &[],
    ),
    case(
        "standard output and standard error keep their order",
        &[Plain("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')")],
        "out a\\n\nerr b\\n\nout c\\n\n= completed",
        &[unordered(
            IPYKERNEL,
            &["a", "b", "c"],
            "ipykernel sends each stream when it has collected enough of it: what was printed to the other one in between comes before or after",
        )],
    ),
    case("the last expression's value is shown", &[Plain("6 * 7")], "result 42\n= completed", &[]),
    case("a semicolon hides the value", &[Plain("6 * 7;")], "= completed", &[]),
    case(
        "displays stand where they were made among the text",
        &[Plain("from IPython.display import display\nprint('a')\ndisplay(1)\nprint('b')\ndisplay(2)")],
        "out a\\n\ndisplay 1\nout b\\n\ndisplay 2\n= completed",
        &[],
    ),
    case(
        "a display of an earlier cell is updated",
        &[Plain("handle = display('old', display_id='progress')"), Plain("handle.update('new')")],
        "display 'old'\n= completed\nupdate progress 'new'\n= completed",
        &[],
    ),
    case(
        "output is cleared, now or later",
        &[Plain(
            "from IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')\nclear_output(wait=True)\nprint('c')",
        )],
        "out a\\n\nclear now\nout b\\n\nclear later\nout c\\n\n= completed",
        &[],
    ),
    case(
        "values that are not JSON are shown",
        &[Plain(
            "import warnings; warnings.simplefilter('ignore')\ndisplay({'application/json': {'x': float('nan')}, 'text/plain': 'nan'}, raw=True)",
        )],
        "display nan\n= completed",
        &[],
    ),
    case(
        "an exception ends the cell, not the kernel",
        &[Plain("x = 1\n1 / 0"), Plain("x")],
        "error ZeroDivisionError: division by zero\n= raised ZeroDivisionError\nresult 1\n= completed",
        &[],
    ),
    case(
        "text of any language arrives whole",
        &[Plain("print('né 日本語 🎉')")],
        "out né 日本語 🎉\\n\n= completed",
        &[],
    ),
    case(
        "await works at the top of a cell",
        &[Plain("import asyncio\nawait asyncio.sleep(0.01)\n'awake'")],
        "result 'awake'\n= completed",
        &[],
    ),
    case(
        "the last value is `_`",
        &[Plain("20 + 1"), Plain("_ * 2")],
        "result 21\n= completed\nresult 42\n= completed",
        &[],
    ),
    case(
        "shell commands run",
        &[Plain("x = !echo from the shell\nprint(x[0])")],
        "out from the shell\\n\n= completed",
        &[],
    ),
    case(
        "a silent cell shows what it prints and no value",
        &[Silent("print('a')\n1")],
        "out a\\n\n= completed",
        &[],
    ),
    case(
        "what child processes print is captured",
        &[Plain("import subprocess\nprint(subprocess.run(['echo', 'from a child']).returncode)")],
        "out from a child\\n0\\n\n= completed",
        &[unordered(
            IPYKERNEL,
            &["from a child", "0"],
            "ipykernel reads what children print in a thread of its own: it may come after what the cell printed later, or after the cell's end",
        )],
    ),
    case(
        "a thread prints after the cell's end, which is kept for the session",
        &[Then(
            "import threading\nthreading.Timer(0.3, lambda: print('from a thread', flush=True)).start()",
            "from a thread\n",
        )],
        "= completed\nlate from a thread\\n",
        &[],
    ),
    case(
        "input is asked for and given",
        &[Answered("print('hello', input('name? '))", "you")],
        "ask name? \nout hello you\\n\n= completed",
        &[],
    ),
    case(
        "a cell that nobody answers gets an exception",
        &[Refused("input('name? ')")],
        "ask name? \nerror EOFError: nobody is here\n= raised EOFError",
        &[differs(
            IPYKERNEL,
            "ask name? \nerror EOFError: \n= raised EOFError",
            "Jupyter's protocol has no way to refuse: the cell finds the end of the file, without a reason",
        )],
    ),
    case(
        "a cell that may not ask gets an exception",
        &[Plain("input('name? ')")],
        "error EOFError: input() has nobody to answer it: this cell runs without standard input. Put the value into the code, or read it from a file or an environment variable; to debug, print or inspect variables in a cell.\n= raised EOFError",
        &[differs(
            IPYKERNEL,
            "error StdinNotImplementedError: raw_input was called, but this frontend does not support input requests.\n= raised StdinNotImplementedError",
            "the exception is ipykernel's own",
        )],
    ),
    case(
        "an interrupt stops the cell and nothing else",
        &[
            Plain("x = 2"),
            // Python notices an interrupt that comes just before a call blocks when that call is over.
            Interrupted("import time\nprint('ready\\n', end='', flush=True)\nwhile True: time.sleep(0.01)"),
            Plain("x"),
        ],
        "= completed\nout ready\\n\nerror KeyboardInterrupt: \n= interrupted, the kernel survived\nresult 2\n= completed",
        &[],
    ),
    case(
        "an interrupt reaches child processes",
        &[
            Interrupted(
                "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint('ready\\n', end='', flush=True)\nchild.wait();",
            ),
            // Python may lose the status of a child that ends while its wait is interrupted, and says 0 then.
            Plain("child.wait(20) in (-2, 0), x"),
        ],
        "out ready\\n\nerror KeyboardInterrupt: \n= interrupted, the kernel survived\nresult (True, 2)\n= completed",
        &[],
    ),
    case(
        "a cell that takes too long is interrupted",
        &[Within("import time\ntime.sleep(600)", Duration::from_millis(500)), Plain("x")],
        "error KeyboardInterrupt: \n= timed out, the kernel survived\nresult 2\n= completed",
        &[],
    ),
    case(
        "code that swallows the interrupt of its time limit has timed out",
        &[
            Within(
                "import time\ntry: time.sleep(600)\nexcept KeyboardInterrupt: print('swallowed')",
                Duration::from_millis(500),
            ),
            Plain("x"),
        ],
        "out swallowed\\n\nwarning the interrupt did not end the cell: it ran to its end\n= timed out, the kernel survived\nresult 2\n= completed",
        &[],
    ),
    case(
        "a cell whose caller is gone is interrupted",
        &[Cancelled("print('ready\\n', end='', flush=True)\nwhile True: pass"), Plain("x")],
        "out ready\\n\nerror KeyboardInterrupt: \n= cancelled, the kernel survived\nresult 2\n= completed",
        &[],
    ),
    case(
        "an interrupt stops a cell that awaits",
        &[Cancelled("print('ready\\n', end='', flush=True)\nawait asyncio.sleep(600)"), Plain("x")],
        "out ready\\n\nerror KeyboardInterrupt: \n= cancelled, the kernel survived\nresult 2\n= completed",
        &[differs(
            IPYKERNEL,
            "out ready\\n\nerror CancelledError: \n= cancelled, the kernel survived\nresult 2\n= completed",
            "ipykernel reports it as the CancelledError of its event loop",
        )],
    ),
    case(
        "a print of 4 MB arrives whole",
        &[Plain("text = 'né🎉\\n' * 500_000\nprint(text, end='')\nlen(text)")],
        "out 4000000 bytes, 500000 lines, the last \"né🎉\", 20991ad6bc223125\nresult 2000000\n= completed",
        &[],
    ),
    case(
        "100,000 lines arrive whole",
        &[Plain("for i in range(100_000): print(i)")],
        "out 588890 bytes, 100000 lines, the last \"99999\", fb4f160a74fd0ae3\n= completed",
        &[],
    ),
    case(
        "`sys.exit()` ends the cell, not the kernel",
        &[Plain("import sys\nsys.exit(3)"), Plain("x")],
        "error SystemExit: 3\n= raised SystemExit\nresult 2\n= completed",
        &[],
    ),
    case(
        "a comm (a widget's, say) has nobody on its other side; what a widget displays is its text",
        &[Echoed(
            "from comm import create_comm, get_comm_manager
def echo(comm, opened):
    def answer(message):
        comm.send(message['content']['data'], buffers=message['buffers'])
        comm.close()
    comm.on_msg(answer)
get_comm_manager().register_target('echo', echo)
create_comm('greeting', data={'hello': 1}, buffers=[b'\\0\\xff']);",
            "hi",
        )],
        "= completed\nnot said the kernel could not answer: it has no comms",
        &[differs(
            IPYKERNEL,
            "comm Open { target: \"greeting\" } {\"hello\":1} [b\"\\\\0\\\\xff\"]\n= completed\nopen ours to echo\ncomm Message {\"text\":\"hi\"} [b\"hi\"]\ncomm Close {} []",
            "callers that ask for comm messages get them, and can answer",
        )],
    ),
    case(
        "the death of a kernel is reported, with how it died",
        &[Plain("import os\nprint('before', flush=True)\nimport time; time.sleep(0.5)\nos._exit(3)")],
        "out before\\n\n= died: exited with code 3",
        &[differs(
            GATEWAYS,
            "out before\\n\n= died: the kernel died and its server started another",
            "a server reports that a kernel died, not how",
        )],
    ),
    case(
        "the next kernel knows nothing of the one before",
        &[Plain("x")],
        "error NameError: name 'x' is not defined\n= raised NameError",
        &[],
    ),
    case(
        "`quit()` ends the cell, not the kernel",
        &[Plain("y = 5\nquit()"), Plain("y")],
        "error SystemExit: \n= raised SystemExit\nresult 5\n= completed",
        &[],
    ),
];
