//! What a person sees at a terminal: the real program on one, its bytes put on the screen of an emulator.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, Stdio};

use avt::Terminal;
use nix::pty::{Winsize, openpty};
use serde_json::json;
use tempfile::TempDir;

/// A picture of two pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

/// What was written to a terminal.
struct SeenScreen {
    raw: String,
    columns: u16,
    code: i32,
}

impl SeenScreen {
    /// All that the terminal shows in the end, with what has scrolled away.
    fn text(&self) -> String {
        let mut terminal = Terminal::with_scrollback(self.columns.into(), 40, None).unwrap();
        terminal.feed(self.raw.as_str());
        let lines: Vec<_> =
            terminal.screen().all_lines().map(|line| line.text().trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }
}

fn at_terminal(folder: &TempDir, columns: u16, variables: &[(&str, &str)], arguments: &[&str]) -> SeenScreen {
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: columns * 10, ws_ypixel: 800 };
    let pty = openpty(Some(&size), None).unwrap();
    let theirs = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    for variable in ["NO_COLOR", "COLORTERM", "COLORFGBG", "TMUX", "KITTY_WINDOW_ID", "TERM_PROGRAM"] {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    let mut child = command.stdout(theirs()).stderr(theirs()).spawn().unwrap();
    // The terminal's other side is the child's alone: its end is our end of file.
    drop((command, pty.slave));
    let (mut terminal, mut bytes, mut chunk) = (File::from(pty.master), Vec::new(), [0; 8192]);
    while let Ok(length @ 1..) = terminal.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..length]);
    }
    let code = child.wait().unwrap().code().expect("it was not killed");
    SeenScreen { raw: String::from_utf8(bytes).unwrap(), columns, code }
}

fn piped(folder: &TempDir, variables: &[(&str, &str)], arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).env_remove("NO_COLOR");
    command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Without the times, which differ.
fn timeless(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let words = line.split("  ").map(|part| {
            let is_time = part.strip_suffix(" s").is_some_and(|number| number.parse::<f64>().is_ok());
            if is_time { "TIME" } else { part }
        });
        let line = words.collect::<Vec<_>>().join("  ");
        let line = line.split(" · ").map(|part| match part.strip_suffix(" s") {
            Some(number) if number.parse::<f64>().is_ok() => "TIME",
            Some(_) | None => part,
        });
        shown += &(line.collect::<Vec<_>>().join(" · ") + "\n");
    }
    shown
}

fn notebook(folder: &TempDir, name: &str, sources: &[&str]) {
    let cells = sources.iter().enumerate().map(|(at, source)| {
        json!({"cell_type": "code", "execution_count": null, "id": format!("c{at}"), "metadata": {},
            "outputs": [], "source": source})
    });
    let cells: Vec<_> = cells.collect();
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fs::write(folder.path().join(name), notebook.to_string()).unwrap();
}

const CELLS: &str = "# %% first
print('one')
# %% bar
for i in range(101): print(f'\\r{i:3}%', end='', flush=True)
# %% value
{'a': 1}
# %% wrong
1 / 0
# %% never
2
";

#[test]
fn a_run_at_a_terminal_shows_how_each_cell_went() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cells.py"), CELLS).unwrap();
    let seen = at_terminal(&folder, 80, &[], &["run", "cells.py"]);
    assert_eq!(seen.code, 1);
    insta::assert_snapshot!(timeless(&seen.text()));
    assert!(seen.raw.contains("\x1b[1;31m✗\x1b[0m"), "{:?}", seen.raw);
    let plain = at_terminal(&folder, 80, &[("NO_COLOR", "1")], &["run", "cells.py"]);
    assert!(!plain.raw.contains('m') || !plain.raw.contains("\x1b[1;31m"), "{:?}", plain.raw);
    assert_eq!(timeless(&plain.text()), timeless(&seen.text()));
}

#[test]
fn a_script_at_a_terminal_looks_as_it_does_with_python() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script.py"), "print('a')\nprint('b')\n").unwrap();
    let seen = at_terminal(&folder, 80, &[], &["run", "script.py"]);
    assert_eq!((seen.code, seen.text().as_str()), (0, "a\nb"));
}

#[test]
fn a_terminal_without_a_cursor_to_move_gets_lines() {
    let folder = tempfile::tempdir().unwrap();
    let seen = at_terminal(&folder, 80, &[("TERM", "dumb")], &["run", "-c", "print('a')\n# %% b\n1 + 1"]);
    assert!(!seen.raw.contains('\x1b'), "{:?}", seen.raw);
    assert!(seen.raw.contains("a\r\n") && seen.raw.contains("2\r\n"), "{:?}", seen.raw);
}

#[test]
fn a_picture_of_a_cell_reaches_the_terminal_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let code = format!(
        "print('above')\ndisplay({{'image/png': '{PICTURE}', 'text/plain': '<Figure>'}}, raw=True)\nprint('below')"
    );
    let drawn = |variables: &[(&str, &str)], more: &[&str]| {
        at_terminal(&folder, 80, variables, &[&["run", "-c", &code], more].concat())
    };
    let kitty = drawn(&[("TERM", "xterm-kitty")], &[]);
    let (_, data) = kitty.raw.split_once("m=0;").expect("a picture is drawn");
    assert_eq!(data.split_once("\x1b\\").unwrap().0, PICTURE);
    assert_eq!(kitty.text(), "above\n\nbelow");
    let iterm = drawn(&[("TERM_PROGRAM", "iTerm.app")], &[]);
    let (_, data) = iterm.raw.split_once("preserveAspectRatio=1:").expect("a picture is drawn");
    assert_eq!(data.split_once('\x07').unwrap().0, PICTURE);
    let blocks = drawn(&[("COLORTERM", "truecolor"), ("TMUX", "1")], &[]);
    assert!(blocks.raw.contains("\x1b[0;38;2;255;0;0m▀"), "{:?}", blocks.raw);
    let none = drawn(&[], &["--images", "none"]).text();
    assert!(none.contains("[image/png, 2x1, 72 bytes] · cellwright read artifact://"), "{none}");
}

