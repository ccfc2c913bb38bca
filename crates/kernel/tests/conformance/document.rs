//! `docs/kernels.md` has a table made from the suite.

use std::fmt::Write as _;
use std::path::Path;

use super::kernels::Kind;
use super::table::CASES;

const BEGIN: &str =
    "<!-- made from crates/kernel/tests/conformance/table.rs; CELLWRIGHT_BLESS=1 rewrites it -->\n";
const END: &str = "<!-- end -->\n";

/// The kinds of a difference, as a reader knows them.
fn kinds(on: &[Kind]) -> &'static str {
    match on {
        [Kind::Ipc, Kind::Tcp, Kind::KernelGateway, Kind::JupyterServer] => "ipykernel",
        [Kind::KernelGateway, Kind::JupyterServer] => "gateways and servers",
        other => panic!("no name for {other:?}"),
    }
}

fn table() -> String {
    let mut rows = String::from("| What the runner does | where not | what is different |\n|---|---|---|\n");
    let mut same = String::new();
    for case in CASES {
        for difference in case.differences {
            writeln!(rows, "| {} | {} | {} |", case.about, kinds(difference.on), difference.why).unwrap();
        }
        if case.differences.is_empty() {
            writeln!(same, "- {}", case.about).unwrap();
        }
    }
    format!("{rows}\nThe same everywhere:\n\n{same}")
}

#[test]
fn the_table_of_differences_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the document has the table's beginning");
    let (_, after) = rest.split_once(END).expect("the document has the table's end");
    let fresh = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("CELLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap();
    assert!(current == fresh, "docs/kernels.md is stale; run this test with CELLWRIGHT_BLESS=1");
}
