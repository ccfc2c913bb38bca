#!/usr/bin/env bash
# What the program costs: CPU seconds to build it from nothing, its size, how soon it is of use.
#
#   scripts/size.sh                  build in a folder of its own, from nothing, and measure
#   scripts/size.sh BINARY           measure this one
#   scripts/size.sh BINARY OLD       measure this one beside another
#
# The registries should be warm: run `cargo fetch` first. Wants a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($#)); then
  binary=$1
else
  target=$(mktemp -d)
  trap 'rm -rf "$target"' EXIT
  TIMEFORMAT='%R %U %S'
  times=$({ time CARGO_TARGET_DIR=$target cargo build --quiet --locked --release --package cellwright-cli 2>"$target/log"; } 2>&1) ||
    { cat "$target/log" >&2; exit 1; }
  read -r clock user system <<<"$times"
  awk "BEGIN { printf \"build from nothing   %.0f CPU seconds, %.0f by the clock\n\", $user + $system, $clock }"
  binary=$target/release/cellwright
fi

packages() { cargo tree --package cellwright-cli --edges normal,build --prefix none --no-dedupe | sed 's/ (\*)//' | sort -u | wc -l; }
megabytes() { awk "BEGIN { printf \"%.2f MB\", $1 / 1e6 }"; }

echo "packages             $(packages)"
for file in "$binary" "${@:2}"; do
  echo "$file"
  echo "  size               $(megabytes "$(stat --format %s "$file")")"
  echo "  compressed (zip)   $(megabytes "$(gzip -9 <"$file" | wc -c)")"
  if command -v xz >/dev/null; then echo "  compressed (xz)    $(megabytes "$(xz -6 <"$file" | wc -c)")"; fi
done

CELLWRIGHT_BIN=$binary bench/start/run.sh ${2:+--against "$2"}
