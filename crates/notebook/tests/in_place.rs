//! Files that cannot be replaced by a rename: real mounts, and a folder that belongs to somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_notebook::file::{
    self, FileError, IfMissing, SaveMethod, SaveSettings, TrackedFile, UpdatedFile,
};
use cellwright_notebook::{Action, CellRef, Notebook, OutputsAfterEdit};

const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"metadata":{},"nbformat":4,"nbformat_minor":4}"#;

/// Runs the test that calls this once more, in mounts of its own: true there. `name` is its whole name.
fn has_own_mounts(name: &str) -> bool {
    const INSIDE: &str = "CELLWRIGHT_TEST_OWN_MOUNTS";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let itself = std::env::current_exe().expect("this program");
    let ran =
        command.arg("--mount").arg(itself).args(["--exact", name, "--nocapture"]).env(INSIDE, "1").output();
    let ran = ran.expect("unshare, of util-linux");
    let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("1 passed"), "{told}");
    false
}

fn mount(arguments: &[&str]) {
    let ran = Command::new("mount").args(arguments).output().expect("mount, of util-linux");
    assert!(ran.status.success(), "mount {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn edit(settings: &SaveSettings, path: &Path, source: &str) -> Result<UpdatedFile<()>, FileError> {
    file::update_with(settings, path, IfMissing::Fail, |notebook| Ok((Some(edited(notebook, source)), ())))
}

fn edited(notebook: &Notebook, source: &str) -> Notebook {
    let edit = Action::Edit { cell: CellRef::Index(0), source: source.to_owned() };
    notebook.act(&edit, OutputsAfterEdit::Clear).expect("there is a cell 0").notebook.expect("it changed")
}

struct Desk {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("nb.ipynb"), NOTEBOOK).unwrap();
        Self { folder, state }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("nb.ipynb")
    }

    /// The notebook can be edited here, in place, again and again; not without a journal.
    fn check(&self, refused: &str) {
        let path = self.path();
        let before = fs::metadata(&path).unwrap();
        let error = edit(&SaveSettings::default(), &path, "never").unwrap_err();
        let FileError::Io { attempt, source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(
            (*attempt, source.to_string().split(" (").next().unwrap()),
            ("replace it by renaming, and there is no journal folder to write it in place safely", refused)
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), NOTEBOOK);

        let journal = self.state.path().join("journal");
        let settings = SaveSettings { journal: Some(journal.clone()) };
        for source in ["a much longer source than there was", "y", "z"] {
            assert_eq!(edit(&settings, &path, source).unwrap().saved, Some(SaveMethod::InPlace));
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                NOTEBOOK.replace(r#""x""#, &format!("\"{source}\""))
            );
        }
        let mut tracked = TrackedFile::open(&path, &settings).unwrap();
        for source in ["one", "two"] {
            let method = tracked.update::<FileError>(|notebook, _| Ok(edited(notebook, source))).unwrap();
            assert_eq!(method, SaveMethod::InPlace);
            assert_eq!(file::read(&path).unwrap().cell(0).source(), source);
        }
        // What is not a notebook is replaced the same way.
        fs::write(&path, b"{ broken \xff").unwrap();
        let replaced = file::update_bytes::<_, FileError>(&settings, &path, |bytes| {
            Ok((Some(NOTEBOOK.into()), bytes.to_vec()))
        });
        let replaced = replaced.unwrap();
        assert_eq!(
            (replaced.outcome, replaced.saved),
            (b"{ broken \xff".to_vec(), Some(SaveMethod::InPlace))
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), NOTEBOOK);
        let after = fs::metadata(&path).unwrap();
        assert_eq!((before.ino(), before.mode(), before.uid()), (after.ino(), after.mode(), after.uid()));
        let left: Vec<_> = fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
        let beside: Vec<_> =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(beside, ["nb.ipynb"]);
    }
}

/// `docker run -v nb.ipynb:/work/nb.ipynb`: "Device or resource busy".
#[test]
fn a_single_mounted_file_is_saved_in_place() {
    if has_own_mounts("in_place::a_single_mounted_file_is_saved_in_place") {
        let desk = Desk::new();
        let path = desk.path();
        mount(&["--bind", path.to_str().unwrap(), path.to_str().unwrap()]);
        desk.check("Device or resource busy");
    }
}

#[test]
fn a_file_that_is_mounted_into_a_read_only_folder_is_saved_in_place() {
    if has_own_mounts("in_place::a_file_that_is_mounted_into_a_read_only_folder_is_saved_in_place") {
        let desk = Desk::new();
        let (folder, path) = (desk.folder.path().to_str().unwrap(), desk.path());
        mount(&["--bind", folder, folder]);
        mount(&["--bind", path.to_str().unwrap(), path.to_str().unwrap()]);
        mount(&["-o", "remount,bind,ro", folder]);
        desk.check("Read-only file system");
    }
}

#[test]
fn a_file_of_ours_in_a_folder_of_somebody_else_is_saved_in_place() {
    let desk = Desk::new();
    let all = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    all(&desk.path(), 0o666);
    all(desk.state.path(), 0o777);
    all(desk.folder.path(), 0o555);
    // Root may write everywhere, so its test is another user for as long as it takes; this thread alone.
    let is_root = nix::unistd::geteuid().is_root();
    let user = |id: u32| is_root.then(|| nix::unistd::setfsuid(nix::unistd::Uid::from_raw(id)));
    user(65534);
    desk.check("Permission denied");
    user(0);
    all(desk.folder.path(), 0o755);
}
