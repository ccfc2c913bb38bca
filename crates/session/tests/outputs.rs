//! What a cell shows, as its report tells it and as a notebook keeps it: the same.

use std::borrow::Cow;

use cellwright_cell::{Exception, MimeBundle, Output, OutputChange, Stream};
use cellwright_notebook::Notebook;
use cellwright_notebook::recording::Recording;
use cellwright_output::{Artifacts, Colours, OutputLimits, OutputSink};
use cellwright_session::{CollectedOutput, Collector, OutputSettings, ReportOutputs, ShownOutput};
use serde_json::{Value, json};

type RunRecording = Recording<ReportOutputs>;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn out(text: &str) -> OutputChange {
    OutputChange::Added(Output::Text { stream: Stream::Stdout, text: text.into() })
}

fn err(text: &str) -> OutputChange {
    OutputChange::Added(Output::Text { stream: Stream::Stderr, text: text.into() })
}

fn bundle(data: Value) -> MimeBundle {
    let Value::Object(data) = data else { panic!("{data}") };
    data.into()
}

fn text(text: &str) -> MimeBundle {
    bundle(json!({ "text/plain": text }))
}

fn show(content: MimeBundle) -> OutputChange {
    OutputChange::Added(Output::Display { content: content.into(), display_id: None })
}

fn show_as(display_id: &str, content: MimeBundle) -> OutputChange {
    OutputChange::Added(Output::Display { content: content.into(), display_id: Some(display_id.into()) })
}

fn update(display_id: &str, content: MimeBundle) -> OutputChange {
    OutputChange::Updated { display_id: display_id.into(), content: content.into() }
}

fn result(content: MimeBundle) -> OutputChange {
    OutputChange::Added(Output::Result { content: content.into(), count: Some(1) })
}

fn raise() -> OutputChange {
    let traceback = vec!["Traceback:".into(), "  \x1b[31mE\x1b[0m: why".into()];
    OutputChange::Added(Output::Error(Exception {
        name: "E".into(),
        message: "why".into(),
        traceback,
        ..Exception::default()
    }))
}

fn clear(wait: bool) -> OutputChange {
    OutputChange::Cleared { wait }
}

/// The report of a cell that does this, and the notebook that recorded it.
fn both(changes: &[OutputChange], settings: &OutputSettings) -> (CollectedOutput, RunRecording) {
    let mut collector = Collector::new(settings);
    let mut recording = RunRecording::with_report(32 << 20, settings.clone());
    for change in changes {
        collector.apply(change);
        recording.reducer().apply(0, change);
    }
    (collector.finish(), recording)
}

fn saved(recording: &RunRecording) -> Notebook {
    let cell = json!({"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": "x"});
    let text = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let notebook = Notebook::parse(serde_json::to_vec(&text).unwrap()).unwrap();
    notebook.with_results([(0, &recording.results(0))])
}

/// The text of the outputs in the file, each on lines of its own.
fn in_file(recording: &RunRecording) -> String {
    let mut text = String::new();
    for output in saved(recording).cell(0).outputs() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let shown = || Some(output.bundle()?.text("text/plain")?.into_owned());
        let printed = output.stream_text().map(Cow::into_owned);
        let kept = printed.or_else(|| output.traceback()).or_else(shown).unwrap_or_default();
        let mut screen = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
        screen.write(Stream::Stdout, kept.as_bytes());
        text.push_str(&screen.finish().text);
    }
    text
}

#[track_caller]
fn check(changes: &[OutputChange], expected: &str) {
    let settings = OutputSettings::default();
    let (told, mut recording) = both(changes, &settings);
    assert_eq!(told.text.text, expected, "told");
    let (report_settings, report) = recording.report(0);
    assert_eq!(report.snapshot(report_settings), told, "reported beside the notebook");
    let kept = recording.results(0);
    assert_eq!(CollectedOutput::of(kept.whole().unwrap(), &settings), told, "kept, told again");
    assert_eq!(in_file(&recording).trim_end_matches('\n'), expected.trim_end_matches('\n'), "in the file");
}

