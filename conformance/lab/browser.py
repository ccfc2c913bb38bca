"""Chromium over its own debugging protocol: enough to open a page, run JavaScript in it, click, type and look."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

TIMEOUT = 120


class Browser:
    def __init__(self) -> None:
        program = shutil.which("chromium")
        if not program:
            raise RuntimeError("no chromium in PATH; run scripts/check.sh prepare")
        self.profile = tempfile.TemporaryDirectory(prefix="cellwright-chromium-", ignore_cleanup_errors=True)
        flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
        flags += " --disable-background-networking --disable-component-update --disable-dev-shm-usage"
        flags += " --remote-debugging-port=0 --window-size=1200,1600 --remote-allow-origins=*"
        self.process = subprocess.Popen(
            [program, *flags.split(), f"--user-data-dir={self.profile.name}", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stderr:
            found = re.search(r"DevTools listening on (ws://\S+)", line)
            if found:
                break
        else:
            raise RuntimeError("chromium ended before it could be spoken to")
        # Closed on this side, it stops writing there instead of waiting for a reader.
        self.process.stderr.close()
        self.socket = websocket.create_connection(found[1], timeout=TIMEOUT, max_size=None)
        self.last = 0
        self.session = None

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def call(self, method: str, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address: str) -> None:
        """Opens a page in a tab of its own: a page with unsaved changes would ask before it is left."""
        self.session = None
        target = self.call("Target.createTarget", url=address)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def js(self, expression: str):
        """The value of an expression, awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}\n{answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str, timeout: float = TIMEOUT):
        """The value of an expression once it is true. A page that is still loading has none."""
        deadline = time.monotonic() + timeout
        # A frame of the page between two looks: nothing changes meanwhile.
        frame = "await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 20)))"
        while time.monotonic() < deadline:
            try:
                value = self.js(
                    f"(async () => {{ {frame}; try {{ return {expression} }} catch {{ return null }} }})()"
                )
            except RuntimeError as error:
                # The page was left for the next one.
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
                continue
            if value:
                return value
        self.look(Path(tempfile.gettempdir()) / "cellwright-lab-failed.png")
        raise TimeoutError(expression)

    def press_enter(self) -> None:
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)

    def press(self, key: str, code: str, number: int, *, control: bool = False) -> None:
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 2 if control else 0}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def undo(self, *, of_cells: bool = False) -> None:
        """Ctrl-Z in a cell, or `z` for changes of the list of cells."""
        if of_cells:
            self.press("Escape", "Escape", 27)
        self.press("z", "KeyZ", 90, control=not of_cells)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def look(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
