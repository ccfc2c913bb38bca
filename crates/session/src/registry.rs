//! Which sessions exist, which clients hold them, and which has to end. Plain data under one lock; what a session
//! does is its worker's business.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bridge::Bridge;
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::Jobs;
use crate::journal::Journal;
use crate::ledger::{SessionLedger, SessionRecord};
use crate::notice::{Departure, Notice};
use crate::settings::{SessionLimits, SessionSettings};
use crate::worker::{Control, QueuedCall, Worker, WorkerStatus};

/// Ended sessions that are remembered, so that the next call can report it.
const DEPARTED: usize = 64;

/// How many numbers are set aside at once in the ledger: a process that is killed must not have given more.
const NUMBERS: u64 = 1000;

/// Messages to a session that wait; a sender of more waits with them. They are answered while a cell runs.
const CONTROLS: usize = 16;

/// What all sessions have in common.
pub(crate) struct SharedState {
    /// Those of calls that bring none.
    pub(crate) settings: Arc<SessionSettings>,
    pub(crate) root: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) bridge: tokio::sync::OnceCell<Bridge>,
    registry: Mutex<Registry>,
    /// Something happened that may make a session idle.
    settled: Notify,
    last_number: AtomicU64,
    /// Numbers up to this were given by earlier processes.
    earlier_numbers: u64,
    ledger: Option<SessionLedger>,
}

/// Identifies a client that holds sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId(u64);

#[derive(Default)]
pub(crate) struct Registry {
    sessions: HashMap<SessionKey, SessionEntry>,
    clients: HashSet<ClientId>,
    departed: VecDeque<(SessionKey, Departure)>,
    pub(crate) jobs: Jobs,
}

/// A session as others see it.
pub(crate) struct SessionEntry {
    calls: mpsc::Sender<QueuedCall>,
    pub(crate) control: mpsc::Sender<Control>,
    pub(crate) status: watch::Receiver<WorkerStatus>,
    pub(crate) holders: BTreeSet<ClientId>,
    /// Calls that wait or run.
    pub(crate) busy: usize,
    pub(crate) last_use: Instant,
    /// Since when nobody uses or holds it, if so.
    free_since: Instant,
    /// How long it may stay so, as its last call said.
    idle: Duration,
    pub(crate) began: Instant,
    pub(crate) journal: Arc<Journal>,
    /// Tells it from an earlier session under the same key.
    number: u64,
    end: Arc<SessionEnd>,
}

impl SessionEntry {
    pub(crate) fn has_kernel(&self) -> bool {
        self.status.borrow().about.is_some()
    }

    fn is_only_held_by(&self, client: ClientId) -> bool {
        self.holders.iter().eq([&client])
    }
}

/// How a session is ended.
#[derive(Debug)]
pub(crate) struct SessionEnd {
    pub(crate) token: CancellationToken,
    why: OnceLock<Departure>,
}

impl SessionEnd {
    pub(crate) fn why(&self) -> Departure {
        *self.why.get().unwrap_or(&Departure::ShutDown)
    }

    pub(crate) fn now(&self, why: Departure) {
        let _ = self.why.set(why); // the first reason is the one
        self.token.cancel();
    }
}

/// A call's place in a session, which is busy as long as this lives.
pub(crate) struct Ticket {
    shared: Arc<SharedState>,
    key: SessionKey,
    number: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut registry = self.shared.lock();
        if let Some(entry) = registry.sessions.get_mut(&self.key).filter(|entry| entry.number == self.number)
        {
            entry.busy -= 1;
            entry.last_use = Instant::now();
            entry.free_since = entry.last_use;
            // One whose kernel never started has nothing that a later call could miss.
            if entry.busy == 0 && !entry.status.borrow().has_begun {
                registry.sessions.remove(&self.key);
            }
        }
        drop(registry);
        self.shared.settled.notify_one();
    }
}

