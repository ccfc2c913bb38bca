//! Whether what a project brings may run: its settings, modules and environments.
//!
//! The user says so once for each folder. The answer is stored with the folder's owner and a hash of its settings and
//! modules, so that it ends when either changes. The packages of an environment are not hashed: they change often, by
//! the user's own hand.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::above::{is_reliable_entry, reliable_above};
use crate::private::private_folder;

/// The folder of a project's settings and modules.
const SETTINGS: &str = ".cellwright";

/// What a virtual environment in a project is called.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// Modules that are hashed, and how deep they may lie: more than anybody has.
const MOST_MODULES: usize = 10_000;
const DEEPEST: usize = 16;

/// Whose code may run.
#[derive(Clone, Debug)]
pub enum FolderTrust {
    /// Everybody's: the caller has decided already.
    Everything,
    /// That of folders the user trusts.
    Recorded(TrustedRoots),
}

/// The folders that the user trusts.
#[derive(Clone, Debug)]
pub struct TrustedRoots {
    /// Everything below these: the user's settings say so.
    pub roots: Vec<PathBuf>,
    /// Each of these for itself.
    pub records: TrustRecords,
    /// The user's home folder, whose settings are the user's own.
    pub home: PathBuf,
}

/// The file of answers. A missing one holds none.
#[derive(Clone, Debug)]
pub struct TrustRecords {
    file: PathBuf,
}

/// What was answered about a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The folder, by its real path.
    pub folder: PathBuf,
    /// Who owned it.
    pub owner: u32,
    /// A hash of its settings and modules.
    pub content: String,
    /// The answer.
    pub answer: TrustAnswer,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustAnswer {
    /// It may run.
    Trusted,
    /// It may not, and the user need not be asked again.
    Declined,
    /// Nobody was there to ask. The user has been told.
    Told,
}

/// A project whose code does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedFolder {
    /// The project's folder.
    pub root: PathBuf,
    /// The folders in it that bring something, the nearest first.
    folders: Vec<PathBuf>,
    /// What they bring.
    pub brings: Vec<PathBuf>,
    /// What was answered before, if anything.
    pub answer: Option<TrustAnswer>,
}

impl std::fmt::Display for UntrustedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let brings = self.brings.iter().map(|path| {
            let short = path.strip_prefix(&self.root).unwrap_or(path);
            format!("`{}`", short.display())
        });
        let brings: Vec<_> = brings.collect();
        write!(
            f,
            "the folder `{root}` is not trusted, so {} is not used; `cellwright trust '{root}'` allows it",
            brings.join(", "),
            root = self.root.display()
        )
    }
}

impl FolderTrust {
    /// Whether settings and modules directly in `folder` count.
    pub fn allows_settings(&self, folder: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Recorded(trusted) => trusted.has(folder, folder),
        }
    }

    /// Whether an environment directly in `folder` may run. The folder of its repository counts for it.
    pub fn allows_environment(&self, folder: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Recorded(trusted) => {
                let Ok(folder) = folder.canonicalize() else { return false };
                let end = folder.ancestors().position(|above| above.join(".git").exists()).unwrap_or(0);
                folder.ancestors().take(end + 1).any(|above| trusted.has(above, &folder))
            }
        }
    }

    /// The folder and those above it in which a project may be looked for, up to the root of its repository, or up to
    /// the first folder that another user owns or can write and that is not trusted.
    fn project_folders<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a Path> {
        let reliable = reliable_above(folder).count();
        let mut at = 0;
        let mut is_over = false;
        folder.ancestors().take_while(move |above| {
            at += 1;
            let is_in = !is_over && (at <= reliable || self.allows_environment(above));
            is_over = above.join(".git").exists();
            is_in
        })
    }

    /// The folder and, in a repository, those above it up to its root. Without a repository nothing says how far up a
    /// project goes.
    pub fn project_of<'a>(&'a self, folder: &'a Path) -> Vec<&'a Path> {
        let depth = if self.repository(folder).is_some() { usize::MAX } else { 1 };
        self.project_folders(folder).take(depth).collect()
    }

    /// Whether the walk up from `folder` ended at a repository.
    fn repository<'a>(&'a self, folder: &'a Path) -> Option<&'a Path> {
        self.project_folders(folder).find(|above| above.join(".git").exists())
    }

    /// The nearest settings folder of the project that `folder` is in, if it may be used.
    pub fn settings_of(&self, folder: &Path) -> Option<PathBuf> {
        let (above, settings) = self.found_settings(folder)?;
        (self.allows_settings(above)).then_some(settings)
    }

    fn is_home(&self, folder: &Path) -> bool {
        match self {
            Self::Everything => false,
            Self::Recorded(trusted) => trusted.home == folder,
        }
    }

    fn found_settings<'a>(&'a self, folder: &'a Path) -> Option<(&'a Path, PathBuf)> {
        let above = self.project_folders(folder).take_while(|above| !self.is_home(above));
        above.map(|above| (above, above.join(SETTINGS))).find(|(_, settings)| settings.is_dir())
    }

    /// The virtual environments of the project that `folder` is in, the nearest first, and whether each may run.
    pub fn environments_of(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        self.project_of(folder).into_iter().flat_map(|above| self.environments_in(above)).collect()
    }

    fn environments_in(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let found =
            ENVIRONMENTS.map(|name| folder.join(name)).into_iter().filter(|venv| is_environment(venv));
        let found: Vec<_> = found.collect();
        let allows = !found.is_empty() && self.allows_environment(folder);
        found.into_iter().map(|venv| (venv, allows)).collect()
    }

    /// What the project that `folder` is in brings and may not use; `None` if that is nothing.
    pub fn untrusted(&self, folder: &Path) -> Option<UntrustedFolder> {
        let Self::Recorded(trusted) = self else { return None };
        let (mut folders, mut brings): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
        let mut add = |path: PathBuf| {
            let within = path.parent().expect("it is in a folder").to_owned();
            if !folders.contains(&within) {
                folders.push(within);
            }
            if !brings.contains(&path) {
                brings.push(path);
            }
        };
        let environments = self.environments_of(folder);
        environments.into_iter().filter(|(_, allowed)| !allowed).for_each(|(venv, _)| add(venv));
        if let Some((above, settings)) = self.found_settings(folder)
            && !self.allows_settings(above)
        {
            add(settings);
        }
        // The folder itself may be another's. What is in those above it is none of the user's business.
        if self.project_folders(folder).next().is_none() {
            self.environments_in(folder).into_iter().for_each(|(venv, _)| add(venv));
            let settings = folder.join(SETTINGS);
            if !self.is_home(folder) && settings.is_dir() {
                add(settings);
            }
        }
        let root = self.repository(folder).or_else(|| Some(folders.last()?)).map(Path::to_owned)?;
        let nearest = folders.first()?.clone();
        let answer = trusted.records.answer(&nearest);
        Some(UntrustedFolder { root, folders, brings, answer })
    }
}

