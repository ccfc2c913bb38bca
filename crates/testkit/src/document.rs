//! Parts of the pages in `docs/` that tests generate from code.

use std::path::Path;
use std::{env, fs};

const END: &str = "<!-- end -->\n";

/// Checks that `docs/PAGE` has `fresh` as the part that is generated from `source`. With `CELLWRIGHT_BLESS=1` it writes
/// that part first.
#[track_caller]
pub fn check_document(page: &str, source: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/{page}: {error}"));
    let begin = format!("<!-- generated from {source}; CELLWRIGHT_BLESS=1 rewrites it -->\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("docs/{page} has no line {begin}"));
    let (current, after) = rest.split_once(END).unwrap_or_else(|| panic!("docs/{page} has no line {END}"));
    if current == fresh {
        return;
    }
    assert!(
        env::var_os("CELLWRIGHT_BLESS").is_some(),
        "docs/{page} is stale; run this test with CELLWRIGHT_BLESS=1 and read the difference"
    );
    fs::write(&path, format!("{before}{begin}{fresh}{END}{after}")).expect("the page can be written");
}
