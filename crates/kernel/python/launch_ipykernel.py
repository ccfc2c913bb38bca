"""Starts ipykernel so that a reader who falls behind loses nothing; sent with `python -c`.

ipykernel publishes through a socket that throws messages away once 1,000 of them wait, without a word.

The history is kept in memory, as nbclient has it: what agents run does not belong among what the person typed, and the
file, shared by all kernels of the user and synced for every cell, would take nearly half of a short cell's time.

Before each reply ipykernel sleeps, so that clients that stop at the reply find the output there. We wait for idle.
"""

import sys

# As `python -m ipykernel_launcher` does: files in the current folder must not shadow what ipykernel imports.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import zmq  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402


class LosslessKernelApp(IPKernelApp):
    def _bind_socket(self, s, port):
        if s.type in (zmq.PUB, zmq.XPUB):
            s.sndhwm = 0  # no limit; set before the bind, or it is not heeded
        return super()._bind_socket(s, port)


LosslessKernelApp.launch_instance(
    [*sys.argv[1:], "--HistoryManager.hist_file=:memory:", "--IPythonKernel._execute_sleep=0"]
)
