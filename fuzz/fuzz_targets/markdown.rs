//! Any text of an agent becomes Markdown that cannot act in a page that trusts it.
#![no_main]

use cellwright_acp::markdown::{OWN_TAGS, harmless, harmless_with_headings, is_safe};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/acp/src/markdown/law.rs"]
mod law;

fuzz_target!(|text: &str| {
    for made in [harmless(text), harmless_with_headings(text, 0)] {
        assert_eq!(law::broken(&made), Ok(()), "{made}");
    }
});
