#!/usr/bin/env bash
# Prepares the peers, builds the release binary and measures; arguments go to run.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The peers alone, in the pinned versions: in target/venv an extra of Jupyter Server's would add two seconds to
# every import of nbformat, which a user of nbformat without a server does not pay.
venv=target/bench-notebook-venv
if ! sha256sum --check --status $venv/pins.sha256 2>/dev/null; then
  python3 -m venv --without-pip $venv
  python3 -m pip --python $venv/bin/python install --quiet -c conformance/requirements.txt nbformat jupytext
  sha256sum conformance/requirements.txt >$venv/pins.sha256
fi

cargo build --release --package cellwright-cli
export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
exec $venv/bin/python bench/notebook/run.py "$@"
