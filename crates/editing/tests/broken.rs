//! Files that are called notebooks and are not.

use std::fs;

use cellwright_editing::ChangeOptions;

use crate::support::{FORCE, TestCaller, TestFolder, refused};

/// What is found in the place of a notebook.
fn broken() -> [(&'static str, Vec<u8>); 6] {
    let cut = br#"{"cells":[{"cell_type":"raw","sou"#.to_vec();
    [
        ("conflict markers", b"{\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> other\n}\n".to_vec()),
        ("an LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n".to_vec()),
        ("nothing", Vec::new()),
        ("half a notebook", cut),
        ("Latin 1", b"{\"cells\": [\"caf\xe9\"]}\n".to_vec()),
        ("the future", br#"{"cells":[],"metadata":{},"nbformat":9,"nbformat_minor":0}"#.to_vec()),
    ]
}

#[test]
fn what_force_replaced_came_back_damaged_when_it_was_no_notebook() {
    for (what, bytes) in broken() {
        let (folder, caller) = (TestFolder::holding(&bytes), TestCaller::default());
        let message = refused(folder.write(&caller, "# %% [code]\nx\n"));
        assert!(message.ends_with("; to replace what is there, use force"), "{what}: {message}");
        folder.write_with(&caller, "# %% [code]\nx\n", &FORCE).unwrap();
        assert_eq!(folder.sources(), ["x"]);
        let history = folder.editor(&caller).history(&folder.file());
        assert_eq!(history[0].summary, "replaced a file that was not a notebook (1 cell now)");
        let report = folder.undo(&caller).unwrap().to_string();
        assert_eq!(folder.bytes(), bytes, "{what}");
        assert!(report.starts_with("put back a file that is not a notebook\n"), "{what}: {report}");
        // Undoing that gives the notebook back.
        let undo = folder.editor(&caller).history(&folder.file())[0].number;
        folder.editor(&caller).undo(&folder.file(), Some(undo), &ChangeOptions::default()).unwrap();
        assert_eq!(folder.sources(), ["x"]);
    }
}

#[test]
fn force_replaced_a_broken_file_that_was_not_the_expected_one() {
    let (folder, caller) = (TestFolder::holding(b"{ broken"), TestCaller::default());
    let read = folder.read(&caller, ":raw");
    fs::write(folder.path(), "{ broken in another way").unwrap();
    let expect = Some(read.fingerprint);
    let message = refused(folder.write_with(&caller, "# %% [code]\nx\n", &ChangeOptions { expect, ..FORCE }));
    assert!(message.contains("changed since it was read"), "{message}");
    assert_eq!(folder.bytes(), b"{ broken in another way");
    let expect = Some(folder.fingerprint());
    folder.write_with(&caller, "# %% [code]\nx\n", &ChangeOptions { expect, ..FORCE }).unwrap();
}

#[test]
fn a_broken_file_that_undo_could_not_keep_is_replaced_with_a_note() {
    let (folder, caller) = (TestFolder::holding(b"{ broken"), TestCaller::default());
    folder.break_history();
    let report = folder.write_with(&caller, "# %% [code]\nx\n", &FORCE).unwrap().to_string();
    assert!(report.contains("note: this change cannot be undone"), "{report}");
}

#[test]
fn the_text_of_a_broken_notebook_could_not_be_read_to_repair_it() {
    for (what, bytes) in broken() {
        let (folder, caller) = (TestFolder::holding(&bytes), TestCaller::default());
        let read = folder.read(&caller, ":raw");
        assert_eq!(read.shown.text(), String::from_utf8_lossy(&bytes), "{what}");
        assert!(read.notebook.is_none());
        assert!(
            read.view.notes[0].starts_with("nb.ipynb is not a usable notebook: "),
            "{:?}",
            read.view.notes
        );
        assert_eq!(read.fingerprint, folder.fingerprint());
    }
    let (folder, caller) = (TestFolder::holding(b"1\n2\n3\n"), TestCaller::default());
    assert_eq!(folder.read(&caller, ":raw:2-3").shown.text(), "2\n3\n");
}
