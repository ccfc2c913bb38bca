//! What a terminal shows of a call, by a terminal: what the render writes is fed to an emulator.

use std::sync::{Mutex, PoisonError};

use avt::Terminal;
use cellwright_cell::Exception;
use serde_json::{Value, json};

use super::*;
use crate::draw::style::TextPen;
use crate::draw::terminal::{BlockColours, ImageProtocol};
use crate::render::FullOutputs;

/// A picture of two pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

/// What was written.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8(bytes).unwrap()
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A render, and the terminal that it draws on.
struct DrawnCall {
    render: CellRender<SharedBytes>,
    written: SharedBytes,
    size: Arc<Mutex<TerminalSize>>,
    terminal: Terminal,
    /// Everything that was written.
    raw: String,
    started: Instant,
}

impl DrawnCall {
    fn new(columns: usize, rows: usize, look: CellLook, titles: &[&str]) -> Self {
        let titles = titles.iter().map(|title| Some((*title).to_owned()).filter(|title| !title.is_empty()));
        let headings = CellHeadings::counted(titles.collect());
        let size = Arc::new(Mutex::new(TerminalSize { columns, rows, character: (10, 20) }));
        let (written, of_render) = (SharedBytes::default(), Arc::clone(&size));
        let terminal_size = move || *of_render.lock().unwrap_or_else(PoisonError::into_inner);
        let render =
            CellRender::new(written.clone(), Box::new(terminal_size), look, headings, KernelFate::Stays);
        let terminal = Terminal::with_scrollback(columns, rows, None).unwrap();
        Self { render, written, size, terminal, raw: String::new(), started: Instant::now() }
    }

    fn change(&mut self, change: &OutputChange) {
        self.render.change(change).unwrap();
    }

    fn print(&mut self, text: &str) {
        self.change(&OutputChange::Added(Output::text(Stream::Stdout, text)));
    }

    fn display(&mut self, data: Value, id: Option<&str>) {
        self.change(&OutputChange::Added(Output::Display {
            content: bundle(data),
            display_id: id.map(str::to_owned),
        }));
    }

    /// A screen of text for each frame that there was time for.
    fn most_bytes(&self) -> usize {
        let frames = self.started.elapsed().as_millis() / FRAME.as_millis() + 3;
        usize::try_from(frames).unwrap() * 24 * 80
    }

    fn resize(&mut self, columns: usize) {
        self.size.lock().unwrap().columns = columns;
        self.terminal.resize(columns, self.size.lock().unwrap().rows);
    }

    fn finish(&mut self, cell: usize) {
        self.render.finish(cell, &StatusMark::Ok(Duration::from_millis(300))).unwrap();
    }

    /// What the terminal shows now, with what has scrolled away. Times are as if none had passed.
    fn screen(&mut self) -> String {
        self.render.tick().unwrap();
        let written = self.written.take();
        self.terminal.feed(written.as_str());
        self.raw += &written;
        let lines: Vec<_> =
            self.terminal.screen().all_lines().map(|line| line.text().trim_end().to_owned()).collect();
        let text = lines.join("\n").trim_end().to_owned();
        SPINNERS.iter().fold(text, |text, spinner| text.replace(*spinner, "⠋"))
    }
}

