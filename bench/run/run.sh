#!/usr/bin/env bash
# Prepares the peers, builds the release binary and the driver, and measures; arguments go to run.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Nothing but the peers, in the pinned versions: what else is installed would slow their start down.
venv=target/bench-run-venv
if ! sha256sum --check --status $venv/pins.sha256 2>/dev/null; then
  # By the interpreter itself: a shim in its place would be measured as Python's start.
  python=$(python3 -c 'import sys; print(sys.executable)')
  "$python" -m venv --without-pip $venv
  "$python" -m pip --python $venv/bin/python install --quiet -c conformance/requirements.txt ipykernel jupyter_client nbclient
  sha256sum conformance/requirements.txt >$venv/pins.sha256
fi

cargo build --release --package cellwright-cli
cargo build --release --package cellwright-kernel --example bench_run
release=${CARGO_TARGET_DIR:-$PWD/target}/release
export CELLWRIGHT_BIN=$release/cellwright CELLWRIGHT_BENCH_DRIVER=$release/examples/bench_run
exec $venv/bin/python bench/run/run.py "$@"
