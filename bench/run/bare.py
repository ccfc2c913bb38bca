"""The least that can be called a runner: JSON lines in, JSON lines out, no order, no interrupts, no displays.

One frame ends a cell and carries its value, so that it costs one write here and one read there.
"""

import ast
import io
import json
import sys
import traceback

frames = sys.stdout
namespace = {"__name__": "__main__"}


def send(**frame) -> None:
    frames.write(json.dumps(frame) + "\n")
    frames.flush()


class Printed(io.TextIOBase):
    def write(self, text: str) -> int:
        send(type="stdout", text=text)
        return len(text)


def run(code: str):
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), namespace)
    return last and eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)


sys.stdout = Printed()
for line in sys.stdin:
    message = json.loads(line)
    try:
        send(type="done", id=message["id"], status="ok", value=repr(run(message["code"])))
    except BaseException:
        send(type="done", id=message["id"], status="error", traceback=traceback.format_exc())