#[test]
fn text_of_one_stream_goes_on_and_text_of_another_stands_apart() {
    check(&[out("a"), out("b\n"), err("e\n"), out("c")], "ab\ne\nc");
    check(&[out("no line end"), err("warning\n"), out("on\n")], "no line end\nwarning\non\n");
    check(&[out("x"), show(text("shown")), out("y")], "x\nshown\ny");
    check(&[out(""), show(text("shown")), out("")], "shown\n");
}

#[test]
fn k27_a_progress_bar_is_one_line_and_takes_nothing_else_away() {
    check(&[out("\r10%"), out("\r20%"), out("\r100%\n"), out("ab\x08c\n")], "100%\nac\n");
    check(
        &[out("kept"), err("\r10%"), err("\r20%"), out("more\n"), err("\r30%\n")],
        "kept\n20%\nmore\n30%\n",
    );
    check(&[err("\x1b[32m10\x1b[0m\r\x1b[K\x1b[32m20\x1b[0m")], "20");
}

#[test]
fn k27_what_is_cleared_is_gone_at_once_or_when_something_comes() {
    check(&[out("old\n"), clear(false)], "");
    check(&[out("old\n"), clear(false), out("new\n")], "new\n");
    check(&[out("old\n"), clear(true)], "old\n");
    check(&[out("old\n"), clear(true), clear(true), err("new\n")], "new\n");
    check(&[out("old\n"), clear(true), clear(false), out("one\n"), out("two\n")], "one\ntwo\n");
    check(&[out("old"), clear(true), out("new")], "new");
    check(&[show_as("d", text("old")), clear(true), raise()], "Traceback:\n  E: why\n");
}

#[test]
fn k27_a_display_that_is_updated_changes_where_it_stands() {
    check(&[out("a\n"), show_as("d", text("0%")), out("b\n"), update("d", text("100%"))], "a\n100%\nb\n");
    check(
        &[show_as("d", text("0%")), out("b"), out("c\n"), err("e"), update("d", text("50%")), err("f\n")],
        "50%\nbc\nef\n",
    );
    check(
        &[
            show_as("d", text("one")),
            show_as("e", text("two")),
            update("e", text("2")),
            update("d", text("1")),
        ],
        "1\n2\n",
    );
    // Shown again under its name it changes where it was shown before.
    check(&[show_as("d", text("one")), out("x\n"), show_as("d", text("two"))], "two\nx\ntwo\n");
    check(
        &[show_as("d", text("a\nb\nc")), raise(), update("d", text("short"))],
        "short\nTraceback:\n  E: why\n",
    );
}

#[test]
fn errors_and_results_come_in_their_order() {
    check(&[out("a\n"), result(text("42")), raise()], "a\n42\nTraceback:\n  E: why\n");
}

#[test]
fn an_image_that_is_updated_is_one_image() {
    let picture = || bundle(json!({ "image/png": PNG, "text/plain": "<Figure>" }));
    let settings = OutputSettings::default();
    let changes = [out("a\n"), show_as("d", text("no picture yet")), out("b\n"), update("d", picture())];
    let (told, recording) = both(&changes, &settings);
    assert_eq!(told.text.text, "a\n[image 1: image/png, 1x1, 70 bytes]\nb\n");
    assert_eq!(told.images().count(), 1);
    assert_eq!(CollectedOutput::of(recording.results(0).whole().unwrap(), &settings), told);
}

#[test]
fn a_value_is_reported_as_the_value_it_is() {
    let settings = OutputSettings::default();
    let value = json!({ "b": [1, 2], "a": null });
    let (told, recording) = both(&[result(bundle(json!({ "application/json": value.clone() })))], &settings);
    assert_eq!(told.shown, [ShownOutput::Json(value.into())]);
    assert_eq!(CollectedOutput::of(recording.results(0).whole().unwrap(), &settings), told);
}

#[test]
fn a_number_that_is_too_big_for_us_keeps_its_digits_in_the_text() {
    let data = r#"{"application/json": {"n":1000000000000000000000000000057}}"#;
    let value = MimeBundle { data: serde_json::from_str(data).unwrap(), ..MimeBundle::default() };
    let (told, recording) = both(&[result(value)], &OutputSettings::default());
    assert_eq!(told.text.text, "{\n  \"n\": 1000000000000000000000000000057\n}\n");
    assert!(saved(&recording).text().contains("1000000000000000000000000000057"));
}

