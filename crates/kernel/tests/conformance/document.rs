//! `docs/kernels.md` has a table made from the suite.

use std::fmt::Write as _;

use cellwright_testkit::check_document;

use super::kernels::Kind;
use super::table::CASES;

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
    check_document("kernels.md", "crates/kernel/tests/conformance/table.rs", &table());
}
