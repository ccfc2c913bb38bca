#!/usr/bin/env bash
# Measures how soon the program is of use; arguments go to run.py. Builds the release binary unless CELLWRIGHT_BIN names one.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ -z ${CELLWRIGHT_BIN:-} ]]; then
  cargo build --release --package cellwright-cli
  export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
fi
# A bare environment: what others have installed beside Python would be measured as its start.
venv=target/bench-start-venv
[[ -x $venv/bin/python ]] || "$(python3 -c 'import sys; print(sys.executable)')" -m venv --without-pip $venv
exec $venv/bin/python bench/start/run.py "$@"
