//! The Rust side of `bench/run`: times a kernel and, by plain blocking pipes, the bare runner beside it.
//!
//! `bench_run PYTHON BARE_RUNNER CACHE` reads one task a line from stdin and answers each with one line,
//! so that whoever measures can let contenders take turns.

#![allow(clippy::print_stdout, reason = "answers go to the program that measures")]

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{CellUpdate, Event, Fate, Kernel, KernelCell, Outcome, RunnerKernel, RunnerLaunch};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
enum Task {
    /// From nothing to the end of the first cell.
    Start { runner: RunnerTransport, code: String },
    /// A cell again and again in an interpreter that has run it before.
    Warm { runner: RunnerTransport, code: String, times: usize },
    /// One cell and what it printed, in the warm kernel.
    Print { code: String },
    /// From the stop of a cell that has said a word to its end, in the warm kernel.
    Interrupt { code: String },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunnerTransport {
    Kernel,
    Bare,
}

/// On one thread: what several workers cost in wake-ups is theirs, not the kernel's.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let [python, bare, cache] = env::args_os()
        .skip(1)
        .collect::<Vec<OsString>>()
        .try_into()
        .expect("bench_run PYTHON BARE_RUNNER CACHE");
    let search = PythonSearch {
        explicit: Some(PathBuf::from(&python)),
        cwd: env::current_dir().expect("there is a current folder"),
        variables: env::vars_os().collect(),
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    let launch = RunnerLaunch::new(search, cache);
    let mut contenders = Contenders {
        kernel: start(&launch).await,
        bare: Bare::start(&python, &bare),
        launch,
        python,
        bare_script: bare,
    };
    let mut line = String::new();
    while io::stdin().read_line(&mut line).expect("tasks are text") > 0 {
        println!("{}", contenders.answer(serde_json::from_str(&line).expect("a task")).await);
        line.clear();
    }
}

struct Contenders {
    launch: RunnerLaunch,
    python: OsString,
    bare_script: OsString,
    kernel: RunnerKernel,
    bare: Bare,
}

impl Contenders {
    async fn answer(&mut self, task: Task) -> Value {
        let kernel = &self.kernel.kernel;
        match task {
            Task::Start { runner: RunnerTransport::Kernel, code } => {
                let before = Instant::now();
                let launched = start(&self.launch).await;
                run(&launched.kernel, &code).await;
                json!({ "seconds": before.elapsed().as_secs_f64() })
            }
            Task::Start { runner: RunnerTransport::Bare, code } => {
                let before = Instant::now();
                let mut bare = Bare::start(&self.python, &self.bare_script);
                bare.run(&code);
                json!({ "seconds": before.elapsed().as_secs_f64() })
            }
            Task::Warm { runner, code, times } => {
                let mut seconds = Vec::with_capacity(times);
                for _ in 0..times {
                    let before = Instant::now();
                    match runner {
                        RunnerTransport::Kernel => drop(run(kernel, &code).await),
                        RunnerTransport::Bare => self.bare.run(&code),
                    }
                    seconds.push(before.elapsed().as_secs_f64());
                }
                json!({ "seconds": seconds })
            }
            Task::Print { code } => {
                let before = Instant::now();
                let bytes = run(kernel, &code).await;
                json!({ "seconds": before.elapsed().as_secs_f64(), "bytes": bytes })
            }
            Task::Interrupt { code } => json!({ "seconds": interrupt(kernel, &code).await.as_secs_f64() }),
        }
    }
}

async fn start(launch: &RunnerLaunch) -> RunnerKernel {
    launch.start().await.expect("Python starts")
}

/// Runs a cell; how many bytes it printed.
async fn run(kernel: &Kernel, code: &str) -> usize {
    let mut execution = kernel.execute(KernelCell::new(code)).await;
    let mut bytes = 0;
    loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                bytes += text.len();
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => {
                assert!(matches!(finished.outcome, Outcome::Completed), "{code}: {:?}", finished.outcome);
                return bytes;
            }
        }
    }
}

async fn interrupt(kernel: &Kernel, code: &str) -> Duration {
    run(kernel, "kept = 42").await;
    let mut execution = kernel.execute(KernelCell::new(code)).await;
    while !matches!(execution.next().await, CellUpdate::Event(Event::Output(_))) {}
    // What it does after its word is to have begun. Were it not, the interrupt would only come earlier.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = Instant::now();
    execution.stop();
    let (_, finished) = execution.collect().await;
    let elapsed = before.elapsed();
    assert!(
        matches!(finished.outcome, Outcome::Stopped { kernel: Fate::Survived, .. }),
        "{code}: {:?}",
        finished.outcome
    );
    run(kernel, "assert kept == 42").await;
    elapsed
}

/// A runner without any of what makes ours one, driven in the cheapest way there is.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Bare {
    fn start(python: &OsString, script: &OsString) -> Self {
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let stdin = child.stdin.take().expect("it was piped");
        let stdout = BufReader::new(child.stdout.take().expect("it was piped"));
        Self { child, stdin, stdout }
    }

    fn run(&mut self, code: &str) {
        let mut line = json!({ "id": 1, "code": code }).to_string();
        line.push('\n');
        self.stdin.write_all(line.as_bytes()).expect("the bare runner lives");
        loop {
            line.clear();
            self.stdout.read_line(&mut line).expect("the bare runner lives");
            let frame: Value = serde_json::from_str(&line).expect("a frame");
            if frame["type"] == "done" {
                assert_eq!(frame["status"], "ok", "{frame}");
                return;
            }
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.child.kill()); // it may have ended
        drop(self.child.wait());
    }
}
