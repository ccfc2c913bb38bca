#!/usr/bin/env bash
# Makes the Python package: a wheel and a source package in target/wheels/, from the toolchain that is pinned.
#
# The wheel carries the program, what Jupyter needs (the agent kernel and the extension), completions for shells and man
# pages. auditwheel checks that it runs on the systems that its name promises, and this script that it is at most 8 MB.
#
# Needs Rust and Python 3.9 or newer with pip. What else it needs is installed in target/wheel-venv as pinned.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=8000000
venv=target/wheel-venv
python=$PWD/$venv/bin/python
wheels=target/wheels
man=packaging/wheel.data/data/share/man/man1
extensions=packaging/wheel.data/data/share/jupyter/labextensions

stamp=$venv/pins.sha256
if ! sha256sum --check --status "$stamp" 2>/dev/null; then
  base=$(python3 -c 'import sys; print(sys.executable)')
  "$base" -m venv --without-pip "$venv"
  "$base" -m pip --python "$python" install --quiet --require-hashes --requirement packaging/requirements.txt
  sha256sum packaging/requirements.txt >"$stamp"
fi

# A source package has no repository to ask for its commit.
if [[ -z ${CELLWRIGHT_COMMIT:-} ]] && commit=$(git log -1 --format='%h %cs' --abbrev=9 2>/dev/null); then
  export CELLWRIGHT_COMMIT=$commit
fi

cargo build --locked --release --package cellwright-cli
rm -rf "$man"
program=${CARGO_TARGET_DIR:-target}/release/cellwright
"$python" scripts/man.py "$program" "$man"
rm -rf "$extensions"
"$program" lab install --prefix packaging/wheel.data/data

rm -rf "$wheels"
PATH=$PWD/$venv/bin:$PATH "$python" -m maturin build --locked --release --out "$wheels"
PATH=$PWD/$venv/bin:$PATH "$python" -m maturin sdist --out "$wheels"

wheel=$(echo "$wheels"/*.whl)
"$python" -m auditwheel show "$wheel"
size=$(stat --format %s "$wheel")
echo "$wheel: $((size / 1000)) kB"
if ((size > limit)); then
  echo "wheel.sh: the wheel is larger than $((limit / 1000)) kB" >&2
  exit 1
fi
