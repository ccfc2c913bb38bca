//! Writing a file in place, with a journal, where it cannot be replaced by a rename: a single file that is mounted (as by
//! `docker -v nb.ipynb:…`), or a file that can be written in a folder that cannot.
//!
//! The journal holds the old and the new content and is on the disk before the file is touched. It is removed when the
//! file is. So if there is one, a save was cut short, and [`recover`] brings it to an end:
//!
//! | the file holds | then |
//! |---|---|
//! | the old content | the save had not begun: nothing to do |
//! | the new content | the save was complete: nothing to do |
//! | at each place a byte of the old or of the new content | the new content is written again |
//! | anything else | somebody has saved it since: it stays |
//!
//! In each case the journal goes then. A journal that is not whole was cut short itself, before the file was touched.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::lock::{LockedFile, unreadable};
use super::replacement::{FileReplaceError, FileReplacement};
use super::save::{FileContent, FileStamp, NameHolder, SaveMethod, SaveSettings, SavedFile, compare};
use super::{FileError, leftovers};
use crate::snapshot::{Fingerprint, FingerprintHasher};

/// Saves in place. `why` is the reason against a rename.
pub(super) fn save(
    locked: &LockedFile<'_>,
    original: FileContent<'_>,
    changed: FileContent<'_>,
    settings: &SaveSettings,
    why: io::Error,
) -> Result<Option<SavedFile>, FileError> {
    let failed = |attempt| move |source| FileError::Io { path: locked.path.into(), attempt, source };
    let Some(folder) = &settings.journal else {
        let attempt = "replace it by renaming, and there is no journal folder to write it in place safely";
        return Err(failed(attempt)(why));
    };
    match compare(locked, original)? {
        NameHolder::Original => {}
        NameHolder::SameElsewhere => return Ok(None),
        NameHolder::Other => {
            let what = "it was written meanwhile".to_owned();
            return Err(FileError::Changed { path: locked.path.into(), what });
        }
    }
    let file = OpenOptions::new().write(true).open(locked.target).map_err(failed("write it in place"))?;
    if !leftovers::is_at(&file, locked.target).map_err(failed("look at it"))? {
        return Ok(None);
    }
    let journal = WriteJournal { old: original.pieces(), new: changed.pieces() };
    let at = journal_of(folder, locked.target);
    journal.write(&at).map_err(|FileReplaceError { source, .. }| failed("write a journal for it")(source))?;
    if let Err(error) = overwrite(&file, &journal.new) {
        // For example, the disk is full. The old content fits into the room that it had.
        return Err(match overwrite(&file, &journal.old) {
            Ok(()) => {
                drop(fs::remove_file(&at)); // it would be found to be of no use
                failed("write it in place; it is as it was")(error)
            }
            Err(_) => failed("write it in place; a journal holds all of it, for the next try")(error),
        });
    }
    fs::remove_file(&at).map_err(failed("remove the journal"))?;
    let metadata = file.metadata().map_err(failed("look at it"))?;
    Ok(Some(SavedFile { method: SaveMethod::InPlace, stamp: FileStamp::of(&metadata), _file: None }))
}

/// Finishes a save in place that was cut short; returns whether one was. Costs one look into the journal folder when there
/// is none. Waits for a save that is under way.
pub fn recover(path: &Path, settings: &SaveSettings) -> Result<bool, FileError> {
    let Some(folder) = &settings.journal else { return Ok(false) };
    let Ok(target) = fs::canonicalize(path) else { return Ok(false) };
    let at = journal_of(folder, &target);
    while fs::symlink_metadata(&at).is_ok() {
        let Some(locked) = LockedFile::acquire(path, &target)? else { continue };
        // Its writer may have been at work until now.
        let stored = match fs::read(&at) {
            Ok(stored) => stored,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unreadable(&at, error)),
        };
        let failed = |source| FileError::Io { path: path.into(), attempt: "finish a save of it", source };
        let found = fs::read(&target).map_err(|error| unreadable(path, error))?;
        let rest = parse(&stored).filter(|(old, new)| is_torn(&found, old, new));
        if let Some((_, new)) = &rest {
            let file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
            overwrite(&file, &[new]).map_err(failed)?;
        }
        fs::remove_file(&at).map_err(failed)?;
        drop(locked);
        return Ok(rest.is_some());
    }
    Ok(false)
}

/// The content a file has and the content it is to have.
struct WriteJournal<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
}

const TITLE: &str = "cellwright journal 1";

impl WriteJournal<'_> {
    /// Writes it, and waits until it is on the disk.
    fn write(&self, at: &Path) -> Result<(), FileReplaceError> {
        let made = make(at.parent().expect("a journal is in a folder"));
        made.map_err(|source| FileReplaceError { attempt: "make the journal folder", source })?;
        let length = |pieces: &[&[u8]]| pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut hashing = FingerprintHasher::default();
        self.old.iter().chain(&self.new).for_each(|piece| hashing.add(piece));
        let head = format!("{TITLE}\n{} {} {}\n", length(&self.old), length(&self.new), hashing.done());
        let whole: Vec<&[u8]> =
            [head.as_bytes()].into_iter().chain(self.old.clone()).chain(self.new.clone()).collect();
        FileReplacement::new_file_of_pieces(at, 0o600, &whole)?.commit().map(drop)
    }
}

