//! Gives the program its long version: `0.1.0 (1a2b3c4d5 2026-11-18)` for a release, `0.1.0 (debug)` while developing.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CELLWRIGHT_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").expect("Cargo sets it");
    let profile = std::env::var("PROFILE").expect("Cargo sets it");
    // A debug build does not name its commit: naming it would compile the program again after each commit.
    let build = if profile == "release" { commit().unwrap_or(profile) } else { profile };
    println!("cargo::rustc-env=PROGRAM_VERSION={version} ({build})");
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
