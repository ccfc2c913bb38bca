//! What lasts from call to call, and what a kernel finds.

use cellwright_kernel::environment::EnvVars;
use cellwright_output::Artifacts;
use cellwright_session::{
    CallEvent, CallUpdate, CellRequest, CellStatus, KernelAfter, KernelUse, Reset, ShownOutput,
};
use cellwright_testkit::{Door, eventually};
use serde_json::json;

use super::support::{Fixture, notices};

#[tokio::test]
async fn variables_last_until_a_reset() {
    let fixture = Fixture::new();
    let report = fixture.run(&["x = 20", "x + 1"]).await;
    assert_eq!(report.cells[1].output.text.text, "21\n");
    assert_eq!(report.kernel.usage, KernelUse::Fresh);
    assert!(report.kernel.about.as_ref().unwrap().to_string().contains("cpython 3."), "{report:#?}");
    let report = fixture.run(&["x = x * 2", "print(x)\n1 / 0", "never"]).await;
    assert_eq!(
        (report.kernel.usage.clone(), report.kernel.after.clone()),
        (KernelUse::Reused, KernelAfter::Alive)
    );
    let failed = report.failed().unwrap();
    let CellStatus::Error(exception) = &failed.status else { panic!("{failed:?}") };
    assert_eq!((failed.index, exception.name.as_str(), exception.line), (1, "ZeroDivisionError", Some(2)));
    assert!(failed.output.text.text.starts_with("40\nTraceback"), "{}", failed.output.text.text);
    assert_eq!(fixture.text("x").await, "40\n");
    let variables = fixture.client.variables(&fixture.key(), 10).await.unwrap();
    assert_eq!((variables.total, variables.listed[0].name.as_str()), (1, "x"));
    let mut call = fixture.call(&[]);
    call.cells = vec![CellRequest { reset: Reset::Yes, ..CellRequest::new("'x' in globals()") }];
    let report = fixture.client.call(call).await.unwrap().report().await;
    assert_eq!(report.cells[0].output.text.text, "False\n");
}

#[tokio::test]
async fn variables_are_listed_while_a_cell_runs() {
    let fixture = Fixture::new();
    let door = Door::new();
    let code = format!("before = [1, 2]\n{}\nimport threading; threading.Event().wait()", door.knock());
    let running = fixture.client.call(fixture.call(&[&code])).await.unwrap();
    door.knocked().await;
    let variables = fixture.client.variables(&fixture.key(), 10).await.unwrap();
    assert_eq!(variables.listed[0].preview, "[1, 2]");
    drop(running);
}

#[tokio::test]
async fn variables_given_with_a_call_reach_its_cells() {
    let fixture = Fixture::new();
    let home = ("HOME".into(), fixture.folder.path().into());
    let with = async |zone: Option<&str>| {
        let mut call = fixture.call(&["import os; os.environ.get('TZ'), os.environ.get('API_TOKEN')"]);
        call.variables = Some(EnvVars::from([home.clone(), ("API_TOKEN".into(), "secret".into())]));
        call.variables.as_mut().unwrap().extend(zone.map(|zone| ("TZ".into(), zone.into())));
        let report = fixture.client.call(call).await.unwrap().report().await;
        report.cells[0].output.text.text.clone()
    };
    assert_eq!(with(None).await, "(None, None)\n");
    assert_eq!(with(Some("Asia/Tokyo")).await, "('Asia/Tokyo', None)\n");
    assert_eq!(with(Some("Africa/Lagos")).await, "('Africa/Lagos', None)\n");
    assert_eq!(with(None).await, "(None, None)\n");
}

#[tokio::test]
async fn k15_a_change_of_folder_lasts() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.folder.path().join("below")).unwrap();
    fixture.text("import os; os.chdir('below')").await;
    assert!(fixture.text("print(os.getcwd())").await.ends_with("/below\n"));
}

