//! What tests of several crates share. Never shipped.

mod bundles;
mod document;
mod scripted;
pub mod servers;
mod waiting;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, thread};

use cellwright_kernel::Graces;

pub use bundles::{BundleCase, bundle_cases};
pub use document::check_document;
pub use scripted::{Log, ScriptedKernel};
pub use waiting::{
    Door, alive, end_of, end_of_blocking, eventually, eventually_blocking, holds_the_interpreter,
};

/// The Python that `scripts/check.sh` prepares for tests.
pub fn python() -> PathBuf {
    let python = env::var_os("CELLWRIGHT_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python"),
        PathBuf::from,
    );
    assert!(python.exists(), "{} is missing: run scripts/check.sh", python.display());
    python
}

/// Graces for kernels that do what they are asked, but on a busy machine only after a while.
pub fn patient_graces() -> Graces {
    let minute = Duration::from_mins(1);
    Graces { interrupt: minute, answer: 5 * minute, settle: minute, ..Graces::default() }
}

/// An ACP agent for [`python`] to run: it does what its prompt says, right or wrong, and says at its top how.
pub fn fault_agent() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fault_agent.py")
}

/// Whether this process runs this test alone, so that what the process takes is what the test takes. `cargo test` runs all
/// tests in one: there this runs the test once more in a process of its own, and that is that.
pub fn alone() -> bool {
    let thread = thread::current();
    let Some(test) = thread.name().filter(|name| *name != "main") else { return true };
    if env::var_os("NEXTEST").is_some() || env::args().any(|argument| argument == "--exact") {
        return true;
    }
    let output = Command::new(env::current_exe().expect("a program has a path"))
        .args([test, "--exact", "--nocapture"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}
