//! The daemon's side of the socket.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::is_absence;
use super::tools::{ForwardedCall, ForwardedTools, UnansweredCalls};
use super::{
    CallMessage, ConnectionPurpose, DaemonError, DaemonMessage, DaemonPlace, DaemonRequest, DaemonWire,
    Hello, Welcome, decode, encode,
};
use crate::call::{Abandoned, Call, CallEvent, CallHandle, CallUpdate, InputRequest, TurnRequest};
use crate::client::SessionClient;
use crate::error::SessionError;
use crate::journal::SessionFollower;
use crate::sessions::Sessions;
use crate::settings::{CallSettings, SessionSettings};

/// How a daemon serves.
#[derive(Clone)]
pub struct ServeSettings {
    /// Where.
    pub place: DaemonPlace,
    /// The program's version. Clients of another version are refused with a reason.
    pub version: String,
    /// How long it stays without a client, a session and background work.
    pub linger: Duration,
    /// Cancelling this ends it.
    pub stop: CancellationToken,
    /// Turns the settings that a client sends with a call into those of sessions.
    pub settings: ReadSettings,
}

/// How a daemon reads the settings of a client.
pub type ReadSettings = Arc<dyn Fn(&CallSettings) -> Result<SessionSettings, SessionError> + Send + Sync>;

impl fmt::Debug for ServeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeSettings")
            .field("place", &self.place)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Serves `sessions` until there has been nothing to do for a while, then ends them. `ready` is called once clients
/// can connect.
pub fn serve(
    settings: ServeSettings,
    sessions: Sessions,
    ready: Box<dyn FnOnce() + Send>,
) -> BoxFuture<'static, Result<(), DaemonError>> {
    Box::pin(async move {
        let ServeSettings { place, version, linger, stop, settings } = settings;
        place.prepare()?;
        let _lock = take_over(&place)?;
        let socket = place.socket();
        let failed = |action, path: &std::path::Path| {
            let path = path.to_path_buf();
            move |source| DaemonError::Io { action, path, source }
        };
        // The daemon that left it is dead, or the lock would not be ours.
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &socket)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&socket).map_err(failed("listen at", &socket))?;
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&socket, private).map_err(failed("make private", &socket))?;
        ready();
        let (connections, mut changed) = watch::channel(0_usize);
        let host = Arc::new(ServerHost {
            sessions,
            version,
            clients: Mutex::default(),
            last_client: AtomicU64::new(0),
            retire: stop.child_token(),
            settings,
        });
        let tasks = TaskTracker::new();
        loop {
            let unused = *changed.borrow_and_update() == 0;
            tokio::select! {
                () = host.retire.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.send_modify(|count| *count += 1);
                        let (host, connections) = (Arc::clone(&host), connections.clone());
                        tasks.spawn(async move {
                            tokio::select! {
                                () = host.retire.cancelled() => {}
                                served = host.attend(stream) => if let Err(error) = served {
                                    tracing::debug!(%error, "a connection ended");
                                }
                            }
                            connections.send_modify(|count| *count -= 1);
                        }.boxed());
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: they come back when someone leaves.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                changed = changed.changed() => changed.expect("we hold the sender"),
                () = tokio::time::sleep(linger), if unused => if host.sessions.is_empty() {
                    break;
                },
            }
        }
        // New clients find nothing here any more, and wait for the lock.
        drop(fs::remove_file(&socket));
        host.retire.cancel();
        tasks.close();
        tasks.wait().await;
        host.sessions.shutdown().await;
        Ok(())
    })
}

/// The lock that says that we are the daemon.
fn take_over(place: &DaemonPlace) -> Result<File, DaemonError> {
    let path = place.lock();
    let lock = File::options().create(true).truncate(false).write(true).open(&path);
    let lock = lock.map_err(|source| DaemonError::Io { action: "open", path: path.clone(), source })?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(DaemonError::Running { socket: place.socket() }),
        Err(fs::TryLockError::Error(source)) => Err(DaemonError::Io { action: "lock", path, source }),
    }
}

struct ServerHost {
    sessions: Sessions,
    version: String,
    clients: Mutex<HashMap<u64, Arc<SessionClient>>>,
    last_client: AtomicU64,
    retire: CancellationToken,
    settings: ReadSettings,
}

