#!/usr/bin/env bash
# Resolves conformance/requirements.in anew and pins the result in conformance/requirements.txt.
# Run it with Debian 12's python3 (3.11.2) first in PATH: a newer patch resolves to packages that one refuses.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -m venv --without-pip "$scratch/venv"
python3 -m pip --python "$scratch/venv/bin/python" install --quiet -r conformance/requirements.in
{
  echo "# requirements.in resolved for Python 3.11.2 and newer. Rewritten by scripts/pin-python.sh; do not edit by hand."
  "$scratch/venv/bin/python" -m pip freeze --all
} >conformance/requirements.txt
