//! `cellwright daemon`

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellwright_notebook::Fingerprint;
use cellwright_session::Sessions;
use cellwright_session::bridge::OfCallers;
use cellwright_session::daemon::{self, ServeSettings};
use tokio_util::sync::CancellationToken;

use crate::config::LoadedConfig;
use crate::{host, print};

/// Keep this user's named sessions; starts when needed and exits when idle
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct DaemonCommand {}

impl DaemonCommand {
    #[expect(clippy::unused_self, reason = "commands are run alike")]
    pub(crate) fn run(self) -> anyhow::Result<()> {
        daemon::leave_terminal();
        let runtime = host::runtime()?;
        host::block_on(&runtime, serve())
    }
}

/// How many bytes of what a session does are kept for those who watch it.
const WATCHED: usize = 8 << 20;

async fn serve() -> anyhow::Result<()> {
    // No project's settings: it serves all of them, and each call brings its own.
    let folder = Path::new("/");
    let config = LoadedConfig::load(folder, Vec::new())?;
    let mut settings = host::session_settings(&config, folder);
    settings.tools = Some(Arc::new(OfCallers));
    settings.limits.journal = WATCHED;
    // Each place has a daemon of its own, and that a memory of its own.
    let place = Fingerprint::of(config.places.runtime.as_os_str().as_bytes());
    settings.ledger = Some(config.places.state.join(format!("sessions-{place}.json")));
    let sessions = Sessions::new(settings);
    let serve = ServeSettings {
        place: host::daemon_place(&config),
        version: host::VERSION.to_owned(),
        linger: Duration::from_secs(config.settings.session.linger),
        stop: CancellationToken::new(),
        settings: Arc::new(host::client_settings),
    };
    // The client that started us waits for this line. If it has gone by now, the next one still finds us.
    Ok(daemon::serve(serve, sessions, Box::new(|| drop(print::plain("ready\n")))).await?)
}
