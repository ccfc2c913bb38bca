//! Where file tools may go.
//!
//! A path is resolved, symlinks and all, before it is compared with the roots; what does not exist yet is judged by the
//! folder it would be in. Only regular files are opened: a named pipe or a device would block or never end.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use cellwright_editing::{FileKind, FileName};

/// The folders a client works in.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Relative paths start here.
    start: PathBuf,
    /// Without links.
    roots: Vec<PathBuf>,
    /// Roots that are no folders here.
    missing: Vec<PathBuf>,
    outside: OutsidePaths,
}

/// What happens to paths outside the roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutsidePaths {
    /// They are refused.
    #[default]
    Refused,
    /// They are like any others.
    Allowed,
}

/// A path a tool may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// As the caller named it.
    pub(crate) named: String,
    /// Absolute and without links.
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
}

/// Why a path may not or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// No path at all.
    #[error("the path is empty")]
    Empty,
    /// No system has such paths.
    #[error("the path holds a NUL character")]
    Nul,
    /// Outside the roots.
    #[error(
        "{named} is outside the workspace ({}); start cellwright with --root FOLDER or --allow-outside to widen it",
        list(roots)
    )]
    Outside {
        /// As the caller named it.
        named: String,
        /// Where it could be.
        roots: Vec<PathBuf>,
    },
    /// There is no inside.
    #[error(
        "{named} cannot be used: the workspace is {}, which is not a folder here; name another, or start cellwright with --root FOLDER",
        list(missing)
    )]
    NoRoot {
        /// As the caller named it.
        named: String,
        /// What was named as the workspace.
        missing: Vec<PathBuf>,
    },
    /// Not there.
    #[error("{named}: no such file")]
    Missing {
        /// As the caller named it.
        named: String,
    },
    /// A link to nothing.
    #[error("{named} is a link that leads nowhere")]
    DeadLink {
        /// As the caller named it.
        named: String,
    },
    /// Something that is not opened.
    #[error("{named} is {what}, not a file")]
    NotAFile {
        /// As the caller named it.
        named: String,
        /// What it is.
        what: &'static str,
    },
    /// The system refused to look.
    #[error("{named}: could not look at it")]
    Io {
        /// As the caller named it.
        named: String,
        /// Why.
        source: io::Error,
    },
}

impl Workspace {
    /// A workspace with its start folder as its root.
    pub fn new(start: &Path) -> io::Result<Self> {
        let start = fs::canonicalize(start)?;
        Ok(Self { roots: vec![start.clone()], missing: Vec::new(), start, outside: OutsidePaths::Refused })
    }

    /// Other roots, if any are named; else the start folder stays the root. Those that are no folders here are left out, and when
    /// that is all of them every path is refused: the client did not mean the start folder.
    #[must_use]
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let (mut folders, mut missing) = (Vec::new(), Vec::new());
        for root in roots {
            match fs::canonicalize(&root) {
                Ok(folder) if folder.is_dir() => folders.push(folder),
                Ok(_) | Err(_) => missing.push(root),
            }
        }
        if folders.is_empty() && missing.is_empty() {
            return self;
        }
        if let Some(first) = folders.first()
            && !folders.iter().any(|root| self.start.starts_with(root))
        {
            self.start.clone_from(first);
        }
        (self.roots, self.missing) = (folders, missing);
        self
    }

    /// Whether paths outside the roots can be used.
    #[must_use]
    pub fn with_outside(mut self, outside: OutsidePaths) -> Self {
        self.outside = outside;
        self
    }

    /// Where relative paths start.
    pub fn start(&self) -> &Path {
        &self.start
    }

    /// The folders everything has to be in.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// What was named as a root and is no folder here.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    /// The path of an existing regular file that file tools may use.
    pub fn readable(&self, named: &str) -> Result<PathBuf, PathError> {
        self.file(named).map(|place| place.path)
    }

    /// An existing regular file.
    pub(crate) fn file(&self, named: &str) -> Result<ResolvedPath, PathError> {
        let place = self.place(named)?;
        if place.exists { Ok(place) } else { Err(PathError::Missing { named: named.to_owned() }) }
    }

    /// A regular file, or a place for one.
    pub(crate) fn place(&self, named: &str) -> Result<ResolvedPath, PathError> {
        let place = self.resolve(named)?;
        if place.exists {
            require_file(&place)?;
        }
        Ok(place)
    }

    fn resolve(&self, named: &str) -> Result<ResolvedPath, PathError> {
        if named.is_empty() {
            return Err(PathError::Empty);
        }
        if named.contains('\0') {
            return Err(PathError::Nul);
        }
        let (path, exists) = without_links(&self.start.join(named)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => PathError::DeadLink { named: named.to_owned() },
            _ => PathError::Io { named: named.to_owned(), source: error },
        })?;
        if self.outside == OutsidePaths::Refused && !self.roots.iter().any(|root| path.starts_with(root)) {
            let named = named.to_owned();
            return Err(if self.roots.is_empty() {
                PathError::NoRoot { named, missing: self.missing.clone() }
            } else {
                PathError::Outside { named, roots: self.roots.clone() }
            });
        }
        Ok(ResolvedPath { named: named.to_owned(), path, exists })
    }
}

