//! Any text of an agent becomes Markdown that cannot act in a page that trusts it.
#![no_main]

use cellwright_acp::markdown::{OWN_TAGS, harmless, is_safe};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/acp/src/markdown/law.rs"]
mod law;

fuzz_target!(|text: &str| {
    let made = harmless(text);
    assert_eq!(law::broken(&made), Ok(()), "{made}");
});
