//! Where Jupyter keeps its files, by the rules of `jupyter_core`.
//! <https://jupyter-core.readthedocs.io/en/latest/paths.html>

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the search depends on; nothing is read from the process's own environment.
pub struct JupyterEnvironment<'a> {
    /// Environment variables by name.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The user's home folder.
    pub home: PathBuf,
    /// Prefixes of the Pythons in use (`sys.prefix`), best first.
    pub prefixes: Vec<PythonPrefix>,
}

/// A Python's `sys.prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonPrefix {
    /// The folder.
    pub path: PathBuf,
    /// Whether it is a virtual environment (or a conda environment other than base) of the user's own. Its files then
    /// come before those of the user.
    pub is_environment: bool,
}

impl<'a> JupyterEnvironment<'a> {
    /// The environment of these variables and Pythons.
    pub fn new(variable: &'a dyn Fn(&str) -> Option<OsString>, prefixes: Vec<PythonPrefix>) -> Self {
        let home = variable("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Self { variable, home, prefixes }
    }

    /// Folders that may hold a `kernels` folder, best first. `JUPYTER_PATH` comes before all, then user and
    /// environment in the order that `JUPYTER_PREFER_ENV_PATH` or the kind of prefix asks for, then the system.
    pub fn data_path(&self) -> Vec<PathBuf> {
        let named = self.text("JUPYTER_PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
        let in_environment = self.prefixes.first().is_some_and(|prefix| prefix.is_environment);
        let mut user = vec![self.data_dir()];
        if !in_environment {
            // Python switches its user site off inside a virtual environment.
            let base = self.path("PYTHONUSERBASE").unwrap_or_else(|| self.home.join(".local"));
            user.push(base.join("share/jupyter"));
        }
        let system = self.system_dirs();
        let environment = self.prefixes.iter().map(|prefix| prefix.path.join("share/jupyter"));
        let environment: Vec<_> = environment.filter(|folder| !system.contains(folder)).collect();
        let prefer_environment = self.flag("JUPYTER_PREFER_ENV_PATH").unwrap_or(in_environment);
        let [first, second] = if prefer_environment { [environment, user] } else { [user, environment] };

        let mut path = Vec::new();
        for folder in named.into_iter().flatten().chain(first).chain(second).chain(system) {
            if !path.contains(&folder) {
                path.push(folder);
            }
        }
        path
    }

    /// Folders with one folder per kernel.
    pub fn kernel_path(&self) -> Vec<PathBuf> {
        let ipython = self.path("IPYTHONDIR").unwrap_or_else(|| self.home.join(".ipython"));
        self.data_path().into_iter().chain([ipython]).map(|folder| folder.join("kernels")).collect()
    }

    /// The prefix a folder of a kernel is in, or else the best one: whose Python runs it.
    pub fn prefix_of(&self, resource_dir: &Path) -> Option<&Path> {
        let holding = self.prefixes.iter().find(|prefix| resource_dir.starts_with(&prefix.path));
        holding.or(self.prefixes.first()).map(|prefix| prefix.path.as_path())
    }

    /// The user's own data folder.
    pub fn data_dir(&self) -> PathBuf {
        if let Some(folder) = self.path("JUPYTER_DATA_DIR") {
            return folder;
        }
        if cfg!(target_os = "macos") {
            let platform = self.flag("JUPYTER_PLATFORM_DIRS") == Some(true);
            return self.home.join(if platform {
                "Library/Application Support/jupyter"
            } else {
                "Library/Jupyter"
            });
        }
        self.path("XDG_DATA_HOME").unwrap_or_else(|| self.home.join(".local/share")).join("jupyter")
    }

    /// Where connection files go.
    pub fn runtime_dir(&self) -> PathBuf {
        self.path("JUPYTER_RUNTIME_DIR").unwrap_or_else(|| self.data_dir().join("runtime"))
    }

    fn system_dirs(&self) -> Vec<PathBuf> {
        let platform = self.flag("JUPYTER_PLATFORM_DIRS") == Some(true);
        match self.text("XDG_DATA_DIRS") {
            Some(folders) if platform => {
                std::env::split_paths(&folders).map(|folder| folder.join("jupyter")).collect()
            }
            _ => ["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from).into(),
        }
    }

    /// Jupyter takes an empty variable for none.
    fn text(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(|value| Path::new(&value).to_owned())
    }

    /// `None` when it is not set at all.
    fn flag(&self, name: &str) -> Option<bool> {
        let value = (self.variable)(name)?.to_string_lossy().to_lowercase();
        Some(!["no", "n", "false", "off", "0", "0.0"].contains(&value.as_str()))
    }
}
