//! Gives the program its long version: `0.1.0 (1a2b3c4d5 2026-11-18)` for a release, `0.1.0 (debug)` while developing.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CELLWRIGHT_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").expect("Cargo sets it");
    let profile = std::env::var("PROFILE").expect("Cargo sets it");
    // A debug build does not name its commit: naming it would compile the program again after each commit.
    let build = if profile == "release" { commit().unwrap_or(profile) } else { profile };
    println!("cargo::rustc-env=PROGRAM_VERSION={version} ({build})");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") && links_with(FOLD_IDENTICAL_CODE) {
        println!("cargo::rustc-link-arg-bins={FOLD_IDENTICAL_CODE}");
    }
}

/// Keeps one copy of functions with the same machine code: 0.12 MB of the program. Rust promises no addresses of functions.
const FOLD_IDENTICAL_CODE: &str = "-Wl,--icf=all";

/// Whether the linker takes an option. Rust's own does (lld); a toolchain of a distribution may use another one.
fn links_with(option: &str) -> bool {
    let env = |name| std::env::var(name).expect("Cargo sets it");
    let folder = std::path::PathBuf::from(env("OUT_DIR"));
    let source = folder.join("link_trial.rs");
    let trial = || {
        std::fs::write(&source, "fn main() {}").ok()?;
        let mut command = Command::new(env("RUSTC"));
        command.args(["--target", &env("TARGET"), "-C", &format!("link-arg={option}"), "-o"]);
        let output = command.arg(folder.join("link_trial")).arg(&source).output().ok()?;
        Some(output.status.success())
    };
    trial() == Some(true)
}

/// The commit and its day, from the environment (a source package has no repository) or from git.
fn commit() -> Option<String> {
    if let Ok(commit) = std::env::var("CELLWRIGHT_COMMIT") {
        return Some(commit);
    }
    for file in ["HEAD", "logs/HEAD"] {
        println!("cargo::rerun-if-changed=../../.git/{file}");
    }
    let output = Command::new("git").args(["log", "-1", "--format=%h %cs", "--abbrev=9"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
