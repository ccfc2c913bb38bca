"""jupyter_client doing what `bench_jupyter` does: `peer.py start|warm|stdout|lines [ARGUMENT...]`, one line of JSON.

The arguments are ipykernel's.
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

began = time.monotonic()  # after the imports: a program that is up already is what we are compared with

WARM = 300


def run(client, code: str, pause: float = 0.0) -> tuple[int, int]:
    """Runs a cell to its reply and idle without keeping what it prints; bytes and lines."""
    request = client.execute(code)
    time.sleep(pause)
    size = lines = 0
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            size += len(content["text"])
            lines += content["text"].count("\n")
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    while client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != request:
        pass
    return size, lines


def measure(mode: str, *arguments: str) -> dict:
    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=list(arguments))
    size = lines = 0
    try:
        started = began
        if mode == "start":
            run(client, "1 + 1")
            seconds = time.monotonic() - started
        elif mode == "warm":
            run(client, "1 + 1")
            started = time.monotonic()
            for _ in range(WARM):
                run(client, "1 + 1")
            seconds = (time.monotonic() - started) / WARM
        elif mode == "stdout":
            run(client, "1 + 1")
            started = time.monotonic()
            code = "print('x' * 99 + '\\n', end='')\nprint(('x' * 99 + '\\n') * 1_000_000, end='')"
            size, lines = run(client, code)
            seconds = time.monotonic() - started
        else:
            size, lines = run(client, "for i in range(20_000): print(i, flush=True)", pause=2)
            seconds = time.monotonic() - started
        with open("/proc/self/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        return {"seconds": seconds, "bytes": size, "lines": lines, "peak_kib": peak}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


print(json.dumps(measure(*sys.argv[1:])))
