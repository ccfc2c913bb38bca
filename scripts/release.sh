#!/usr/bin/env bash
# Makes everything that a release consists of, in target/release-files/:
# the wheel and source package, an archive of the program, the bundle for MCP clients, notices, notes, checksums.
#
#   scripts/release.sh
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
files=$PWD/target/release-files
machine=$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
name=cellwright-$version-$machine

python3 scripts/packages.py --check
scripts/wheel.sh
python3 scripts/wheel_test.py target/wheels/*.whl
program=${CARGO_TARGET_DIR:-target}/release/cellwright

rm -rf "$files"
mkdir -p "$files"
cp target/wheels/* "$files/"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mkdir -p "$scratch/$name"
cp "$program" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$scratch/$name/"
cp -rL packaging/wheel.data/data/share "$scratch/$name/share"
python3 scripts/notices.py "$scratch/$name/THIRD-PARTY.txt"
tar --create --gzip --file "$files/$name.tar.gz" --directory "$scratch" --owner 0 --group 0 "$name"
cp "$scratch/$name/THIRD-PARTY.txt" "$files/"

# The bundle is a zip file with the manifest at its top.
mkdir -p "$scratch/bundle/server"
cp "$program" "$scratch/bundle/server/"
cp packaging/mcpb/manifest.json "$scratch/bundle/"
python3 -c 'import shutil, sys; shutil.make_archive(sys.argv[1], "zip", sys.argv[2])' "$scratch/bundle-file" "$scratch/bundle"
mv "$scratch/bundle-file.zip" "$files/$name.mcpb"
cp packaging/server.json "$files/"

python3 scripts/packages.py --notes >"$files/NOTES.md"
(cd "$files" && sha256sum -- * >SHA256SUMS)
ls -l "$files"
