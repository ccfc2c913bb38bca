"""Makes the screenshots of README and docs: `target/venv/bin/python scripts/screenshots.py [--binary FILE] [SCENE…]`.

Each scene runs the real program in a terminal of its own. What it writes is put on a screen as a terminal that shows pictures
(kitty's protocol) would, and Chromium draws that screen. The pictures are in docs/images.
"""

import argparse
import fcntl
import html
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
IMAGES = WORKSPACE / "docs/images"
CHARACTER = (10, 20)
FONT = "'DejaVu Sans Mono', monospace"

WEATHER = """\
# %% Load the measurements
import numpy as np, pandas as pd
rng = np.random.default_rng(7)
weather = pd.DataFrame({
    "station": ["Zürich", "Genève", "Basel", "Lugano"],
    "days": [365, 364, 365, 361],
    "mean °C": rng.normal(10, 2, 4).round(1),
    "rain mm": rng.normal(900, 120, 4).round(0),
})
weather
# %% Fit the model
import time
from tqdm import tqdm
for epoch in tqdm(range(60), desc="epoch", ncols=64):
    time.sleep(0.02)
print("loss 0.031, 4 stations, 1,455 days")
# %% Plot the season
%matplotlib inline
import matplotlib.pyplot as plt
plt.rcParams |= {"figure.facecolor": BACK, "axes.facecolor": BACK, "savefig.facecolor": BACK, "font.size": 8}
plt.rcParams |= {key: FORE for key in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")}
fig, ax = plt.subplots(figsize=(6.6, 2.1), dpi=110)
day = np.arange(365)
for shift, colour in ((0, "#61afef"), (18, "#e5a05b"), (36, "#98c379")):
    mean = 10 + 9 * np.sin((day - 100 - shift) / 365 * 2 * np.pi)
    ax.plot(day, mean + rng.normal(0, 1.1, 365).cumsum() / 18, color=colour, lw=1.2)
    ax.fill_between(day, mean - 2, mean + 2, color=colour, alpha=0.13)
ax.set_title("daily mean, °C"); ax.grid(alpha=0.15); ax.spines[["top", "right"]].set_visible(False)
plt.show()
# %% Compare with last year
def rain_change(frame, year):
    return frame["rain mm"] - LAST_YEAR[year]
rain_change(weather, 2025)
# %% Mail the report
send(report)
"""


@dataclass
class Scene:
    """What is run, and what is typed meanwhile: texts to wait for, each with the keys that follow."""

    command: str
    files: dict[str, str]
    columns: int = 92
    rows: int = 60
    keys: list[tuple[str, str]] = field(default_factory=list)


def notebook(*sources: str) -> str:
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{at}",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for at, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


SCENES = {
    "run": Scene("cellwright run weather.py", {"weather.py": WEATHER}),
    "notebooks": Scene(
        "cellwright run -j 2 north.ipynb south.ipynb east.ipynb",
        {
            "north.ipynb": notebook("import time", "time.sleep(0.4)\nprint('north')", "1"),
            "south.ipynb": notebook("import time", "time.sleep(0.3)", "rows = {}\nrows['south']"),
            "east.ipynb": notebook("import time", "time.sleep(0.2)", "2"),
        },
    ),
    "edit": Scene(
        "cellwright edit plan.ipynb --old 'rows = 10' --new 'rows = 10_000' --force",
        {
            "plan.ipynb": notebook(
                'import csv\n\ndef load(path, rows = 10):\n    """The first rows of a file."""\n'
                "    with open(path) as lines:\n        return list(csv.reader(lines))[:rows]"
            )
        },
    ),
}


# The sixteen colours of a terminal: eight, and eight brighter ones.
DARK_COLOURS = """
#1e2127 #e8707a #98c379 #e5c07b #6cb2f2 #c98be0 #5fc5cf #d0d4dc
#6b7380 #ff8a94 #b1dc92 #f5d691 #8ac6ff #dca3f1 #7fdde6 #ffffff
"""
LIGHT_COLOURS = """
#2f343d #c4343f #3f7d20 #a06a00 #1f66b5 #8a34a8 #0b7a87 #8b929c
#7a818c #d8505a #57963a #b88117 #3b7fcb #a04cbd #2a929e #2f343d
"""


