//! Everything that is printed arrives, once, in order, with the cell it belongs to.

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::{CellUpdate, Event, KernelCell, Outcome};
use cellwright_testkit::{Door, alone};

use super::support::{Fixture, knock_when_held_up, until_printed};

#[tokio::test]
async fn k1_the_tail_of_a_childs_output_is_never_lost() {
    let fixture = Fixture::start().await;
    let code = "import subprocess, sys\n\
        subprocess.run([sys.executable, '-S', '-c', 'import sys; sys.stdout.write(\"x\" * 70000 + \"END\")'])";
    // The runs share a kernel: what one cell lost would show up in the next.
    for round in 0..40 {
        let printed = fixture.stdout(code).await;
        assert_eq!((printed.len(), &printed[70000..]), (70003, "END"), "round {round}");
    }
    let code = "import os\nos.system(\"printf '%070000d' 0; printf END\") and None";
    for round in 0..200 {
        let printed = fixture.stdout(code).await;
        assert_eq!((printed.len(), &printed[70000..]), (70003, "END"), "round {round}");
    }
}

#[tokio::test]
async fn k1_a_stream_of_52_megabytes_from_a_child_arrives_whole() {
    let fixture = Fixture::start().await;
    let code = "import os\nos.system('head -c 52000000 /dev/zero | tr \"\\\\0\" y') and None";
    let printed = fixture.stdout(code).await;
    assert_eq!(printed.len(), 52_000_000);
    assert!(printed.bytes().all(|byte| byte == b'y'));
}

#[tokio::test]
async fn k2_standard_error_of_children_and_of_c_code_is_captured() {
    let fixture = Fixture::start().await;
    let code = "import os, ctypes\n\
        os.system('echo from a child >&2')\n\
        os.write(2, b'from a descriptor\\n')\n\
        libc = ctypes.CDLL(None)\n\
        libc.dprintf(2, b'from C\\n')\n\
        os.write(1, b'out\\n');";
    for round in 0..200 {
        let ran = fixture.run(code).await;
        assert_eq!(ran.stderr(), "from a child\nfrom a descriptor\nfrom C\n", "round {round}");
        assert_eq!(ran.stdout(), "out\n", "round {round}");
    }
}

#[tokio::test]
async fn k2_what_a_thread_prints_is_kept_and_goes_to_the_cell_that_runs_or_to_the_session() {
    let mut fixture = Fixture::start().await;
    for round in 0..200 {
        let during = "import threading\n\
            thread = threading.Thread(target=print, args=('in the cell',))\n\
            thread.start(); thread.join()";
        assert_eq!(fixture.stdout(during).await, "in the cell\n", "round {round}");
        let after = "go = threading.Event(); printed = threading.Event()\n\
            def late():\n\
            \x20   go.wait(); print('after the cell', flush=True); printed.set()\n\
            threading.Thread(target=late).start()\n\
            threading.Timer(0.001, go.set).start()";
        let early = fixture.stdout(after).await;
        // The thread may be faster than the end of its cell; what it prints later is the session's.
        let next = fixture.stdout("printed.wait(); print('next')").await;
        let late = fixture.late();
        assert_eq!(format!("{early}{late}{next}").replace("after the cell\n", ""), "next\n", "round {round}");
        assert_eq!(format!("{early}{late}{next}").matches("after the cell\n").count(), 1, "round {round}");
    }
}

#[tokio::test]
async fn k2_output_after_the_end_of_a_cell_is_not_the_next_cells() {
    let mut fixture = Fixture::start().await;
    let pipe = fixture.folder.path().join("go");
    let code = format!(
        "import os, subprocess\nos.mkfifo({pipe:?})\nchild = subprocess.Popen(['sh', '-c', 'read line <{}; echo late'])",
        pipe.display()
    );
    assert_eq!(fixture.stdout(&code).await, "");
    std::fs::write(&pipe, "go\n").unwrap();
    let event = fixture.background.next().await.unwrap();
    assert!(
        matches!(event, Event::Output(OutputChange::Added(Output::Text { text, .. })) if text == "late\n")
    );
    assert_eq!(fixture.stdout("child.wait(); print('mine')").await, "mine\n");
}

#[tokio::test]
async fn k3_standard_output_is_a_real_file() {
    let fixture = Fixture::start().await;
    let code = "import subprocess, sys, os\n\
        sys.stdout.buffer.write(b'bytes\\n')\n\
        os.write(sys.stdout.fileno(), b'') and None\n\
        subprocess.run(['echo', 'child'], stdout=sys.stdout)\n\
        subprocess.run('echo error >&2', shell=True, stderr=sys.stderr)\n\
        print('end', file=sys.stderr)";
    let ran = fixture.run(code).await;
    assert_eq!(ran.finished.outcome, Outcome::Completed, "{ran:?}");
    let mut lines: Vec<_> = ran.stdout().lines().map(String::from).collect();
    lines.sort();
    assert_eq!((lines, ran.stderr()), (vec!["bytes".into(), "child".into()], "error\nend\n".into()));
}

#[tokio::test]
async fn the_two_streams_and_displays_keep_their_order() {
    let fixture = Fixture::start().await;
    let code = "import sys\n\
        for i in range(3):\n\
        \x20   print('out', i)\n\
        \x20   print('err', i, file=sys.stderr)\n\
        \x20   display(i)\n\
        print('last')\n\
        99";
    let expected: Vec<String> = (0..3)
        .flat_map(|i| [format!("out out {i}\n"), format!("err err {i}\n"), format!("show {i}")])
        .chain(["out last\n".into(), "show 99".into()])
        .collect();
    for _ in 0..20 {
        assert_eq!(fixture.run(code).await.sequence(), expected);
    }
}

