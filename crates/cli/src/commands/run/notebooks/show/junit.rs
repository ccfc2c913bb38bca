//! `JUnit` reports, which continuous integration reads.

use std::fmt::Write as _;

use super::{CaseResult, TestCase, TestSuite};

/// A report of these suites.
pub(in crate::commands::run::notebooks) fn junit(suites: &[TestSuite]) -> String {
    let mut xml = String::new();
    write(&mut xml, suites).expect("a String takes everything");
    xml
}

fn write(xml: &mut String, suites: &[TestSuite]) -> std::fmt::Result {
    writeln!(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>")?;
    for TestSuite { name, duration, cases, has_page: _ } in suites {
        let (suite, seconds) = (escaped(name), duration.as_secs_f64());
        let failures = cases
            .iter()
            .filter(|case| matches!(case.end, CaseResult::Failed { .. } | CaseResult::Differs { .. }))
            .count();
        let skipped = cases.iter().filter(|case| matches!(case.end, CaseResult::Skipped(_))).count();
        write!(xml, "  <testsuite name=\"{suite}\" tests=\"{}\" failures=\"{failures}\"", cases.len())?;
        writeln!(xml, " errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\">")?;
        for TestCase { index: _, name, duration, end } in cases {
            let (name, seconds) = (escaped(name), duration.as_secs_f64());
            writeln!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\">")?;
            match end {
                CaseResult::Passed => {}
                CaseResult::Skipped(why) => writeln!(xml, "      <skipped message=\"{}\"/>", escaped(why))?,
                CaseResult::Failed { message, details } | CaseResult::Differs { message, lines: details } => {
                    let (message, details) = (escaped(message), escaped(details));
                    writeln!(xml, "      <failure message=\"{message}\">{details}</failure>")?;
                }
            }
            writeln!(xml, "    </testcase>")?;
        }
        writeln!(xml, "  </testsuite>")?;
    }
    writeln!(xml, "</testsuites>")
}

/// Text as XML has it: marks escaped, what XML cannot hold replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push('\t'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            control if control.is_control() => out.push('\u{fffd}'),
            plain => out.push(plain),
        }
    }
    out
}
