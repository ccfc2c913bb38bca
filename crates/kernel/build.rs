//! Embeds the runner: every Python file under `python/` but its tests, and a hash that names them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("python");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    // Not the folder: linters and tests write to it. A new file is of no use before one of these names it.
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }

    let mut hash = Sha256::new();
    let mut table = String::from("pub(super) const FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        let name =
            file.strip_prefix(&root).expect("collected below it").to_str().expect("our names are ASCII");
        let content = fs::read(file).expect("collected a moment ago");
        // Lengths keep the border between name and content from moving.
        hash.update(name.len().to_le_bytes());
        hash.update(name);
        hash.update(content.len().to_le_bytes());
        hash.update(content);
        writeln!(table, "    ({name:?}, include_str!({:?})),", file.display()).expect("strings grow");
    }
    let hash = hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings grow");
        text
    });
    writeln!(table, "];\npub(super) const HASH: &str = {hash:?};").expect("strings grow");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("runner_files.rs");
    fs::write(out, table).expect("cargo's own folder");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the runner is part of the source").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("tests") && !path.ends_with("__pycache__") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}
