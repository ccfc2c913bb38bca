//! Prints how long a kernel takes: to start, for a warm cell, for text, and to be interrupted.
//!
//! `measure PYTHON [CACHE]`

#![allow(clippy::print_stdout, reason = "a program for people to read")]

use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{CellUpdate, Event, Kernel, KernelCell, RunnerLaunch};

#[tokio::main]
async fn main() {
    let mut arguments = env::args_os().skip(1);
    let python = PathBuf::from(arguments.next().expect("measure PYTHON [CACHE]"));
    let cache = arguments.next().map_or_else(|| env::temp_dir().join("cellwright-measure"), PathBuf::from);
    let cwd = env::current_dir().expect("there is a current folder");
    let search =
        PythonSearch { explicit: Some(python), cwd, variables: env::vars_os().collect(), managed: None };
    let launch = RunnerLaunch::new(search, cache);

    let mut starts = Vec::new();
    for _ in 0..15 {
        let before = Instant::now();
        let launched = launch.start().await.expect("Python starts");
        run(&launched.kernel, "1").await;
        starts.push(before.elapsed());
    }
    println!("start to first result      {:>9.2?}", median(starts));

    let launched = launch.start().await.expect("Python starts");
    let kernel = &launched.kernel;
    for _ in 0..200 {
        run(kernel, "1").await;
    }
    let mut warm = Vec::new();
    for _ in 0..2000 {
        let before = Instant::now();
        run(kernel, "1").await;
        warm.push(before.elapsed());
    }
    println!("warm execute of `1`        {:>9.2?}", median(warm));

    for (name, code) in [
        (
            "100 MB in 64 KiB chunks   ",
            "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65535 + '\\n')",
        ),
        ("100 MB in a million lines ", "for _ in range(1000000): print('x' * 104)"),
        ("20,000 flushed lines      ", "for i in range(20000): print(i, flush=True)"),
    ] {
        let before = Instant::now();
        let bytes = run(kernel, code).await;
        println!("{name} {:>9.2?} for {bytes} bytes", before.elapsed());
    }

    for (name, code) in [
        ("busy loop", "print('go', flush=True)\nwhile True: pass"),
        ("time.sleep", "import time\nprint('go', flush=True)\ntime.sleep(60)"),
        ("await asyncio.sleep", "import asyncio\nprint('go', flush=True)\nawait asyncio.sleep(60)"),
        ("subprocess.run", "import subprocess\nprint('go', flush=True)\nsubprocess.run(['sleep', '60'])"),
    ] {
        let mut times = Vec::new();
        for _ in 0..11 {
            let mut execution = kernel.execute(KernelCell::new(code)).await;
            while !matches!(execution.next().await, CellUpdate::Event(Event::Output(_))) {}
            tokio::time::sleep(Duration::from_millis(20)).await;
            let before = Instant::now();
            execution.stop();
            execution.collect().await;
            times.push(before.elapsed());
        }
        println!("interrupt of {name:<20} {:>9.2?}", median(times));
    }
    assert!(kernel.exit().is_none(), "the kernel survived");
}

/// Runs a cell; how much it printed.
async fn run(kernel: &Kernel, code: &str) -> usize {
    let mut execution = kernel.execute(KernelCell::new(code)).await;
    let mut bytes = 0;
    loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                bytes += text.len();
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(_) => return bytes,
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
