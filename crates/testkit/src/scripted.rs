//! A kernel without a process: its language is a handful of words, its clock is tokio's.
//!
//! A cell is a list of lines, each a word and its argument:
//!
//! | line | what it does |
//! |---|---|
//! | `print TEXT`, `warn TEXT` | prints a line to stdout, stderr |
//! | `show TEXT` | displays plain text |
//! | `flood N` | prints N pieces of 64 KiB |
//! | `sleep SECONDS` | waits; an interrupt ends the cell |
//! | `ask PROMPT` | asks for input and prints the answer, or raises the refusal |
//! | `raise NAME` | ends the cell with an exception |
//! | `die CODE` | ends the kernel |
//! | `later SECONDS TEXT` | prints a line in the background |
//! | `fragile` | an interrupt ends the kernel |
//! | `deaf` | ignores interrupts from here on |
//! | `broken` | cannot be interrupted from here on, and says so |
//! | `stubborn` | ignores interrupts, the wish to shut down and termination |
//! | `immortal` | ignores being killed as well |
//! | `tough` | interrupts end the cell with an exception of its own |
//! | `reply` | reports that the cell went well, before what follows |
//! | `idle first`, `no idle`, `no reply` | how the end of the cell is reported |
//! | `not started` | the cell waits before it starts: must be the first line |
//! | `hang`, `compute` | for ever, and answers nothing; a look at the kernel shows which |
//! | `busy AT` | says what keeps the kernel busy |

use std::collections::VecDeque;
use std::future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_cell::{Exception, MimeBundle, Output, OutputChange, Stream};
use cellwright_kernel::transport::{
    BoxFuture, CellId, Incoming, KernelRequest, Pulse, StopFailed, StopStep, Transport, Verdict,
};
use cellwright_kernel::{AskError, Event, Exit, InputAnswer, Question, Reply};
use cellwright_process::ChildExit as ProcessExit;
use tokio::time::{Instant, sleep_until};

/// The size of the pieces that `flood` prints.
const PIECE: usize = 64 << 10;

/// What a [`ScriptedKernel`] was asked to do, in order.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Everything so far.
    pub fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, entry: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry.into());
    }
}

/// A kernel that does what its cells say.
#[derive(Debug, Default)]
pub struct ScriptedKernel {
    log: Log,
    saying: VecDeque<Incoming>,
    cell: Option<Running>,
    /// Background text and when it is due.
    later: Vec<(Instant, String)>,
    manners: Manners,
    pulse: Option<Pulse>,
    count: u64,
}

#[derive(Debug)]
struct Running {
    id: CellId,
    lines: VecDeque<String>,
    asleep_until: Option<Instant>,
    asking: bool,
    ending: Ending,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    ReplyThenIdle,
    IdleThenReply,
    ReplyOnly,
    IdleOnly,
}

/// How the kernel takes being stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Manners {
    #[default]
    Polite,
    Tough,
    Fragile,
    Deaf,
    Broken,
    Stubborn,
    Immortal,
}

impl ScriptedKernel {
    /// A kernel, and the log of what it is asked to do.
    pub fn new() -> (Self, Log) {
        let kernel = Self::default();
        let log = kernel.log.clone();
        (kernel, log)
    }

    fn say(&mut self, cell: Option<CellId>, event: Event) {
        self.saying.push_back(Incoming::Event { cell, event });
    }

    /// Does what is due; whether anything was.
    fn advance(&mut self) -> bool {
        let now = Instant::now();
        if let Some(due) = self.later.iter().position(|(at, _)| *at <= now) {
            let (_, text) = self.later.remove(due);
            self.say(None, Event::text(Stream::Stdout, text));
            return true;
        }
        let Some(running) = &mut self.cell else { return false };
        if running.asking || running.asleep_until.is_some_and(|until| until > now) {
            return false;
        }
        running.asleep_until = None;
        let id = running.id;
        let Some(line) = running.lines.pop_front() else {
            self.end(Verdict::Ok);
            return true;
        };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match (word, rest) {
            ("print", text) => self.say(Some(id), Event::text(Stream::Stdout, format!("{text}\n"))),
            ("warn", text) => self.say(Some(id), Event::text(Stream::Stderr, format!("{text}\n"))),
            ("show", text) => {
                let mut content = MimeBundle::default();
                content.data.insert("text/plain", text);
                let shown = Output::Display { content: Arc::new(content), display_id: None };
                self.say(Some(id), Event::Output(OutputChange::Added(shown)));
            }
            ("flood", pieces) => {
                for _ in 0..pieces.parse().expect("a number of pieces") {
                    self.say(Some(id), Event::text(Stream::Stdout, "x".repeat(PIECE)));
                }
            }
            ("sleep", time) => running.asleep_until = Some(now + seconds(time)),
            ("ask", prompt) => {
                running.asking = true;
                self.saying.push_back(Incoming::Input { cell: id, prompt: prompt.into(), password: false });
            }
            ("raise", name) => self.raise(name, Verdict::Error),
            ("die", code) => {
                let code = code.parse().expect("an exit code");
                self.saying.push_back(Incoming::Closed(Exit::Process(ProcessExit::Code(code))));
            }
            ("later", text) => {
                let (time, text) = text.split_once(' ').expect("seconds and text");
                self.later.push((now + seconds(time), format!("{text}\n")));
            }
            ("hang" | "compute", _) => {
                running.asking = true;
                self.pulse = Some(Pulse::Silent { computes: word == "compute" });
            }
            ("busy", at) => self.saying.push_back(Incoming::Busy { at: Some(at.into()) }),
            ("tough", _) => self.manners = Manners::Tough,
            ("fragile", _) => self.manners = Manners::Fragile,
            ("deaf", _) => self.manners = Manners::Deaf,
            ("broken", _) => self.manners = Manners::Broken,
            ("stubborn", _) => self.manners = Manners::Stubborn,
            ("immortal", _) => self.manners = Manners::Immortal,
            ("reply", _) => {
                running.ending = Ending::IdleOnly;
                let count = Some(self.count + 1);
                self.saying.push_back(Incoming::Replied { cell: id, verdict: Verdict::Ok, count });
            }
            ("idle", "first") => running.ending = Ending::IdleThenReply,
            ("no", "idle") => running.ending = Ending::ReplyOnly,
            ("no", "reply") => running.ending = Ending::IdleOnly,
            ("", "") => {}
            _ => panic!("a scripted cell cannot say {line:?}"),
        }
        true
    }

