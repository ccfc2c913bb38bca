//! `bench/jupyter`'s view of the zmq transport: `bench_jupyter PYTHON start|warm|stdout|lines`, one line of JSON.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::zmq::{ZmqKernel, ZmqLaunch};
use cellwright_kernel::{CellUpdate, Event, KernelCell, Outcome};

const WARM: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [python, mode] = arguments.as_slice() else { panic!("usage: bench_jupyter PYTHON MODE") };
    let began = Instant::now();
    let launched = start(python.into()).await;
    let (bytes, lines) = match mode.as_str() {
        "start" => run(&launched, "1 + 1", Duration::ZERO).await,
        "warm" => {
            run(&launched, "1 + 1", Duration::ZERO).await;
            let began = Instant::now();
            for _ in 0..WARM {
                run(&launched, "1 + 1", Duration::ZERO).await;
            }
            return report(began.elapsed() / u32::try_from(WARM).expect("small"), 0, 0);
        }
        "stdout" => {
            run(&launched, "1 + 1", Duration::ZERO).await;
            let began = Instant::now();
            let (bytes, lines) = run(
                &launched,
                "print('x' * 99 + '\\n', end='')\nprint(('x' * 99 + '\\n') * 1_000_000, end='')",
                Duration::ZERO,
            )
            .await;
            return report(began.elapsed(), bytes, lines);
        }
        "lines" => {
            let code = "for i in range(20_000): print(i, flush=True)";
            run(&launched, code, Duration::from_secs(2)).await
        }
        other => panic!("no mode `{other}`"),
    };
    report(began.elapsed(), bytes, lines);
}

async fn start(python: PathBuf) -> ZmqKernel {
    let folder = env::temp_dir().join(format!("bench-jupyter-{}", std::process::id()));
    let variables: HashMap<_, _> = env::vars_os().collect();
    let search = PythonSearch {
        explicit: Some(python),
        cwd: env::current_dir().expect("a folder"),
        variables,
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    ZmqLaunch::new("python3", search, folder).start().await.expect("ipykernel starts")
}

/// Runs a cell to its end without keeping what it prints; bytes and lines. Reads nothing until `pause` has passed.
async fn run(launched: &ZmqKernel, code: &str, pause: Duration) -> (usize, usize) {
    let mut execution = launched.kernel.execute(KernelCell::new(code)).await;
    tokio::time::sleep(pause).await;
    let (mut bytes, mut lines) = (0, 0);
    loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                bytes += text.len();
                lines += text.bytes().filter(|byte| *byte == b'\n').count();
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => {
                assert_eq!(finished.outcome, Outcome::Completed);
                return (bytes, lines);
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "the answer")]
fn report(took: Duration, bytes: usize, lines: usize) {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    println!(
        "{{\"seconds\": {}, \"bytes\": {bytes}, \"lines\": {lines}, \"peak_kib\": {peak}}}",
        took.as_secs_f64()
    );
}
