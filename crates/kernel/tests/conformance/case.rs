//! A row of the suite: cells, how they are run, and what must be seen.

use std::time::Duration;

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};
use cellwright_kernel::{
    AskError, CellSource, CellUpdate, CommKind, CommMessage, Comms, Event, Execution, Exit, Fate,
    FinishedCell, KernelCell, Outcome, Stdin, StopReason,
};

use super::kernels::{Fixture, Kind};

/// One behaviour, on every kind of kernel.
pub(crate) struct Case {
    /// The behaviour, as a sentence.
    pub(crate) about: &'static str,
    pub(crate) cells: &'static [Run],
    /// What is seen, one thing a line.
    pub(crate) seen: &'static str,
    /// Kinds on which something else is seen, and what users should know about it.
    pub(crate) differences: &'static [Difference],
}

pub(crate) struct Difference {
    pub(crate) on: &'static [Kind],
    pub(crate) seen: Seen,
    /// As in `docs/kernels.md`.
    pub(crate) why: &'static str,
}

pub(crate) enum Seen {
    This(&'static str),
    /// These printed texts, in whatever order, some of them perhaps after the cell's end.
    Lines(&'static [&'static str]),
}

/// A cell, and what is done while it runs.
pub(crate) enum Run {
    Cell(&'static str),
    /// It is given so long.
    Within(&'static str, Duration),
    /// It is interrupted once it has printed `ready`.
    Interrupted(&'static str),
    /// Its caller stops it once it has printed `ready`.
    Cancelled(&'static str),
    /// It may ask, and gets this line each time.
    Answered(&'static str, &'static str),
    /// It may ask, and nobody answers.
    Refused(&'static str),
    /// Nothing but what it prints is shown.
    Silent(&'static str),
    /// Afterwards, this much is waited for that belongs to no cell.
    Then(&'static str, &'static str),
    /// Comms are passed on. Afterwards a comm is opened to its target `echo`, and this is said on it.
    Echoed(&'static str, &'static str),
}

pub(crate) use Run::{
    Answered, Cancelled, Cell as Plain, Echoed, Interrupted, Refused, Silent, Then, Within,
};

impl Case {
    /// Runs the case and compares; what is wrong, if anything.
    pub(crate) async fn check(&self, fixture: &mut Fixture) -> Option<String> {
        let mut transcript = Transcript(Vec::new());
        for cell in self.cells {
            cell.run(fixture, &mut transcript).await;
        }
        let difference = self.differences.iter().find(|difference| difference.on.contains(&fixture.kind));
        let expected = match difference.map(|difference| &difference.seen) {
            Some(Seen::This(expected)) => *expected,
            Some(Seen::Lines(lines)) => {
                let printed = transcript.printed();
                // Not as lines of their own: `print` writes the break apart, and another's text may come between.
                let missing = |printed: &str| lines.iter().any(|line| !printed.contains(line));
                fixture.late_until(|late| !missing(&(printed.clone() + late))).await;
                let (ends, expected) = (ends(&transcript.render()), ends(self.seen));
                return (ends != expected).then(|| format!("{}: it ended with {ends}\n", self.about));
            }
            None => self.seen,
        };
        let seen = transcript.render();
        (seen != expected).then(|| format!("{}:\n--- expected\n{expected}\n--- seen\n{seen}\n", self.about))
    }
}

impl Run {
    async fn run(&self, fixture: &mut Fixture, transcript: &mut Transcript) {
        let (Plain(code)
        | Within(code, _)
        | Interrupted(code)
        | Cancelled(code)
        | Answered(code, _)
        | Refused(code)
        | Silent(code)
        | Then(code, _)
        | Echoed(code, _)) = self;
        let mut cell = KernelCell::new(*code);
        match self {
            Within(_, limit) => cell.timeout = Some(*limit),
            Answered(..) | Refused(_) => cell.stdin = Stdin::Forwarded,
            Silent(_) => cell.source = CellSource::silent(*code),
            Echoed(..) => fixture.kernel.pass_comms(Comms::Forwarded).await,
            Plain(_) | Interrupted(_) | Cancelled(_) | Then(..) => {}
        }
        let execution = fixture.kernel.execute(cell).await;
        self.follow(fixture, execution, transcript).await;
        if let Then(_, text) = self {
            fixture.late_until(|late| late.ends_with(text)).await;
            transcript.add("late", text);
        }
        if let Echoed(_, text) = self {
            if let Err(error) = converse(fixture, text, transcript).await {
                transcript.add("not said", &error.to_string());
            }
            fixture.kernel.pass_comms(Comms::Dropped).await;
        }
    }

    async fn follow(&self, fixture: &Fixture, mut execution: Execution, transcript: &mut Transcript) {
        let mut printed = String::new();
        let mut acted = false;
        loop {
            match execution.next().await {
                CellUpdate::Event(Event::InputRequest(request)) => {
                    transcript.add("ask", &request.prompt);
                    match self {
                        Answered(_, line) => request.answer(*line),
                        _ => request.refuse("nobody is here"),
                    }
                }
                CellUpdate::Event(event) => {
                    if let Event::Output(OutputChange::Added(Output::Text { text, .. })) = &event {
                        printed.push_str(text);
                    }
                    transcript.event(&event);
                    if printed.contains("ready") && !std::mem::replace(&mut acted, true) {
                        match self {
                            Interrupted(_) => fixture.kernel.interrupt().await.unwrap(),
                            Cancelled(_) => execution.stop(),
                            _ => {}
                        }
                    }
                }
                CellUpdate::Finished(finished) => return transcript.end(&finished),
            }
        }
    }
}

/// Opens a comm, says something on it, and takes down what comes of it.
async fn converse(
    fixture: &mut Fixture,
    text: &'static str,
    transcript: &mut Transcript,
) -> Result<(), AskError> {
    let Fixture { kernel, background, .. } = fixture;
    let message = |kind| {
        let data = [("text".to_owned(), text.into())].into_iter().collect();
        CommMessage { buffers: vec![text.as_bytes().into()], ..CommMessage::new("ours", kind, data) }
    };
    kernel.say(message(CommKind::Open { target: "echo".to_owned() })).await?;
    for open in kernel.comms(Some("echo".to_owned())).await? {
        transcript.add("open", &format!("{} to {}", open.comm, open.target));
    }
    kernel.say(message(CommKind::Message)).await?;
    while let Some(event) = background.try_next() {
        if let Event::Comm(_) = event {
            transcript.event(&event);
        }
    }
    Ok(())
}

/// What was seen: its kind and its text. Texts of one stream that follow each other are one thing.
struct Transcript(Vec<(&'static str, String)>);

impl Transcript {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Output(OutputChange::Added(Output::Text { stream, text })) => {
                let kind = match stream {
                    Stream::Stdout => "out",
                    Stream::Stderr => "err",
                };
                match self.0.last_mut() {
                    Some((last, printed)) if *last == kind => printed.push_str(text),
                    Some(_) | None => self.add(kind, text),
                }
            }
            Event::Output(OutputChange::Added(Output::Display { content, .. })) => {
                self.add("display", &plain(content));
            }
            Event::Output(OutputChange::Added(Output::Result { content, .. })) => {
                self.add("result", &plain(content));
            }
            Event::Output(OutputChange::Added(Output::Error(error))) => {
                self.add("error", &format!("{}: {}", error.name, error.message));
            }
            Event::Output(OutputChange::Updated { display_id, content }) => {
                self.add("update", &format!("{display_id} {}", plain(content)));
            }
            Event::Output(OutputChange::Cleared { wait }) => {
                self.add("clear", if *wait { "later" } else { "now" });
            }
            // What a kernel logged is its own affair; a message that could not be read must not pass unseen.
            Event::Warning(warning) if warning.starts_with("the kernel's last words: ") => {}
            Event::Warning(warning) => self.add("warning", warning),
            Event::Comm(message) => {
                let CommMessage { comm: _, kind, data, metadata: _, buffers } = &**message;
                self.add("comm", &format!("{kind:?} {} {buffers:?}", serde_json::to_string(data).unwrap()));
            }
            Event::Status(_) | Event::InputRequest(_) => {}
        }
    }

    fn add(&mut self, kind: &'static str, text: &str) {
        self.0.push((kind, text.to_owned()));
    }

    fn printed(&self) -> String {
        let texts = self.0.iter().filter(|(kind, _)| ["out", "err"].contains(kind));
        texts.map(|(_, text)| text.as_str()).collect()
    }

    /// One thing a line; a long text is told by its length, its end and a checksum.
    fn render(&self) -> String {
        let line = |(kind, text): &(&str, String)| match text.len() {
            0..10_000 => format!("{kind} {}", text.replace('\\', "\\\\").replace('\n', "\\n")),
            length => format!(
                "{kind} {length} bytes, {} lines, the last {:?}, {:016x}",
                text.lines().count(),
                text.lines().last().unwrap(),
                checksum(text)
            ),
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn end(&mut self, finished: &FinishedCell) {
        let end = match &finished.outcome {
            Outcome::Completed => "completed".to_owned(),
            Outcome::Raised(exception) => format!("raised {}", exception.name),
            Outcome::Stopped { reason, kernel } => {
                let reason = match reason {
                    StopReason::Cancelled => "cancelled",
                    StopReason::TimedOut(_) => "timed out",
                    StopReason::Interrupted => "interrupted",
                    StopReason::Shutdown => "shut down",
                };
                let kernel = match kernel {
                    Fate::Survived => "survived",
                    Fate::Ended => "ended",
                    Fate::Killed => "was killed",
                    Fate::Left => "was left",
                    Fate::OutOfReach => "is out of reach",
                };
                format!("{reason}, the kernel {kernel}")
            }
            Outcome::Unknown => "unknown".to_owned(),
            Outcome::Died(death) => {
                let when = if death.started { "died" } else { "died before it started" };
                match &death.exit {
                    Exit::Process(exit) => format!("{when}: {exit}"),
                    Exit::Lost(why) | Exit::Left(why) | Exit::OutOfReach(why) => format!("{when}: {why}"),
                }
            }
        };
        self.add("=", &end);
    }
}

/// How the cells of a rendered transcript ended.
fn ends(rendered: &str) -> String {
    rendered.lines().filter(|line| line.starts_with("= ")).collect::<Vec<_>>().join(", ")
}

/// FNV-1a: enough to notice text that is lost, doubled or out of order.
fn checksum(text: &str) -> u64 {
    let step = |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn plain(content: &MimeBundle) -> String {
    let text = content.data.get("text/plain").and_then(|text| text.as_str());
    text.map_or_else(
        || format!("{:?}", content.data.iter().map(|(mime, _)| mime).collect::<Vec<_>>()),
        str::to_owned,
    )
}