impl SharedState {
    pub(crate) fn new(settings: SessionSettings) -> Arc<Self> {
        let opened = settings.ledger.as_deref().map(SessionLedger::open);
        let (ledger, left) = opened.map_or_else(Default::default, |(ledger, left)| (Some(ledger), left));
        // Nobody ended those: their process did not get to it.
        let lost = left.live.into_iter().map(|key| (key, Departure::DaemonEnded));
        let registry =
            Registry { departed: left.ended.into_iter().chain(lost).collect(), ..Registry::default() };
        Arc::new(Self {
            settings: Arc::new(settings),
            root: CancellationToken::new(),
            tasks: TaskTracker::new(),
            bridge: tokio::sync::OnceCell::new(),
            registry: Mutex::new(registry),
            settled: Notify::new(),
            last_number: AtomicU64::new(left.numbers),
            earlier_numbers: left.numbers,
            ledger,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers, beyond this process, which sessions there are and which have ended.
    pub(crate) fn record(&self) {
        let Some(ledger) = &self.ledger else { return };
        ledger.write(|| {
            let registry = self.lock();
            let live = registry.sessions.iter().filter(|(_, entry)| entry.has_kernel());
            let mut live: Vec<_> = live.map(|(key, _)| key.clone()).collect();
            live.sort();
            // In blocks, so that few numbers are written.
            let given = self.last_number.load(Ordering::Relaxed);
            let numbers = (given / NUMBERS + 2) * NUMBERS;
            SessionRecord { live, ended: registry.departed.iter().cloned().collect(), numbers }
        });
    }

    /// Whether an earlier process gave this number.
    pub(crate) fn is_earlier(&self, number: u64) -> bool {
        number <= self.earlier_numbers
    }

    /// A number that is given once.
    pub(crate) fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn join(&self) -> ClientId {
        let id = ClientId(self.number());
        self.lock().clients.insert(id);
        id
    }

    /// A client lets go of everything it held.
    pub(crate) fn leave(&self, client: ClientId) {
        let mut registry = self.lock();
        registry.clients.remove(&client);
        for entry in registry.sessions.values_mut() {
            if entry.holders.remove(&client) {
                // It has been in use until now, even if its client was only thinking.
                entry.free_since = Instant::now();
            }
        }
        drop(registry);
        self.settled.notify_one();
    }

    /// Puts a call in the queue of its session, which is started if need be.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        key: &SessionKey,
        client: ClientId,
        limits: &SessionLimits,
        call: impl FnOnce(Ticket, usize) -> QueuedCall,
    ) -> Result<mpsc::Sender<Control>, SessionError> {
        if self.root.is_cancelled() {
            return Err(SessionError::Ended(Departure::ShutDown));
        }
        let mut registry = self.lock();
        if !registry.sessions.contains_key(key) {
            let SessionLimits { sessions, per_client, .. } = *limits;
            registry.check_room(per_client, |entry| entry.is_only_held_by(client))?;
            registry.check_room(sessions, |_| true)?;
            registry.forget_ended_kernels();
            let entry = self.open(&mut registry, key, limits);
            registry.sessions.insert(key.clone(), entry);
        }
        let known = registry.clients.contains(&client);
        let entry = registry.sessions.get_mut(key).expect("it was there or was put there");
        if entry.busy > limits.queue {
            return Err(SessionError::QueueFull { key: key.clone(), waiting: entry.busy - 1 });
        }
        if known {
            entry.holders.insert(client);
        }
        entry.idle = limits.idle;
        let behind = entry.busy;
        entry.busy += 1;
        entry.last_use = Instant::now();
        let ticket = Ticket { shared: Arc::clone(self), key: key.clone(), number: entry.number };
        let control = entry.control.clone();
        let sent = entry.calls.try_send(call(ticket, behind));
        drop(registry); // before a ticket that came back
        match sent {
            Ok(()) => Ok(control),
            // The worker takes calls as they come and leaves only after its entry.
            Err(_) => Err(SessionError::Ended(Departure::ShutDown)),
        }
    }

    /// Ends the oldest idle sessions, now that a kernel has started in `key` and there is one more than there may be.
    pub(crate) fn make_room(
        &self,
        key: &SessionKey,
        client: ClientId,
        limits: &SessionLimits,
    ) -> Option<Notice> {
        let mut registry = self.lock();
        let mut ended = registry.make_room(key, limits.per_client, |entry| entry.is_only_held_by(client));
        ended.extend(registry.make_room(key, limits.sessions, |_| true));
        let limit = limits.sessions.min(limits.per_client);
        (!ended.is_empty()).then_some(Notice::MadeRoom { ended, limit })
    }

    /// Starts the worker of a session.
    fn open(
        self: &Arc<Self>,
        registry: &mut Registry,
        key: &SessionKey,
        limits: &SessionLimits,
    ) -> SessionEntry {
        let (calls, call_inbox) = mpsc::channel(limits.queue + 1);
        let (control, control_inbox) = mpsc::channel(CONTROLS);
        let (status_sender, status) = watch::channel(WorkerStatus::default());
        let end = Arc::new(SessionEnd { token: self.root.child_token(), why: OnceLock::new() });
        let departed = registry.take_departed(key);
        let journal = Journal::new(self.settings.limits.journal);
        let worker = Worker::new(
            Arc::clone(self),
            key.clone(),
            Arc::clone(&end),
            (call_inbox, control_inbox),
            status_sender,
            Arc::clone(&journal),
            departed,
        );
        self.tasks.spawn(worker.run().boxed());
        let now = Instant::now();
        let number = self.number();
        SessionEntry {
            calls,
            control,
            status,
            holders: BTreeSet::new(),
            busy: 0,
            last_use: now,
            free_since: now,
            idle: limits.idle,
            began: now,
            journal,
            number,
            end,
        }
    }

    /// Runs one call on a worker of its own, which no other call can reach.
    pub(crate) fn run_alone(self: &Arc<Self>, key: &SessionKey, call: QueuedCall) -> mpsc::Sender<Control> {
        let (calls, call_inbox) = mpsc::channel(1);
        let (control, control_inbox) = mpsc::channel(CONTROLS);
        let (status, _) = watch::channel(WorkerStatus::default());
        let end = Arc::new(SessionEnd { token: self.root.child_token(), why: OnceLock::new() });
        drop(calls.try_send(call)); // there is room for one
        let worker = Worker::new(
            Arc::clone(self),
            key.clone(),
            end,
            (call_inbox, control_inbox),
            status,
            Journal::new(0), // no name, so nobody can watch it
            None,
        );
        self.tasks.spawn(worker.run().boxed());
        control
    }

    /// How many others hold a session. Asked again for a moment: that someone has left may not have been noticed yet.
    pub(crate) async fn others(&self, key: &SessionKey, client: ClientId) -> usize {
        const PAUSES: [u64; 4] = [5, 20, 50, 100];
        let now = || {
            let registry = self.lock();
            let holders = registry.sessions.get(key).map(|entry| entry.holders.iter());
            holders.map_or(0, |holders| holders.filter(|&&id| id != client).count())
        };
        for pause in PAUSES {
            if now() == 0 {
                return 0;
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        now()
    }

    /// Ends a session. Calls that wait are not run, and none revives it.
    pub(crate) fn end(&self, key: &SessionKey, why: Departure) -> bool {
        let is_ended = self.lock().end(key, why);
        self.record();
        is_ended
    }

    /// Ends every session that has no call, to free descriptors and processes. `but` is spared. Each status
    /// closes when the session's kernel is gone.
    pub(crate) fn end_idle(&self, but: &SessionKey) -> Vec<(SessionKey, watch::Receiver<WorkerStatus>)> {
        let mut registry = self.lock();
        let idle = registry.idle().filter(|(key, _)| *key != but);
        let idle: Vec<_> = idle.map(|(key, entry)| (key.clone(), entry.status.clone())).collect();
        for (key, _) in &idle {
            registry.end(key, Departure::Exhausted);
        }
        idle
    }

    /// Ends sessions that nobody holds and nobody has used for long, for as long as there are any.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            let next = self.lock().end_unused();
            self.record();
            tokio::select! {
                () = self.root.cancelled() => return,
                () = self.settled.notified() => {}
                () = async { match next { Some(next) => sleep_until(next).await, None => std::future::pending().await } } => {}
            }
        }
    }
}

impl Registry {
    pub(crate) fn session(&self, key: &SessionKey) -> Result<&SessionEntry, SessionError> {
        self.sessions.get(key).ok_or_else(|| SessionError::NoSession(key.clone()))
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = (&SessionKey, &SessionEntry)> {
        self.sessions.iter()
    }

    fn idle(&self) -> impl Iterator<Item = (&SessionKey, &SessionEntry)> {
        self.sessions.iter().filter(|(_, entry)| entry.busy == 0)
    }

    /// Whether one more session of those that count may have a kernel, if an idle one has to end for it.
    fn check_room(&self, limit: usize, counts: impl Fn(&SessionEntry) -> bool) -> Result<(), SessionError> {
        let busy = self.sessions.iter().filter(|(_, entry)| counts(entry) && entry.busy > 0);
        let mut busy: Vec<_> = busy.map(|(key, _)| key.clone()).collect();
        if busy.len() < limit.max(1) {
            return Ok(());
        }
        busy.sort();
        Err(SessionError::AllBusy { limit, busy })
    }

    /// Ends the oldest idle sessions of those that count while they have too many kernels; those that nobody holds go
    /// first, and `key` stays.
    fn make_room(
        &mut self,
        key: &SessionKey,
        limit: usize,
        counts: impl Fn(&SessionEntry) -> bool,
    ) -> Vec<SessionKey> {
        let mut ended = Vec::new();
        while self.sessions.values().filter(|entry| counts(entry) && entry.has_kernel()).count()
            > limit.max(1)
        {
            let idle =
                self.idle().filter(|(other, entry)| *other != key && counts(entry) && entry.has_kernel());
            let oldest = idle.min_by_key(|(_, entry)| (!entry.holders.is_empty(), entry.last_use));
            // Without one, others began to work meanwhile: they are not stopped.
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.end(&oldest, Departure::MadeRoom { limit });
            ended.push(oldest);
        }
        ended
    }

    /// Sessions without a kernel do not count, so they have a bound of their own.
    fn forget_ended_kernels(&mut self) {
        let ended = self.idle().filter(|(_, entry)| !entry.has_kernel());
        let mut ended: Vec<_> = ended.map(|(key, entry)| (entry.last_use, key.clone())).collect();
        ended.sort();
        for (_, key) in ended.iter().take(ended.len().saturating_sub(DEPARTED)) {
            self.end(key, Departure::MadeRoom { limit: DEPARTED });
        }
    }

    /// Ends sessions that nobody has held or used for too long; when the next one may be due.
    fn end_unused(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let unused = self.idle().filter(|(_, entry)| entry.holders.is_empty());
        // A deadline beyond the range of the clock means no deadline.
        let due = unused.filter_map(|(key, entry)| {
            Some((entry.free_since.checked_add(entry.idle)?, entry.idle, key.clone()))
        });
        let (over, later): (Vec<_>, Vec<_>) = due.partition(|(due, _, _)| *due <= now);
        for (_, idle, key) in over {
            self.end(&key, Departure::Idle(idle));
        }
        later.into_iter().map(|(due, _, _)| due).min()
    }

    fn end(&mut self, key: &SessionKey, why: Departure) -> bool {
        let Some(entry) = self.sessions.remove(key) else { return false };
        tracing::debug!(session = %key, %why, "a session ends");
        entry.end.now(why);
        self.departed.push_back((key.clone(), why));
        if self.departed.len() > DEPARTED {
            self.departed.pop_front();
        }
        true
    }

    fn take_departed(&mut self, key: &SessionKey) -> Option<Departure> {
        let place = self.departed.iter().rposition(|(departed, _)| departed == key)?;
        let (_, why) = self.departed.remove(place)?;
        self.departed.retain(|(departed, _)| departed != key);
        Some(why)
    }
}
