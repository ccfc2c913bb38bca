"""Many kernels on one gateway from one `cellwright mcp`, and what is left when the gateway restarts.

    bench/scale/gateway.py [COUNT] [PYTHON]

PYTHON has `jupyter_enterprise_gateway` or `jupyter_kernel_gateway`; without it, the Kernel Gateway of target/venv runs.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import Server, children, memory

WORKSPACE = Path(__file__).resolve().parents[2]
TOKEN = "measured"


class Gateway:
    """A gateway on a port of its own, which it keeps when it is started again."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        asked = subprocess.run([python, "-c", "import enterprise_gateway"], capture_output=True)
        self.module = "kernel_gateway" if asked.returncode else "enterprise_gateway"
        application = "KernelGatewayApp" if asked.returncode else "EnterpriseGatewayApp"
        self.options = [f"--{application}.port={self.port}", f"--{application}.port_retries=0"]
        self.options.append("--ZMQChannelsWebsocketConnection.limit_rate=False")
        self.start()

    def start(self) -> None:
        environment = {
            **os.environ,
            "KG_AUTH_TOKEN": TOKEN,
            "EG_AUTH_TOKEN": TOKEN,
            "PATH": f"{Path(self.python).parent}:{os.environ['PATH']}",
        }
        with open(self.folder / "gateway.log", "a") as log:
            command = [self.python, "-m", self.module, *self.options]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit((self.folder / "gateway.log").read_text())
                time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    python = sys.argv[2] if len(sys.argv) > 2 else str(WORKSPACE / "target/venv/bin/python")
    with tempfile.TemporaryDirectory(prefix="cellwright-scale-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        gateway = Gateway(python, folder)
        variables = {
            "CELLWRIGHT_KERNEL": "gateway:python3",
            "CELLWRIGHT_GATEWAY_URL": f"http://127.0.0.1:{gateway.port}",
            "CELLWRIGHT_GATEWAY_TOKEN": TOKEN,
            # An Enterprise Gateway starts nothing for root.
            "KERNEL_USERNAME": "ada",
        }
        server = Server(folder, count, variables)
        try:
            begun = time.perf_counter()
            for session in range(count):
                server.run(session, f"x = {session}")
            started = time.perf_counter() - begun
            begun = time.perf_counter()
            wrong = [s for s in range(count) if server.run(s, "x").split()[0] != str(s)]
            asked = (time.perf_counter() - begun) / count * 1000
            kernels = children(gateway.process.pid)
            print(f"{gateway.module}: {count} kernels started in {started:.1f} s, one after another")
            print(f"each answered with its own variable in {asked:.1f} ms; wrong answers: {len(wrong)}")
            print(f"our process: {memory(server.process.pid, 'Rss'):.1f} MB")
            print(f"the gateway: {memory(gateway.process.pid, 'Rss'):.1f} MB")
            shared = sum(memory(kernel, "Pss") for kernel in kernels) / max(len(kernels), 1)
            print(f"each kernel: {shared:.1f} MB")
            gateway.stop()
            gateway.start()
            first = server.answer(0, "x")
            second = server.answer(0, "y = 2; y")
            print(f"gateway restarted; the first call says: {first.splitlines()[0]}")
            print(f"the second call says: {' '.join(second.split())}")
        finally:
            server.close()
            gateway.stop()
    if wrong:
        sys.exit("answers went to the wrong session")


if __name__ == "__main__":
    main()
