//! Kernels that die: noticed, told apart, and nothing left behind.

use std::io::{BufRead, BufReader};
use std::process;

use cellwright_kernel::{Death, Exit, Fate, KernelCell, Outcome, ProcessExit, StopReason};
use cellwright_testkit::{alive, end_of, end_of_blocking, python};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{Fixture, cache, until_printed};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

const KILLED: Exit =
    Exit::Process(ProcessExit::Signal { number: 9, core_dumped: false, out_of_memory: false });

fn died(exit: Exit, started: bool) -> Outcome {
    Outcome::Died(Death { exit, started })
}

#[tokio::test]
async fn k8_an_exit_by_python_is_an_exception_and_the_kernel_lives() {
    let fixture = Fixture::start().await;
    for code in ["import sys; sys.exit(3)", "raise SystemExit('done')"] {
        let ran = fixture.run(code).await;
        assert_eq!(ran.raised(), Some("SystemExit"), "{code} {ran:?}");
    }
    assert_eq!(fixture.run("1").await.result(), Some("1"));
}

#[tokio::test]
async fn k8_other_deaths_are_distinguished_and_keep_what_was_printed() {
    for (code, expected) in [
        ("import os\nprint('before')\nos._exit(3)", "the kernel exited with code 3 while the cell ran"),
        (
            "import os\nprint('before')\nos.kill(os.getpid(), 9)",
            "the kernel was ended by SIGKILL while the cell ran",
        ),
        (
            "import resource, ctypes\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('before', flush=True)\nctypes.string_at(0)",
            "the kernel was ended by SIGSEGV (segmentation fault) while the cell ran",
        ),
        ("import os\nprint('before')\nos.abort()", "the kernel was ended by SIGABRT (abort)"),
    ] {
        let fixture = Fixture::start().await;
        let ran = fixture.run(code).await;
        let Outcome::Died(death) = &ran.finished.outcome else { panic!("{code} {ran:?}") };
        assert!(death.to_string().starts_with(expected), "{code} {death}");
        // `os._exit` and signals skip Python's buffers; what had reached the pipe is here.
        assert!(["before\n", ""].contains(&ran.stdout().as_str()), "{ran:?}");
        if code.contains("flush") {
            assert_eq!(ran.stdout(), "before\n");
        }
        assert_eq!(fixture.run("1").await.finished.outcome, died(death.exit.clone(), false));
    }
}

#[tokio::test]
async fn a_kernel_killed_before_during_or_after_a_cell_is_reported_truthfully() {
    let fixture = Fixture::start().await;
    kill(fixture.pid);
    assert_eq!(fixture.run("1").await.finished.outcome, died(KILLED, false));

    let fixture = Fixture::start().await;
    let mut execution = fixture
        .kernel
        .execute(KernelCell::new("import time\nprint('go', flush=True)\ntime.sleep(600)"))
        .await;
    until_printed(&mut execution, "go").await;
    kill(fixture.pid);
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, died(KILLED, true));

    let mut fixture = Fixture::start().await;
    assert_eq!(fixture.run("1").await.result(), Some("1"));
    kill(fixture.pid);
    assert_eq!(fixture.kernel.ended().await, KILLED);
    assert_eq!(fixture.background.next().await.unwrap_err(), KILLED);
}

#[tokio::test]
async fn a_kernel_that_closes_its_connection_is_ended_and_reported() {
    let fixture = Fixture::start().await;
    let ran = fixture.run("import os, time\nprint('before', flush=True)\nos.close(4)\ntime.sleep(600)").await;
    // The runner notices by itself and ends; if it does not, we end it.
    assert!(matches!(ran.finished.outcome, Outcome::Died(Death { started: true, .. })), "{ran:?}");
    assert_eq!(ran.stdout(), "before\n");
    end_of(fixture.pid).await;
}

#[tokio::test]
async fn a_kernel_that_closes_what_it_listens_to_ends_after_its_cell() {
    let fixture = Fixture::start().await;
    let ran = fixture.run("import os\nos.close(3)\nprint('before')\n5").await;
    assert_eq!((ran.stdout().as_str(), ran.result()), ("before\n", Some("5")), "{ran:?}");
    assert_eq!(fixture.kernel.ended().await, Exit::Process(ProcessExit::Code(1)));
}

#[tokio::test]
async fn a_cell_that_closes_its_output_still_ends() {
    let fixture = Fixture::start().await;
    let ran = fixture.run("import os\nprint('before', flush=True)\nos.close(1)\nos.close(2)\n5").await;
    assert_eq!((ran.stdout().as_str(), ran.result()), ("before\n", Some("5")), "{ran:?}");
    assert_eq!(fixture.run("6").await.result(), Some("6"));
}

#[tokio::test]
async fn shutdown_runs_exit_handlers_and_takes_children_along() {
    let fixture = Fixture::start().await;
    let mark = fixture.folder.path().join("left");
    let code = format!(
        "import atexit, subprocess\natexit.register(lambda: open({mark:?}, 'w').close())\n\
         child = subprocess.Popen(['sleep', '600']); print(child.pid)"
    );
    let child = fixture.stdout(&code).await.trim().parse().unwrap();
    assert_eq!(fixture.kernel.shutdown().await, Exit::Process(ProcessExit::Code(0)));
    assert!(mark.exists());
    end_of(child).await;
}

#[tokio::test]
async fn shutdown_while_a_cell_runs_stops_it() {
    let fixture = Fixture::start().await;
    let mut execution =
        fixture.kernel.execute(KernelCell::new("print('go', flush=True)\nwhile True: pass")).await;
    until_printed(&mut execution, "go").await;
    assert_eq!(fixture.kernel.shutdown().await, Exit::Process(ProcessExit::Code(0)));
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, Outcome::Stopped { reason: StopReason::Shutdown, kernel: Fate::Killed });
}

#[tokio::test]
async fn dropping_a_kernel_ends_its_process() {
    let Fixture { kernel, background, pid, folder: _folder } = Fixture::start().await;
    drop((kernel, background));
    end_of(pid).await;
}

#[test]
fn k6_when_the_host_is_killed_kernels_and_their_children_end() {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let mut host = process::Command::new(folder.join("examples/host_of_a_kernel"))
        .args([python(), cache()])
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ids = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut ids).unwrap();
    let ids: Vec<u32> = ids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids.iter().all(|&pid| alive(pid)), "{ids:?}");
    host.kill().unwrap();
    host.wait().unwrap();
    ids.into_iter().for_each(end_of_blocking);
}
