#!/usr/bin/env bash
# Our zmq client beside jupyter_client on the same ipykernel. Needs `scripts/check.sh prepare` first.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release --quiet --package cellwright-kernel --example bench_jupyter
python=$PWD/target/venv/bin/python
exec "$python" bench/jupyter/run.py "$python" "${CARGO_TARGET_DIR:-target}/release/examples/bench_jupyter"
