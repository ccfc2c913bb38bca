//! Files that hold what is too long to show: full outputs, images, JSON.
//!
//! One file each, `<id>.<extension>`, in one directory that several processes may share. A file is locked
//! while it is written, so that [`Artifacts::prune`] leaves it alone.

mod reading;

use std::{
    fmt, fs,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

pub use reading::{ArtifactPage, ByteWindow, FoundLines, Hit};

/// What an artifact's address begins with.
const SCHEME: &str = "artifact://";

/// Forty bits, so that ids are short enough to be copied by hand and never met twice.
const ID_LENGTH: usize = 8;

/// What is kept of artifacts that nobody removes: much, since notices lead to them.
const KEPT: Retention = Retention { count: 10_000, bytes: 4 << 30 };

/// How many artifacts a process stores between two looks at what is kept; the first is one of them.
const LOOKED_EVERY: usize = 100;

static STORED: AtomicUsize = AtomicUsize::new(0);

/// A directory of artifacts. Cheap to clone; nothing is created until something is stored.
#[derive(Debug, Clone)]
pub struct Artifacts {
    directory: PathBuf,
}

/// Names an artifact within its directory. Shown as `artifact://ID`; parses with or without the scheme.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactId(String);

/// What an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArtifactKind {
    /// Printed text, with the escape sequences it was printed with.
    Log,
    /// A JSON value.
    Json,
    /// An HTML display.
    Html,
    /// An SVG image.
    Svg,
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// Anything else.
    Binary,
}

/// A stored artifact. Holds no descriptor: each read opens the file and closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its name.
    pub id: ArtifactId,
    /// What it holds.
    pub kind: ArtifactKind,
    /// Where it is.
    pub path: PathBuf,
    /// Its size when it was looked up; it may still be growing.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

/// How much may be kept in a directory.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Most artifacts.
    pub count: usize,
    /// Most bytes in all.
    pub bytes: u64,
}

/// What [`Artifacts::prune`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrunedArtifacts {
    /// Artifacts removed.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Why an artifact could not be stored, found or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The id is not in the directory.
    #[error("no artifact {id} in `{}`; it may have been pruned", directory.display())]
    NotFound {
        /// The one asked for.
        id: ArtifactId,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Text was asked of an image, say.
    #[error("{id} is not text; it is a {kind} file")]
    NotText {
        /// The one asked for.
        id: ArtifactId,
        /// What it is.
        kind: ArtifactKind,
    },
    /// The file system refused.
    #[error("could not {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it answered.
        #[source]
        source: io::Error,
    },
}

/// The text is no artifact id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an artifact id; one looks like `artifact://k3v9x2mq`")]
pub struct InvalidId(String);

/// An artifact being written. Dropping it leaves what was written.
#[derive(Debug)]
pub(crate) struct ArtifactDraft {
    id: ArtifactId,
    path: PathBuf,
    file: File,
}

impl Artifacts {
    /// The artifacts in `directory`, which is created when the first one is stored.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Stores `content`.
    pub fn save(&self, kind: ArtifactKind, content: &[u8]) -> Result<ArtifactId, ArtifactError> {
        let mut draft = self.create(kind)?;
        match draft.file.write_all(content) {
            Ok(()) => Ok(draft.keep()),
            Err(source) => {
                let path = draft.path.clone();
                draft.discard();
                Err(ArtifactError::Io { action: "write", path, source })
            }
        }
    }

    /// Looks up an artifact.
    pub fn open(&self, id: &ArtifactId) -> Result<Artifact, ArtifactError> {
        let found = ArtifactKind::ALL.into_iter().find_map(|kind| Artifact::at(self.path(id, kind)));
        found.ok_or_else(|| ArtifactError::NotFound { id: id.clone(), directory: self.directory.clone() })
    }

    /// All artifacts, the oldest first. Other files in the directory are passed over.
    pub fn list(&self) -> Result<Vec<Artifact>, ArtifactError> {
        let failed = |source| ArtifactError::Io { action: "list", path: self.directory.clone(), source };
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut artifacts = Vec::new();
        for entry in entries {
            artifacts.extend(Artifact::at(entry.map_err(failed)?.path()));
        }
        artifacts.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(artifacts)
    }

