#!/usr/bin/env bash
# A cell, and a cell that takes too long, on an Enterprise Gateway: a venv of its own (it pins an old jupyter_client), the old
# websocket framing, KERNEL_* variables. Takes a minute; needs pip.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --quiet --package cellwright-cli
cellwright=$PWD/${CARGO_TARGET_DIR:-target}/debug/cellwright
venv=$PWD/target/enterprise-gateway
if [[ ! -e $venv/bin/jupyter-enterprisegateway ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet jupyter_enterprise_gateway==3.3.0 'ipykernel<6.30' 'setuptools<81'
fi

scratch=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export HOME=$scratch XDG_RUNTIME_DIR=$scratch PATH=$venv/bin:$PATH
EG_AUTH_TOKEN=soak jupyter enterprisegateway --ip=127.0.0.1 --port="$port" --port_retries=0 >"$scratch/log" 2>&1 &
gateway=$!
trap 'kill "$gateway"; wait "$gateway" 2>/dev/null || true; rm -rf "$scratch"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
  kill -0 "$gateway" || { cat "$scratch/log"; exit 1; }
  sleep 0.1
done

export CELLWRIGHT_GATEWAY_URL=http://127.0.0.1:$port CELLWRIGHT_GATEWAY_TOKEN=soak KERNEL_USERNAME=ada
said=$("$cellwright" run --kernel gateway:python3 -c 'import os; print(os.environ["KERNEL_USERNAME"]); 6 * 7')
[[ $said == $'ada\n42' ]] || { echo "it said: $said"; exit 1; }
status=0
"$cellwright" run --kernel gateway:python3 --timeout 2 -c 'import time; time.sleep(100)' >/dev/null 2>&1 || status=$?
((status == 124)) || { echo "a cell that took too long ended with $status"; exit 1; }
grep -q 'Kernel shutdown' "$scratch/log" || { echo "kernels were left behind"; exit 1; }
echo "Enterprise Gateway: passed"
