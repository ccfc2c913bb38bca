//! `CELLWRIGHT_DEBUG_STARTUP=1`: the stages of starting a kernel, with their times, on stderr.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

static STARTUP: OnceLock<Option<Startup>> = OnceLock::new();

#[derive(Debug)]
struct Startup {
    begun: Instant,
    /// What was reported, with the time of the last stage. A stage is reported once: later kernels are not start-up.
    reported: Mutex<(BTreeSet<&'static str>, Instant)>,
}

/// Begins to measure, as early as the program can, if `wanted`.
pub fn begin(wanted: bool) {
    let begun = Instant::now();
    STARTUP.get_or_init(|| wanted.then(|| Startup { begun, reported: Mutex::new((BTreeSet::new(), begun)) }));
}

/// Reports that a stage has been reached, the first time it is.
pub fn stage(name: &'static str) {
    let Some(Some(startup)) = STARTUP.get() else { return };
    let mut reported = startup.reported.lock().unwrap_or_else(PoisonError::into_inner);
    let (names, last) = &mut *reported;
    if names.insert(name) {
        let now = Instant::now();
        let since = |then: Instant| (now - then).as_secs_f64() * 1000.0;
        // Stderr may be closed; then the stages are not shown.
        drop(writeln!(
            io::stderr(),
            "[startup] {:8.1} ms  +{:.1}  {name}",
            since(startup.begun),
            since(*last)
        ));
        *last = now;
    }
}
