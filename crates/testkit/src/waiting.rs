//! How tests wait for what other processes do: for events, and only where nothing announces them by looking again.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long anything that must come may take. Nobody waits so long unless it has failed: a busy machine must not fail tests.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long between two looks at what nothing announces.
const NAP: Duration = Duration::from_millis(5);

/// Looks again and again until a condition holds that nothing announces.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        tokio::time::sleep(NAP).await;
    }
}

/// The same where nothing is async.
#[track_caller]
pub fn eventually_blocking(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        thread::sleep(NAP);
    }
}

/// Whether a process exists and has not ended. A zombie has ended and waits for its parent.
pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// Waits until a process has ended. It need not be our child.
pub async fn end_of(pid: u32) {
    in_a_thread(move || end_of_blocking(pid)).await;
}

/// The same where nothing is async.
pub fn end_of_blocking(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process has a number");
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => wait_for(process.as_fd(), &format!("the end of process {pid}")),
        Err(Errno::SRCH) => {} // it has ended and was reaped
        Err(error) => panic!("process {pid} cannot be watched: {error}"),
    }
}

/// A door of the test that Python code knocks at, in whatever process it runs.
pub struct Door {
    listener: TcpListener,
}

impl Door {
    /// A door that nobody has come to yet.
    #[expect(clippy::new_without_default, reason = "it opens a socket")]
    pub fn new() -> Self {
        Self { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports") }
    }

    /// A Python expression that knocks. Its value is a socket, for code that waits to be let in.
    pub fn knock(&self) -> String {
        let port = self.listener.local_addr().expect("it is bound").port();
        format!("__import__('socket').create_connection(('127.0.0.1', {port}))")
    }

    /// Waits until someone knocks.
    pub async fn knocked(&self) {
        let door = self.again();
        in_a_thread(move || door.knocked_blocking()).await;
    }

    /// The same where nothing is async.
    pub fn knocked_blocking(&self) {
        drop(self.accept());
    }

    /// Sends a byte to code that waits for one at its socket, and waits for the byte with which it answers.
    pub async fn let_in(&self) {
        let door = self.again();
        in_a_thread(move || door.let_in_blocking()).await;
    }

    /// The same where nothing is async.
    pub fn let_in_blocking(&self) {
        let mut guest = self.accept();
        guest.write_all(b".").expect("it waits");
        guest.set_read_timeout(Some(PATIENCE)).expect("a minute is a timeout");
        guest.read_exact(&mut [0]).expect("it answers");
    }

    fn accept(&self) -> TcpStream {
        wait_for(self.listener.as_fd(), "a knock at the door");
        self.listener.accept().expect("someone is there").0
    }

    fn again(&self) -> Self {
        Self { listener: self.listener.try_clone().expect("a descriptor is left") }
    }
}

/// A cell whose thread holds Python's interpreter once it was let in at the door: nothing else runs in that process then.
pub fn holds_the_interpreter(door: &Door) -> String {
    // The answer goes out without giving the interpreter away, as a socket's `send` would; nor can it be taken away then.
    format!(
        "import ctypes, re, sys, threading\n\
         x = 1\n\
         def hold(door={}):\n\
         \x20   door.recv(1)\n\
         \x20   sys.setswitchinterval(1000)\n\
         \x20   ctypes.PyDLL(None).write(door.fileno(), b'.', 1)\n\
         \x20   re.match(r'(a+)+$', 'a' * 60 + 'b')\n\
         threading.Thread(target=hold, daemon=True).start()",
        door.knock()
    )
}

/// Waits until a descriptor has something to read.
fn wait_for(descriptor: BorrowedFd<'_>, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = PollTimeout::try_from(deadline.saturating_duration_since(Instant::now()))
            .expect("a minute is a timeout");
        match nix::poll::poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], left) {
            Ok(0) => panic!("waited {PATIENCE:?} in vain for {what}"),
            Ok(_) => return,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => panic!("no waiting for {what}: {}", io::Error::from(error)),
        }
    }
}

/// Waits outside the runtime, whose only thread may be the test's.
async fn in_a_thread(wait: impl FnOnce() + Send + 'static) {
    if let Err(failed) = tokio::task::spawn_blocking(wait).await {
        std::panic::resume_unwind(failed.into_panic());
    }
}
