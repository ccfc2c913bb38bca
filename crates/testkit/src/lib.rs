//! What tests of several crates share. Never shipped.

mod scripted;

use std::env;
use std::path::{Path, PathBuf};

pub use scripted::{Log, ScriptedKernel};

/// The Python that `scripts/check.sh` prepares for tests.
pub fn python() -> PathBuf {
    let python = env::var_os("CELLWRIGHT_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python"),
        PathBuf::from,
    );
    assert!(python.exists(), "{} is missing: run scripts/check.sh", python.display());
    python
}

/// An ACP agent for [`python`] to run: it does what its prompt says, right or wrong, and says at its top how.
pub fn fault_agent() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fault_agent.py")
}