@dataclass(frozen=True)
class Theme:
    name: str
    background: str
    foreground: str
    bar: str
    colours: str
    variable: str

    def of(self, number: int) -> str:
        """One of the 256 colours."""
        if number < 16:
            return self.colours.split()[number]
        if number >= 232:
            return "#" + f"{8 + 10 * (number - 232):02x}" * 3
        number -= 16
        parts = (number // 36, number // 6 % 6, number % 6)
        return "#" + "".join(f"{55 + 40 * part if part else 0:02x}" for part in parts)


DARK = Theme(
    "dark",
    "#1e2127",
    "#d0d4dc",
    "#2a2e36",
    DARK_COLOURS,
    "15;0",
)
LIGHT = Theme(
    "light",
    "#fbfbfa",
    "#2f343d",
    "#ecedee",
    LIGHT_COLOURS,
    "0;15",
)

TOKEN = re.compile(
    r"\x1b_G(?P<kitty>[^;\x1b]*);?(?P<data>[^\x1b]*)\x1b\\|\x1b\[(?P<parameters>[0-9;?<>=]*)(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b(?P<escape>[^\[_\]])|(?P<control>[\r\n\b\t\x07])|(?P<text>[^\x1b\r\n\b\t\x07]+)",
    re.DOTALL,
)


class Screen:
    """What a terminal that shows pictures would show, with everything that has scrolled away."""

    def __init__(self, theme: Theme, columns: int):
        self.theme, self.columns = theme, columns
        self.lines: list[list[tuple[str, str]]] = [[]]
        self.row = self.column = 0
        self.saved = (0, 0)
        self.style: dict[str, str] = {}
        self.pictures: dict[str, tuple[int, int, str]] = {}
        self.loading, self.keys = "", ""

    def feed(self, text: str) -> None:
        for token in TOKEN.finditer(text):
            if token["text"]:
                self.write(token["text"])
            elif token["final"]:
                self.control(token["final"], token["parameters"])
            elif token["kitty"] is not None:
                self.picture(token["kitty"], token["data"])
            elif token["escape"]:
                if token["escape"] == "7":
                    self.saved = (self.row, self.column)
                elif token["escape"] == "8":
                    self.row, self.column = self.saved
            elif token["control"] == "\r":
                self.column = 0
            elif token["control"] == "\n":
                self.down(1)
            elif token["control"] == "\b":
                self.column = max(0, self.column - 1)

    def down(self, count: int) -> None:
        self.row += count
        while len(self.lines) <= self.row:
            self.lines.append([])

    def write(self, text: str) -> None:
        css = ";".join(f"{key}:{value}" for key, value in self.style.items())
        for character in text:
            if self.column >= self.columns:
                self.column = 0
                self.down(1)
            line = self.lines[self.row]
            line += [(" ", "")] * (self.column + 1 - len(line))
            line[self.column] = (character, css)
            self.column += 1

    def control(self, final: str, parameters: str) -> None:
        numbers = [int(part) for part in parameters.split(";") if part.isdigit()]
        count = max(1, numbers[0]) if numbers else 1
        if final == "A":
            self.row = max(0, self.row - count)
        elif final == "B":
            self.down(count)
        elif final == "C":
            self.column += count
        elif final == "D":
            self.column = max(0, self.column - count)
        elif final == "G":
            self.column = count - 1
        elif final in "KJ":
            del self.lines[self.row][self.column :]
            if final == "J":
                del self.lines[self.row + 1 :]
        elif final == "m":
            self.select(numbers or [0])

    def select(self, codes: list[int]) -> None:
        """Chooses colours and attributes."""
        at = 0
        while at < len(codes):
            code = codes[at]
            if code == 0:
                self.style = {}
            elif code == 1:
                self.style["font-weight"] = "bold"
            elif code == 2:
                self.style["opacity"] = "0.58"
            elif code == 3:
                self.style["font-style"] = "italic"
            elif code == 4:
                self.style["text-decoration"] = "underline"
            elif code in (22, 23, 24):
                for key in {22: ("font-weight", "opacity"), 23: ("font-style",), 24: ("text-decoration",)}[
                    code
                ]:
                    self.style.pop(key, None)
            elif code in (39, 49):
                self.style.pop("color" if code == 39 else "background", None)
            elif code in (38, 48):
                key = "color" if code == 38 else "background"
                if codes[at + 1] == 2:
                    self.style[key] = "rgb({},{},{})".format(*codes[at + 2 : at + 5])
                    at += 4
                else:
                    self.style[key] = self.theme.of(codes[at + 2])
                    at += 2
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.style["color"] = self.theme.of(code - 30 if code < 90 else code - 82)
            at += 1

    def picture(self, keys: str, data: str) -> None:
        options = dict(part.split("=", 1) for part in keys.split(",") if "=" in part)
        if options.get("a") == "d":
            self.pictures.pop(options.get("i", ""), None)
            return
        if "a" in options:
            self.keys, self.loading = keys, ""
        self.loading += data
        if options.get("m") == "0":
            first = dict(part.split("=", 1) for part in self.keys.split(",") if "=" in part)
            self.pictures[first.get("i", str(len(self.pictures)))] = (self.row, self.column, self.loading)

    def html(self, prompt: str) -> tuple[str, int]:
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        theme, (width, height) = self.theme, CHARACTER
        rows = [f'<b style="color:{theme.of(2)}">❯</b> <b>{html.escape(prompt)}</b>']
        for line in self.lines:
            spans, at = [], 0
            while at < len(line):
                end = at
                while end < len(line) and line[end][1] == line[at][1]:
                    end += 1
                text = html.escape("".join(character for character, _ in line[at:end]))
                spans.append(f'<span style="{line[at][1]}">{text}</span>' if line[at][1] else text)
                at = end
            rows.append("".join(spans))
        images = "".join(
            f'<img style="left:{column * width}px;top:{(row + 1) * height}px" src="data:image/png;base64,{data}">'
            for row, column, data in self.pictures.values()
        )
        body = "".join(f'<div class="row">{row}</div>' for row in rows)
        page = f"""<!doctype html><meta charset="utf-8"><style>
body{{margin:0;background:transparent}}
.window{{width:{self.columns * width + 48}px;background:{theme.background};overflow:hidden}}
.bar{{height:34px;background:{theme.bar};display:flex;align-items:center;padding-left:14px;gap:8px}}
.bar i{{width:12px;height:12px;border-radius:6px;background:#ff5f57}}
.bar i:nth-child(2){{background:#febc2e}}.bar i:nth-child(3){{background:#28c840}}
.screen{{position:relative;margin:14px 24px 20px;color:{theme.foreground};font:15.6px/{height}px {FONT};
font-variant-ligatures:none}}
.row{{height:{height}px;white-space:pre}}
img{{position:absolute}}
</style><div class="window"><div class="bar"><i></i><i></i><i></i></div><div class="screen">{body}{images}</div></div>"""
        return page, 34 + 34 + len(rows) * height


def written_by(command: list[str], scene: Scene, folder: Path, environment: dict[str, str]) -> str:
    """What a program writes to its terminal, from its start to its end."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environment)
    width, height = CHARACTER
    size = struct.pack("HHHH", scene.rows, scene.columns, scene.columns * width, scene.rows * height)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    written, keys, end = b"", list(scene.keys), time.monotonic() + 120
    seen = 0
    try:
        while time.monotonic() < end:
            if keys and keys[0][0].encode() in written[seen:]:
                seen = len(written)
                os.write(terminal, keys.pop(0)[1].encode())
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    chunk = os.read(terminal, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                written += chunk
        else:
            os.kill(child, signal.SIGKILL)
            raise SystemExit(f"{command} did not end; it wrote {written[-2000:]!r}")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return written.decode()


def take(name: str, scene: Scene, theme: Theme, binary: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        work = Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        for file, content in scene.files.items():
            content = content.replace("BACK", repr(theme.background)).replace("FORE", repr(theme.foreground))
            (work / file).write_text(content)
        venv = WORKSPACE / "target/venv"
        environment = {
            "PATH": f"{binary.parent}:{venv / 'bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
            "VIRTUAL_ENV": str(venv),
            "TERM": "xterm-kitty",
            "COLORTERM": "truecolor",
            "COLORFGBG": theme.variable,
            "LANG": "C.UTF-8",
        }
        text = written_by(["sh", "-c", f"exec {scene.command}"], scene, work, environment)
        screen = Screen(theme, scene.columns)
        screen.feed(text)
        page, height = screen.html(scene.command)
        source = Path(folder) / "page.html"
        source.write_text(page)
        picture = IMAGES / f"{name}-{theme.name}.png"
        width = scene.columns * CHARACTER[0] + 48
        chromium = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
        command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--default-background-color=00000000", f"--user-data-dir={folder}/chromium"]
        command += [f"--window-size={width},{height}", "--force-device-scale-factor=1.5"]
        subprocess.run(
            [*command, f"--screenshot={picture}", source.as_uri()],
            check=True,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=120,
        )
    return picture


def smaller(picture: Path) -> None:
    """The same picture in fewer bytes."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    image.quantize(256, method=Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE).save(
        picture, optimize=True
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("scenes", nargs="*", choices=[[], *SCENES], metavar="SCENE")
    arguments.add_argument("--binary", type=Path, default=WORKSPACE / "target/debug/cellwright")
    options = arguments.parse_args()
    if not options.binary.is_file():
        sys.exit(f"{options.binary} is missing; build it, or name another one with --binary")
    IMAGES.mkdir(exist_ok=True)
    for name in options.scenes or SCENES:
        for theme in (DARK, LIGHT):
            picture = take(name, SCENES[name], theme, options.binary.resolve())
            smaller(picture)
            print(f"{picture.relative_to(WORKSPACE)}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
