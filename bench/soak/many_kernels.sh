#!/usr/bin/env bash
# Many kernels on one gateway from one process: `many_kernels.sh [COUNT]`, 100 unless told. Each takes about 60 MB.
# `PROFILE=dev` uses what development has built.
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=${PROFILE:-release}
cargo build --profile "$profile" --quiet --package cellwright-kernel --example soak_gateway
python=$PWD/target/venv/bin/python
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
ulimit -n "$(ulimit -H -n)"
KG_AUTH_TOKEN=soak "$python" -m kernel_gateway --KernelGatewayApp.port="$port" --KernelGatewayApp.port_retries=0 \
  --ZMQChannelsWebsocketConnection.limit_rate=False 2>/dev/null &
gateway=$!
trap 'kill "$gateway"; wait "$gateway" 2>/dev/null || true' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
"${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}/examples/soak_gateway" "http://127.0.0.1:$port" soak "${1:-100}"
