//! The embedded runner: a Python process, two pipes for messages and two for text.
//!
//! `docs/runner-protocol.md` says what travels on them and why in this way.

mod files;
mod inherited;
mod launch;
mod lines;
mod order;
mod pipe;
mod text;
mod wakeups;
mod wire;

use std::collections::VecDeque;
use std::time::Duration;

use cellwright_cell::Stream;
use cellwright_process::{ChildProcess, ProcessState, Signal};
use tokio::time::Instant;

pub use launch::{ExaminedPython, LaunchError, RejectedPython, Rejection, RunnerKernel, RunnerLaunch};
pub use wire::RunnerReady;

use crate::driver::passed;
use crate::event::Event;
use crate::outcome::Exit;
use crate::startup;
use crate::transport::{BoxFuture, CellId, Incoming, KernelRequest, Pulse, StopFailed, StopStep, Transport};
use files::RunnerScript;
use inherited::InheritedVariables;
use lines::{BoundedLine, LineBuffer};
use order::{NextPiece, StreamOrder};
use pipe::{Outbox, Pipe};
use wakeups::Wakeups;
use wire::{RunnerFrame, RunnerMessage, ToRunner};

/// The longest message; a longer one is skipped and reported.
const LONGEST_MESSAGE: usize = 256 << 20;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// A kernel computes that spends more than one part in so many of its time with it.
const WORK: u32 = 10;

/// How long a runner that hung up may take to end before it is killed.
const HUNG_UP: Duration = Duration::from_secs(1);

/// The host's side of a runner.
struct RunnerTransport {
    child: ChildProcess,
    outbox: Outbox,
    /// For what is answered beside the cells, also while one runs.
    questions: Outbox,
    /// What it inherited, for cells whose caller has another environment.
    inherited: InheritedVariables,
    frames: Pipe,
    stdout: Pipe,
    stderr: Pipe,
    wakeups: Wakeups,
    order: StreamOrder,
    lines: LineBuffer,
    /// Its files, which it may not have read yet.
    _script: RunnerScript,
    /// Sent and not started yet.
    sent: VecDeque<CellId>,
    /// The cell whose text the pipes carry.
    cell: Option<CellId>,
    /// Translated and not taken yet: one message may mean two things.
    ready: VecDeque<Incoming>,
    /// The extension module that runs, and until when it may.
    loading: Option<(String, Instant)>,
    modules_within: Duration,
    /// The setup is done: from here on it answers.
    configured: bool,
    /// When it was last looked at, and the processor time it had taken by then.
    computed: Option<(Instant, Duration)>,
    life: RunnerLife,
    trace: bool,
    chunk: Vec<u8>,
}

/// How far the runner's life has come.
enum RunnerLife {
    Alive,
    /// It closed its end, which a process that ends does first. Until then it may take to end.
    HungUp {
        until: Instant,
    },
    /// It closed its end and did not end itself, so it was killed.
    Disowned,
    Ended(Exit),
}

impl RunnerTransport {
    fn write(&mut self, message: &ToRunner) {
        let mut line = serde_json::to_vec(message).expect("our messages are plain data");
        if self.trace {
            tracing::info!(target: "cellwright::ipc", "> {}", String::from_utf8_lossy(&line));
        }
        line.push(b'\n');
        match message {
            ToRunner::Variables { .. } => self.questions.write(line),
            _ => self.outbox.write(line),
        }
    }

    /// Waits until there is something to read, and reads it. Cancel-safe: the only wait is the one
    /// for readiness.
    async fn fill(&mut self) {
        let reads_stdout = self.order.wants(Stream::Stdout);
        let reads_stderr = self.order.wants(Stream::Stderr);
        let hung_up = match self.life {
            RunnerLife::HungUp { until } => Some(until),
            RunnerLife::Alive | RunnerLife::Disowned | RunnerLife::Ended(_) => None,
        };
        tokio::select! {
            () = self.frames.readable(), if matches!(self.life, RunnerLife::Alive) => {}
            () = self.stdout.readable(), if reads_stdout => {}
            () = self.stderr.readable(), if reads_stderr => {}
            () = self.wakeups.watch_is_due() => {
                if self.stdout.watch().is_err() || self.stderr.watch().is_err() {
                    self.wakeups.watch_later(); // a system that cannot watch more files is asked again in a moment
                }
            }
            () = self.outbox.writable() => self.outbox.flush(),
            () = self.questions.writable() => self.questions.flush(),
            exit = self.child.wait() => {
                self.life = RunnerLife::Ended(match self.life {
                    RunnerLife::Disowned => Exit::Lost("the kernel closed its connection and was killed".into()),
                    RunnerLife::Alive | RunnerLife::HungUp { .. } | RunnerLife::Ended(_) => Exit::Process(exit),
                });
            }
            () = passed(self.loading.as_ref().map(|(_, until)| *until)) => {
                // It ends with an exception, which is reported like any other of a module; the next one is loaded.
                drop(self.child.signal(Signal::SIGINT));
                if let Some((_, until)) = &mut self.loading {
                    *until = Instant::now() + self.modules_within;
                }
            }
            () = passed(hung_up) => {
                drop(self.child.signal(Signal::SIGKILL)); // fails only when it has just ended
                self.life = RunnerLife::Disowned;
            }
        }
        self.read();
    }

