//! Any bytes, as a notebook and as marked text: nothing panics, and what parses keeps the crate's laws under edits.
#![no_main]

// The same laws as the crate's own tests, which also replay this target's corpus.
#[path = "../../crates/notebook/tests/laws/law.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| law::hold_for_bytes(bytes));
