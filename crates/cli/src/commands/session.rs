//! `cellwright session`

use cellwright_session::{Activity, Force, SessionClient, SessionId, SessionInfo};
use clap::Subcommand;
use serde_json::json;

use crate::config::LoadedConfig;
use crate::host;
use crate::print::{self, OutputFormat};
use crate::repl::{FollowStyle, follow_session};

/// List, follow, interrupt, restart and end named sessions, which outlive the calls that use them
#[derive(Debug, clap::Args)]
pub(crate) struct SessionCommand {
    #[command(subcommand)]
    action: SessionAction,
}

#[derive(Debug, Subcommand)]
enum SessionAction {
    /// List the sessions
    List {
        #[command(flatten)]
        format: OutputFormat,
    },
    /// Print what a session ran lately, and what it showed
    Logs {
        /// Which session
        name: SessionId,
        /// Go on with what comes, until the session ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Interrupt what sessions run; their variables stay
    Interrupt {
        /// Which sessions
        #[arg(required = true)]
        names: Vec<SessionId>,
    },
    /// Give sessions a fresh kernel; their variables are gone
    Restart {
        /// Which sessions
        #[arg(required = true)]
        names: Vec<SessionId>,
        /// Restart them even if others use them
        #[arg(long)]
        force: bool,
    },
    /// End sessions, with their variables
    End {
        /// Which sessions
        #[arg(required = true)]
        names: Vec<SessionId>,
        /// End them even if others use them
        #[arg(long)]
        force: bool,
    },
}

impl SessionCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        host::block_on(&host::small_runtime()?, self.act())
    }

    async fn act(self) -> anyhow::Result<()> {
        let config = LoadedConfig::load(&std::env::current_dir()?, Vec::new())?;
        let client = host::daemon_client(&config).await?;
        match self.action {
            SessionAction::List { format } => list(&client.sessions().await?, format),
            SessionAction::Logs { name, follow } => {
                let style = if follow { FollowStyle::PastAndFuture } else { FollowStyle::Past };
                let key = of_name(&client, &name).await?.key;
                follow_session(&client, &key, style).await.map(drop)
            }
            SessionAction::Interrupt { names } => {
                for session in named(&client, &names).await? {
                    let result = client.interrupt(&session.key).await?;
                    print::plain(&format!("{}\n", result.in_words(session.key.session.as_str())))?;
                }
                Ok(())
            }
            SessionAction::Restart { names, force } => {
                for session in named(&client, &names).await? {
                    client.restart(&session.key, if force { Force::Yes } else { Force::No }).await?;
                    print::plain(&format!("restarted {}; its variables are gone\n", session.key.session))?;
                }
                Ok(())
            }
            SessionAction::End { names, force } => {
                for session in named(&client, &names).await? {
                    client.end(&session.key, if force { Force::Yes } else { Force::No }).await?;
                    print::plain(&format!("ended {}\n", session.key.session))?;
                }
                Ok(())
            }
        }
    }
}

/// The sessions of these names: those of the current folder, or of the only other one that has it.
async fn named(client: &SessionClient, names: &[SessionId]) -> anyhow::Result<Vec<SessionInfo>> {
    let sessions = client.sessions().await?;
    let here = std::env::current_dir()?.canonicalize()?;
    let mut found = Vec::new();
    for name in names {
        let mut meant: Vec<_> =
            sessions.iter().filter(|session| session.key.session == *name).cloned().collect();
        if meant.iter().any(|session| session.key.cwd == here) {
            meant.retain(|session| session.key.cwd == here);
        }
        anyhow::ensure!(
            !meant.is_empty(),
            "there is no session `{name}`; `cellwright session list` lists them"
        );
        let mut folders: Vec<_> = meant.iter().map(|session| session.key.cwd.display().to_string()).collect();
        folders.sort();
        folders.dedup();
        anyhow::ensure!(
            folders.len() == 1,
            "`{name}` is a session in several folders; run this command in the one you mean: {}",
            folders.join(", ")
        );
        found.extend(meant);
    }
    Ok(found)
}

/// The one session of this name; of several kernels, the one that was used last.
pub(super) async fn of_name(client: &SessionClient, name: &SessionId) -> anyhow::Result<SessionInfo> {
    let mut found = named(client, std::slice::from_ref(name)).await?;
    Ok(found.remove(0))
}

pub(super) fn list(sessions: &[SessionInfo], format: OutputFormat) -> anyhow::Result<()> {
    let state = |session: &SessionInfo| match session.activity {
        Activity::Idle => "idle".to_owned(),
        Activity::Busy { waiting: 0 } => "busy".to_owned(),
        Activity::Busy { waiting } => format!("busy, {waiting} waiting"),
    };
    if format.json {
        let rows = sessions.iter().map(|session| {
            json!({
                "session": session.key.session.to_string(),
                "cwd": session.key.cwd,
                "kernel": session.kernel.as_ref().map(ToString::to_string),
                "state": state(session),
                "memory": session.memory,
                "unused_seconds": session.unused.as_secs(),
            })
        });
        return print::json(&rows.collect::<Vec<_>>());
    }
    if sessions.is_empty() {
        return print::plain("no sessions\n");
    }
    for session in sessions {
        let kernel = session.kernel.as_ref().map_or_else(|| "no kernel".to_owned(), ToString::to_string);
        let memory = session.memory.map_or_else(String::new, |bytes| format!(", {} MiB", bytes >> 20));
        let (name, cwd) = (&session.key.session, session.key.cwd.display());
        print::plain(&format!("{name}  {}{memory}  {cwd}  {kernel}\n", state(session)))?;
    }
    Ok(())
}
