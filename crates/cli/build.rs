//! Makes the program start sooner.
//!
//! - The unwinder of GCC's runtime is linked in where there is one to link. Rust's own way is the shared library
//!   `libgcc_s`. Loading that one library is a twentieth of the time that a command such as `cellwright read` takes.
//! - The list of addresses that the loader adjusts is packed, which makes it half a megabyte smaller and quicker to go
//!   through. glibc 2.36 is the first that can read it, so a glibc before that gets the plain list, and so does a
//!   program for other machines: set `CELLWRIGHT_PORTABLE`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CELLWRIGHT_PORTABLE");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    let is_cross = std::env::var("TARGET").ok() != std::env::var("HOST").ok();
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") || is_cross {
        return;
    }
    if std::env::var_os("CELLWRIGHT_PORTABLE").is_none() && glibc_version() >= Some((2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let Some(archive) = answer_of("cc", "-print-file-name=libgcc_eh.a") else { return };
    // Without the archive, `cc` answers with its bare name.
    if let Some(folder) = Path::new(archive.trim()).parent().filter(|folder| folder.is_absolute()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// As in `glibc 2.36`.
fn glibc_version() -> Option<(u32, u32)> {
    let answer = answer_of("getconf", "GNU_LIBC_VERSION")?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn answer_of(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    String::from_utf8(output.stdout).ok()
}
