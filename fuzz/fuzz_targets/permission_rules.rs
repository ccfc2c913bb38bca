//! Any text is a permission rule or is refused with a reason. A rule reads back as one that judges
//! the same, and looks at any command without a panic.
#![no_main]

use cellwright_acp::permission::rule_applies;
use libfuzzer_sys::fuzz_target;

// The first line is a rule, the rest a command.
fuzz_target!(|text: &str| {
    let (rule, command) = text.split_once('\n').unwrap_or((text, ""));
    if let Some((read_back, applies)) = rule_applies(rule, command) {
        assert_eq!(rule_applies(&read_back, command), Some((read_back, applies)));
    }
});