impl TrustedRoots {
    /// Whether `folder` is trusted, for the sake of something in `below`.
    fn has(&self, folder: &Path, below: &Path) -> bool {
        let (Ok(folder), Ok(below)) = (folder.canonicalize(), below.canonicalize()) else { return false };
        let is_root = |root: &PathBuf| root.canonicalize().is_ok_and(|root| below.starts_with(root));
        self.roots.iter().any(is_root) || self.records.answer(&folder) == Some(TrustAnswer::Trusted)
    }
}

impl TrustRecords {
    /// Those stored in `file`, which is the user's.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// All of them. A file that is not the user's own holds none.
    pub fn entries(&self) -> Vec<TrustEntry> {
        if !is_reliable_entry(&self.file) {
            return Vec::new();
        }
        fs::read(&self.file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// What was answered about a folder as it is now.
    pub fn answer(&self, folder: &Path) -> Option<TrustAnswer> {
        let folder = folder.canonicalize().ok()?;
        let entry = self.entries().into_iter().find(|entry| entry.folder == folder)?;
        let now = TrustEntry::of(&folder, entry.answer).ok()?;
        (now == entry).then_some(entry.answer)
    }

    /// Stores an answer about a project.
    pub fn answered(&self, project: &UntrustedFolder, answer: TrustAnswer) -> io::Result<()> {
        let folders = project.folders.iter().chain([&project.root]);
        self.store(folders.map(PathBuf::as_path), answer)
    }

    /// Stores an answer about these folders as they are now.
    pub fn store<'a>(
        &self,
        folders: impl IntoIterator<Item = &'a Path>,
        answer: TrustAnswer,
    ) -> io::Result<()> {
        let mut entries = self.entries();
        for folder in folders {
            let new = TrustEntry::of(&folder.canonicalize()?, answer)?;
            entries.retain(|entry| entry.folder != new.folder);
            entries.push(new);
        }
        self.write(&entries)
    }

    /// Removes the answers about a folder and those in it; how many there were.
    pub fn remove(&self, folder: &Path) -> io::Result<usize> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mut entries = self.entries();
        let before = entries.len();
        entries.retain(|entry| !entry.folder.starts_with(&folder));
        let removed = before - entries.len();
        if removed > 0 {
            self.write(&entries)?;
        }
        Ok(removed)
    }

    fn write(&self, entries: &[TrustEntry]) -> io::Result<()> {
        let folder = self.file.parent().expect("the file is in a folder");
        private_folder(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?; // 0600 from the start
        serde_json::to_writer_pretty(&mut file, entries)?;
        file.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }
}

impl TrustEntry {
    fn of(folder: &Path, answer: TrustAnswer) -> io::Result<Self> {
        let owner = fs::metadata(folder)?.uid();
        Ok(Self { folder: folder.to_owned(), owner, content: content_of(folder)?, answer })
    }
}

/// A folder that merely has such a name is none.
fn is_environment(folder: &Path) -> bool {
    folder.join("pyvenv.cfg").is_file() || fs::symlink_metadata(folder.join("bin/python")).is_ok()
}

/// A hash of the settings and modules in a folder.
fn content_of(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    collect(&folder.join(SETTINGS), 0, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(file.as_os_str().as_encoded_bytes());
        add(&fs::read(&file)?);
    }
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
    Ok(hash.finalize().iter().flat_map(digits).collect())
}

/// The regular files below `folder`. Python's cache is made from them.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if depth > DEEPEST {
        return Err(io::Error::other(format!("`{}` is too deep", folder.display())));
    }
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let kind = fs::metadata(&path);
        match kind {
            Ok(kind) if kind.is_dir() && entry.file_name() == "__pycache__" => {}
            Ok(kind) if kind.is_dir() => collect(&path, depth + 1, files)?,
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(_) | Err(_) => {} // nothing that could be read
        }
        if files.len() > MOST_MODULES {
            return Err(io::Error::other(format!("`{}` holds too many files", folder.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