#[tokio::test]
async fn a_kernel_finds_its_folder_its_environment_and_the_modules() {
    let fixture = Fixture::with(|settings, folder| {
        for (place, name, source) in [
            ("user", "both", "both = 'user'"),
            ("user", "mine", "def shout(text): return text.upper()"),
            ("user", "broken", "fine = 1\n1 / 0"),
            ("project", "both", "both = 'project'"),
        ] {
            std::fs::create_dir_all(folder.join(place)).unwrap();
            std::fs::write(folder.join(place).join(format!("{name}.py")), source).unwrap();
        }
        std::fs::write(folder.join("beside.py"), "here = True").unwrap();
        settings.modules = vec![folder.join("user"), "project".into(), "missing".into()];
        settings.env.insert("GREETING".into(), Some("hello".into()));
        settings.session_file = Some("/tmp/conversation.jsonl".into());
    });
    let report = fixture.run(&["print(both, shout('a'))", "import os, beside, sys\nprint(beside.here, env('GREETING'), env('PI_SESSION_FILE'), env('CELLWRIGHT_SESSION_FILE'))\nprint(env('ARTIFACTS') == env('CELLWRIGHT_ARTIFACTS_DIR') == env('PI_ARTIFACTS_DIR') == os.path.join(os.getcwd(), 'artifacts'), env('CELLWRIGHT_TOOL_BRIDGE_URL'))"]).await;
    assert_eq!(report.cells[0].output.text.text, "project A\n", "{report:#?}");
    let told = &report.cells[1].output.text.text;
    assert_eq!(told, "True hello /tmp/conversation.jsonl /tmp/conversation.jsonl\nTrue None\n");
    let [told] = &notices(&report)[..] else { panic!("{:?}", notices(&report)) };
    assert!(told.starts_with("module `broken` was not loaded: ZeroDivisionError"), "{told}");
    assert!(told.contains("broken.py, line 2"), "{told}");

    // Who reads events is told by one.
    fixture.run(&["import os; os._exit(1)"]).await;
    let mut running = fixture.client.call(fixture.call(&["1"])).await.unwrap();
    let mut events = Vec::new();
    while let CallUpdate::Event(event) = running.next().await {
        if let CallEvent::Notice(notice) = event {
            events.push(notice.to_string());
        }
    }
    assert!(events.iter().any(|told| told.contains("broken.py, line 2")), "{events:?}");
}

#[tokio::test]
async fn what_threads_print_after_the_cell_is_shown_with_the_next_reply() {
    let fixture = Fixture::new();
    let first = fixture
        .text("import threading\ngo = threading.Event()\nsaid = threading.Event()\ndef work():\n    go.wait()\n    print('late')\n    said.set()\nthreading.Thread(target=work).start()\nthreading.Timer(0.05, go.set).start()")
        .await;
    let mut running = fixture.client.call(fixture.call(&["said.wait()\nprint('now')"])).await.unwrap();
    let mut late = String::new();
    let report = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::LateBefore(before)) => late.push_str(&before.collected.text.text),
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => break report,
        }
    };
    // Whether it came before, during or (on a busy machine) right at the end of the first cell, it is shown once, and
    // not lost.
    let told = report.late.as_ref().map_or("", |late| late.text.text.as_str());
    let cell = &report.cells[0].output.text.text;
    assert_eq!(
        (
            [told, cell, &first].map(|text| text.matches("late\n").count()).iter().sum::<usize>(),
            cell.contains("now\n")
        ),
        (1, true)
    );
    assert!(told.starts_with(&late));
}

