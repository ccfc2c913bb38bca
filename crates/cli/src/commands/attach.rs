//! `cellwright attach`

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellwright_editing::FileKind;
use cellwright_session::{Reset, SessionClient, SessionInfo};

use super::session::{list, of_name};
use crate::config::LoadedConfig;
use crate::exit::CommandExit;
use crate::host::{self, ClientSurroundings};
use crate::print::OutputFormat;
use crate::repl::{FollowStyle, ReplEntry, ReplLoop, ReplSession, follow_session, restore_terminal};

/// Watch a session and type code at it, while an agent or another terminal uses it
///
/// Shows the code that others run there with its output, as it runs. At the prompt your code runs in the same kernel.
/// Ctrl-C interrupts the cell that runs, whoever runs it. Ctrl-D leaves; the session goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright attach
  cellwright attach work
  cellwright attach analysis.ipynb
  cellwright attach --watch work > log.txt

Sessions can be attached to if the session daemon keeps them: those of `cellwright mcp --session NAME`, of `--session
NAME` elsewhere, and all if session.shared is set.")]
pub(crate) struct AttachCommand {
    /// The session, or a notebook that runs in one [default: the only one]
    #[arg(value_name = "SESSION|NOTEBOOK")]
    target: Option<PathBuf>,
    /// Only print what happens, from what is kept of the past on
    #[arg(long)]
    watch: bool,
}

impl AttachCommand {
    pub(crate) fn run(self) -> anyhow::Result<CommandExit> {
        let runtime = host::runtime()?;
        let exit = host::block_on(&runtime, self.attach());
        restore_terminal();
        runtime.shutdown_background();
        exit
    }

    async fn attach(self) -> anyhow::Result<CommandExit> {
        let folder = std::env::current_dir()?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        let client = host::daemon_client(&config).await?;
        let info = match &self.target {
            None => only(&client).await?,
            Some(path) if FileKind::of(path) == FileKind::Notebook => of_notebook(&client, path).await?,
            Some(name) => of_name(&client, &name.to_string_lossy().parse()?).await?,
        };
        let key = info.key;
        if self.watch || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return follow_session(&client, &key, FollowStyle::PastAndFuture).await;
        }
        let surroundings = ClientSurroundings::of(&config, &key.cwd, Some(&key.session))?;
        let greeting = format!(
            "session {} in {} \u{b7} Ctrl-C interrupts what runs, Ctrl-D leaves it as it is",
            key.session,
            key.cwd.display()
        );
        let session =
            ReplSession { client: Arc::new(client), key, surroundings: Some(surroundings), reset: Reset::No };
        ReplLoop::open(session, ReplEntry::Attach, &config, &greeting)?.run().await
    }
}

/// The session that can only be meant.
async fn only(client: &SessionClient) -> anyhow::Result<SessionInfo> {
    let mut sessions = client.sessions().await?;
    match sessions.len() {
        0 => anyhow::bail!(
            "there is no session to attach to; `cellwright mcp --session NAME` and `cellwright repl --session NAME` make some"
        ),
        1 => Ok(sessions.remove(0)),
        count => {
            list(&sessions, OutputFormat { json: false })?;
            anyhow::bail!(
                "there are {count} sessions; name one: cellwright attach {}",
                sessions[0].key.session
            )
        }
    }
}

/// The session that runs a notebook.
async fn of_notebook(client: &SessionClient, path: &Path) -> anyhow::Result<SessionInfo> {
    let notebook = cellwright_notebook::file::read(path)?;
    let home = cellwright_run::home(&path.canonicalize()?, &notebook);
    let sessions = client.sessions().await?;
    let is_meant =
        |session: &SessionInfo| session.key.session.as_str() == home.session && session.key.cwd == home.cwd;
    sessions.into_iter().find(is_meant).ok_or_else(|| {
        anyhow::anyhow!(
            "{} runs in no session that can be attached to; run it with --detach, or with session.shared set",
            path.display()
        )
    })
}
