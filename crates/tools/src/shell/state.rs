//! Folder and environment that pass from one command to the next.
//!
//! After a command its shell writes what the next one has to know to a file: exported variables, functions, aliases, the
//! folder. The next shell reads it. The first command of a client starts with what login files set up, gathered once for all
//! clients and for `bash()` in their cells; or the snapshot that was named in the settings, which is just that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_kernel::environment::EnvVars;
use cellwright_ownership::{Leftovers, LockedFolder};
use cellwright_process::ChildCommand;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::ShellRequest;
use crate::arrival::CallLine;

/// Login files may do anything, wait for a lock for a minute included. They are not waited for longer than this.
const LOGIN: Duration = Duration::from_secs(10);

/// Writes what login files leave: variables to `$1`, functions and aliases to `$2`.
const SAVE: &str = r#"env -0 >"$1"; { declare -f; alias -p; } >"$2" 2>/dev/null"#;

/// Variables that every shell has of its own.
const OWN: &[&[u8]] = &[b"PWD", b"OLDPWD", b"SHLVL", b"_"];

/// How kernels find the snapshot.
const SNAPSHOT: [&str; 2] = ["CELLWRIGHT_SHELL_SNAPSHOT", "PI_SHELL_SNAPSHOT"];

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
    _folder: LockedFolder,
}

impl LoginShell {
    pub(crate) fn new(snapshot: Option<PathBuf>) -> Self {
        Self { snapshot: snapshot.filter(|snapshot| snapshot.is_file()), gathered: OnceCell::new() }
    }

    /// Makes the snapshot, for kernels to start from; once, however often it is asked for.
    pub(crate) async fn make(&self, environment: &EnvVars) {
        if let Err(error) = self.file(environment).await {
            tracing::warn!(%error, "no snapshot of the login shell was made");
        }
    }

    /// Names the snapshot to `bash()` in cells, if there is one by now. Without one it makes its own.
    pub(crate) fn pass_on(&self, variables: &mut EnvVars) -> bool {
        let gathered = || Some(self.gathered.get()?.as_ref().ok()?.file.as_path());
        let Some(file) = self.snapshot.as_deref().or_else(gathered) else { return false };
        variables.extend(SNAPSHOT.map(|name| (name.into(), file.into())));
        true
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
    let folder = secret_folder()?;
    let [file, variables, functions] =
        ["login.sh", "variables", "functions"].map(|name| folder.path().join(name));
    let login = ChildCommand::new("bash", environment);
    let login = login.args(["-l", "-c", SAVE, "bash"]).arg(&variables).arg(&functions);
    let exit = login.spawn().map_err(|error| error.source)?.wait().await;
    if !functions.exists() {
        return Err(io::Error::other(format!("the shell {exit}")));
    }
    let mut code = changed(&fs::read(variables)?, environment);
    code.extend(fs::read(functions)?);
    fs::write(&file, code)?;
    Ok(LoginSnapshot { file, _folder: folder })
}

/// Shell code that sets what login files have set, of what `env -0` printed. Not all that was there: kernels have an
/// environment of their own, which cells change.
fn changed(printed: &[u8], before: &EnvVars) -> Vec<u8> {
    let mut code = Vec::new();
    for variable in printed.split(|byte| *byte == 0) {
        let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (&variable[..at], &variable[at + 1..]);
        let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let old = before.get(OsStr::from_bytes(name)).map(|value| value.as_bytes());
        if is_name && !OWN.contains(&name) && old != Some(value) {
            code.extend([b"export ".as_slice(), name, b"='"].concat());
            code.extend(value.iter().flat_map(|byte| match byte {
                b'\'' => b"'\\''".to_vec(),
                byte => vec![*byte],
            }));
            code.extend(b"'\n");
        }
    }
    code
}

/// The state of one client's shell.
#[derive(Debug)]
pub(super) struct ShellState {
    login: Arc<LoginShell>,
    /// Made with the first command; gone with the client.
    folder: Mutex<Option<LockedFolder>>,
    /// Each command finds what the one before left, so it waits for it.
    pub(super) line: CallLine,
}

/// What to call a shell with, and what the caller should know.
pub(super) struct ShellArguments {
    pub(super) arguments: Vec<OsString>,
    pub(super) warning: Option<String>,
}

impl ShellState {
    pub(super) fn new(login: Arc<LoginShell>) -> Self {
        Self { login, folder: Mutex::default(), line: CallLine::default() }
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
            none => none.insert(secret_folder()?),
        };
        Ok(folder.path().join("state.sh"))
    }
}

/// Environments hold secrets: the folder is its owner's alone, and goes with us.
fn secret_folder() -> io::Result<LockedFolder> {
    LockedFolder::new_in(&std::env::temp_dir(), "cellwright-sh-", Leftovers::Everything)
}