    /// Removes the oldest artifacts until the rest is within `keep`. One that is being written is
    /// counted but stays, whichever process writes it.
    pub fn prune(&self, keep: Retention) -> Result<PrunedArtifacts, ArtifactError> {
        let artifacts = self.list()?;
        let mut count = artifacts.len();
        let mut bytes: u64 = artifacts.iter().map(|artifact| artifact.bytes).sum();
        let mut pruned = PrunedArtifacts::default();
        for artifact in artifacts {
            if count <= keep.count && bytes <= keep.bytes {
                break;
            }
            let failed = |source| ArtifactError::Io { action: "remove", path: artifact.path.clone(), source };
            match File::open(&artifact.path) {
                Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) => continue,
                Ok(_) => match fs::remove_file(&artifact.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                    _ => {}
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {} // another process was faster
                Err(error) => return Err(failed(error)),
            }
            count -= 1;
            bytes -= artifact.bytes;
            pruned.count += 1;
            pruned.bytes += artifact.bytes;
        }
        Ok(pruned)
    }

    fn path(&self, id: &ArtifactId, kind: ArtifactKind) -> PathBuf {
        self.directory.join(format!("{}.{}", id.0, kind.extension()))
    }

    /// Begins an artifact under a new id.
    pub(crate) fn create(&self, kind: ArtifactKind) -> Result<ArtifactDraft, ArtifactError> {
        let directory = &self.directory;
        private_directory(directory).map_err(|source| ArtifactError::Io {
            action: "create directory",
            path: directory.clone(),
            source,
        })?;
        if STORED.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKED_EVERY) {
            drop(self.prune(KEPT)); // what cannot be removed now is looked at again
        }
        loop {
            let id = ArtifactId::random();
            let path = self.path(&id, kind);
            match private_file(&path) {
                Ok(file) => {
                    drop(file.try_lock()); // without locks pruning may remove it too early: its loss, no other harm
                    return Ok(ArtifactDraft { id, path, file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(ArtifactError::Io { action: "create", path, source }),
            }
        }
    }
}

impl Artifact {
    /// The artifact in a file, unless its name is no artifact's or it is gone.
    fn at(path: PathBuf) -> Option<Self> {
        let (stem, extension) = path.file_name()?.to_str()?.split_once('.')?;
        let kind = ArtifactKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
        let id = stem.parse().ok()?;
        let file = fs::metadata(&path).ok()?;
        let modified = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Self { id, kind, path, bytes: file.len(), modified })
    }
}

impl ArtifactDraft {
    #[cfg(test)]
    pub(crate) fn onto(file: File) -> Self {
        Self { id: ArtifactId::random(), path: PathBuf::new(), file }
    }

    pub(crate) fn id(&self) -> &ArtifactId {
        &self.id
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn keep(self) -> ArtifactId {
        self.id
    }

    pub(crate) fn discard(self) {
        drop(fs::remove_file(&self.path)); // what cannot be removed is left to pruning
    }
}

impl ArtifactId {
    /// The id without its scheme.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn random() -> Self {
        // Without letters that look like digits or like each other.
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut random = [0; ID_LENGTH];
        getrandom::fill(&mut random).expect("the system has random numbers");
        Self(random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
    }
}

impl TryFrom<String> for ArtifactId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<ArtifactId> for String {
    fn from(id: ArtifactId) -> Self {
        id.0
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

impl FromStr for ArtifactId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let id = text.strip_prefix(SCHEME).unwrap_or(text);
        let fits = id.len() == ID_LENGTH && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if fits { Ok(Self(id.to_owned())) } else { Err(InvalidId(text.to_owned())) }
    }
}

impl ArtifactKind {
    const ALL: [Self; 9] = [
        Self::Log,
        Self::Json,
        Self::Html,
        Self::Svg,
        Self::Png,
        Self::Jpeg,
        Self::Gif,
        Self::Webp,
        Self::Binary,
    ];

    /// Whether it can be read by lines.
    pub fn is_text(self) -> bool {
        match self {
            Self::Log | Self::Json | Self::Html | Self::Svg => true,
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp | Self::Binary => false,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Json => "json",
            Self::Html => "html",
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
            Self::Binary => "bin",
        }
    }
}

impl fmt::Display for ArtifactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// Output may hold secrets: the directory and its files are their owner's alone.
fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}