    /// Reads what is there: text before frames, as `StreamOrder` requires.
    fn read(&mut self) {
        let ended = matches!(self.life, RunnerLife::Ended(_));
        for stream in [Stream::Stdout, Stream::Stderr] {
            // A dead process leaves at most what its pipes hold.
            while self.order.wants(stream) || ended {
                let read = match stream {
                    Stream::Stdout => self.stdout.read(&mut self.chunk),
                    Stream::Stderr => self.stderr.read(&mut self.chunk),
                };
                match read {
                    Some(0) => self.order.closed(stream),
                    Some(read) => self.order.printed(stream, &self.chunk[..read]),
                    None => {}
                }
                if !ended || matches!(read, Some(0) | None) {
                    break;
                }
            }
            if ended {
                self.order.closed(stream);
            }
        }
        self.read_frames();
    }

    fn read_frames(&mut self) {
        while let Some(read) = self.frames.read(&mut self.chunk) {
            if read == 0 {
                if let RunnerLife::Alive = self.life {
                    self.life = RunnerLife::HungUp { until: Instant::now() + HUNG_UP };
                }
                return;
            }
            let Self { lines, order, chunk, trace, .. } = self;
            lines.take(&chunk[..read], |line| order.framed(decode(&line, *trace)));
            if read < self.chunk.len() {
                return; // that was all
            }
        }
    }

    /// How it ended; a module that did it is named.
    fn blamed(&self, exit: &Exit) -> Exit {
        match &self.loading {
            Some((module, _)) => Exit::Lost(format!("{exit} while it loaded the module `{module}`")),
            None => exit.clone(),
        }
    }

    /// Translates what the runner said; one message may mean two things.
    fn translate(&mut self, said: NextPiece) {
        let incoming = match said {
            NextPiece::Text(stream, text) => {
                Incoming::Event { cell: self.cell, event: Event::text(stream, text) }
            }
            NextPiece::Started => {
                self.cell = self.sent.pop_front();
                match self.cell {
                    Some(id) => {
                        startup::stage("first cell started");
                        Incoming::Started(id)
                    }
                    None => return, // nothing was sent: user code has written a mark of ours
                }
            }
            NextPiece::Message(message) => match message {
                RunnerMessage::Event { id, event } => Incoming::Event { cell: id, event },
                RunnerMessage::Input { id, prompt, password } => {
                    Incoming::Input { cell: id, prompt, password }
                }
                RunnerMessage::Done { id, verdict, count } => {
                    self.cell = None;
                    self.ready.push_back(Incoming::Replied { cell: id, verdict, count });
                    Incoming::Idle(id)
                }
                RunnerMessage::Reply { id, reply } => Incoming::Answered { id, reply },
                RunnerMessage::Warning(text) => Incoming::Event { cell: None, event: Event::Warning(text) },
                RunnerMessage::Loading { module } => {
                    self.loading = Some((module, Instant::now() + self.modules_within));
                    return;
                }
                RunnerMessage::Busy { at } => match &self.loading {
                    Some((module, _)) => {
                        Incoming::Busy { at: Some(format!("it loads the module `{module}`")) }
                    }
                    None => Incoming::Busy { at },
                },
                RunnerMessage::Configured { warnings } => {
                    self.loading = None;
                    self.configured = true;
                    startup::stage("kernel set up");
                    let warnings = warnings.into_iter().map(Event::Warning);
                    self.ready.extend(warnings.map(|event| Incoming::Event { cell: None, event }));
                    return;
                }
                // Once is enough.
                RunnerMessage::Ready(_) | RunnerMessage::Unfit(_) => return,
            },
        };
        self.ready.push_back(incoming);
    }
}

