#!/usr/bin/env bash
# fast-agent in our kernel: `conformance/agent_kernel/fast_agent.sh PYTHON`, with a Python of 3.12 or newer.
#
# Not part of scripts/check.sh: every version of it that speaks ACP refuses the Python 3.11 that the tests run on, and it
# brings 132 packages of 322 MB. It gets an environment of its own in target/.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/check.sh prepare
venv=target/fast-agent-venv
if [[ ! -x $venv/bin/fast-agent-acp ]]; then
  "${1:?give a Python of 3.12 or newer}" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet fast-agent-mcp==0.10.30
fi

cargo build --package cellwright-cli
export CELLWRIGHT_BIN=${CARGO_TARGET_DIR:-$PWD/target}/debug/cellwright
export FAST_AGENT=$PWD/$venv/bin/fast-agent-acp
exec target/venv/bin/python conformance/agent_kernel/fast_agent.py
