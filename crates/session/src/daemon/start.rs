//! Reaching the daemon, and starting one if none runs.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::client::{DaemonPresence, JoinResult};
use super::{DaemonConnection, DaemonError, DaemonPlace};
use crate::client::SessionClient;
use crate::settings::CallSettings;

/// How long a daemon may take to come up.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How long one that leaves may take to end its kernels.
const LEFT_WITHIN: Duration = Duration::from_secs(30);

/// How often a daemon that leaves as we come is tried again.
const ATTEMPTS: usize = 5;

/// How to start a daemon: a program that calls [`leave_terminal`] and [`serve`](super::serve), and prints a line to its
/// standard output when that is ready.
#[derive(Clone, Debug)]
pub struct DaemonSpawn {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Joins the user's daemon, and starts it if none runs. Clients that do so at the same time start only one.
///
/// Calls without [`variables`](crate::Call::variables) of their own find Python by the environment in which the daemon was
/// started. A daemon that dies later is replaced, and the next report says so.
pub fn connect(door: &DaemonDoor) -> BoxFuture<'_, Result<SessionClient, DaemonError>> {
    Box::pin(async { Ok(SessionClient::of_daemon(DaemonConnection::open(door.clone()).await?)) })
}

/// A daemon as a client reaches it.
#[derive(Clone, Debug)]
pub struct DaemonDoor {
    /// Where it is.
    pub place: DaemonPlace,
    /// The program's version, which daemon and client must share.
    pub version: &'static str,
    /// How it is started.
    pub spawn: DaemonSpawn,
    /// What calls obey there that bring no settings of their own: a daemon serves many folders.
    pub settings: Option<CallSettings>,
}

impl DaemonDoor {
    /// Joins the daemon, and starts it if none runs.
    pub(super) async fn enter(&self) -> Result<DaemonPresence, DaemonError> {
        let Self { place, version, spawn, settings: _ } = self;
        place.prepare()?;
        for _ in 0..ATTEMPTS {
            if let JoinResult::Here(presence) = DaemonPresence::join(place, version).await? {
                return Ok(presence);
            }
            // One client starts it; the others find it when they get the lock.
            let lock = open_private(place.start_lock())?;
            let lock = blocking("lock", place.start_lock(), move || lock.lock().map(|()| lock)).await?;
            match DaemonPresence::join(place, version).await? {
                JoinResult::Here(presence) => return Ok(presence),
                JoinResult::Nobody | JoinResult::Retired => {}
            }
            match timeout(LEFT_WITHIN, left(place)).await {
                Ok(left) => left?,
                Err(_) => return Err(DaemonError::NotStarted("the one before it does not end".into())),
            }
            start(place, spawn).await?;
            drop(lock);
        }
        Err(DaemonError::NotStarted("it leaves as soon as it is there".into()))
    }
}

/// Waits until no daemon holds its lock: one that leaves ends its kernels first.
async fn left(place: &DaemonPlace) -> Result<(), DaemonError> {
    let lock = open_private(place.lock())?;
    // Waiting for the lock itself could not be cancelled, and would take the lock from a daemon that starts later.
    while let Err(TryLockError::WouldBlock) = lock.try_lock() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Starts the daemon, which is to outlive us, so not among the children that end with us.
async fn start(place: &DaemonPlace, spawn: &DaemonSpawn) -> Result<(), DaemonError> {
    let log = place.log();
    let opened = File::options().create(true).truncate(true).write(true).mode(0o600).open(&log);
    let log = opened.map_err(|source| DaemonError::Io { action: "open", path: log, source })?;
    let mut command = Command::new(&spawn.program);
    // Not in our folder: it would keep it from being removed or unmounted.
    command.current_dir("/").args(&spawn.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|source| DaemonError::Io {
        action: "start",
        path: spawn.program.clone(),
        source,
    })?;
    let mut stdout = child.stdout.take().expect("stdout was piped");
    let ready = blocking("read from", spawn.program.clone(), move || stdout.read(&mut [0; 64]));
    let outcome = match timeout(READY_WITHIN, ready).await {
        Ok(Ok(1..)) => Ok(()),
        Ok(Ok(0)) => {
            let said = std::fs::read_to_string(place.log()).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            Err(DaemonError::NotStarted(last.unwrap_or("it ended without a word").to_owned()))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(DaemonError::NotStarted("it did not get ready in time".into())),
    };
    if outcome.is_err() {
        drop(child.kill()); // it may have ended already
    }
    // Reaped when it ends, should we live that long.
    std::thread::spawn(move || child.wait());
    outcome
}

/// Takes this process out of the terminal's session, whose end it is to survive. Fails harmlessly for a process that
/// leads a group.
pub fn leave_terminal() {
    let _ = rustix::process::setsid();
}

fn open_private(path: PathBuf) -> Result<File, DaemonError> {
    let opened = File::options().create(true).append(true).mode(0o600).open(&path);
    opened.map_err(|source| DaemonError::Io { action: "open", path, source })
}

async fn blocking<T: Send + 'static>(
    action: &'static str,
    path: PathBuf,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, DaemonError> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|source| DaemonError::Io { action, path, source })
}
