#!/usr/bin/env bash
# Prepares the peers, builds the release binary and measures; arguments go to run.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Nothing but the peers, in the pinned versions: what else is installed would slow their start down.
venv=target/bench-notebook-run-venv
if ! sha256sum --check --status $venv/pins.sha256 2>/dev/null; then
  # By the interpreter itself: a shim in its place would be measured as Python's start.
  python=$(python3 -c 'import sys; print(sys.executable)')
  "$python" -m venv --without-pip $venv
  "$python" -m pip --python $venv/bin/python install --quiet -c conformance/requirements.txt ipykernel nbclient papermill
  sha256sum conformance/requirements.txt >$venv/pins.sha256
fi

cargo build --release --package cellwright-cli
export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
exec $venv/bin/python bench/notebook-run/run.py "$@"
