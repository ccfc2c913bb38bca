//! `cellwright repl`

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use cellwright_kernel::KernelChoice;
use cellwright_session::{Reset, SessionClient, SessionId, SessionKey, Sessions, StoredOutputs};

use crate::config::LoadedConfig;
use crate::exit::CommandExit;
use crate::host::{self, ClientSurroundings};
use crate::repl::{PlainRepl, ReplEntry, ReplLoop, ReplSession, restore_terminal};

/// Type code at a live kernel
///
/// Enter runs what is complete, Alt-Enter begins a new line. Tab completes, F1 explains what is at the cursor, and so
/// does `name?`. Ctrl-R searches what was typed before, in this session or another. Ctrl-C interrupts the cell, Ctrl-D
/// leaves. `%save notebook.ipynb` saves all cells with their outputs, and `%restart` starts a fresh kernel.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright repl
  cellwright repl --kernel jupyter:ir
  cellwright repl --session work
  printf 'x = 6\\nx * 7\\n' | cellwright repl")]
pub(crate) struct ReplCommand {
    /// The Python to use: a program, or the folder of a virtual environment
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// What runs the cells: runner, runner:PYTHON, jupyter:NAME, gateway, gateway:NAME, gateway:ID, existing:FILE, existing:ID, existing:newest, or a language
    #[arg(long, value_name = "KERNEL", conflicts_with = "python")]
    kernel: Option<KernelChoice>,
    /// Use the session of this name, which the session daemon keeps when you leave
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    /// Start with a fresh kernel
    #[arg(long)]
    reset: bool,
    /// Read lines without editing them and print without colours, as for input that is no terminal
    #[arg(long)]
    plain: bool,
}

/// How many bytes of what a session of this process does are kept: threads print between two cells.
const WATCHED: usize = 4 << 20;

impl ReplCommand {
    pub(crate) fn run(self) -> anyhow::Result<CommandExit> {
        let runtime = host::runtime()?;
        let exit = host::block_on(&runtime, self.converse());
        restore_terminal();
        // A kernel's last threads, or a read of the terminal, must not keep us.
        runtime.shutdown_background();
        exit
    }

    async fn converse(self) -> anyhow::Result<CommandExit> {
        let folder = std::env::current_dir().context("the current folder is gone")?.canonicalize()?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        let named = match (&self.kernel, &self.python) {
            (Some(kernel), _) => Some(kernel.clone()),
            (None, Some(python)) => Some(KernelChoice::Python { named: Some(python.clone()) }),
            (None, None) => None,
        };
        let usual = config.settings.kernel.default.parse().context("kernel.default")?;
        let mut here = None;
        let (client, surroundings, session) = if let Some(name) = &self.session {
            let surroundings = ClientSurroundings::of(&config, &folder, Some(name))?;
            (host::daemon_client(&config).await?, Some(surroundings), name.clone())
        } else {
            let mut settings = host::session_settings(&config, &folder);
            settings.limits.journal = WATCHED;
            settings.output.stored = StoredOutputs::Nothing;
            let sessions = Sessions::new(settings);
            let client = sessions.client();
            here = Some(sessions);
            (client, None, "repl".parse().expect("a valid name"))
        };
        let key = SessionKey { session, cwd: folder, kernel: named.clone().unwrap_or(usual) };
        let key = if named.is_none() { known(&client, key).await? } else { key };
        let reset = if self.reset { Reset::Yes } else { Reset::No };
        let session = ReplSession { client: Arc::new(client), key, surroundings, reset };
        let exit = if self.plain || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            PlainRepl::new(session).run().await
        } else {
            let greeting = format!(
                "cellwright {} \u{b7} Tab completes, F1 explains, %save FILE.ipynb saves, Ctrl-D leaves",
                host::VERSION
            );
            let name = self.session.as_ref().map(ToString::to_string);
            let repl = ReplLoop::open(session, ReplEntry::Start, &config, &greeting)?;
            let exit = repl.run().await;
            if let Some(name) = name {
                restore_terminal();
                crate::print::note(&format!(
                    "session {name} stays; `cellwright attach {name}` returns to it"
                ));
            }
            exit
        };
        if let Some(sessions) = here {
            sessions.shutdown().await;
        }
        exit
    }
}

/// The session of this name that is there already, whatever its kernel, or else the one that would be.
async fn known(client: &SessionClient, key: SessionKey) -> anyhow::Result<SessionKey> {
    let sessions = client.sessions().await?;
    let is_meant = |known: &SessionKey| known.session == key.session && known.cwd == key.cwd;
    let found = sessions.into_iter().map(|session| session.key).find(is_meant);
    Ok(found.unwrap_or(key))
}
