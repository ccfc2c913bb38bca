//! `cellwright run --detach`

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use cellwright_ownership::private_folder;
use cellwright_session::{Abandoned, Call, LetGo, SessionClient, SessionId};

use crate::config::LoadedConfig;
use crate::exit::CommandExit;
use crate::host::{self, ClientSurroundings};
use crate::print;

/// Hands code to the session daemon, and reports where it runs.
pub(super) async fn leave_running(
    mut call: Call,
    config: &LoadedConfig,
    named: Option<&SessionId>,
    file: Option<&PathBuf>,
) -> anyhow::Result<CommandExit> {
    let client = host::daemon_client(config).await?;
    call.session = match named {
        Some(name) => name.clone(),
        None => free_name(&client, file.map(PathBuf::as_path)).await?,
    };
    let session = call.session.clone();
    call.abandoned = Abandoned::GoOn;
    ClientSurroundings::of(config, &call.cwd, Some(&session))?.equip(&mut call);
    let handle = match client.call(call).await?.let_go().await {
        LetGo::Background(job) => format!("py-{job} runs in session {session}"),
        LetGo::Finished(_) => format!("it has run in session {session}"),
    };
    let name = shell_words::quote(session.as_str());
    print::plain(&format!(
        "{handle}\n  cellwright attach {name}\n  cellwright session logs --follow {name}\n  cellwright session interrupt {name}\n"
    ))?;
    Ok(CommandExit::Done)
}

/// A session that nobody has, named after the file.
async fn free_name(client: &SessionClient, file: Option<&Path>) -> anyhow::Result<SessionId> {
    let sessions = client.sessions().await?;
    let is_free = |name: &SessionId| sessions.iter().all(|session| session.key.session != *name);
    let base = file.and_then(Path::file_name).map_or("run".into(), |name| name.to_string_lossy());
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.clone().into_owned()).chain(numbered).map(|name| name.parse());
    names
        .find(|name| name.as_ref().map_or(true, is_free))
        .expect("numbers do not end")
        .with_context(|| format!("`{base}` names no session; choose a name with --session"))
}

/// Starts this program again to run notebooks without a terminal, with what it prints in a file.
pub(super) fn start_notebooks(notebooks: &[PathBuf]) -> anyhow::Result<CommandExit> {
    let config =
        LoadedConfig::load(&std::env::current_dir().context("the current folder is gone")?, Vec::new())?;
    let folder = config.places.state.join("runs");
    private_folder(&folder)?;
    let first = notebooks.first().and_then(|path| path.file_name()).unwrap_or_default();
    let log = folder.join(format!("{}.log", first.to_string_lossy()));
    let opened = File::options().create(true).truncate(true).write(true).mode(0o600).open(&log);
    let output = opened.with_context(|| format!("could not write {}", log.display()))?;
    let program = std::env::current_exe().context("could not find this program")?;
    // As it was called, but for the flag.
    let arguments = std::env::args_os()
        .skip(1)
        .map(|argument| if argument == "--detach" { "--detached".into() } else { argument });
    // It is to outlive us, so it is not among the children that end with us.
    let child = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("could not copy a descriptor")?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("could not start {}", program.display()))?;
    print::plain(&format!("process {} runs, and writes to {}\n", child.id(), log.display()))?;
    for notebook in notebooks {
        let name = notebook.to_string_lossy();
        print::plain(&format!("  cellwright attach {}\n", shell_words::quote(&name)))?;
    }
    Ok(CommandExit::Done)
}