/// The old and the new content, if the journal is whole.
fn parse(journal: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut lines = journal.splitn(3, |byte| *byte == b'\n');
    let (title, head, contents) = (lines.next()?, lines.next()?, lines.next()?);
    let mut head = str::from_utf8(head).ok()?.split(' ');
    let mut length = || head.next()?.parse::<usize>().ok();
    let (old, new) = (length()?, length()?);
    let print: Fingerprint = head.next()?.parse().ok()?;
    let is_whole = title == TITLE.as_bytes()
        && old.checked_add(new) == Some(contents.len())
        && print == Fingerprint::of(contents);
    is_whole.then(|| contents.split_at(old))
}

/// Whether a file is on its way from `old` to `new`. A crash of the system may leave any of its blocks written, in any order, and
/// what was added empty.
fn is_torn(found: &[u8], old: &[u8], new: &[u8]) -> bool {
    let lengths = old.len().min(new.len())..=old.len().max(new.len());
    let is_between = |(at, byte): (usize, &u8)| {
        let is_of = |content: &[u8]| content.get(at) == Some(byte);
        is_of(old) || is_of(new) || (*byte == 0 && at >= old.len())
    };
    found != old && found != new && lengths.contains(&found.len()) && found.iter().enumerate().all(is_between)
}

/// Makes an open file hold these pieces, and waits until they are on the disk.
fn overwrite(file: &File, pieces: &[&[u8]]) -> io::Result<()> {
    let mut at = 0;
    for piece in pieces {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    file.set_len(at)?;
    file.sync_all()
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether journals can be written into this folder, which is made.
pub(super) fn is_usable(folder: &Path) -> bool {
    make(folder).is_ok() && access(folder, AccessFlags::W_OK).is_ok()
}

fn journal_of(folder: &Path, target: &Path) -> PathBuf {
    folder.join(format!("{}.journal", Fingerprint::of(target.as_os_str().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8] = br#"{"cells":[{"cell_type":"raw","source":"x"}],"nbformat":4}"#;
    const NEW: &[u8] = br#"{"cells":[{"cell_type":"raw","source":"a longer text"}],"nbformat":4}"#;

    struct Fixture {
        folder: tempfile::TempDir,
        settings: SaveSettings,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let settings = SaveSettings { journal: Some(folder.path().join("state/journal")) };
            Self { folder, settings }
        }

        fn target(&self) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join("nb.ipynb")
        }

        fn journal(&self) -> PathBuf {
            journal_of(self.settings.journal.as_ref().unwrap(), &self.target())
        }

        /// What is in the file after a crash left `found` there, with a journal from `old` to `new`.
        fn recovered(&self, found: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, bool) {
            fs::write(self.target(), found).unwrap();
            WriteJournal { old: vec![old], new: vec![new] }.write(&self.journal()).unwrap();
            let recovered = recover(&self.target(), &self.settings).unwrap();
            assert!(!self.journal().exists());
            (fs::read(self.target()).unwrap(), recovered)
        }
    }

    #[test]
    fn a_save_in_place_that_was_cut_short_anywhere_is_finished() {
        let fixture = Fixture::new();
        for (old, new) in [(OLD, NEW), (NEW, OLD)] {
            for written in 0..=new.len() {
                let torn = [&new[..written], old.get(written..).unwrap_or_default()].concat();
                let expected = if torn == old { old } else { new };
                let (found, recovered) = fixture.recovered(&torn, old, new);
                assert_eq!((&*found, recovered), (expected, torn != old && torn != new), "{written}");
            }
            // After a power cut: blocks in any order, and what was added still empty.
            for block in 1..new.len().min(old.len()) {
                let mixed = |at: usize| {
                    if (at / block).is_multiple_of(2) { new[at] } else { *old.get(at).unwrap_or(&0) }
                };
                let torn: Vec<_> = (0..new.len()).map(mixed).collect();
                let expected = if torn == old { old } else { new };
                assert_eq!(fixture.recovered(&torn, old, new).0, expected, "{block}");
            }
        }
    }

    #[test]
    fn what_others_saved_after_a_crash_stays() {
        let fixture = Fixture::new();
        let theirs = br#"{"cells":[],"nbformat":4}"#;
        assert_eq!(fixture.recovered(theirs, OLD, NEW), (theirs.to_vec(), false));
        let edited = String::from_utf8(NEW.to_vec()).unwrap().replace("longer", "better");
        assert_eq!(fixture.recovered(edited.as_bytes(), OLD, NEW), (edited.into_bytes(), false));
    }

    #[test]
    fn a_journal_that_was_cut_short_itself_changes_nothing() {
        let fixture = Fixture::new();
        WriteJournal { old: vec![OLD], new: vec![NEW] }.write(&fixture.journal()).unwrap();
        let whole = fs::read(fixture.journal()).unwrap();
        assert_eq!(parse(&whole), Some((OLD, NEW)));
        for end in 0..whole.len() {
            fs::write(fixture.target(), &NEW[..20]).unwrap();
            fs::write(fixture.journal(), &whole[..end]).unwrap();
            assert!(!recover(&fixture.target(), &fixture.settings).unwrap(), "{end}");
            assert_eq!(fs::read(fixture.target()).unwrap(), &NEW[..20]);
            assert!(!fixture.journal().exists());
        }
    }
}
