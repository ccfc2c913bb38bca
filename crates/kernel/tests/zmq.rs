//! Jupyter kernels over ZeroMQ where the suite does not reach: starts that fail, kernels of others, other languages.

mod comms;

use std::collections::HashMap;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cellwright_cell::{Output, OutputChange, Stream};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::zmq::{ZmqAttach, ZmqKernel, ZmqLaunch, ZmqLink};
use cellwright_kernel::{CellUpdate, Event, Exit, Fate, Graces, KernelCell, Outcome, StopReason};
use cellwright_testkit::{Door, patient_graces, python};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with kernelspecs of its own beside those of the tests' Python.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Installs a kernelspec.
    fn install(&self, name: &str, spec: &Value) -> &Self {
        let folder = self.folder.path().join("jupyter/kernels").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kernel.json"), spec.to_string()).unwrap();
        self
    }

    fn launch(&self, name: &str) -> ZmqLaunch {
        let folder = self.folder.path();
        let variables: HashMap<_, _> = [
            ("PATH".into(), env::var_os("PATH").expect("a shell has one")),
            ("HOME".into(), folder.into()),
            ("JUPYTER_PATH".into(), folder.join("jupyter").into()),
        ]
        .into();
        let search = PythonSearch {
            explicit: Some(python()),
            cwd: folder.into(),
            variables,
            managed: None,
            trust: cellwright_ownership::FolderTrust::Everything,
        };
        ZmqLaunch { graces: patient_graces(), ..ZmqLaunch::new(name, search, self.runtime()) }
    }

    /// The connection file of the kernel that runs.
    fn connection_file(&self) -> PathBuf {
        let is_file = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let files = self.left().into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        files.map(|entry| entry.unwrap().path()).find(is_file).expect("a connection file")
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    /// What lies in the runtime folder.
    fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.runtime()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// A kernelspec for the tests' Python.
fn spec(arguments: &[&str]) -> Value {
    let python = python();
    let argv: Vec<_> =
        [python.to_str().unwrap()].iter().chain(arguments).copied().map(str::to_owned).collect();
    json!({"argv": argv, "display_name": "a test's", "language": "python"})
}

async fn run(launched: &ZmqKernel, code: &str) -> (String, Outcome) {
    let (events, finished) = launched.kernel.execute(KernelCell::new(code)).await.collect().await;
    (text(&events), finished.outcome)
}

fn text(events: &[Event]) -> String {
    let printed = events.iter().filter_map(|event| match event {
        Event::Output(OutputChange::Added(Output::Text { text, .. })) => Some(text.as_str()),
        Event::Output(OutputChange::Added(Output::Result { content, .. })) => {
            content.data.get("text/plain")?.as_str()
        }
        _ => None,
    });
    printed.collect()
}

#[tokio::test]
async fn a_kernel_that_dies_at_its_start_is_reported_with_its_stderr() {
    let place = Place::new();
    place.install("broken", &spec(&["-c", "raise SystemExit('no licence, {resource_dir}')"]));
    let error = place.launch("broken").start().await.unwrap_err().to_string();
    assert!(
        error.starts_with(
            "kernel `broken`: the kernel exited with code 1 before it was ready; it said: no licence, "
        ),
        "{error}"
    );
    assert!(error.ends_with("jupyter/kernels/broken"), "{error}");
    assert_eq!(place.left(), Vec::<PathBuf>::new(), "connection files stay behind");
}

#[tokio::test]
async fn what_ipykernel_warns_of_at_every_start_are_not_its_last_words() {
    let place = Place::new();
    for (said, told) in [("", &[][..]), ("out of luck", &["the kernel's last words: out of luck"][..])] {
        let launched = ZmqLaunch { link: ZmqLink::Tcp, ..place.launch("python3") }.start().await.unwrap();
        // ipykernel shows what is written to the standard error that it has put in the place of this one.
        let code =
            format!("import os, sys\nos.write(sys.stderr._original_stdstream_copy, b'{said}')\nos._exit(3)");
        let (events, finished) = launched.kernel.execute(KernelCell::new(code)).await.collect().await;
        assert!(matches!(finished.outcome, Outcome::Died(_)), "{finished:?}");
        let warnings = events.iter().filter_map(|event| match event {
            Event::Warning(warning) => Some(warning.as_str()),
            _ => None,
        });
        assert_eq!(warnings.collect::<Vec<_>>(), told);
    }
}

#[tokio::test]
async fn a_kernel_that_never_gets_ready_is_given_up_and_reported() {
    let place = Place::new();
    place.install(
        "deaf",
        &spec(&[
            "-c",
            "import sys, time\nprint('still thinking', file=sys.stderr, flush=True)\ntime.sleep(600)",
        ]),
    );
    let launch = ZmqLaunch { ready_within: Duration::from_secs(2), ..place.launch("deaf") };
    let error = launch.start().await.unwrap_err().to_string();
    assert!(error.starts_with("kernel `deaf` was not ready within 2 seconds (shell: "), "{error}");
    assert!(error.ends_with("; it said: still thinking"), "{error}");
    assert_eq!(place.left(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn kernels_that_cannot_be_started_report_why() {
    let place = Place::new();
    place.install("gone", &json!({"argv": ["/nowhere/kernel", "{connection_file}"], "language": "none"}));
    place.install("empty", &json!({"argv": [], "language": "none"}));
    for (name, told) in [
        ("gone", "could not start `/nowhere/kernel`"),
        ("empty", "has no command"),
        ("missing", "no kernel named `missing`; installed: "),
    ] {
        let error = place.launch(name).start().await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        // The machine may have further kernels.
        let listed = |kernel: &str| error.split([' ', ',']).any(|word| word == kernel);
        assert!(name != "missing" || ["empty", "gone", "python3"].into_iter().all(listed), "{error}");
    }
}

#[tokio::test]
async fn an_attached_kernel_is_shared_and_outlives_us() {
    let place = Place::new();
    let owner = place.launch("python3").start().await.unwrap();
    let file = place.connection_file();
    assert_private(&file);
    let mut guest = ZmqAttach { graces: patient_graces(), ..ZmqAttach::new(&file) }.start().await.unwrap();
    assert_eq!(run(&guest, "x = 5\nprint('from the guest')").await.0, "from the guest\n");
    assert_eq!(run(&owner, "print('from the owner')\nx").await.0, "from the owner\n5");

    // Without a process to signal, by message.
    let mut cell = KernelCell::new("import time\ntime.sleep(600)");
    cell.timeout = Some(Duration::from_millis(300));
    let (_, finished) = guest.kernel.execute(cell).await.collect().await;
    let reason = StopReason::TimedOut(Duration::from_millis(300));
    assert_eq!(finished.outcome, Outcome::Stopped { reason, kernel: Fate::Survived });

    // One that heeds no interrupt is not said to be dead.
    let graces = Graces { interrupt: Duration::from_millis(300), ..Graces::default() };
    let hurried = ZmqAttach { graces, ..ZmqAttach::new(&file) }.start().await.unwrap();
    let deaf = "import time\ndef deaf():\n    end = time.monotonic() + 3\n    while time.monotonic() < end:\n        \
        try: time.sleep(3)\n        except KeyboardInterrupt: pass\ndeaf()";
    let cell = KernelCell { timeout: Some(Duration::from_millis(300)), ..KernelCell::new(deaf) };
    let (_, finished) = hurried.kernel.execute(cell).await.collect().await;
    assert_eq!(finished.outcome, Outcome::Stopped { reason, kernel: Fate::Left });

    assert_eq!(guest.kernel.shutdown().await.to_string(), "left the kernel, which continues");
    // What others ran was theirs.
    while let Some(event) = guest.background.try_next() {
        assert!(!text(&[event]).contains("owner"));
    }
    assert_eq!(run(&owner, "x").await.0, "5");

    let mut other: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    other["key"] = "another".into();
    let forged = place.folder.path().join("forged.json");
    std::fs::write(&forged, other.to_string()).unwrap();
    let stranger = ZmqAttach {
        ready_within: Duration::from_millis(500),
        busy_within: Duration::from_millis(500),
        ..ZmqAttach::new(&forged)
    };
    let told = stranger.start().await.unwrap_err().to_string();
    assert!(told.contains("was not ready within 1 second (") && told.contains(" key"), "{told}");

    owner.kernel.shutdown().await;
    assert_eq!(place.left(), Vec::<PathBuf>::new(), "the kernel's files stay behind");
}

#[tokio::test]
async fn a_kernel_that_is_busy_with_its_owners_cell_is_attached_to() {
    let place = Place::new();
    let owner = place.launch("python3").start().await.unwrap();
    let mut busy = owner
        .kernel
        .execute(KernelCell::new("import time\nprint('busy', flush=True)\ntime.sleep(600)"))
        .await;
    while !matches!(busy.next().await, CellUpdate::Event(Event::Output(_))) {}
    let guest = ZmqAttach::new(place.connection_file()).start().await.unwrap();
    busy.stop();
    assert_eq!(run(&guest, "print('its turn')").await.0, "its turn\n");
    owner.kernel.shutdown().await;
}

#[tokio::test]
async fn quit_in_a_kernel_of_others_ends_it_with_a_warning() {
    let place = Place::new();
    let owner = place.launch("python3").start().await.unwrap();
    // As in a kernel that was not prepared by us.
    run(&owner, "del get_ipython().ask_exit").await;
    let guest = ZmqAttach::new(place.connection_file()).start().await.unwrap();
    let (events, _) = guest.kernel.execute(KernelCell::new("quit()")).await.collect().await;
    let told = events
        .iter()
        .any(|event| matches!(event, Event::Warning(text) if text.contains("asked the kernel to end")));
    assert!(told, "{events:?}");
    owner.kernel.ended().await;
}

#[tokio::test]
async fn an_attached_kernel_that_is_silent_is_out_of_reach_and_not_said_to_be_gone() {
    let place = Place::new();
    let owner = place.launch("python3").start().await.unwrap();
    let file = place.connection_file();
    let attach = ZmqAttach { silence: Duration::from_secs(1), ..ZmqAttach::new(&file) };
    let guest = attach.start().await.unwrap();
    run(&guest, "x = 5").await;
    let process = Pid::from_raw(owner.pid.unwrap().cast_signed()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let (_, outcome) = run(&guest, "x").await;
    kill_process(process, Signal::CONT).unwrap();
    let Outcome::Died(death) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(death.exit, Exit::OutOfReach(_)), "{death}");
    assert_eq!(
        format!("{death}; {}", death.exit.variables()),
        "the kernel is out of reach: it has not answered its heartbeat for 1s while the cell ran; \
         whether it lives, and its variables with it, is not known"
    );
    // It was there all the time.
    assert_eq!(run(&attach.start().await.unwrap(), "x").await.0, "5");
    owner.kernel.shutdown().await;
}

/// Kernels that cannot use Unix sockets: one ends, one binds other names.
const TCP_ONLY: &str = "
import json, socket, sys, time
file, how = sys.argv[1:]
info = json.load(open(file))
if info['transport'] == 'ipc':
    if how == 'ends':
        sys.exit('only tcp is supported')
    socket.socket(socket.AF_UNIX).bind(info['ip'] + ':1')
    time.sleep(600)
from ipykernel.kernelapp import launch_new_instance
launch_new_instance(argv=['-f', file])
";

#[tokio::test]
async fn kernels_that_cannot_use_unix_sockets_are_used_by_tcp_and_remembered() {
    for how in ["ends", "binds elsewhere"] {
        let place = Place::new();
        let argv = [python().to_str().unwrap(), "-c", TCP_ONLY, "{connection_file}", how].map(str::to_owned);
        place.install("tcponly", &json!({"argv": argv, "language": "python", "display_name": "TCP only"}));
        for told in [true, false] {
            let mut launched = place.launch("tcponly").start().await.unwrap();
            assert_eq!(run(&launched, "print('here')").await.0, "here\n", "{how}");
            let warned = std::iter::from_fn(|| launched.background.try_next())
                .any(|event| matches!(&event, Event::Warning(text) if text.contains("by TCP")));
            assert_eq!(warned, told, "{how}: it is worth a word once");
            launched.kernel.shutdown().await;
        }
        let asked = ZmqLaunch { link: ZmqLink::Ipc, ..place.launch("tcponly") };
        let asked = ZmqLaunch { ready_within: Duration::from_secs(2), ..asked };
        assert!(asked.start().await.is_err(), "{how}: who asks for Unix sockets gets no other");
    }
}

/// A kernel of `jupyter_client`, which restarts it when a line comes.
const OWNER: &str = "
import sys
from jupyter_client.manager import KernelManager
manager = KernelManager()
manager.start_kernel()
print(manager.connection_file, flush=True)
for line in sys.stdin:
    manager.restart_kernel(now=line.strip() == 'now')
    print('restarted', flush=True)
manager.shutdown_kernel(now=True)
";

#[tokio::test]
async fn a_cell_ends_at_once_when_the_owner_of_its_kernel_restarts_it() {
    let place = Place::new();
    let mut owner = std::process::Command::new(python())
        .args(["-c", OWNER])
        .env("JUPYTER_RUNTIME_DIR", place.runtime())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let file = said.next().unwrap();
    let mut orders = owner.stdin.take().unwrap();
    for how in ["gently", "now"] {
        let guest = ZmqAttach::new(&file).start().await.unwrap();
        // A gentle owner interrupts first, which could end the cell by itself.
        let code = "import time\nfor turn in range(600):\n    try:\n        print('running', flush=True)\n        \
                    time.sleep(600)\n    except KeyboardInterrupt:\n        pass";
        let mut execution = guest.kernel.execute(KernelCell::new(code)).await;
        loop {
            match execution.next().await {
                CellUpdate::Event(Event::Output(_)) => break,
                CellUpdate::Event(_) => {}
                CellUpdate::Finished(finished) => panic!("{how}: {finished:?}"),
            }
        }
        writeln!(orders, "{how}").unwrap();
        let (_, finished) = execution.collect().await;
        let Outcome::Died(death) = finished.outcome else { panic!("{how}: {finished:?}") };
        assert_eq!(death.exit, Exit::Lost("the kernel was restarted by its owner".to_owned()), "{how}");
        assert!(death.started, "{how}");
        // Until then the old kernel, which is shutting down, may still take a cell.
        assert_eq!(said.next().unwrap(), "restarted");
    }
    // The one in its place is as good.
    let guest = ZmqAttach::new(&file).start().await.unwrap();
    assert_eq!(run(&guest, "print('new')").await.0, "new\n");
    drop(orders);
    owner.wait().unwrap();
}

fn assert_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_kernel_that_wants_messages_is_interrupted_by_one() {
    let place = Place::new();
    let mut polite = spec(&["-m", "ipykernel_launcher", "-f", "{connection_file}"]);
    polite["interrupt_mode"] = "message".into();
    polite["env"] = json!({"GREETING": "hello from ${HOME}"});
    let launched = place.install("polite", &polite).launch("polite").start().await.unwrap();
    // A signal would reach the child, which ends; a message leaves it alone.
    let door = Door::new();
    let code = format!(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'], stdout=-3)\n{}.close()\nchild.wait()",
        door.knock()
    );
    let execution = launched.kernel.execute(KernelCell::new(code)).await;
    door.knocked().await;
    execution.stop();
    let (_, finished) = execution.collect().await;
    assert!(matches!(finished.outcome, Outcome::Stopped { kernel: Fate::Survived, .. }), "{finished:?}");
    let home = place.folder.path().display();
    let (shown, _) = run(&launched, "import os\nprint(os.environ['GREETING'])").await;
    assert_eq!(shown, format!("hello from {home}\n"));
}

#[tokio::test]
async fn a_reader_that_pauses_loses_nothing() {
    let place = Place::new();
    let launched = place.launch("python").start().await.unwrap();
    let door = Door::new();
    let code = format!("for i in range(3000): print(i, 'x' * 2000, flush=True)\n{}.close()", door.knock());
    let mut execution = launched.kernel.execute(KernelCell::new(code)).await;
    // Nobody reads until the kernel has said everything, which is three times what ipykernel would keep.
    door.knocked().await;
    let mut all = String::new();
    loop {
        match execution.next().await {
            CellUpdate::Event(event) => all.push_str(&text(&[event])),
            CellUpdate::Finished(finished) => break assert_eq!(finished.outcome, Outcome::Completed),
        }
    }
    let numbers: Vec<usize> =
        all.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
}

/// Runs a cell without holding what it prints: how many bytes there were, and what was said beside them.
async fn count(launched: &ZmqKernel, code: &str) -> (usize, Vec<String>, Outcome) {
    let mut execution = launched.kernel.execute(KernelCell::new(code)).await;
    let (mut printed, mut warnings) = (0, Vec::new());
    loop {
        match execution.next().await {
            // On standard error ipykernel says of itself when it is slow to flush.
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text {
                stream: Stream::Stdout,
                text,
            }))) => {
                printed += text.len();
            }
            CellUpdate::Event(Event::Warning(warning)) => warnings.push(warning),
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => return (printed, warnings, finished.outcome),
        }
    }
}

#[tokio::test]
async fn every_byte_of_120_megabytes_arrives_with_its_own_cell() {
    let place = Place::new();
    let mut launched = place.launch("python").start().await.unwrap();
    let whole = (120_000_001, Vec::new(), Outcome::Completed);
    assert_eq!(count(&launched, "print('x' * 120_000_000)").await, whole);
    let in_pieces = (60 * 2_000_001, Vec::new(), Outcome::Completed);
    let code = "for i in range(60): print('z' * 2_000_000, flush=True)";
    assert_eq!(count(&launched, code).await, in_pieces);
    assert_eq!(count(&launched, "print('next')").await.0, 5);
    assert!(launched.background.try_next().is_none());
}

#[tokio::test]
async fn a_runtime_folder_too_deep_for_sockets_keeps_no_kernel_from_starting() {
    let place = Place::new();
    let runtime = place.runtime().join("deep".repeat(30));
    let launched = ZmqLaunch { runtime, ..place.launch("python3") }.start().await.unwrap();
    assert_eq!(run(&launched, "print('here')").await.0, "here\n");
}

#[tokio::test]
async fn bash_runs_too() {
    let place = Place::new();
    let mut bash = spec(&["-m", "bash_kernel", "-f", "{connection_file}"]);
    bash["language"] = "bash".into();
    let launched = place.install("bash", &bash).launch("sh").start().await.unwrap();
    assert_eq!(launched.info.language_info.name, "bash");
    assert_eq!(run(&launched, "greeting=hello").await, (String::new(), Outcome::Completed));
    assert_eq!(run(&launched, "echo $greeting from $((6 * 7))").await.0, "hello from 42\n");
    let (_, outcome) = run(&launched, "no_such_command").await;
    assert!(matches!(outcome, Outcome::Raised(_)), "{outcome:?}");
    let mut cell = KernelCell::new("sleep 600");
    cell.timeout = Some(Duration::from_millis(500));
    let (_, finished) = launched.kernel.execute(cell).await.collect().await;
    assert!(matches!(finished.outcome, Outcome::Stopped { kernel: Fate::Survived, .. }), "{finished:?}");
    assert_eq!(run(&launched, "echo $greeting").await.0, "hello\n");
    // It is not Python: there is nothing to tell its variables with.
    assert!(launched.kernel.variables(10).await.is_err());
}
