#!/usr/bin/env bash
# Prepares the peers, builds the release binary and measures; arguments go to run.py.
# With CELLWRIGHT_BIN set, that program is measured and nothing is built.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/check.sh prepare

# The peers in an environment of their own: they need an older SDK of the protocol than our tests.
venv=target/bench-agent-kernel-venv
if ! sha256sum --check --status $venv/pins.sha256 2>/dev/null; then
  python3 -m venv --without-pip $venv
  python3 -m pip --python $venv/bin/python install --quiet -r bench/agent-kernel/requirements.txt
  sha256sum bench/agent-kernel/requirements.txt >$venv/pins.sha256
fi

if [[ -z ${CELLWRIGHT_BIN:-} ]]; then
  cargo build --release --package cellwright-cli
  export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
fi
exec target/venv/bin/python bench/agent-kernel/run.py "$@"
