//! The laws over the committed notebooks, each named by its oddity, and over the fuzzer's corpus.

use std::fs;
use std::path::{Path, PathBuf};

use cellwright_notebook::{Notebook, ParseError};

use super::law;

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

#[test]
fn the_laws_hold_for_every_notebook_of_the_corpus() {
    let notebooks: Vec<_> = files_in("tests/corpus")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "ipynb"))
        .collect();
    assert!(notebooks.len() >= 40, "only {} notebooks", notebooks.len());
    for path in notebooks {
        println!("{}", path.display()); // shown when a law fails
        let notebook = Notebook::parse(fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{error}"));
        law::hold_for(&notebook);
    }
}

#[test]
fn the_laws_hold_for_the_fuzzers_corpus() {
    let inputs = files_in("../../fuzz/corpus/notebook");
    assert!(!inputs.is_empty());
    for path in inputs {
        println!("{}", path.display());
        law::hold_for_bytes(&fs::read(&path).unwrap());
    }
}

#[test]
fn the_start_of_a_notebook_is_known_as_one() {
    for path in
        files_in("tests/corpus").into_iter().filter(|path| path.extension().is_some_and(|e| e == "ipynb"))
    {
        let bytes = fs::read(&path).unwrap();
        let end = bytes.trim_ascii_end().len();
        for step in 0..200 {
            let cut = &bytes[..end * step / 200];
            match Notebook::parse(cut.to_vec()) {
                Err(ParseError::Empty | ParseError::CutOff { .. }) => {}
                other => panic!("{}, {} bytes: {other:?}", path.display(), cut.len()),
            }
        }
    }
}

/// No input may panic, whatever a file was cut to or had flipped in it.
#[test]
fn mangled_notebooks_are_refused_or_read_but_never_break_a_law() {
    for path in files_in("tests/corpus") {
        println!("{}", path.display());
        let bytes = fs::read(&path).unwrap();
        for step in 0..64 {
            law::hold_for_bytes(&bytes[..bytes.len() * step / 64]);
            let mut flipped = bytes.clone();
            if let Some(byte) = flipped.get_mut(bytes.len() * step / 64) {
                *byte ^= 1 << (step % 8);
            }
            law::hold_for_bytes(&flipped);
        }
    }
}