#[tokio::test]
async fn images_values_and_status_events_are_kept_apart_from_text() {
    let fixture = Fixture::new();
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let code = format!(
        "print('before')\ndisplay({{'image/png': '{png}', 'text/plain': '<Figure>'}}, raw=True)\ndisplay({{'application/json': {{'a': [1, 2]}}}}, raw=True)\ndisplay({{'application/x-omp-status': {{'op': 'read'}}}}, raw=True)\nprint('after')"
    );
    let report = fixture.run(&[&code]).await;
    let output = &report.cells[0].output;
    assert!(output.text.text.starts_with("before\n[image 1: image/png, 1x1, 70 bytes]\n{\n"), "{output:#?}");
    assert!(output.text.text.ends_with("\nafter\n"));
    let [ShownOutput::Image(image), ShownOutput::Json(value), ShownOutput::Status(status)] =
        &output.shown[..]
    else {
        panic!("{output:#?}")
    };
    assert_eq!(
        (image.bytes.len(), value.value(), status.value()),
        (70, json!({"a": [1, 2]}), json!({"op": "read"}))
    );
}

#[tokio::test]
async fn a_display_that_is_updated_shows_its_last_state() {
    let fixture = Fixture::new();
    let code = "h = display('step 0', display_id=True)\nfor i in range(1, 50): h.update(f'step {i}')";
    assert_eq!(fixture.text(code).await, "'step 49'\n");
    assert_eq!(fixture.text("h.update('from another cell')").await, "'from another cell'\n");
}

#[tokio::test]
async fn more_images_than_a_report_holds_go_to_the_artifacts() {
    let fixture = Fixture::with(|settings, _| settings.output.shown = 100);
    let code = "display({'application/json': 'x' * 80}, raw=True)\ndisplay({'application/json': 'y' * 80}, raw=True)";
    let report = fixture.run(&[code]).await;
    let [ShownOutput::Json(_), ShownOutput::Stored { what, artifact: Ok(id) }] =
        &report.cells[0].output.shown[..]
    else {
        panic!("{report:#?}")
    };
    assert_eq!(what, "JSON, 82 bytes");
    let stored = Artifacts::new(fixture.folder.path().join("artifacts")).open(id).unwrap();
    assert_eq!(std::fs::read_to_string(stored.path).unwrap(), format!("\"{}\"", "y".repeat(80)));
}

#[tokio::test]
async fn k16_a_kernel_that_takes_much_memory_is_reported() {
    let fixture = Fixture::with(|settings, _| settings.limits.memory = Some(1));
    fixture.run(&["1"]).await;
    // It is looked at now and then only.
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    tokio::time::resume();
    let report = fixture.run(&["2"]).await;
    assert!(report.kernel.memory.is_some_and(|bytes| bytes > 1 << 20), "{report:#?}");
    let [told] = &notices(&report)[..] else { panic!("{:?}", notices(&report)) };
    assert!(told.starts_with("the kernel takes ") && told.contains("MiB of memory"), "{told}");
    let info = fixture.client.sessions().await.unwrap().remove(0);
    assert!(info.memory.is_some() && info.uptime.is_some() && info.holders == 1);
}

#[tokio::test]
async fn a_thread_that_prints_without_end_between_calls_is_held_up_and_harms_nothing() {
    let fixture = Fixture::new();
    let code = "import threading\ngo = True\ndef work():\n    while go: print('x' * 10_000)\nthreading.Thread(target=work).start()";
    fixture.text(code).await;
    // Longer than it would take to fill what is taken in.
    let artifacts = fixture.folder.path().join("artifacts");
    let stored = || std::fs::read_dir(&artifacts).into_iter().flatten().flatten();
    let largest = || stored().filter_map(|file| Some(file.metadata().ok()?.len())).max();
    eventually("the limit", async || largest().is_some_and(|bytes| bytes > 60 << 20)).await;
    let report = fixture.run(&["go = False"]).await;
    assert!(report.succeeded(), "{report:#?}");
    let late = report.late.as_ref().unwrap().text.truncation.as_ref().unwrap().total.bytes;
    assert!(late > 60 << 20, "{late}");
    // Its last line may come with this cell.
    assert!(fixture.text("'on'").await.ends_with("'on'\n"));
}
