"""ipykernel through jupyter_client: reads one task a line from stdin and answers each with one line.

The tasks are those of the Rust driver (`crates/kernel/examples/bench_run.rs`). Messages are read as they come, in one
loop of our own: `execute_interactive` polls and is slower.
"""

import json
import subprocess
import sys
import time
from queue import Empty

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

# A kernel that said nothing for so long has lost its last messages.
SILENCE = 10.0


def run(client: BlockingKernelClient, code: str) -> dict:
    """Runs a cell to its reply and its idle; the seconds it took and the bytes that came."""
    before = time.perf_counter()
    request = client.execute(code)
    printed = waited = 0
    try:
        while True:
            message = client.get_iopub_msg(timeout=SILENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                printed += len(content["text"].encode())
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
    except Empty:
        waited = SILENCE  # the idle was lost; the peer is not charged for our patience
    reply = client.get_shell_msg(timeout=SILENCE)
    while reply["parent_header"]["msg_id"] != request:  # the start asked who it is, more than once
        reply = client.get_shell_msg(timeout=SILENCE)
    assert reply["content"]["status"] == "ok", reply
    return {"seconds": time.perf_counter() - before - waited, "bytes": printed}


def start() -> tuple[KernelManager, BlockingKernelClient]:
    return start_new_kernel(stderr=subprocess.DEVNULL)  # it warns of its transport at every start


def main() -> None:
    manager, client = start()
    for line in sys.stdin:
        task = json.loads(line)
        if task["task"] == "start":
            before = time.perf_counter()
            fresh_manager, fresh_client = start()
            run(fresh_client, task["code"])
            answer = {"seconds": time.perf_counter() - before}
            fresh_client.stop_channels()
            fresh_manager.shutdown_kernel(now=True)
        elif task["task"] == "warm":
            answer = {"seconds": [run(client, task["code"])["seconds"] for _ in range(task["times"])]}
        else:
            answer = run(client, task["code"])
        print(json.dumps(answer), flush=True)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
