#!/usr/bin/env bash
# The one test command: prepares what the tests need, then checks everything.
#
#   scripts/check.sh            every step, in order
#   scripts/check.sh lint doc   only these steps
#
# Needs cargo, Python 3.11 or newer with pip, Node with npm, and on top of them chromium and openssl, which it
# installs where apt-get can. Everything else it prepares lives in target/ and is reused until its pins change.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=(prepare format policy lint test doc runner conformance fast_agent)

# Programs that tests need beyond cargo, Python and Node, by the names of their Debian packages; the only list of them.
programs=(chromium openssl)

venv=target/venv
python=$PWD/$venv/bin/python
cellwright=${CARGO_TARGET_DIR:-$PWD/target}/debug/cellwright
export CELLWRIGHT_TEST_PYTHON=$python

# --- steps: each one fails or has checked something -----------------------------------------------

# Everything the other steps need; each of them asks again for its own part.
step_prepare() {
  need_python
  need_node
  need_programs
}

step_format() {
  need_python
  cargo fmt --all --check
  cargo fmt --manifest-path fuzz/Cargo.toml --check
  "$python" -m ruff format --check .
  "$python" -m ruff check .
}

# Licences, sources and banned crates, by the rules in deny.toml. Advisories need the network.
step_policy() {
  need_python
  "$python" -m doctest scripts/policy.py
  "$python" scripts/policy.py
  if have cargo-deny; then cargo deny --offline check bans licenses sources; fi
}

# Warnings are errors by clippy's own flag: another RUSTFLAGS would rebuild every dependency.
step_lint() {
  cargo clippy --workspace --all-targets -- -D warnings
}

step_test() {
  step_prepare
  if have cargo-nextest; then
    cargo nextest run --workspace --no-fail-fast
    cargo test --workspace --doc
  else
    cargo test --workspace --no-fail-fast
  fi
}

step_doc() {
  RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
}

# The Python that runs inside users' interpreters, in every version found here that we support.
step_runner() {
  need_python
  local all
  mapfile -t all < <(interpreters)
  "$python" crates/kernel/python/tests/check.py "${all[@]}"
}

# Other people's libraries against the built binary.
step_conformance() {
  need_python
  need_node
  need_programs
  need_acp_examples
  cargo build --package cellwright-cli
  CELLWRIGHT_BIN=$cellwright unittests "$python" conformance
  CELLWRIGHT_BIN=$cellwright unittests "$python" conformance/mcp
  "$python" -m doctest conformance/running/differences.py
  CELLWRIGHT_BIN=$cellwright unittests "$python" conformance/running
  CELLWRIGHT_BIN=$cellwright unittests "$python" conformance/agent_kernel
  CELLWRIGHT_BIN=$cellwright unittests "$python" conformance/lab
}

# fast-agent in our kernel. It refuses the Python 3.11 that the other tests run on.
step_fast_agent() {
  local newest folder=target/fast-agent
  newest=$(interpreters | tail -n 1)
  if ! "$newest" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    echo "NOT RUN: fast-agent needs Python 3.12 or newer, and pyenv has none"
    return
  fi
  need_python
  environment "$folder" conformance/fast_agent/requirements.txt "$newest"
  cargo build --package cellwright-cli
  CELLWRIGHT_BIN=$cellwright FAST_AGENT=$PWD/$folder/bin/fast-agent-acp unittests "$python" conformance/fast_agent
}

# --- what steps need ------------------------------------------------------------------------------

# target/venv as pinned.
need_python() {
  local base
  # The program itself: a version manager's shim in its place may wait for locks of its own.
  base=$(python3 -c 'import sys; print(sys.executable)')
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "python3 is $("$base" --version 2>&1); tests need 3.11 or newer first in PATH"
  "$base" -c 'import venv, pip' ||
    fail "python3 has no pip or venv; on Debian run: apt-get install python3-pip python3-venv"
  environment "$venv" conformance/requirements.txt "$base"
}

# A virtual environment with the packages of a pin file. A changed pin is installed over the old one: others may be using it.
environment() {
  local folder=$1 pins=$2 base=$3 stamp=$1/pins.sha256
  if sha256sum --check --status "$stamp" 2>/dev/null; then return; fi
  echo "installing $pins into $folder (about a minute)"
  "$base" -m venv --without-pip "$folder"
  "$base" -m pip --python "$folder/bin/python" install --quiet --no-deps --no-compile --requirement "$pins"
  sha256sum "$pins" >"$stamp"
}

# target/node/node_modules as locked.
need_node() {
  local lock=conformance/package-lock.json stamp=target/node/lock.sha256
  if [[ ! -e conformance/package.json ]] || sha256sum --check --status "$stamp" 2>/dev/null; then return; fi
  have npm || fail "no npm; tests drive npm packages, install Node.js 20 or newer"
  mkdir -p target/node
  cp conformance/package.json "$lock" target/node/
  # Not `npm ci`: it refuses a lock without the optional parts of other platforms, which npm leaves out.
  npm install --prefix target/node --no-save --no-audit --no-fund
  sha256sum "$lock" >"$stamp"
}

# target/acp-examples: the agents that the protocol's Python SDK shows how it is used by, of the version that is pinned.
need_acp_examples() {
  local folder=target/acp-examples sdk
  sdk=$(grep '^agent-client-protocol==' conformance/requirements.txt)
  if [[ -e $folder/$sdk ]]; then return; fi
  rm -rf "$folder"
  mkdir -p "$folder"
  python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$folder" "$sdk"
  tar -xzf "$folder"/*.tar.gz -C "$folder" --strip-components=2 --wildcards '*/examples/*'
  touch "$folder/$sdk"
}

need_programs() {
  local program missing=()
  for program in "${programs[@]}"; do
    have "$program" || missing+=("$program")
  done
  ((${#missing[@]})) || return 0
  { ((EUID == 0)) && have apt-get; } || fail "tests need ${missing[*]}; on Debian run: sudo apt-get install ${missing[*]}"
  apt-get update --quiet
  apt-get install --yes --no-install-recommends "${missing[@]}"
}

# The venv's Python, and the newest patch of each version from 3.8 to 3.13 that pyenv has.
interpreters() {
  echo "$python"
  local minor
  for minor in 8 9 10 11 12 13; do
    printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python3 | sort --version-sort | tail -n 1
  done | while read -r interpreter; do
    if [[ -x $interpreter ]]; then echo "$interpreter"; fi
  done
}

# A folder of tests and the packages in it.
unittests() {
  local interpreter=$1 folder=$2
  PYTHONPATH=$PWD/conformance:$PWD/conformance/agent_kernel "$interpreter" scripts/unittests.py "$folder"
}

have() { command -v "$1" >/dev/null; }

fail() {
  echo "check.sh: $*" >&2
  exit 1
}

# --- run them -------------------------------------------------------------------------------------

chosen=("$@")
if ((!$#)); then chosen=("${steps[@]}"); fi
for step in "${chosen[@]}"; do
  [[ " ${steps[*]} " == *" $step "* ]] || fail "no step '$step'; there are: ${steps[*]}"
done

times=()
for step in "${chosen[@]}"; do
  printf '\n== %s\n' "$step"
  SECONDS=0
  "step_$step"
  times+=("$(printf '%5d s  %s' "$SECONDS" "$step")")
done
printf '\nall passed\n'
printf '%s\n' "${times[@]}"
