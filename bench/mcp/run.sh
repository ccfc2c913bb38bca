#!/usr/bin/env bash
# Prepares the peer, builds the release binary and measures; arguments go to run.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/check.sh prepare

# The peer in an environment of its own: it is not what our tests need.
venv=target/bench-mcp-venv
if ! sha256sum --check --status $venv/pins.sha256 2>/dev/null; then
  python3 -m venv --without-pip $venv
  python3 -m pip --python $venv/bin/python install --quiet -c conformance/requirements.txt -r bench/mcp/requirements.txt
  sha256sum conformance/requirements.txt bench/mcp/requirements.txt >$venv/pins.sha256
fi

cargo build --release --package cellwright-cli
export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
exec target/venv/bin/python bench/mcp/run.py "$@"
