//! Folder and environment that pass from one command to the next.
//!
//! After a command its shell writes what the next one has to know to a file: exported variables, functions, aliases, the
//! folder. The next shell reads it. Before the first command of a client stands what login files set up, gathered once for all
//! clients; or the snapshot that was named in the settings, which is just that.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_kernel::environment::EnvVars;
use cellwright_process::ChildCommand;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::ShellRequest;

/// Login files may do anything, wait for a lock for a minute included. They are not waited for longer than this.
const LOGIN: Duration = Duration::from_secs(10);

/// Writes the state to `$1`: all but what every shell has of its own.
const SAVE: &str = r#"{ (unset PWD OLDPWD SHLVL; export -p); declare -f; alias -p; } >"$1" 2>/dev/null"#;

/// Arguments: the state to read, the command, the state to write or nothing, the folder or nothing, what to do before the command.
///
/// One line: the shell counts the command's lines from here, and its messages name them.
const SCRIPT: &str = r#"eval "$5"; eval "unset __cellwright_command; $__cellwright_command""#;

/// What is done before the command.
///
/// The state is written by a trap, so that `exit` counts too, and moved into place, so that a reader finds a whole one.
const PREPARE: &str = r#"
[ -r "$1" ] && . "$1" >/dev/null 2>&1
__cellwright_command=$2
if [ -n "$3" ]; then
  printf -v __cellwright_new %q "$3.$$"
  printf -v __cellwright_file %q "$3"
  __cellwright_folder='"$PWD"'
  [ -n "$4" ] && printf -v __cellwright_folder %q "$PWD"
  trap "{ (unset PWD OLDPWD SHLVL; export -p); declare -f; alias -p; printf 'builtin cd -- %q\n' $__cellwright_folder; } >$__cellwright_new 2>/dev/null && mv -f $__cellwright_new $__cellwright_file" EXIT
fi
if [ -n "$4" ]; then cd -- "$4" || exit; fi
set --
unset __cellwright_new __cellwright_file __cellwright_folder
shopt -s expand_aliases
"#;

/// What shells of all clients start from.
#[derive(Debug)]
pub(crate) struct LoginShell {
    snapshot: Option<PathBuf>,
    gathered: OnceCell<Result<LoginSnapshot, LoginError>>,
}

/// Why commands start without what the login files set.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error("the login files could not be read: {0}")]
    Unreadable(io::Error),
    #[error("the login files took longer than {} s and were left out", LOGIN.as_secs())]
    TooSlow,
}

#[derive(Debug)]
struct LoginSnapshot {
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl LoginShell {
    pub(crate) fn new(snapshot: Option<PathBuf>) -> Self {
        Self { snapshot: snapshot.filter(|snapshot| snapshot.is_file()), gathered: OnceCell::new() }
    }

    /// What to read first; or why there is nothing.
    async fn file(&self, environment: &EnvVars) -> Result<&Path, &LoginError> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot);
        }
        let gathered = self.gathered.get_or_init(|| async {
            match timeout(LOGIN, gather(environment)).await {
                Ok(gathered) => gathered.map_err(LoginError::Unreadable),
                Err(_) => Err(LoginError::TooSlow),
            }
        });
        gathered.await.as_ref().map(|gathered| gathered.file.as_path())
    }
}

async fn gather(environment: &EnvVars) -> io::Result<LoginSnapshot> {
    let folder = private_folder()?;
    let file = folder.path().join("login.sh");
    let login = ChildCommand::new("bash", environment).args(["-l", "-c", SAVE, "bash"]).arg(&file);
    let exit = login.spawn().map_err(|error| error.source)?.wait().await;
    if !file.exists() {
        return Err(io::Error::other(format!("the shell {exit}")));
    }
    Ok(LoginSnapshot { file, _folder: folder })
}

/// The state of one client's shell.
#[derive(Debug)]
pub(super) struct ShellState {
    login: Arc<LoginShell>,
    /// Made with the first command; gone with the client.
    folder: Mutex<Option<tempfile::TempDir>>,
}

/// What to call a shell with, and what the caller should know.
pub(super) struct ShellArguments {
    pub(super) arguments: Vec<OsString>,
    pub(super) warning: Option<String>,
}

impl ShellState {
    pub(super) fn new(login: Arc<LoginShell>) -> Self {
        Self { login, folder: Mutex::default() }
    }

    pub(super) async fn prepare(
        &self,
        run: &ShellRequest<'_>,
        environment: &EnvVars,
    ) -> io::Result<ShellArguments> {
        let file = self.file()?;
        let (read, warning) = if file.exists() {
            (file.clone(), None)
        } else {
            match self.login.file(environment).await {
                Ok(login) => (login.to_owned(), None),
                Err(why) => (PathBuf::new(), Some(why.to_string())),
            }
        };
        let mut arguments = ["-c", SCRIPT, "bash"].map(OsString::from).to_vec();
        arguments.extend([read.into(), run.command.into()]);
        arguments.push(if run.keeps_state { file.into() } else { OsString::new() });
        arguments.extend([run.cwd.unwrap_or(Path::new("")).into(), PREPARE.into()]);
        Ok(ShellArguments { arguments, warning })
    }

    fn file(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &mut *folder {
            Some(folder) => folder,
            none => none.insert(private_folder()?),
        };
        Ok(folder.path().join("state.sh"))
    }
}

/// Environments hold secrets: the folder is its owner's alone.
fn private_folder() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("cellwright-shell-").permissions(Permissions::from_mode(0o700)).tempdir()
}
