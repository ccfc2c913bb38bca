//! Links the unwinder of GCC's runtime into the program where there is one to link.
//!
//! Rust's own way is the shared library `libgcc_s`. Loading that one library is a twentieth of the time that a
//! command such as `cellwright read` takes.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    let is_cross = std::env::var("TARGET").ok() != std::env::var("HOST").ok();
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") || is_cross {
        return;
    }
    let answer = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Some(archive) = answer.ok().and_then(|answer| String::from_utf8(answer.stdout).ok()) else { return };
    // Without the archive, `cc` answers with its bare name.
    if let Some(folder) = Path::new(archive.trim()).parent().filter(|folder| folder.is_absolute()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