    fn raise(&mut self, name: &str, verdict: Verdict) {
        let id = self.cell.as_ref().map(|running| running.id);
        let exception = Exception { name: name.into(), ..Exception::default() };
        self.say(id, Event::Output(OutputChange::Added(Output::Error(exception))));
        self.end(verdict);
    }

    fn end(&mut self, verdict: Verdict) {
        let Some(Running { id, ending, .. }) = self.cell.take() else { return };
        self.count += 1;
        let reply = Incoming::Replied { cell: id, verdict, count: Some(self.count) };
        match ending {
            Ending::ReplyThenIdle => self.saying.extend([reply, Incoming::Idle(id)]),
            Ending::IdleThenReply => self.saying.extend([Incoming::Idle(id), reply]),
            Ending::ReplyOnly => self.saying.push_back(reply),
            Ending::IdleOnly => self.saying.push_back(Incoming::Idle(id)),
        }
    }

    /// When something is due next.
    fn due(&self) -> Option<Instant> {
        let asleep = self.cell.as_ref().and_then(|running| running.asleep_until);
        self.later.iter().map(|(at, _)| *at).chain(asleep).min()
    }
}

impl Transport for ScriptedKernel {
    fn send(&mut self, request: KernelRequest) {
        match request {
            KernelRequest::Execute { cell, source, .. } => {
                let code = source.code;
                self.log.note(format!("execute {code}"));
                let mut lines: VecDeque<String> = code.lines().map(Into::into).collect();
                if lines.front().is_some_and(|line| line == "not started") {
                    lines.pop_front();
                } else {
                    self.saying.push_back(Incoming::Started(cell));
                }
                self.cell = Some(Running {
                    id: cell,
                    lines,
                    asleep_until: None,
                    asking: false,
                    ending: Ending::ReplyThenIdle,
                });
            }
            KernelRequest::Input { answer, .. } => {
                self.log.note(format!("input {answer:?}"));
                if let Some(running) = &mut self.cell {
                    running.asking = false;
                    let id = running.id;
                    match answer {
                        InputAnswer::Line(line) => {
                            self.say(Some(id), Event::text(Stream::Stdout, format!("{line}\n")));
                        }
                        InputAnswer::Refusal(_) => self.raise("StdinNotImplementedError", Verdict::Error),
                    }
                }
            }
            KernelRequest::Ask { id, question } => {
                let reply = match question {
                    Question::Completeness { .. } | Question::Ping => Ok(Reply::Pong),
                    Question::Complete { .. } | Question::Inspect { .. } | Question::Variables { .. } => {
                        Err(AskError::Failed("a scripted kernel knows nothing".to_owned()))
                    }
                };
                self.saying.push_back(Incoming::Answered { id, reply });
            }
            KernelRequest::Shutdown => {
                self.log.note("shutdown");
                if self.manners < Manners::Stubborn {
                    self.saying.push_back(Incoming::Closed(Exit::Process(ProcessExit::Code(0))));
                }
            }
        }
    }

    fn recv(&mut self) -> BoxFuture<'_, Incoming> {
        Box::pin(async move {
            loop {
                if let Some(said) = self.saying.pop_front() {
                    return said;
                }
                if !self.advance() {
                    match self.due() {
                        Some(due) => sleep_until(due).await,
                        None => future::pending().await,
                    }
                }
            }
        })
    }

    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed> {
        self.log.note(format!("{step:?}").to_lowercase());
        let signal = |number| {
            Incoming::Closed(Exit::Process(ProcessExit::Signal {
                number,
                core_dumped: false,
                out_of_memory: false,
            }))
        };
        match (step, self.manners) {
            (StopStep::Interrupt, Manners::Polite) => self.raise("KeyboardInterrupt", Verdict::Interrupted),
            (StopStep::Interrupt, Manners::Tough) => self.raise("ValueError", Verdict::Error),
            (StopStep::Interrupt, Manners::Broken) => {
                return Err(StopFailed { step, why: "it is broken".into() });
            }
            (StopStep::Interrupt, Manners::Fragile) => self.saying.push_back(signal(2)),
            (
                StopStep::Terminate,
                Manners::Polite | Manners::Tough | Manners::Fragile | Manners::Deaf | Manners::Broken,
            ) => self.saying.push_back(signal(15)),
            (StopStep::Kill, Manners::Immortal)
            | (StopStep::Interrupt, Manners::Deaf)
            | (StopStep::Interrupt | StopStep::Terminate, Manners::Stubborn | Manners::Immortal) => {}
            (StopStep::Kill, _) => self.saying.push_back(signal(9)),
        }
        Ok(())
    }

    fn pulse(&mut self) -> Pulse {
        self.pulse.clone().unwrap_or(Pulse::Unknown)
    }

    fn make_way(&mut self) {
        self.log.note("make way");
    }
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().expect("a number of seconds"))
}