impl ServerHost {
    async fn attend(&self, stream: UnixStream) -> io::Result<()> {
        let mut wire = DaemonWire::new(stream)?;
        let Hello { version } = wire.receive().await?;
        wire.send(&Welcome { version: self.version.clone(), pid: std::process::id() }).await?;
        match wire.receive().await? {
            ConnectionPurpose::Retire => {
                let leaves = self.sessions.is_empty();
                wire.send(&leaves).await?;
                if leaves {
                    self.retire.cancel();
                }
                Ok(())
            }
            ConnectionPurpose::Join | ConnectionPurpose::Request { .. } if version != self.version => {
                Err(io::Error::other(format!("a client of version {version}")))
            }
            ConnectionPurpose::Join => self.join(wire).await,
            ConnectionPurpose::Request { client, request } => {
                let client = self.clients().get(&client).cloned();
                let client = client.ok_or_else(|| io::Error::other("an unknown client"))?;
                self.answer(wire, &client, request).await
            }
        }
    }

    /// Stands for a client until it leaves.
    async fn join(&self, mut wire: DaemonWire) -> io::Result<()> {
        let number = self.last_client.fetch_add(1, Ordering::Relaxed) + 1;
        self.clients().insert(number, Arc::new(self.sessions.client()));
        // Also when this is cancelled.
        let _leaves = Leaves { host: self, number };
        wire.send(&number).await?;
        // It says nothing more; this ends with it.
        match wire.receive::<()>().await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            other => other,
        }
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<SessionClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Leaves<'a> {
    host: &'a ServerHost,
    number: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let client = self.host.clients().remove(&self.number);
        drop(client); // after the lock
    }
}

impl ServerHost {
    async fn answer(
        &self,
        wire: DaemonWire,
        client: &SessionClient,
        request: DaemonRequest,
    ) -> io::Result<()> {
        match request {
            DaemonRequest::Call(call) => {
                let settings = call.settings.as_ref().map(|settings| (self.settings)(settings)).transpose();
                run(wire, client, *call, settings).await
            }
            DaemonRequest::Sessions => reply(wire, client.sessions()).await,
            DaemonRequest::Variables { key, limit } => reply(wire, client.variables(&key, limit)).await,
            DaemonRequest::Ask { key, question } => reply(wire, client.ask(&key, question)).await,
            DaemonRequest::Say { key, comm } => reply(wire, client.say(&key, *comm)).await,
            DaemonRequest::Follow { key, from } => follow(wire, client.follow(&key, from).await).await,
            DaemonRequest::Interrupt { key } => reply(wire, client.interrupt(&key)).await,
            DaemonRequest::Restart { key, force } => reply(wire, client.restart(&key, force)).await,
            DaemonRequest::End { key, force } => reply(wire, client.end(&key, force)).await,
            DaemonRequest::Jobs => reply(wire, client.jobs()).await,
            DaemonRequest::Wait { job, at_most } => reply(wire, client.wait(job, at_most)).await,
            DaemonRequest::StopJob { job } => reply(wire, client.stop_job(job)).await,
            DaemonRequest::ForgetJob { job } => reply(wire, client.forget_job(job)).await,
        }
    }
}

/// Sends an answer, unless the client leaves before it is there.
async fn reply<T: Serialize>(mut wire: DaemonWire, answer: impl Future<Output = T>) -> io::Result<()> {
    tokio::select! {
        answer = answer => wire.send(&answer).await,
        left = wire.receive::<CallMessage>() => left.map(drop),
    }
}

/// Passes on what happens in a session until it ends or the client leaves.
async fn follow(mut wire: DaemonWire, follower: Result<SessionFollower, SessionError>) -> io::Result<()> {
    let mut follower = match follower {
        Ok(follower) => follower,
        Err(error) => return wire.send(&Err::<(), SessionError>(error)).await,
    };
    wire.send(&Ok::<(), SessionError>(())).await?;
    loop {
        let event = tokio::select! {
            event = follower.read() => event,
            left = wire.receive::<CallMessage>() => return left.map(drop),
        };
        let Some(event) = event else { return Ok(()) };
        wire.send(&*event).await?;
    }
}