impl Transport for RunnerTransport {
    fn send(&mut self, mut request: KernelRequest) {
        if let KernelRequest::Execute { variables: Some(variables), .. } = &mut request {
            self.inherited.keep_what_differs(variables);
        }
        if let KernelRequest::Execute { cell, .. } = request {
            self.sent.push_back(cell);
            self.stdout.leave_alone();
            self.stderr.leave_alone();
            self.wakeups.cell_sent();
        }
        if let KernelRequest::Shutdown = request {
            self.child.look_for_strayed();
        }
        self.write(&request.into());
    }

    fn recv(&mut self) -> BoxFuture<'_, Incoming> {
        Box::pin(async move {
            loop {
                if let Some(incoming) = self.try_recv() {
                    return incoming;
                }
                if self.wakeups.is_looking() {
                    self.wakeups.look(&self.frames).await;
                    self.read();
                    continue;
                }
                match &self.life {
                    RunnerLife::Ended(exit) => return Incoming::Closed(self.blamed(exit)),
                    RunnerLife::Alive | RunnerLife::HungUp { .. } | RunnerLife::Disowned => self.fill().await,
                }
            }
        })
    }

    fn try_recv(&mut self) -> Option<Incoming> {
        while self.ready.is_empty() {
            let said = self.order.next()?;
            self.translate(said);
        }
        self.ready.pop_front()
    }

    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed> {
        // To the group: user code may be waiting on a child of its own.
        let signal = match step {
            // A stopped process would see the interrupt only when it goes on.
            StopStep::Interrupt if self.child.state() == Some(ProcessState::Stopped) => {
                drop(self.child.signal(Signal::SIGCONT)); // the interrupt fails if this does
                Signal::SIGINT
            }
            StopStep::Interrupt => Signal::SIGINT,
            StopStep::Terminate => Signal::SIGTERM,
            StopStep::Kill => Signal::SIGKILL,
        };
        self.child.signal(signal).map_err(|error| StopFailed { step, why: error.to_string() })
    }

    fn pulse(&mut self) -> Pulse {
        let computed = self.child.processor_time().map(|time| (Instant::now(), time));
        let before = std::mem::replace(&mut self.computed, computed);
        match self.child.state() {
            Some(ProcessState::Stopped) => match self.child.signal(Signal::SIGCONT) {
                Ok(()) => {
                    let text = "the kernel's process had been stopped (SIGSTOP); it was continued";
                    Pulse::Continued(text.into())
                }
                Err(error) => Pulse::Continued(format!(
                    "the kernel's process is stopped (SIGSTOP) and cannot be continued: {error}"
                )),
            },
            // Its setup may take long, and a debugger or a slow disk makes it wait.
            Some(ProcessState::Other) if self.configured => Pulse::Silent {
                // Threads that wait for the interpreter look for it all the time, which takes a little.
                computes: before.zip(computed).is_some_and(|((before, taken), (now, more))| {
                    now - before < WORK * more.saturating_sub(taken)
                }),
            },
            Some(ProcessState::Traced | ProcessState::Waits | ProcessState::Other) | None => Pulse::Unknown,
        }
    }

    fn lists_meanwhile(&self) -> bool {
        true
    }

    fn make_way(&mut self) {
        if let Some(CellId(id)) = self.sent.front() {
            self.write(&ToRunner::Withdraw { id: *id });
        }
        // Between cells it ends only the step of a background task that lets no cell begin.
        drop(self.child.signal(Signal::SIGINT)); // fails only when it has just ended
    }
}

/// The message a line holds; what is wrong with it when it holds none.
fn decode(line: &BoundedLine<'_>, trace: bool) -> RunnerFrame {
    let problem = match line {
        BoundedLine::Whole(line) => {
            if trace {
                tracing::info!(target: "cellwright::ipc", "< {}", String::from_utf8_lossy(line));
            }
            match RunnerFrame::decode(line) {
                Ok(frame) => return frame,
                Err(problem) => format!("a message of the kernel could not be read: {problem}"),
            }
        }
        BoundedLine::TooLong => {
            format!("a message of the kernel was skipped: it has more than {LONGEST_MESSAGE} bytes")
        }
    };
    tracing::warn!("{problem}");
    RunnerFrame { mark: None, message: RunnerMessage::Warning(problem) }
}
