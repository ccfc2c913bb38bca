#!/usr/bin/env bash
# How many sessions one process holds: `run.sh [COUNT]`, 1000 unless told. Each takes about 10 MB.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ -z ${CELLWRIGHT_BIN:-} ]]; then
  cargo build --release --package cellwright-cli
  export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/cellwright
fi
ulimit -n "$(ulimit -H -n)"
exec python3 bench/scale/run.py "$@"