const SPINNERS: [&str; 9] = ["⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

fn bundle(data: Value) -> Arc<MimeBundle> {
    let Value::Object(data) = data else { panic!("a bundle is an object") };
    Arc::new(data.into())
}

fn look(pen: TextPen) -> CellLook {
    CellLook::fixed(pen, PreviewLines::RUN, None)
}

fn error() -> OutputChange {
    OutputChange::Added(Output::Error(Exception {
        name: "ZeroDivisionError".to_owned(),
        message: "division by zero".to_owned(),
        traceback: vec![
            "Traceback (most recent call last):".to_owned(),
            "  File \"<cell 2>\", line 1, in <module>".to_owned(),
            "    1 / 0".to_owned(),
            "    ~~^~~".to_owned(),
            "ZeroDivisionError: division by zero".to_owned(),
        ],
        line: Some(1),
    }))
}

#[test]
fn a_live_run_is_a_sequence_of_screens() {
    let mut call = DrawnCall::new(50, 20, look(TextPen::Plain), &["load", "train", "plot", "save", "mail"]);
    let mut screens = vec![call.screen()];
    call.render.begin(0).unwrap();
    call.print("reading\n");
    screens.push(call.screen());
    call.finish(0);
    call.render.begin(1).unwrap();
    call.print("epoch 1\r");
    screens.push(call.screen());
    call.print("epoch 2");
    screens.push(call.screen());
    call.change(&error());
    call.render
        .finish(1, &StatusMark::Failed(Duration::from_millis(1200), "ZeroDivisionError".to_owned()))
        .unwrap();
    call.render.close().unwrap();
    screens.push(call.screen());
    insta::assert_snapshot!(screens.join("\n──────────\n"));
}

#[test]
fn a_bar_a_cleared_output_and_an_updated_display_change_in_place() {
    let mut call = DrawnCall::new(40, 20, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    for percent in 0..=100 {
        call.change(&OutputChange::Added(Output::text(
            Stream::Stderr,
            format!("\r{percent:3}%|{:10}|", "█".repeat(percent / 10)),
        )));
    }
    assert_eq!(call.screen(), "100%|██████████|");
    call.change(&OutputChange::Cleared { wait: true });
    assert_eq!(call.screen(), "100%|██████████|", "it stays until something comes");
    call.display(json!({"text/plain": "1 of 3"}), Some("count"));
    call.print("beside\n");
    assert_eq!(call.screen(), "1 of 3\nbeside");
    let update = |text: &str| OutputChange::Updated {
        display_id: "count".to_owned(),
        content: bundle(json!({"text/plain": text})),
    };
    call.change(&update("3 of 3"));
    assert_eq!(call.screen(), "3 of 3\nbeside");
    call.finish(0);
    call.change(&update("none"));
    assert_eq!(call.screen(), "3 of 3\nbeside\nnone", "what went up is not changed");
}

#[test]
fn nested_bars_are_drawn_on_their_lines() {
    let mut call = DrawnCall::new(40, 20, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    call.print("outer 1\ninner 1\x1b[A\router 2\ninner 2");
    assert_eq!(call.screen(), "outer 2\ninner 2");
}

#[test]
fn ten_thousand_updates_are_few_frames_and_the_last_one_is_shown() {
    let mut call = DrawnCall::new(80, 20, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    call.display(json!({"text/plain": "0"}), Some("count"));
    let started = Instant::now();
    for number in 1..=10_000 {
        call.change(&OutputChange::Updated {
            display_id: "count".to_owned(),
            content: bundle(json!({"text/plain": number.to_string()})),
        });
    }
    let most = started.elapsed().as_millis() / FRAME.as_millis() + 3;
    assert_eq!(call.screen(), "10000");
    let frames = call.raw.matches("\x1b[?2026h").count();
    assert!(frames as u128 <= most, "{frames} frames, of at most {most}");
}

#[test]
fn a_million_lines_are_a_preview_and_a_way_to_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = cellwright_output::Artifacts::new(folder.path());
    let mut look = look(TextPen::Plain);
    look.full = FullOutputs::Artifacts(artifacts.clone());
    let mut call = DrawnCall::new(80, 24, look, &[""]);
    call.render.begin(0).unwrap();
    for block in 0..1000 {
        let lines: Vec<_> = (0..1000).map(|line| format!("line {}\n", block * 1000 + line)).collect();
        call.print(&lines.concat());
    }
    call.finish(0);
    let shown = call.screen();
    let (notice, rest) = shown.split_once('\n').unwrap();
    assert!(rest.starts_with("line 999990\n") && rest.ends_with("line 999999"), "{shown}");
    assert!(notice.starts_with("… 999,990 lines above hidden · cellwright read artifact://"), "{notice}");
    let id = notice.rsplit(' ').next().unwrap().parse().unwrap();
    let artifact = artifacts.open(&id).unwrap();
    assert_eq!(artifact.lines(1..=2, usize::MAX).unwrap().text, "line 0\nline 1\n");
    assert_eq!(artifact.lines(1_000_000..=1_000_000, usize::MAX).unwrap().text, "line 999999\n");
    assert!(call.raw.len() < call.most_bytes(), "{} bytes were written", call.raw.len());
}

#[test]
fn a_line_without_end_is_cut() {
    let mut call = DrawnCall::new(80, 24, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    for _ in 0..3200 {
        call.print(&"x".repeat(65_536)); // 200 MB
    }
    call.print("\nend\n");
    call.finish(0);
    let shown = call.screen();
    assert!(shown.ends_with("cut at 4,000 columns\nend"), "{}", &shown[shown.len() - 300..]);
    assert!(shown.matches('x').count() < 4100, "{}", shown.matches('x').count());
    assert!(call.raw.len() < call.most_bytes() + 10_000, "{} bytes were written", call.raw.len());
}

#[test]
fn with_expand_every_line_is_shown_once_and_in_order() {
    let look = CellLook::fixed(TextPen::Plain, PreviewLines::All, None);
    let mut call = DrawnCall::new(40, 10, look, &["one", "two"]);
    call.render.begin(0).unwrap();
    for number in 0..500 {
        call.print(&format!("line {number}\n"));
        if number == 250 {
            call.display(json!({"text/plain": "shown"}), None);
        }
    }
    call.finish(0);
    call.render.close().unwrap();
    let shown = call.screen();
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect();
    let mut expected: Vec<_> = (0..500).map(|number| format!("line {number}")).collect();
    expected.insert(251, "shown".to_owned());
    assert_eq!(lines, expected);
    assert!(shown.contains("✓ 1/2 one  0.3 s\n"), "{shown}");
    assert!(shown.ends_with("\n○ 2/2 two  not run"), "{shown}");
}

#[test]
fn a_cell_that_shows_more_than_the_screen_leaves_its_first_outputs_behind() {
    let mut call = DrawnCall::new(40, 8, look(TextPen::Plain), &["one", "two"]);
    call.render.begin(0).unwrap();
    for number in 0..20 {
        call.display(json!({"text/plain": format!("value {number}")}), None);
        call.screen();
    }
    call.finish(0);
    call.render.close().unwrap();
    let shown = call.screen();
    let values: Vec<_> = shown.lines().filter(|line| line.starts_with("  value")).collect();
    assert_eq!(values.len(), 20, "{shown}");
    assert_eq!(values[19], "  value 19");
}

#[test]
fn a_screen_that_becomes_narrower_is_drawn_anew() {
    let mut call = DrawnCall::new(60, 12, look(TextPen::Plain), &["one", "two"]);
    call.render.begin(0).unwrap();
    call.print("a line of twenty-five.\n");
    call.screen();
    call.resize(28);
    call.print("a line of text that takes about fifty columns now\n");
    let live = "⠋ 1/2 one  0.0 s\n  a line of twenty-five.\n  a line of text that takes…\n○ 2/2 two";
    assert_eq!(call.screen(), live);
    call.resize(80);
    assert!(call.screen().contains("\n  a line of text that takes about fifty columns now\n"));
    call.resize(28);
    call.finish(0);
    call.render.close().unwrap();
    let shown = call.screen();
    let settled =
        "a line of twenty-five.\n  a line of text that takes\n  about fifty columns now\n○ 2/2 two  not run";
    assert!(shown.ends_with(settled), "{shown}");
}

#[test]
fn a_question_stands_below_what_was_printed() {
    let mut call = DrawnCall::new(40, 12, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    call.print("before\n");
    call.render.pause().unwrap();
    call.written.clone().write_all(b"Name: Ada\r\n").unwrap();
    call.render.resume().unwrap();
    call.print("after\n");
    call.finish(0);
    assert_eq!(call.screen(), "before\nName: Ada\nafter");
}

#[test]
fn what_is_waited_for_is_said_only_before_the_first_cell() {
    let mut call = DrawnCall::new(40, 12, look(TextPen::Plain), &[""]);
    let before = Instant::now().checked_sub(2 * SHORT).expect("the machine has run for longer");
    call.screen();
    call.render.began = before;
    assert!(call.screen().starts_with("⠋ waiting for the kernel"), "{:?}", call.raw);
    call.render.begin(0).unwrap();
    call.print("x\n");
    call.finish(0);
    assert_eq!(call.screen(), "x");
}

#[test]
fn where_a_person_answers_twenty_lines_are_shown() {
    let mut call = DrawnCall::new(40, 60, look(TextPen::Plain), &[""]);
    call.render.begin(0).unwrap();
    call.render.pause().unwrap();
    call.render.resume().unwrap();
    let lines: Vec<_> = (1..=50).map(|number| format!("line {number}\n")).collect();
    call.print(&lines.concat());
    call.finish(0);
    let shown = call.screen();
    assert_eq!(shown.lines().filter(|line| line.starts_with("line")).count(), 20, "{shown}");
    assert!(shown.starts_with("… 30 lines above hidden"), "{shown}");
}

#[test]
fn pictures_reach_the_terminal_byte_for_byte() {
    for (by, start, end) in
        [(ImageProtocol::Kitty, "m=0;", "\x1b\\"), (ImageProtocol::Iterm, "preserveAspectRatio=1:", "\x07")]
    {
        let look = CellLook::fixed(TextPen::Colours, PreviewLines::RUN, Some(by));
        let mut call = DrawnCall::new(40, 12, look, &[""]);
        call.render.begin(0).unwrap();
        call.print("above\n");
        call.display(json!({"image/png": PICTURE, "text/plain": "<Figure>"}), None);
        call.print("below\n");
        call.screen();
        call.finish(0);
        call.screen();
        let data: Vec<_> =
            call.raw.match_indices(start).map(|(at, _)| &call.raw[at + start.len()..]).collect();
        assert_eq!(data.len(), 1, "it is drawn once, and stays: {:?}", call.raw);
        assert_eq!(&data[0][..data[0].find(end).unwrap()], PICTURE);
    }
    let look =
        CellLook::fixed(TextPen::Colours, PreviewLines::RUN, Some(ImageProtocol::Blocks(BlockColours::True)));
    let mut call = DrawnCall::new(40, 12, look, &[""]);
    call.render.begin(0).unwrap();
    call.display(json!({"image/png": PICTURE}), None);
    call.finish(0);
    assert_eq!(call.screen(), "▀");
}

#[test]
fn rows_below_a_picture_keep_their_place() {
    let look = CellLook::fixed(TextPen::Plain, PreviewLines::RUN, Some(ImageProtocol::Kitty));
    let mut call = DrawnCall::new(40, 12, look, &["one", "two"]);
    call.render.begin(0).unwrap();
    call.display(json!({"image/png": PICTURE}), Some("plot"));
    call.print("below\n");
    assert_eq!(call.screen(), "⠋ 1/2 one  0.0 s\n\n  below\n○ 2/2 two");
    call.change(&OutputChange::Updated {
        display_id: "plot".to_owned(),
        content: bundle(json!({"text/plain": "no picture"})),
    });
    assert_eq!(call.screen(), "⠋ 1/2 one  0.0 s\n  no picture\n  below\n○ 2/2 two");
    assert!(call.raw.contains("\x1b_Ga=d,d=I,i="), "the picture is removed: {:?}", call.raw);
}

#[test]
fn nothing_that_is_shown_controls_the_terminal() {
    let hostile = "\x1b]0;title\x07\x1b[2J\x1b[?1049h\u{9b}31m\u{202e}x\x1bP1$r\x1b\\\x1b_Gx\x1b\\";
    let mut call = DrawnCall::new(80, 30, look(TextPen::Colours), &[hostile, "b"]);
    call.render.begin(0).unwrap();
    call.print(&format!("{hostile}\n"));
    call.change(&OutputChange::Added(Output::text(Stream::Stderr, hostile)));
    for mime in [
        "text/plain",
        "text/markdown",
        "text/html",
        "text/latex",
        "application/json",
        "application/x-cellwright-status",
    ] {
        let data: serde_json::Map<_, _> = [(mime.to_owned(), json!(hostile))].into_iter().collect();
        call.display(Value::Object(data), None);
    }
    call.render.note(hostile).unwrap();
    call.change(&OutputChange::Added(Output::Error(Exception {
        name: hostile.to_owned(),
        message: hostile.to_owned(),
        traceback: vec![hostile.to_owned()],
        line: None,
    })));
    call.finish(0);
    call.render.warn(hostile).unwrap();
    call.render.close().unwrap();
    call.screen();
    let ours = ["\x1b[?2026h", "\x1b[?2026l", "\x1b[K", "\x1b[J"];
    let mut rest = ours.iter().fold(call.raw.clone(), |text, part| text.replace(part, ""));
    for (at, part) in call.raw.match_indices("\x1b[") {
        let code = &call.raw[at + part.len()..];
        let end = code.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap();
        if matches!(&code[end..=end], "m" | "A" | "B") {
            rest = rest.replace(&format!("\x1b[{}", &code[..=end]), "");
        }
    }
    assert!(!rest.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{rest:?}");
}

/// One of each kind of output.
fn gallery(columns: usize, pen: TextPen) -> String {
    let look = CellLook::fixed(pen, PreviewLines::RUN, Some(ImageProtocol::Blocks(BlockColours::True)));
    let mut call = DrawnCall::new(columns, 200, look, &["every kind of output", "the rest of it all"]);
    call.render.headings.code =
        Some(vec!["# all\ndef f(x):\n    return f\"{x}\" + 'é'".to_owned(), "f(1)".to_owned()]);
    // One frame, with all of it.
    call.render.is_paused = true;
    call.render.begin(0).unwrap();
    call.change(&OutputChange::Added(Output::text(Stream::Stderr, "a warning\n")));
    let lines: Vec<_> = (1..=30).map(|number| format!("\x1b[32mline\x1b[0m {number}\n")).collect();
    call.print(&lines.concat());
    call.print("plain text, 表計算, e\u{301}, 👩\u{200d}👩\u{200d}👧 and 🇪🇺 and a line that is longer than forty columns\n");
    call.display(json!({"text/markdown": "# Title\n\nSome *text* and `code`:\n\n```sql\nselect 1 -- one\n```\n- $\\alpha$"}), None);
    let row = |row| format!("<tr><th>{row}</th><td>name {row}</td><td>{}</td></tr>", row * row);
    let rows = (0..20).map(row).collect::<Vec<_>>().concat();
    let frame = format!(
        "<table><thead><tr><th></th><th>name</th><th>square</th></tr></thead><tbody>{rows}</tbody></table>"
    );
    call.display(json!({"text/html": frame, "text/plain": "..."}), None);
    call.display(json!({"application/json": {"name": "Ada", "list": [1, 2.5, null], "deep": {"a": {"b": {"c": 1}}}}, "text/plain": "<JSON object>"}), None);
    call.display(json!({"text/latex": "$\\frac{1}{2}$", "text/plain": "<Latex object>"}), None);
    call.display(json!({"application/vnd.plotly.v1+json": {"data": [{"type": "bar", "x": [1, 2]}], "layout": {"title": "Sales"}}}), None);
    call.display(json!({"image/png": PICTURE, "text/plain": "<Figure>"}), None);
    call.display(json!({"image/svg+xml": "<svg width=\"10\" height=\"10\"><g/></svg>"}), None);
    for number in 0..7 {
        call.display(json!({"application/x-cellwright-status": {"op": "read", "path": format!("file{number}.csv"), "rows": number}}), None);
    }
    call.change(&error());
    call.render
        .finish(0, &StatusMark::Failed(Duration::from_millis(2300), "ZeroDivisionError".to_owned()))
        .unwrap();
    call.render.close().unwrap();
    call.render.is_paused = false;
    let shown = call.screen();
    let too_wide = shown.lines().find(|line| unicode_width::UnicodeWidthStr::width(*line) > columns);
    assert_eq!(too_wide, None);
    if pen.is_plain() { shown } else { call.raw.replace("\x1b[K\r\n", "\n").replace('\x1b', "␛") }
}

#[test]
fn every_kind_of_output_at_40_80_and_200_columns() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("kinds_at_{columns}_columns"), gallery(columns, TextPen::Plain));
    }
}

#[test]
fn every_kind_of_output_on_a_dark_and_on_a_light_terminal() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("kinds_dark_{columns}"), gallery(columns, TextPen::Colours));
        insta::assert_snapshot!(format!("kinds_light_{columns}"), gallery(columns, TextPen::DarkColours));
    }
}
