"""What `%%capture` keeps."""

import sys

from . import part


class Captured:
    """What `%%capture` kept: `stdout`, `stderr`, and `outputs`, the displays."""

    def __init__(self, stdout: str, stderr: str, outputs: list):
        self.stdout, self.stderr = stdout, stderr
        self.outputs = [CapturedDisplay(*output) for output in outputs]

    def __str__(self) -> str:
        return self.stdout

    def show(self) -> None:
        """Prints and shows it all."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show


class CapturedDisplay:
    def __init__(self, data: dict, metadata: dict):
        self.data, self.metadata = data, metadata

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data, self.metadata

    def __repr__(self) -> str:
        return self.data.get("text/plain", "<captured display>")

    def display(self) -> None:
        part("display").publish(self.data, self.metadata, None, False)
