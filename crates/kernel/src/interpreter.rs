//! Which Python runs the cells.
//!
//! The order is the one people expect at a prompt in the same folder: what was named, what is
//! activated, what belongs to the project, what a version manager chose for it, ours, the system's.
//! Looking is cheap (files only); whether one works is found out by starting it.

mod managed;
mod pyenv;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fmt, fs};

use cellwright_jupyter::PythonPrefix;
use cellwright_ownership::FolderTrust;
use cellwright_process::{ChildCommand, StderrTarget, StdoutTarget};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

pub use managed::{SetupError, create_managed};

use crate::environment::{EnvVars, prepend_to_path};
use crate::runner::{RejectedPython, Rejection};

/// How long a version manager may think.
const MANAGER_ANSWERS: Duration = Duration::from_secs(5);

/// Where to look for Python.
#[derive(Clone, Debug)]
pub struct PythonSearch {
    /// The one that was named, by path, by the folder of a virtual environment, or by a name on
    /// `PATH`. No other is tried.
    pub explicit: Option<PathBuf>,
    /// The folder cells run in.
    pub cwd: PathBuf,
    /// Our environment.
    pub variables: EnvVars,
    /// The virtual environment we manage, whether it exists or not.
    pub managed: Option<PathBuf>,
    /// Whose environments may run. Others in the project are passed over.
    pub trust: FolderTrust,
}

/// A Python that may run cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The program.
    pub python: PathBuf,
    /// How it was found.
    pub origin: PythonOrigin,
}

/// How a Python was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonOrigin {
    /// It was named.
    Explicit,
    /// `VIRTUAL_ENV` names it.
    Active,
    /// It is the project's virtual environment.
    Project,
    /// `uv` chose it for the project.
    Uv,
    /// `CONDA_PREFIX` names it.
    Conda,
    /// pyenv chose it for the folder.
    Pyenv,
    /// It is the virtual environment we manage.
    Managed,
    /// It is on `PATH`.
    Path,
}

impl fmt::Display for PythonOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Explicit => "as named",
            Self::Active => "the active virtual environment",
            Self::Project => "the project's virtual environment",
            Self::Uv => "chosen by uv",
            Self::Conda => "the active conda environment",
            Self::Pyenv => "chosen by pyenv",
            Self::Managed => "the managed virtual environment",
            Self::Path => "on PATH",
        })
    }
}

/// A place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PythonLead {
    /// A program.
    Program(PathBuf, PythonOrigin),
    /// A folder with a `bin/python`.
    Prefix(PathBuf, PythonOrigin),
    /// What `uv` says.
    Uv(PathBuf),
}

impl PythonSearch {
    /// Where to look, in order. Reads files, starts nothing.
    pub(crate) fn leads(&self) -> Vec<PythonLead> {
        if let Some(named) = &self.explicit {
            return vec![self.named(named)];
        }
        let mut leads = Vec::new();
        if let Some(active) = self.variable("VIRTUAL_ENV") {
            leads.push(PythonLead::Prefix(active.into(), PythonOrigin::Active));
        }
        let environments = self.trust.environments_of(&self.cwd).into_iter();
        let allowed = environments.filter(|(_, is_allowed)| *is_allowed);
        leads.extend(allowed.map(|(venv, _)| PythonLead::Prefix(venv, PythonOrigin::Project)));
        let pinned =
            |name: &str| self.trust.project_of(&self.cwd).iter().any(|folder| folder.join(name).is_file());
        // uv starts what it finds in the project and above it, wherever that comes from.
        if self.trust.allows_environment(&self.cwd)
            && (pinned("uv.lock") || pinned(".python-version"))
            && let Some(uv) = self.on_path("uv").next()
        {
            leads.push(PythonLead::Uv(uv));
        }
        if let Some(prefix) = self.variable("CONDA_PREFIX") {
            leads.push(PythonLead::Prefix(prefix.into(), PythonOrigin::Conda));
        }
        if let Some(python) = pyenv::local(self) {
            leads.push(PythonLead::Program(python, PythonOrigin::Pyenv));
        }
        if let Some(managed) = self.managed.as_ref().filter(|managed| managed.exists()) {
            leads.push(PythonLead::Prefix(managed.clone(), PythonOrigin::Managed));
        }
        for name in ["python3", "python"] {
            let programs =
                self.on_path(name).filter_map(|python| pyenv::behind_shim(self, python, PythonOrigin::Path));
            leads.extend(programs.map(|(python, origin)| PythonLead::Program(python, origin)));
        }
        let mut seen = HashSet::new();
        leads.retain(|lead| seen.insert(lead.place()));
        leads
    }

    fn named(&self, named: &Path) -> PythonLead {
        let place = self.cwd.join(named);
        if place.is_dir() {
            return PythonLead::Prefix(place, PythonOrigin::Explicit);
        }
        if named.components().count() == 1 && !place.exists() {
            // `3.12` means the same as `python3.12`.
            let versioned = format!("python{}", named.display());
            let mut programs = self.on_path(named).chain(self.on_path(versioned));
            let found = programs.find_map(|python| pyenv::behind_shim(self, python, PythonOrigin::Explicit));
            let found = found.map(|(python, _)| python).or_else(|| pyenv::version(self, named.to_str()?));
            return PythonLead::Program(found.unwrap_or_else(|| named.into()), PythonOrigin::Explicit);
        }
        PythonLead::Program(place, PythonOrigin::Explicit)
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(AsRef::as_ref).filter(|value: &&OsStr| !value.is_empty())
    }

