#!/usr/bin/env bash
# The one test command: prepares what the tests need, then checks everything.
#
#   scripts/check.sh            every step
#   scripts/check.sh lint doc   only these steps
#   scripts/check.sh fast       what needs only Rust and Python, in a few minutes; says what it leaves out
#
# Steps run side by side: most of them wait for other programs, not for the processor. Each writes to a log of its own in
# target/check/, which is shown whole when the step fails; every half minute a line tells what each one is at.
#
# Needs cargo, Python 3.11 or newer with pip, Node with npm, and on top of them chromium, openssl and strace,
# which it installs where apt-get can. Everything else it prepares lives in target/ and is reused until its pins change.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=(format policy test runner conformance fast_agent lint doc)

# What a step needs, by the names of `need_` functions. All needs are met before the first step runs.
declare -A needs=(
  [format]="python"
  [policy]="python"
  [test]="python node programs binaries"
  [runner]="python"
  [conformance]="python node programs acp_examples binaries"
  [fast_agent]="python fast_agent binaries"
  [lint]=""
  [doc]=""
  [fast_format]=""
  [fast_test]="bare_python binaries"
)

# Programs that tests need beyond cargo, Python and Node, by the names of their Debian packages; the only list of them.
programs=(chromium openssl strace)

venv=target/venv
python=$PWD/$venv/bin/python
bare_python=$PWD/target/bare-python/bin/python
cellwright=${CARGO_TARGET_DIR:-$PWD/target}/debug/cellwright
logs=target/check
cores=$(nproc)
export CELLWRIGHT_TEST_PYTHON=$python

# --- steps: each one fails or has checked something -----------------------------------------------

step_format() {
  cargo fmt --all --check
  cargo fmt --manifest-path fuzz/Cargo.toml --check
  "$python" -m ruff format --check .
  "$python" -m ruff check .
}

# Licences, sources and banned crates, by the rules in deny.toml. Advisories need the network.
step_policy() {
  "$python" -m doctest scripts/policy.py scripts/features.py scripts/house.py scripts/docs.py scripts/notices.py \
    scripts/man.py scripts/packages.py
  "$python" scripts/policy.py
  "$python" scripts/notices.py --check
  "$python" scripts/features.py --check
  "$python" scripts/house.py --check
  "$python" scripts/docs.py
  "$python" scripts/packages.py --check
  if have cargo-deny; then cargo deny --offline check bans licenses sources; fi
}

# Warnings are errors by clippy's own flag: another RUSTFLAGS would rebuild every dependency.
step_lint() {
  cargo clippy --workspace --all-targets -- -D warnings
}

# More tests at a time than there are cores: they wait for Python most of their time.
step_test() {
  if have cargo-nextest; then
    cargo nextest run --workspace --no-fail-fast --test-threads $((2 * cores))
  else
    cargo test --workspace --no-fail-fast
  fi
}

# Documentation, and the examples in it.
step_doc() {
  RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
  if have cargo-nextest; then cargo test --workspace --doc; fi
}

# The Python that runs inside users' interpreters, in every version found here that we support.
step_runner() {
  local all
  mapfile -t all < <(interpreters)
  "$python" crates/kernel/python/tests/check.py -j "$cores" "${all[@]}"
}

# Other people's libraries against the built binary. The browser comes first: its module takes longest.
step_conformance() {
  "$python" -m doctest conformance/running/differences.py
  CELLWRIGHT_BIN=$cellwright unittests \
    conformance/lab conformance/agent_kernel conformance/running conformance/tutorials conformance/mcp conformance
}

# fast-agent in our kernel. It refuses the Python 3.11 that the other tests run on.
step_fast_agent() {
  if [[ ! -x target/fast-agent/bin/fast-agent-acp ]]; then
    echo "NOT RUN: fast-agent needs Python 3.12 or newer, and pyenv has none"
    return
  fi
  CELLWRIGHT_BIN=$cellwright FAST_AGENT=$PWD/target/fast-agent/bin/fast-agent-acp unittests conformance/fast_agent
}

# --- the steps of `fast` --------------------------------------------------------------------------

step_fast_format() {
  cargo fmt --all --check
  if [[ -x $python ]]; then "$python" -m ruff format --check . && "$python" -m ruff check .; fi
}

# What the profile leaves out is listed in .config/nextest.toml.
step_fast_test() {
  have cargo-nextest || fail "fast needs cargo-nextest to choose tests: cargo install --locked cargo-nextest"
  CELLWRIGHT_TEST_PYTHON=$bare_python cargo nextest run --workspace --profile fast --test-threads $((2 * cores))
}

# --- what steps need ------------------------------------------------------------------------------

# target/venv as pinned.
need_python() {
  local base
  base=$(base_python)
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "python3 is $("$base" --version 2>&1); tests need 3.11 or newer first in PATH"
  "$base" -c 'import venv, pip' ||
    fail "python3 has no pip or venv; on Debian run: apt-get install python3-pip python3-venv"
  environment "$venv" conformance/requirements.txt "$base"
  # Compiles what most tests import, and makes matplotlib's cache of fonts, before many processes would do so at once.
  if [[ ! -d target/matplotlib ]]; then
    MPLCONFIGDIR=$PWD/target/matplotlib "$python" -c 'import IPython, ipykernel.kernelapp, matplotlib.pyplot, pandas'
  fi
}

