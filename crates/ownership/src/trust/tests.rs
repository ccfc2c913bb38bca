use super::*;

struct Desk {
    root: tempfile::TempDir,
    trust: FolderTrust,
}

impl Desk {
    fn new(files: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let records = TrustRecords::new(root.path().join("state/trust.json"));
        let home = root.path().canonicalize().unwrap().join("home");
        let trust = FolderTrust::Recorded(TrustedRoots { roots: Vec::new(), records, home });
        Self { root, trust }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn records(&self) -> &TrustRecords {
        match &self.trust {
            FolderTrust::Recorded(trusted) => &trusted.records,
            FolderTrust::Everything => unreachable!("made above"),
        }
    }

    fn untrusted(&self, folder: &str) -> Option<UntrustedFolder> {
        self.trust.untrusted(&self.path(folder))
    }

    fn settings(&self, folder: &str) -> Option<PathBuf> {
        self.trust.settings_of(&self.path(folder))
    }
}

#[test]
fn a_folder_without_code_of_its_own_needs_no_trust() {
    let desk = Desk::new(&[
        "work/.git/config",
        "work/notes.py",
        "work/venv/readme.txt",
        "home/.cellwright/config.toml",
    ]);
    assert_eq!((desk.untrusted("work"), desk.untrusted("home")), (None, None));
}

#[test]
fn trust_holds_for_a_repository_until_its_settings_or_modules_change() {
    let desk = Desk::new(&[
        "work/.git/config",
        "work/.cellwright/config.toml",
        "work/.venv/pyvenv.cfg",
        "work/src/a.py",
    ]);
    let found = desk.untrusted("work/src").unwrap();
    assert_eq!(found.root, desk.path("work"));
    assert_eq!(found.brings, [desk.path("work/.venv"), desk.path("work/.cellwright")]);
    assert_eq!(desk.settings("work/src"), None);
    desk.records().answered(&found, TrustAnswer::Trusted).unwrap();
    assert_eq!(desk.untrusted("work/src"), None);
    assert_eq!(desk.settings("work/src"), Some(desk.path("work/.cellwright")));
    assert_eq!(desk.trust.environments_of(&desk.path("work/src")), [(desk.path("work/.venv"), true)]);
    fs::create_dir(desk.path("work/.cellwright/modules")).unwrap();
    assert_eq!(desk.untrusted("work/src"), None, "nothing was added yet");
    fs::write(desk.path("work/.cellwright/modules/x.py"), "import os").unwrap();
    assert!(desk.untrusted("work/src").is_some() && desk.settings("work").is_none());
    assert_eq!(desk.records().remove(&desk.path("work")).unwrap(), 1);
    assert_eq!(desk.records().entries(), []);
}

#[test]
fn a_repository_inside_a_trusted_one_is_not_trusted_with_it() {
    let desk = Desk::new(&[
        "work/.git/config",
        "work/.venv/pyvenv.cfg",
        "work/vendor/x/.git/config",
        "work/vendor/x/.venv/pyvenv.cfg",
    ]);
    desk.records().store([desk.path("work").as_path()], TrustAnswer::Trusted).unwrap();
    assert_eq!(desk.untrusted("work"), None);
    assert_eq!(desk.untrusted("work/vendor/x").unwrap().root, desk.path("work/vendor/x"));
}

#[test]
fn an_answer_is_kept_and_a_root_of_the_settings_needs_none() {
    let mut desk = Desk::new(&["work/.venv/pyvenv.cfg"]);
    let found = desk.untrusted("work").unwrap();
    assert_eq!(found.answer, None);
    desk.records().answered(&found, TrustAnswer::Declined).unwrap();
    assert_eq!(desk.untrusted("work").unwrap().answer, Some(TrustAnswer::Declined));
    let records = desk.records().clone();
    desk.trust =
        FolderTrust::Recorded(TrustedRoots { roots: vec![desk.path("")], records, home: desk.path("home") });
    assert_eq!(desk.untrusted("work"), None);
}

#[test]
fn what_others_may_have_put_above_a_folder_is_not_even_mentioned() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new(&[
        "open/.cellwright/config.toml",
        "open/.git/config",
        "open/.venv/pyvenv.cfg",
        "open/mine/a.py",
    ]);
    fs::set_permissions(desk.path("open"), fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!((desk.untrusted("open/mine"), desk.settings("open/mine")), (None, None));
    assert_eq!(desk.trust.environments_of(&desk.path("open/mine")), []);
    // In that folder itself, it is what the user would expect to run.
    let found = desk.untrusted("open").unwrap();
    assert_eq!(found.brings.len(), 2);
    desk.records().answered(&found, TrustAnswer::Trusted).unwrap();
    assert_eq!(desk.untrusted("open"), None);
    assert!(desk.settings("open").is_some());
}
