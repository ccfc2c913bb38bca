//! Several savers of one notebook, in every order that costs something.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::seams::{self, Seam};
use super::*;
use crate::{Action, CellKind, NewCell, OutputsAfterEdit};

fn notebook_of(sources: &[&str]) -> String {
    let cells: Vec<_> = sources
        .iter()
        .map(|source| format!(r#"{{"cell_type":"raw","metadata":{{}},"source":"{source}"}}"#))
        .collect();
    format!(r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#, cells.join(","))
}

/// A program that knows nothing of us and saves by a rename.
fn save_by_rename(path: &Path, content: &str) {
    let beside = path.with_extension("theirs");
    fs::write(&beside, content).unwrap();
    fs::rename(&beside, path).unwrap();
}

/// A process of ours that appends a cell. `meanwhile` runs when it has read the file and before it saves.
fn append(path: &Path, source: &str, meanwhile: impl Fn()) -> Result<(), FileError> {
    update(path, IfMissing::Fail, |notebook| {
        meanwhile();
        let insert = Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Raw, source)] };
        Ok((notebook.act(&insert, OutputsAfterEdit::Clear).unwrap().notebook, ()))
    })
}

fn sources(path: &Path) -> Vec<String> {
    read(path).unwrap().cells().map(|cell| cell.source().into_owned()).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(content: &str) -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nb.ipynb");
        fs::write(&path, content).unwrap();
        (Self(folder), path)
    }

    #[track_caller]
    fn holds_only(&self, names: &[&str]) {
        let mut found: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, names);
    }
}

/// The second saver removed the temporary file of the first, which had the same name, and the first renamed what it found there.
#[test]
fn two_savers_and_a_rename_leave_half_a_file_with_exit_0() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    let theirs = notebook_of(&["a", "theirs"]);
    // All of it between the first saver's reading and its saving: it holds the lock of a file that is gone.
    let first = append(&path, "first", || {
        save_by_rename(&path, &theirs);
        append(&path, "second", || {}).unwrap();
    });
    assert!(matches!(first, Err(FileError::Changed { .. })), "{first:?}");
    assert_eq!(sources(&path), ["a", "theirs", "second"]);
    folder.holds_only(&["nb.ipynb"]);
}

#[test]
fn a_rename_at_the_very_moment_of_our_own_loses_nothing() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    let theirs = notebook_of(&["a", "theirs"]);
    let meanwhile = (path.clone(), theirs);
    seams::at(Seam::BeforeRename, move || {
        save_by_rename(&meanwhile.0, &meanwhile.1);
        append(&meanwhile.0, "second", || {}).unwrap();
    });
    let first = append(&path, "first", || {});
    assert!(matches!(first, Err(FileError::Changed { .. })), "{first:?}");
    assert_eq!(sources(&path), ["a", "theirs", "second"]);
    folder.holds_only(&["nb.ipynb"]);
    append(&path, "first", || {}).unwrap();
    assert_eq!(sources(&path), ["a", "theirs", "second", "first"]);
}

#[test]
fn a_write_in_place_at_the_very_moment_of_our_rename_loses_nothing() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    let theirs = notebook_of(&["a", "theirs"]);
    let meanwhile = (path.clone(), theirs.clone());
    seams::at(Seam::BeforeRename, move || fs::write(&meanwhile.0, &meanwhile.1).unwrap());
    let first = append(&path, "first", || {});
    assert!(matches!(first, Err(FileError::Changed { .. })), "{first:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    folder.holds_only(&["nb.ipynb"]);
}

/// Its content is the same, so a comparison finds nothing; but another process of ours may hold the lock of the new file.
#[test]
fn a_file_replaced_by_its_own_copy_is_locked_again() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    let same = notebook_of(&["a"]);
    let reads = std::cell::Cell::new(0);
    append(&path, "first", || {
        reads.set(reads.get() + 1);
        if reads.get() == 1 {
            save_by_rename(&path, &same);
        }
    })
    .unwrap();
    assert_eq!((reads.get(), sources(&path)), (2, vec!["a".to_owned(), "first".to_owned()]));
    folder.holds_only(&["nb.ipynb"]);
}

#[test]
fn a_tracked_file_takes_over_what_a_rename_at_the_same_moment_brought() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    let mut tracked = TrackedFile::open(&path, &SaveSettings::default()).unwrap();
    let theirs = (path.clone(), notebook_of(&["a", "theirs"]));
    seams::at(Seam::BeforeRename, move || save_by_rename(&theirs.0, &theirs.1));
    let insert = Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Raw, "ours")] };
    let saved = tracked.update::<FileError>(|notebook, _| {
        Ok(notebook.act(&insert, OutputsAfterEdit::Clear).unwrap().notebook.unwrap())
    });
    assert_eq!(saved.unwrap(), SaveMethod::Renamed);
    assert_eq!(sources(&path), ["a", "theirs", "ours"]);
    folder.holds_only(&["nb.ipynb"]);
}

#[test]
fn a_new_file_is_another_one_with_the_same_permissions() {
    let (_folder, path) = Folder::with(&notebook_of(&["a"]));
    let before = fs::metadata(&path).unwrap();
    append(&path, "b", || {}).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!(before.mode(), after.mode());
}

/// Jupyter had emptied the file, and was about to write it.
#[test]
fn an_empty_notebook_with_jupyters_copy_beside_it_is_a_save_in_progress() {
    let (folder, path) = Folder::with("");
    let copy = folder.0.path().join(".~nb.ipynb");
    fs::write(&copy, notebook_of(&["before"])).unwrap();
    let (there, whole) = (path.clone(), notebook_of(&["after"]));
    seams::at(Seam::BeforeNextLook, move || {
        fs::write(&there, &whole[..whole.len() / 2]).unwrap();
        seams::at(Seam::BeforeNextLook, move || {
            fs::write(&there, whole).unwrap();
            fs::remove_file(copy).unwrap();
        });
    });
    assert_eq!(sources(&path), ["after"]);
    seams::at(Seam::BeforeNextLook, || panic!("the save is over"));
    append(&path, "ours", || {}).unwrap();
    assert_eq!(sources(&path), ["after", "ours"]);
}

#[test]
fn a_save_of_jupyters_that_never_ends_is_reported_with_the_version_before() {
    for content in ["", "{\n \"cells\": [\n"] {
        let (folder, path) = Folder::with(content);
        fs::write(folder.0.path().join(".~nb.ipynb"), notebook_of(&["before"])).unwrap();
        let told = [read(&path).map(drop), append(&path, "ours", || {})];
        for error in told {
            let error = error.unwrap_err();
            assert!(matches!(error, FileError::SaveInProgress { .. }), "{error:?}");
            let told =
                error.to_string().replace(&*folder.0.path().canonicalize().unwrap().to_string_lossy(), "…");
            assert!(
                told.contains("…/nb.ipynb is not complete: Jupyter is saving it, or was stopped while it saved. …/.~nb.ipynb holds the version before"),
                "{told}"
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

/// A copy that a killed Jupyter left behind long ago must not keep a whole notebook from being edited.
#[test]
fn a_whole_notebook_beside_jupyters_copy_is_changed_once_the_copy_is_old() {
    let (folder, path) = Folder::with(&notebook_of(&["a"]));
    fs::write(folder.0.path().join(".~nb.ipynb"), notebook_of(&["before"])).unwrap();
    assert_eq!(sources(&path), ["a"]);
    append(&path, "b", || {}).unwrap();
    assert_eq!(sources(&path), ["a", "b"]);
}