/// Runs a call for a client that may stop it, leave it to itself, or disappear.
async fn run(
    mut wire: DaemonWire,
    client: &SessionClient,
    mut call: Call,
    settings: Result<Option<SessionSettings>, SessionError>,
) -> io::Result<()> {
    let (stop, abandoned) = (call.stop.clone(), call.abandoned);
    let (forward, mut forwarded) = ForwardedTools::new();
    call.tools = Some(Arc::new(forward));
    let mut running = match settings.and_then(|settings| client.call_as(call, settings)) {
        Ok(running) => running,
        Err(error) => return wire.send(&Err::<(), SessionError>(error)).await,
    };
    wire.send(&Ok::<_, SessionError>(running.job())).await?;
    let (mut to, mut from) = wire.framed.split();
    let pending = PendingAnswers::default();
    let ended = tokio::select! {
        sent = send_events(&mut to, &mut running, &mut forwarded, &pending) => match sent {
            // It is over when the client says that it has the report. One that has closed its end may have said before
            // that the call is to go on.
            Ok(()) => obey(&mut from, &stop, &pending).await,
            Err(error) if is_absence(&error) => obey(&mut from, &stop, &pending).await,
            Err(_) => ObeyedMessage::Gone,
        },
        ended = obey(&mut from, &stop, &pending) => ended,
    };
    match (ended, abandoned) {
        // The client knows its name, or will look for it.
        (ObeyedMessage::Detached, _) | (ObeyedMessage::Gone, Abandoned::GoOn) => drop(running.detach()),
        (ObeyedMessage::Received, _) | (ObeyedMessage::Gone, Abandoned::Stop) => drop(running),
    }
    Ok(())
}

/// What the client was asked and has not answered.
#[derive(Default)]
struct PendingAnswers {
    input: Mutex<Option<InputRequest>>,
    turn: Mutex<Option<TurnRequest>>,
    tools: UnansweredCalls,
}

async fn send_events(
    to: &mut SplitSink<Framed<UnixStream, LengthDelimitedCodec>, Bytes>,
    running: &mut CallHandle,
    forwarded: &mut mpsc::Receiver<ForwardedCall>,
    pending: &PendingAnswers,
) -> io::Result<()> {
    loop {
        let next = tokio::select! {
            next = running.next() => next,
            Some(call) = forwarded.recv() => {
                send(to, &pending.tools.ask(call)).await?;
                continue;
            }
        };
        let message = match next {
            CallUpdate::Event(CallEvent::Input { cell, request }) => {
                let message =
                    DaemonMessage::Input { cell, prompt: request.prompt.clone(), password: request.password };
                *pending.input.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
                message
            }
            CallUpdate::Event(CallEvent::Turn { cell, request }) => {
                *pending.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
                DaemonMessage::Turn { cell }
            }
            CallUpdate::Event(event) => DaemonMessage::Event(event),
            CallUpdate::Finished(report) => return send(to, &DaemonMessage::Finished(report)).await,
        };
        send(to, &message).await?;
    }
}

async fn send(
    to: &mut SplitSink<Framed<UnixStream, LengthDelimitedCodec>, Bytes>,
    message: &impl Serialize,
) -> io::Result<()> {
    to.send(encode(message)?).await
}

enum ObeyedMessage {
    Detached,
    Received,
    Gone,
}

/// Does what the client says, also while it does not read.
async fn obey(
    from: &mut SplitStream<Framed<UnixStream, LengthDelimitedCodec>>,
    stop: &CancellationToken,
    pending: &PendingAnswers,
) -> ObeyedMessage {
    loop {
        match decode(from.next().await) {
            Ok(CallMessage::Stop) => stop.cancel(),
            Ok(CallMessage::Detach) => return ObeyedMessage::Detached,
            Ok(CallMessage::Received) => return ObeyedMessage::Received,
            Ok(CallMessage::Answer(answer)) => {
                let request = pending.input.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(request) = request {
                    request.respond(answer);
                }
            }
            Ok(CallMessage::Turn(turn)) => {
                let request = pending.turn.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(request) = request {
                    request.answer(turn);
                }
            }
            Ok(CallMessage::ToolAnswer { number, value }) => pending.tools.answer(number, value),
            Err(_) => return ObeyedMessage::Gone,
        }
    }
}