impl ResolvedPath {
    /// The file, by the name that the caller has for it.
    pub(crate) fn file_name(&self) -> FileName {
        FileName { path: self.path.clone(), named: self.named.clone() }
    }

    /// Whether it is a notebook. Blocks on files.
    pub(crate) fn is_notebook(&self) -> bool {
        FileKind::of(&self.path) == FileKind::Notebook
    }
}

/// The path without links, and whether something is there. If the path does not exist, the part that does is
/// resolved. `NotFound` means a link to nothing: what is behind it cannot be judged.
fn without_links(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path.to_path_buf();
    loop {
        match fs::canonicalize(&existing) {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok((resolved, missing.is_empty()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&existing).is_ok() {
                    return Err(error);
                }
                match existing.components().next_back() {
                    Some(Component::Normal(name)) => missing.push(name.to_owned()),
                    // `..` after a folder that is not there: the system would refuse it too.
                    _ => return Err(io::Error::other("a folder on the way does not exist")),
                }
                existing.pop();
            }
            Err(error) => return Err(error),
        }
    }
}

fn require_file(place: &ResolvedPath) -> Result<(), PathError> {
    let named = place.named.clone();
    let kind = match fs::metadata(&place.path) {
        Ok(metadata) => metadata.file_type(),
        Err(source) => return Err(PathError::Io { named, source }),
    };
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(PathError::NotAFile { named, what })
}

fn list(roots: &[PathBuf]) -> String {
    roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["work", "work/deep", "elsewhere"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        fs::write(folder.path().join("work/a.txt"), "a").unwrap();
        fs::write(folder.path().join("elsewhere/b.txt"), "b").unwrap();
        let workspace = Workspace::new(&folder.path().join("work")).unwrap();
        (folder, workspace)
    }

    #[test]
    fn a_path_that_leaves_the_roots_is_refused_however_it_leaves() {
        let (folder, workspace) = workspace();
        let outside = folder.path().join("elsewhere");
        symlink(&outside, folder.path().join("work/link")).unwrap();
        symlink(outside.join("b.txt"), folder.path().join("work/b")).unwrap();
        for path in [
            "../elsewhere/b.txt",
            "deep/../../elsewhere/b.txt",
            "link/b.txt",
            "link/new.txt",
            "b",
            "/etc/passwd",
        ] {
            let refused = workspace.place(path).unwrap_err();
            assert!(matches!(refused, PathError::Outside { .. }), "{path}: {refused}");
        }
        let open = workspace.with_outside(OutsidePaths::Allowed);
        assert_eq!(open.file("link/b.txt").unwrap().path, fs::canonicalize(outside.join("b.txt")).unwrap());
    }

    #[test]
    fn roots_that_are_not_there_do_not_open_the_start_folder() {
        let (folder, workspace) = workspace();
        let nowhere = folder.path().join("nowhere");
        let none = workspace.clone().with_roots([nowhere.clone()]);
        let refused = none.file("a.txt").unwrap_err().to_string();
        assert!(
            refused.contains(&format!("the workspace is {}, which is not a folder", nowhere.display())),
            "{refused}"
        );
        let some = workspace.clone().with_roots([nowhere.clone(), folder.path().join("elsewhere")]);
        assert!(some.file("b.txt").is_ok());
        assert_eq!(some.missing(), [nowhere]);
        assert!(workspace.with_roots([]).file("a.txt").is_ok());
    }

    #[test]
    fn a_new_file_is_judged_by_the_folder_it_will_be_in() {
        let (folder, workspace) = workspace();
        let work = fs::canonicalize(folder.path()).unwrap().join("work");
        let new = workspace.place("deep/new/one.txt").unwrap();
        assert_eq!((new.path, new.exists), (work.join("deep/new/one.txt"), false));
        assert_eq!(workspace.place("deep/../a.txt").unwrap().path, work.join("a.txt"));
        assert!(matches!(workspace.place("no/../../x"), Err(PathError::Io { .. })));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (folder, workspace) = workspace();
        nix::unistd::mkfifo(&folder.path().join("work/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("nowhere", folder.path().join("work/dead")).unwrap();
        let workspace = workspace.with_outside(OutsidePaths::Allowed);
        let message = |path: &str| workspace.file(path).unwrap_err().to_string();
        assert_eq!(message("pipe"), "pipe is a named pipe, not a file");
        assert_eq!(message("/dev/zero"), "/dev/zero is a device, not a file");
        assert_eq!(message("deep"), "deep is a folder, not a file");
        assert_eq!(message("dead"), "dead is a link that leads nowhere");
        assert_eq!(message("none"), "none: no such file");
        assert_eq!(message("a\0b"), "the path holds a NUL character");
    }
}