# The program itself: a version manager's shim in its place may wait for locks of its own.
base_python() {
  python3 -c 'import sys; print(sys.executable)'
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

# A Python with nothing but its standard library: what most tests need, and all that those of `fast` get.
need_bare_python() {
  if [[ ! -x $bare_python ]]; then "$(base_python)" -m venv --without-pip target/bare-python; fi
}

# Every test program and the binary, built at once: features of dependencies are those of the whole workspace then, and
# nothing is compiled in two ways.
build() {
  if have cargo-nextest; then
    cargo nextest run --workspace --no-run
  else
    cargo test --workspace --no-run
  fi
}

need_fast_agent() {
  local newest
  newest=$(interpreters | tail -n 1)
  if "$newest" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    environment target/fast-agent conformance/fast_agent/requirements.txt "$newest"
  fi
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

# Folders of tests and the packages in them.
unittests() {
  PYTHONPATH=$PWD/conformance:$PWD/conformance/agent_kernel "$python" scripts/unittests.py -j $((cores + 1)) "$@"
}

have() { command -v "$1" >/dev/null; }

fail() {
  echo "check.sh: $*" >&2
  exit 1
}

# --- run them -------------------------------------------------------------------------------------

declare -A running=() # the processes of jobs, with their names
declare -A begun=()
failed=()
times=()

# Starts a job: functions that run one after the other, beside everything else. It is called after the steps among them.
start() {
  local name="${*/need_*/prepare}"
  name=$(tr ' ' '\n' <<<"${name//step_/}" | uniq | paste --serial --delimiters=+)
  # A group of its own, so that all it has started can be ended with it.
  set -m
  (
    set -euo pipefail
    # What keeps a processor busy gives way to tests, which wait for answers.
    if [[ $name == runner* || $name == lint* ]]; then renice --priority 10 $BASHPID >/dev/null; fi
    for function in "$@"; do "$function"; done
  ) >"$logs/$name.log" 2>&1 </dev/null &
  set +m
  running[$!]=$name
  begun[$name]=$SECONDS
}

# Waits until every job has ended, and tells how each one did.
finish() {
  local process name code taken
  while ((${#running[@]})); do
    code=0
    wait -n -p process "${!running[@]}" "$heart" || code=$?
    if [[ $process == "$heart" ]]; then
      beat
      continue
    fi
    name=${running[$process]}
    unset "running[$process]"
    taken=$((SECONDS - begun[$name]))
    times+=("$(printf '%5d s  %s' "$taken" "$name")")
    if ((code == 0)); then
      printf 'ok      %5d s  %s: %s\n' "$taken" "$name" "$(last_line "$name")"
      grep --no-messages '^NOT RUN' "$logs/$name.log" || true
    else
      failed+=("$name")
      printf '\n== %s, all it wrote\n' "$name"
      cat "$logs/$name.log"
      printf 'FAILED  %5d s  %s (%s)\n\n' "$taken" "$name" "$logs/$name.log"
    fi
  done
}

# Something to see now and then while the jobs work: what runs, and what it wrote last.
beat() {
  local name
  for name in "${running[@]}"; do
    printf '  ...   %5d s  %s: %s\n' "$((SECONDS - begun[$name]))" "$name" "$(last_line "$name")"
  done
  sleep 30 &
  heart=$!
}

# The last thing a job has to say, without colours, and short enough for a line. Tests have a summary.
last_line() {
  sed -e 's/\x1b\[[0-9;]*[A-Za-z]//g' -e 's/^ *//' "$logs/$1.log" |
    awk 'NF { line = $0 } /^Summary/ { summary = $0 } END { print substr(summary ? summary : line, 1, 90) }'
}

# Ends everything that still runs.
end_all() {
  local process
  for process in "${!running[@]}"; do kill -TERM -- "-$process" 2>/dev/null || true; done
  kill "${heart:-}" 2>/dev/null || true
}

heart=
mkdir -p "$logs"
trap end_all EXIT
trap 'exit 130' INT TERM HUP

is_chosen() { [[ " ${chosen[*]} " == *" $1 "* ]]; }

chosen=("$@")
wanted=" "
case ${1:-} in
"") chosen=("${steps[@]}") ;;
fast) chosen=(fast_format fast_test lint) ;;
prepare)
  chosen=()
  wanted=" python node programs acp_examples fast_agent "
  ;;
esac
for step in "${chosen[@]}"; do
  [[ -v needs[$step] ]] || fail "no step '$step'; there are: ${steps[*]}, prepare, fast"
  wanted+="${needs[$step]} "
done

# First what steps need, and compiling, which needs none of it. What takes seconds comes right after.
first=()
for need in python bare_python node programs acp_examples fast_agent; do
  if [[ $wanted == *" $need "* ]]; then first+=("need_$need"); fi
done
for step in format policy fast_format; do
  if is_chosen "$step"; then first+=("step_$step"); fi
done
beat
if ((${#first[@]})); then start "${first[@]}"; fi
if [[ $wanted == *" binaries "* ]]; then start build; fi
finish

# Then the steps beside each other, but for those that keep a processor busy: they would starve the tests, which wait for answers.
if ((!${#failed[@]})); then
  busy=()
  for step in runner lint doc; do
    if is_chosen "$step"; then busy+=("step_$step"); fi
  done
  for step in test fast_test conformance fast_agent; do
    if is_chosen "$step"; then start "step_$step"; fi
  done
  if ((${#busy[@]})); then start "${busy[@]}"; fi
  finish
fi

printf '\n'
printf '%s\n' "${times[@]}"
printf '%5d s  in all\n' "$SECONDS"
if ((${#failed[@]})); then fail "failed: ${failed[*]}"; fi
if is_chosen fast_test; then
  echo "fast left out: tests that need more than Python ($(grep --only-matching '[0-9]* skipped' "$logs/fast_test.log" | tail -n 1)," \
    "see profile.fast in .config/nextest.toml), the runner in other Pythons, conformance, documentation, policy"
fi
printf 'all passed\n'