#[test]
fn of_much_text_the_same_is_left_out_and_all_of_it_is_stored() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let limits = OutputLimits { head: 2_000, tail: 3_000, ..OutputLimits::default() };
    let settings = OutputSettings { limits, artifacts: Some(artifacts.clone()), ..OutputSettings::default() };
    let mut changes = vec![show_as("d", text("running"))];
    changes.extend((0..10_000).map(|line| out(&format!("line {line}\n"))));
    changes.push(update("d", text("done\nin 3 s")));
    let (told, recording) = both(&changes, &settings);
    let again = CollectedOutput::of(recording.results(0).whole().unwrap(), &settings);
    let stored = [told, again].map(|told| {
        let truncation = told.text.truncation.unwrap();
        let id = truncation.full.artifact().unwrap().clone();
        assert!(told.text.text.starts_with("done\nin 3 s\nline 0\n"), "{}", told.text.text);
        assert!(told.text.text.ends_with("line 9999\n"));
        assert_eq!(truncation.total.lines, 10_002);
        let page = artifacts.open(&id).unwrap().lines(1..=u64::MAX, usize::MAX).unwrap();
        (truncation.total, truncation.omitted, page.text)
    });
    assert_eq!(stored[0], stored[1]);
    assert_eq!(stored[0].2.lines().nth(10_001), Some("line 9999"));
}

#[test]
fn a_display_that_is_out_of_reach_is_shown_again_at_the_end() {
    let mut collector = Collector::new(&OutputSettings::default());
    collector.apply(&show_as("d", text("running")));
    for _ in 0..5 {
        collector.apply(&out(&"x\n".repeat(1 << 20)));
    }
    collector.apply(&update("d", text("half")));
    collector.apply(&update("d", text("done")));
    let told = collector.finish().text.text;
    assert!(told.starts_with("running\nx\n"), "{}", &told[..40]);
    assert!(told.ends_with("x\ndone\n"), "{}", &told[told.len() - 40..]);
}

#[test]
fn displays_without_end_are_bounded_and_none_is_lost() {
    let mut collector =
        Collector::new(&OutputSettings { limits: OutputLimits::NONE, ..OutputSettings::default() });
    for number in 0..5_000 {
        collector.apply(&show_as(&format!("d{number}"), text(&format!("number {number}"))));
    }
    let told = collector.finish().text.text;
    assert_eq!(told.lines().count(), 5_000);
    assert_eq!(told.lines().nth(4_321), Some("number 4321"));
}

#[test]
fn what_a_running_cell_shows_can_be_looked_at_and_goes_on_changing() {
    let mut collector = Collector::new(&OutputSettings::default());
    for change in [out("a\n"), show_as("d", text("0%")), out("b")] {
        collector.apply(&change);
    }
    assert_eq!(collector.snapshot().text.text, "a\n0%\nb");
    collector.apply(&update("d", text("50%")));
    collector.apply(&out("c\n"));
    assert_eq!(collector.snapshot().text.text, "a\n50%\nbc\n");
    collector.apply(&update("d", text("100%")));
    assert_eq!(collector.finish().text.text, "a\n100%\nbc\n");
}

#[test]
fn what_a_look_at_a_running_cell_leaves_out_is_where_it_says() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let limits = OutputLimits { head: 200, tail: 300, ..OutputLimits::default() };
    let settings = OutputSettings { limits, artifacts: Some(artifacts.clone()), ..OutputSettings::default() };
    let mut collector = Collector::new(&settings);
    collector.apply(&show_as("d", text("0%")));
    collector.apply(&out(&"x\n".repeat(1_000)));
    let looked = collector.snapshot().text.truncation.unwrap();
    let page =
        artifacts.open(looked.full.artifact().unwrap()).unwrap().lines(1..=u64::MAX, usize::MAX).unwrap();
    assert_eq!(page.text.lines().count() as u64, looked.total.lines);
    collector.apply(&update("d", text("100%")));
    let text = collector.finish().text.text;
    assert!(text.starts_with("0%\nx\n") && text.ends_with("x\n100%\n"), "{text}");
}
