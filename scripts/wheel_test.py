"""Installs the wheel as people do, in fresh environments, and looks at all of it: `python scripts/wheel_test.py WHEEL`.

On every Python from 3.8 to 3.13 that is here (PATH and pyenv): the wheel installs without a network and without Rust, runs
a cell, and leaves nothing behind when it is removed. In an environment that has JupyterLab (target/venv, which
`scripts/check.sh prepare` makes): the server finds the kernel and the extension, a prompt is answered, a plot is drawn.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
PREPARED = WORKSPACE / "target/venv"
AGENT = WORKSPACE / "crates/testkit/src/fault_agent.py"
LIMIT = 8_000_000

# What the wheel brings beside the program.
SHARED = [
    "share/jupyter/kernels/cellwright-agent/kernel.json",
    "share/jupyter/labextensions/cellwright/package.json",
    "share/man/man1/cellwright.1",
    "share/man/man1/cellwright-run.1",
    "share/bash-completion/completions/cellwright",
    "share/fish/vendor_completions.d/cellwright.fish",
    "share/nushell/vendor/autoload/cellwright.nu",
    "share/zsh/site-functions/_cellwright",
]

PROMPT = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="cellwright-agent", startup_timeout=60)
said = []
reply = client.execute_interactive("say hello", timeout=60, output_hook=lambda message: said.append(str(message["content"])))
client.stop_channels()
manager.shutdown_kernel()
assert reply["content"]["status"] == "ok", reply["content"]
assert "hello" in "".join(said), said
"""

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"


def interpreters() -> list[Path]:
    """The newest patch of each Python version that is here."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"))
    found: dict[tuple[int, int], tuple[tuple[int, ...], Path]] = {}
    for folder in folders:
        for program in folder.glob("python3*"):
            if not re.fullmatch(r"python3(\.\d+)?", program.name):
                continue
            asked = subprocess.run([program, "--version"], capture_output=True, text=True)
            match = re.match(r"Python (\d+)\.(\d+)\.(\d+)", asked.stdout)
            if match:
                version = tuple(map(int, match.groups()))
                if (3, 8) <= version[:2] <= (3, 13) and version > found.get(version[:2], ((), None))[0]:
                    found[version[:2]] = (version, program)
    return [program for _, (_, program) in sorted(found.items())]


def environment(folder: Path, home: Path) -> dict[str, str]:
    """A user who has this virtual environment, and neither Rust nor a network."""
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # An address where nobody listens: what asks for the network all the same fails at once.
        "https_proxy": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }


def run(command: list, env: dict[str, str]) -> str:
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def files(folder: Path) -> set[str]:
    """Everything in a folder but what Python writes beside modules that it has read."""
    every = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in every if "__pycache__" not in path.parts}


def try_alone(program: Path, wheel: Path, scratch: Path) -> None:
    """In an environment with nothing else."""
    folder = scratch / f"alone-{program.parent.parent.name}-{program.name}"
    run([program, "-m", "venv", folder], dict(os.environ))
    env = environment(folder, scratch / "home")
    pip = [folder / "bin/python", "-m", "pip"]
    before = files(folder)
    begun = time.perf_counter()
    run([*pip, "install", wheel], env)
    installed = time.perf_counter()
    said = run([folder / "bin/cellwright", "run", "-c", "6 * 7"], env)
    first = time.perf_counter()
    assert said.strip() == "42", said
    missing = [name for name in SHARED if not (folder / name).is_file()]
    assert not missing, missing
    run([*pip, "uninstall", "--yes", "cellwright"], env)
    # pip leaves empty folders.
    left = {name for name in files(folder) - before if not (folder / name).is_dir()}
    assert not left, left
    version = run([program, "--version"], env).strip()
    print(
        f"{version}: installed in {installed - begun:.1f} s, first result {first - installed:.2f} s later, removed"
    )


def try_in_jupyter(wheel: Path, scratch: Path) -> None:
    """In an environment that has JupyterLab."""
    folder = scratch / "jupyter"
    run([PREPARED / "bin/python", "-m", "venv", folder], dict(os.environ))
    env = environment(folder, scratch / "jupyter-home")
    python = folder / "bin/python"
    # The packages that are prepared, and none of their kernels and settings.
    packages = run(
        [PREPARED / "bin/python", "-c", "import site; print(site.getsitepackages()[0])"], env
    ).strip()
    own = run([python, "-c", "import site; print(site.getsitepackages()[0])"], env).strip()
    Path(own, "prepared.pth").write_text(packages + "\n")
    before = files(folder)
    run([python, "-m", "pip", "install", "--no-deps", wheel], env)
    settings = scratch / "jupyter-home/.config/cellwright"
    settings.mkdir(parents=True)
    agent = {"command": str(python), "args": [str(AGENT)]}
    (settings / "config.toml").write_text(
        "[agents.fault]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in agent.items())
        + '[agent]\ndefault = "fault"\n'
    )
    options = ["--no-browser", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", "--allow-root"]
    options += ["--IdentityProvider.token=t", f"--ServerApp.root_dir={scratch}"]
    log = scratch / "jupyter.log"
    with open(log, "w") as out:
        server = subprocess.Popen(
            [python, "-m", "jupyterlab", *options], env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:

        def page(path: str) -> str:
            """What the server answers, as soon as it does."""
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            deadline = time.monotonic() + 120
            while True:
                found = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())
                try:
                    if found:
                        return opener.open(f"{found[0]}{path}?token=t", timeout=60).read().decode()
                except OSError:
                    pass
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(log.read_text())
                time.sleep(0.1)

        kernels = json.loads(page("api/kernelspecs"))["kernelspecs"]
        assert "cellwright-agent" in kernels, list(kernels)
        # The launcher shows each kernelspec with its logo.
        assert kernels["cellwright-agent"]["resources"], kernels["cellwright-agent"]
        assert '"cellwright"' in page("lab"), "the page does not load the extension"
    finally:
        server.kill()
        server.wait()
    print("JupyterLab finds the kernel and the extension")
    run([python, "-c", PROMPT], env)
    print("a prompt is answered")
    events = run([folder / "bin/cellwright", "run", "--json", "-c", PLOT], env).splitlines()
    shown = [json.loads(line) for line in events if '"image/png"' in line]
    assert shown, events
    print("a plot is drawn")
    run([python, "-m", "pip", "uninstall", "--yes", "cellwright"], env)
    left = {name for name in files(folder) - before if not (folder / name).is_dir()}
    assert not left, left


def main() -> None:
    wheel = Path(sys.argv[1]).resolve()
    size = wheel.stat().st_size
    assert size <= LIMIT, f"{wheel.name} has {size} bytes"
    with tempfile.TemporaryDirectory(prefix="cellwright-wheel-") as folder:
        found = interpreters()
        for program in found:
            try_alone(program, wheel, Path(folder))
        try_in_jupyter(wheel, Path(folder))
    print(f"{wheel.name}: {size // 1000} kB, {len(found)} Pythons")


if __name__ == "__main__":
    main()