    fn on_path(&self, name: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
        let path = self.variable("PATH").unwrap_or_default().to_os_string();
        let folders: Vec<_> = env::split_paths(&path).collect();
        folders
            .into_iter()
            // One that is relative means another folder in every folder, whoever owns that.
            .filter(|folder| folder.is_absolute())
            .map(move |folder| folder.join(name.as_ref()))
            .filter(|file| runnable(file).is_ok())
    }
}

impl PythonLead {
    /// What distinguishes it from others. Folders are followed through links (`/bin` is `/usr/bin`), the program itself is
    /// not: a virtual environment's is a link that leads out of it.
    fn place(&self) -> PathBuf {
        let place = match self {
            Self::Prefix(folder, _) => folder.join("bin/python"),
            Self::Program(place, _) | Self::Uv(place) => place.clone(),
        };
        let folder = place.parent().and_then(|folder| folder.canonicalize().ok());
        match (folder, place.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => place,
        }
    }

    /// The Python there, why it cannot be used, or nothing worth a mention.
    pub(crate) async fn candidate(self, search: &PythonSearch) -> Option<Result<Candidate, RejectedPython>> {
        let (python, origin) = match self {
            Self::Program(python, origin) => (python, origin),
            Self::Prefix(folder, origin) => (folder.join("bin/python"), origin),
            Self::Uv(uv) => (ask_uv(&uv, search).await?, PythonOrigin::Uv),
        };
        Some(match runnable(&python) {
            Ok(()) => Ok(Candidate { python, origin }),
            Err(why) => Err(RejectedPython { python, origin, why: Rejection::Missing(why.to_string()) }),
        })
    }
}

impl Candidate {
    /// The virtual environment it belongs to.
    pub fn venv(&self) -> Option<&Path> {
        // Not through links: a virtual environment's `python` is one, and leads out of it.
        self.python.parent()?.parent().filter(|prefix| prefix.join("pyvenv.cfg").is_file())
    }

    /// Where its Jupyter kernels may be, judged by its path alone: a Python that is a link may be in use under its own path.
    pub fn prefixes(&self) -> Vec<PythonPrefix> {
        let prefix = |python: &Path| python.parent().and_then(Path::parent).map(Path::to_owned);
        let is_environment = self.venv().is_some();
        let behind = if is_environment { None } else { self.python.canonicalize().ok() };
        let mut found: Vec<PythonPrefix> = Vec::new();
        for path in [prefix(&self.python), behind.and_then(|python| prefix(&python))].into_iter().flatten() {
            if !found.iter().any(|known| known.path == path) {
                found.push(PythonPrefix { path, is_environment });
            }
        }
        found
    }

    /// What its process sees: tools of its environment first, and no trace of another one's.
    pub(crate) fn environment(&self, mut variables: EnvVars) -> EnvVars {
        let bin = self.python.parent().filter(|bin| !bin.as_os_str().is_empty());
        let own_tools = match self.origin {
            PythonOrigin::Conda | PythonOrigin::Pyenv => true,
            // It is in another folder, perhaps conda's or pyenv's, and `pip` must belong to it. The order of `PATH` stays otherwise.
            PythonOrigin::Explicit => {
                let path = variables.get(OsStr::new("PATH")).map(OsString::as_os_str).unwrap_or_default();
                bin.is_some_and(|bin| !env::split_paths(path).any(|folder| folder == bin))
            }
            PythonOrigin::Active
            | PythonOrigin::Project
            | PythonOrigin::Uv
            | PythonOrigin::Managed
            | PythonOrigin::Path => false,
        };
        match self.venv() {
            Some(venv) => drop(variables.insert("VIRTUAL_ENV".into(), venv.into())),
            None => drop(variables.remove(OsStr::new("VIRTUAL_ENV"))),
        }
        if let Some(bin) = bin.filter(|_| own_tools || self.venv().is_some()) {
            prepend_to_path(&mut variables, bin.as_os_str());
        }
        variables
    }
}

/// Why a file cannot be started, judging by its directory entry.
#[derive(Debug, thiserror::Error)]
enum NotRunnable {
    #[error("it is a folder")]
    Folder,
    #[error("it may not be executed")]
    NotExecutable,
    #[error("its link leads nowhere: the Python it was made from is gone; make the environment again")]
    DanglingLink,
    #[error("there is no such program")]
    Missing,
}

fn runnable(program: &Path) -> Result<(), NotRunnable> {
    match fs::metadata(program) {
        Ok(entry) if entry.is_dir() => Err(NotRunnable::Folder),
        Ok(entry) if entry.permissions().mode() & 0o111 == 0 => Err(NotRunnable::NotExecutable),
        Ok(_) => Ok(()),
        Err(_) if fs::symlink_metadata(program).is_ok() => Err(NotRunnable::DanglingLink),
        Err(_) => Err(NotRunnable::Missing),
    }
}

/// What uv would use for the project; silence when it has no answer.
async fn ask_uv(uv: &Path, search: &PythonSearch) -> Option<PathBuf> {
    let question = ChildCommand::new(uv, &search.variables)
        .args(["python", "find", "--no-python-downloads"])
        .current_dir(&search.cwd);
    let answer = answer(question).await?;
    let python = answer.lines().next()?.trim();
    (!python.is_empty()).then(|| python.into())
}

/// What a program prints, if it ends well and in time.
async fn answer(question: ChildCommand) -> Option<String> {
    let mut child = question.stdout(StdoutTarget::Piped).stderr(StderrTarget::Null).spawn().ok()?;
    let mut stdout = child.stdout.take().expect("stdout was piped");
    let mut text = String::new();
    let answered = async {
        stdout.read_to_string(&mut text).await.ok()?;
        child.wait().await.success().then_some(())
    };
    timeout(MANAGER_ANSWERS, answered).await.ok()??;
    Some(text)
}