#[test]
fn what_a_preview_hides_is_read_by_the_command_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let code = "for i in range(2000): print('line', i)";
    let seen = at_terminal(&folder, 80, &[], &["run", "-c", code]).text();
    let notice = seen.lines().next().unwrap();
    assert!(seen.ends_with("line 1998\nline 1999"), "{seen}");
    let (hidden, command) = notice.split_once(" · ").unwrap();
    assert_eq!(hidden, "… 1,990 lines above hidden");
    let arguments: Vec<_> = command.strip_prefix("cellwright ").unwrap().split(' ').collect();
    let (stdout, _) = piped(&folder, &[], &arguments);
    assert_eq!(stdout.lines().count(), 2000);
    assert!(stdout.starts_with("line 0\nline 1\n"), "{stdout}");
    let all = at_terminal(&folder, 80, &[], &["run", "--expand", "-c", code]).text();
    let expected: Vec<_> = (0..2000).map(|number| format!("line {number}")).collect();
    assert_eq!(all, expected.join("\n"));
}

#[test]
fn a_flood_of_updates_is_few_frames() {
    let folder = tempfile::tempdir().unwrap();
    let code = "handle = display('0', display_id=True)\nfor i in range(10_001): handle.update(i)";
    let seen = at_terminal(&folder, 80, &[], &["run", "-c", code]);
    assert_eq!(seen.text().lines().next(), Some("10000"));
    let frames = seen.raw.matches("\x1b[?2026h").count();
    assert!(frames < 1000, "{frames} frames, {} bytes", seen.raw.len());
}

#[test]
fn a_notebook_at_a_terminal_is_drawn_and_keeps_its_outputs() {
    let folder = tempfile::tempdir().unwrap();
    notebook(&folder, "nb.ipynb", &["print('hello')", "for i in range(50): print(i)", "int('x')", "3"]);
    let seen = at_terminal(&folder, 80, &[], &["run", "nb.ipynb"]);
    assert_eq!(seen.code, 1);
    insta::assert_snapshot!(timeless(&seen.text()));
    let kept = fs::read_to_string(folder.path().join("nb.ipynb")).unwrap();
    assert!(kept.contains("hello") && kept.contains("49"), "{kept}");
}

#[test]
fn several_notebooks_have_a_line_each_and_a_total() {
    let folder = tempfile::tempdir().unwrap();
    notebook(&folder, "a.ipynb", &["1", "2"]);
    notebook(&folder, "b.ipynb", &["1", "int('x')"]);
    let seen = at_terminal(&folder, 80, &[], &["run", "-j", "1", "a.ipynb", "b.ipynb", "missing.ipynb"]);
    assert_eq!(seen.code, 1);
    insta::assert_snapshot!(timeless(&seen.text()));
}

#[test]
fn an_edit_at_a_terminal_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    notebook(&folder, "nb.ipynb", &["def f(x):\n    return x\n\nf(1)", "2"]);
    let edit = |arguments: &[&str]| at_terminal(&folder, 60, &[], arguments);
    let mut screens = Vec::new();
    for arguments in [
        &["edit", "nb.ipynb", "--old", "return x", "--new", "return 2 * x", "--force"][..],
        &["notebook", "insert", "nb.ipynb", "--at", "1", "--source", "import os\nos.getcwd()"],
        &["notebook", "move", "nb.ipynb", "1", "0", "--force"],
        &["notebook", "delete", "nb.ipynb", "0", "2", "--force"],
        &["notebook", "edit", "nb.ipynb", "9", "--source", "x"],
    ] {
        screens.push(edit(arguments).text());
    }
    insta::assert_snapshot!(screens.join("\n──────────\n"));
    let seen = edit(&["notebook", "insert", "nb.ipynb", "--source", "def g(): pass"]);
    assert!(seen.raw.contains("\x1b[35mdef\x1b[0m \x1b[1;34mg\x1b[0m"), "{:?}", seen.raw);
}

#[test]
fn a_pipe_has_colours_only_if_they_are_forced() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: &[&str] = &["run", "-c", "1 / 0"];
    assert!(!piped(&folder, &[], wrong).1.contains('\x1b'));
    let red = "\x1b[1;31mZeroDivisionError\x1b[0m";
    assert!(piped(&folder, &[("CLICOLOR_FORCE", "1")], wrong).1.contains(red));
    assert!(piped(&folder, &[], &["run", "--color", "always", "-c", "1 / 0"]).1.contains(red));
    assert!(!piped(&folder, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], wrong).1.contains('\x1b'));
    let json = at_terminal(&folder, 80, &[], &["run", "--json", "-c", "1 + 1"]);
    let lines: Vec<serde_json::Value> =
        json.raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["event"], "finished");
}