#[tokio::test]
async fn k10_values_that_json_cannot_hold_are_shown_anyway() {
    let fixture = Fixture::start().await;
    let code = "class Odd:\n\
        \x20   def _repr_mimebundle_(self, include=None, exclude=None):\n\
        \x20       loop = []; loop.append(loop)\n\
        \x20       return {'text/plain': 'odd', 'application/json': {'nan': float('nan'), 'bytes': b'x', 'set': {1}, 'loop': loop}}\n\
        Odd()";
    let ran = fixture.run(code).await;
    assert_eq!(ran.result(), Some("odd"), "{ran:?}");
    assert_eq!(fixture.run("float('inf')").await.result(), Some("inf"));
}

#[tokio::test]
async fn k13_commands_cannot_steal_the_protocol_and_any_bytes_are_output() {
    let fixture = Fixture::start().await;
    assert_eq!(fixture.stdout("!cat; printf 'a\\377b'").await, "a\u{fffd}b");
    assert_eq!(fixture.stdout("import os\nprint(len(os.read(0, 10)))").await, "0\n");
    assert_eq!(fixture.stdout("print('still here')").await, "still here\n");
}

#[tokio::test]
async fn k31_text_arrives_while_the_cell_runs() {
    let fixture = Fixture::start().await;
    let mut execution = fixture
        .kernel
        .execute(KernelCell::new("import threading\nprint('first')\nthreading.Event().wait(600)"))
        .await;
    until_printed(&mut execution, "first").await;
    execution.stop();
    execution.collect().await;
}

#[tokio::test]
async fn a_megabyte_frame_and_a_hundred_thousand_lines_arrive() {
    let fixture = Fixture::start().await;
    let ran = fixture.run("display({'text/plain': 'x' * 20_000_000}, raw=True)").await;
    let shown = ran.events.iter().find_map(|event| match event {
        Event::Output(OutputChange::Added(Output::Display { content, .. })) => {
            content.data.get("text/plain")?.as_str()
        }
        _ => None,
    });
    assert_eq!(shown.map(str::len), Some(20_000_000), "{:?}", ran.finished);
    let printed = fixture.stdout("for i in range(100_000): print(i)").await;
    assert!(printed.lines().map(|line| line.parse::<u32>().unwrap()).eq(0..100_000));
}

#[tokio::test]
async fn an_unreadable_message_is_reported_and_does_no_harm() {
    let mut fixture = Fixture::start().await;
    let code = r#"import os; os.write(4, b'garbage\n{"type":"dance"}\n'); 5"#;
    assert_eq!(fixture.run(code).await.result(), Some("5"));
    let mut warnings = Vec::new();
    while let Some(Event::Warning(warning)) = fixture.background.try_next() {
        warnings.push(warning);
    }
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].contains("`dance` is unknown"), "{warnings:?}");
    assert_eq!(fixture.run("6").await.result(), Some("6"));
}

#[tokio::test]
async fn thousands_of_cells_do_not_make_the_host_grow() {
    if !alone() {
        return;
    }
    let fixture = Fixture::start().await;
    let run = async |cells: usize| {
        for _ in 0..cells {
            assert_eq!(fixture.run("print('x'); 1").await.result(), Some("1"));
        }
        resident()
    };
    let before = run(500).await;
    let after = run(2500).await;
    assert!(after.saturating_sub(before) < 5 << 20, "grew by {} bytes", after - before);
}

#[tokio::test]
async fn text_that_looks_like_a_mark_is_text() {
    let fixture = Fixture::start().await;
    let printed =
        fixture.stdout(r"print('\x1b_cw:0123456789abcdef0123456789abcdef:1\x1b\\', end='\x1b')").await;
    assert_eq!(printed, "\x1b_cw:0123456789abcdef0123456789abcdef:1\x1b\\\x1b");
}

#[tokio::test]
async fn two_hundred_megabytes_stream_through_a_host_that_stays_small() {
    if !alone() {
        return;
    }
    let fixture = Fixture::start().await;
    let before = resident();
    let code = "import sys\nfor _ in range(3200): sys.stdout.write('x' * 65535 + '\\n')";
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    let (mut bytes, mut most) = (0, 0);
    let finished = loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                bytes += text.len();
                most = most.max(resident());
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => break finished,
        }
    };
    assert_eq!((bytes, finished.outcome), (3200 * 65536, Outcome::Completed));
    assert!(most - before < 32 << 20, "grew by {} bytes", most - before);
}

#[tokio::test]
async fn a_reader_that_pauses_holds_the_cell_and_loses_nothing() {
    let fixture = Fixture::start().await;
    let done = fixture.folder.path().join("done");
    let door = Door::new();
    let code = format!(
        "{}import sys\nfor i in range(300): sys.stdout.write('x' * 65535 + '\\n')\nopen({done:?}, 'w').close()",
        knock_when_held_up(&door)
    );
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    let mut bytes = 0;
    while bytes == 0 {
        let CellUpdate::Event(event) = execution.next().await else { panic!("ended early") };
        bytes += printed(&event);
    }
    // Twenty megabytes do not fit in what may wait, so the cell cannot have come to its end.
    door.knocked().await;
    assert!(!done.exists());
    let (events, finished) = execution.collect().await;
    bytes += events.iter().map(printed).sum::<usize>();
    assert_eq!((bytes, finished.outcome), (300 * 65536, Outcome::Completed));
    assert!(done.exists());
}

fn printed(event: &Event) -> usize {
    match event {
        Event::Output(OutputChange::Added(Output::Text { text, .. })) => text.len(),
        _ => 0,
    }
}

/// Our own resident memory in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
