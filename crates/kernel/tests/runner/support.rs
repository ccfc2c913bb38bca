//! What tests on real Python share: a kernel in a folder of its own, and how to run a cell.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_cell::{Output, OutputChange, Stream};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{
    Background, CellStage, CellUpdate, Event, Execution, FinishedCell, Kernel, KernelCell, Outcome,
    RunnerLaunch,
};
use cellwright_testkit::{Door, patient_graces, python};
use tempfile::TempDir;

/// Where the runner is unpacked in tests, once for all.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// A search as from a shell in `cwd` that knows where its tools are.
pub(crate) fn search(cwd: &Path) -> PythonSearch {
    let variables: HashMap<_, _> =
        [("PATH".into(), env::var_os("PATH").expect("a shell has one")), ("HOME".into(), cwd.into())].into();
    PythonSearch {
        explicit: None,
        cwd: cwd.into(),
        variables,
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    }
}

/// A kernel in a folder of its own.
pub(crate) struct Fixture {
    pub(crate) kernel: Kernel,
    pub(crate) background: Background,
    pub(crate) folder: TempDir,
    pub(crate) pid: u32,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(adjust: impl FnOnce(&mut RunnerLaunch)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = RunnerLaunch::new(search(folder.path()), cache());
        launch.search.explicit = Some(python());
        launch.graces = patient_graces();
        adjust(&mut launch);
        let launched = launch.start().await.unwrap();
        Self { kernel: launched.kernel, background: launched.background, folder, pid: launched.python.pid }
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&self, code: &str) -> Ran {
        Ran::of(self.kernel.execute(KernelCell::new(code)).await).await
    }

    /// Runs a cell that may take so long.
    pub(crate) async fn run_within(&self, code: &str, timeout: Duration) -> Ran {
        Ran::of(self.kernel.execute(KernelCell { timeout: Some(timeout), ..KernelCell::new(code) }).await)
            .await
    }

    /// What a cell that must complete printed.
    pub(crate) async fn stdout(&self, code: &str) -> String {
        let ran = self.run(code).await;
        assert_eq!(ran.finished.outcome, Outcome::Completed, "{code}\n{ran:?}");
        ran.stdout()
    }

    /// Everything that came outside cells so far.
    pub(crate) fn late(&mut self) -> String {
        let mut text = String::new();
        while let Some(event) = self.background.try_next() {
            if let Event::Output(OutputChange::Added(Output::Text { text: more, .. })) = event {
                text.push_str(&more);
            }
        }
        text
    }
}

/// A cell that has run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) events: Vec<Event>,
    pub(crate) finished: FinishedCell,
}

impl Ran {
    pub(crate) async fn of(execution: Execution) -> Self {
        let (events, finished) = execution.collect().await;
        Self { events, finished }
    }

    pub(crate) fn stdout(&self) -> String {
        self.printed(Stream::Stdout)
    }

    pub(crate) fn stderr(&self) -> String {
        self.printed(Stream::Stderr)
    }

    fn printed(&self, wanted: Stream) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Output(OutputChange::Added(Output::Text { stream, text })) if *stream == wanted => {
                    Some(text.as_str())
                }
                _ => None,
            })
            .collect()
    }

    /// The result's plain text.
    pub(crate) fn result(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            Event::Output(OutputChange::Added(Output::Result { content, .. })) => {
                content.data.get("text/plain")?.as_str()
            }
            _ => None,
        })
    }

    /// The exception's name.
    pub(crate) fn raised(&self) -> Option<&str> {
        match &self.finished.outcome {
            Outcome::Raised(exception) => Some(&exception.name),
            Outcome::Completed | Outcome::Stopped { .. } | Outcome::Died(_) | Outcome::Unknown => None,
        }
    }

    /// Text and displays in order, one letter and their text each.
    pub(crate) fn sequence(&self) -> Vec<String> {
        let mut sequence: Vec<String> = Vec::new();
        for event in &self.events {
            let (kind, text) = match event {
                Event::Output(OutputChange::Added(Output::Text { stream: Stream::Stdout, text })) => {
                    ("out ", text.as_str())
                }
                Event::Output(OutputChange::Added(Output::Text { stream: Stream::Stderr, text })) => {
                    ("err ", text.as_str())
                }
                Event::Output(OutputChange::Added(
                    Output::Display { content, .. } | Output::Result { content, .. },
                )) => (
                    "show ",
                    content.data.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default(),
                ),
                Event::Output(OutputChange::Added(Output::Error(exception))) => {
                    ("error ", exception.name.as_str())
                }
                Event::Output(OutputChange::Updated { .. }) => ("update ", ""),
                Event::Output(OutputChange::Cleared { .. }) => ("clear ", ""),
                Event::Status(_) | Event::InputRequest(_) | Event::Warning(_) | Event::Comm(_) => continue,
            };
            match sequence.last_mut() {
                // Pipes cut text anywhere.
                Some(last) if last.starts_with(kind) && !kind.starts_with("show") => last.push_str(text),
                _ => sequence.push(format!("{kind}{text}")),
            }
        }
        sequence
    }
}

/// Reads until the cell has printed `text`.
pub(crate) async fn until_printed(execution: &mut Execution, text: &str) {
    let mut printed = String::new();
    while !printed.contains(text) {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                printed.push_str(&text);
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => {
                panic!("ended before it printed {text:?}: {printed:?} {finished:?}")
            }
        }
    }
}

/// Reads until the cell's code runs.
pub(crate) async fn until_started(execution: &mut Execution) {
    loop {
        match execution.next().await {
            CellUpdate::Event(Event::Status(CellStage::Started)) => return,
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => panic!("ended before it started: {finished:?}"),
        }
    }
}

/// Code that knocks once the cell's output has found no room for a while: what may wait has been filled.
pub(crate) fn knock_when_held_up(door: &Door) -> String {
    format!(
        "import select, threading, time\n\
         def knock_when_held_up():\n\
         \x20   while select.select([], [1], [], 0.1)[1]: time.sleep(0.01)\n\
         \x20   {}.close()\n\
         threading.Thread(target=knock_when_held_up, daemon=True).start()\n",
        door.knock()
    )
}
