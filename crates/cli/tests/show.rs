//! `cellwright show`: what a person sees of a notebook, in a pipe and in a terminal.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A picture of two pixels: red, and see-through.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

fn notebook() -> String {
    r##"{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3", "language": "python"}}, "cells": [
{"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# A study\n\n*Soft* words."},
{"cell_type": "code", "id": "c", "metadata": {}, "execution_count": 12, "source": ["def f():\n", "    return 'x'\n", "\n", "f()"], "outputs": [
 {"output_type": "stream", "name": "stdout", "text": ["10%\r100%\n", "\u001b[32mgreen\u001b[0m \u001b]0;title\u0007\n"]},
 {"output_type": "stream", "name": "stderr", "text": "careful\n"},
 {"output_type": "execute_result", "execution_count": 12, "metadata": {}, "data": {"text/plain": ["'x'"]}},
 {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<b>bold</b>", "text/plain": "<HTML object>"}},
 {"output_type": "display_data", "metadata": {}, "data": {"application/json": {"n": [1, 2.0]}}},
 {"output_type": "display_data", "metadata": {}, "data": {"application/json": NaN, "text/plain": "not a number"}},
 {"output_type": "display_data", "metadata": {}, "data": {"image/png": "PICTURE", "text/plain": "<Figure>"}},
 {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\u001b[31mValueError\u001b[0m: no"]}]},
{"cell_type": "raw", "id": "r", "metadata": {}, "source": "raw"},
{"cell_type": "code", "id": "n", "metadata": {}, "execution_count": null, "source": "", "outputs": []}
]}"##
        .replace("PICTURE", PICTURE)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nb.ipynb"), notebook()).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn show(&self, arguments: &[&str]) -> String {
        let run = command(&self.path(), arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8([run.stdout, run.stderr].concat()).unwrap()
    }

    /// What reaches a terminal that answers the question for its attributes with `attributes`.
    fn show_in_terminal(&self, arguments: &[&str], variables: &[(&str, &str)], attributes: &str) -> String {
        let size = Winsize { ws_row: 24, ws_col: 60, ws_xpixel: 600, ws_ypixel: 480 };
        let pty = openpty(Some(&size), None).unwrap();
        let child_end = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = command(&self.path(), arguments);
        command.stdin(child_end()).stdout(child_end()).stderr(child_end()).envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        drop((command, pty.slave)); // the terminal's other side is the child's alone: its end is our end of file
        let mut terminal = File::from(pty.master);
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        // Linux says "input/output error" when the last process has left.
        while let Ok(length @ 1..) = terminal.read(&mut buffer) {
            let text = str::from_utf8(&buffer[..length]).unwrap();
            if text.contains("\x1b[c") {
                terminal.write_all(attributes.as_bytes()).unwrap();
            }
            seen.push_str(text);
        }
        assert!(child.wait().unwrap().success());
        seen.replace("\r\n", "\n")
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("show").args(arguments).current_dir(folder);
    for variable in ["COLUMNS", "KITTY_WINDOW_ID", "LC_TERMINAL", "NO_COLOR", "TERM", "TERM_PROGRAM", "TMUX"]
    {
        command.env_remove(variable);
    }
    command
}

#[test]
fn a_pipe_gets_the_notebook_without_colours() {
    insta::assert_snapshot!(Folder::new().show(&["nb.ipynb"]), @r#"
    # A study

    Soft words.

    [12] │ def f():
         │     return 'x'
         │
         │ f()
           100%
           green 
           careful
           'x'
           bold
           {
             "n": [
               1,
               2.0
             ]
           }
           not a number
           [image/png, 2x1, 72 bytes; `cellwright read --image 1.6 --to FILE` saves
           it]
           ValueError: no

    raw

     [ ] │
    "#);
}

#[test]
fn colours_can_be_asked_for_and_no_other_sequence_passes() {
    let shown = Folder::new().show(&["--color", "always", "nb.ipynb#1"]);
    insta::assert_snapshot!(shown.replace('\x1b', "␛"), @r#"
    ␛[32m[12] ␛[0m␛[2m│␛[0m ␛[35mdef␛[0m ␛[1;34mf␛[0m():
    ␛[32m     ␛[0m␛[2m│␛[0m     ␛[35mreturn␛[0m ␛[32m'x'␛[0m
    ␛[32m     ␛[0m␛[2m│␛[0m
    ␛[32m     ␛[0m␛[2m│␛[0m f()
           100%
           ␛[0;32mgreen␛[0m 
           ␛[33mcareful␛[0m
           'x'
           ␛[1mbold␛[0m
           ␛[34mn: ␛[0m␛[2m[2 items]␛[0m
           ␛[2m│ ␛[0m␛[34m0: ␛[0m␛[36m1␛[0m
           ␛[2m│ ␛[0m␛[34m1: ␛[0m␛[36m2.0␛[0m
           not a number
           ␛[2m[image/png, 2x1, 72 bytes; `cellwright read --image 1.6 --to FILE` saves␛[0m
           ␛[2mit]␛[0m
           ␛[0;31mValueError␛[0m: no
    "#);
}

#[test]
fn a_terminal_gets_colours_unless_it_asks_for_none() {
    let folder = Folder::new();
    let terminal = [("TERM", "xterm-256color")];
    assert!(folder.show_in_terminal(&["nb.ipynb#0"], &terminal, "").contains("\x1b[1;35m# A study\x1b[0m"));
    for variables in [[("TERM", "xterm"), ("NO_COLOR", "1")], [("TERM", "dumb"), ("NO_COLOR", "")]] {
        let shown = folder.show_in_terminal(&["nb.ipynb#0"], &variables, "");
        assert_eq!(shown, "# A study\n\nSoft words.\n");
    }
}

#[test]
fn a_terminal_draws_images_by_the_protocol_it_speaks() {
    let folder = Folder::new();
    let drawn = |variables: &[(&str, &str)], attributes: &str| {
        folder.show_in_terminal(&["nb.ipynb#1"], variables, attributes)
    };
    let kitty = drawn(&[("TERM", "xterm-kitty")], "");
    assert!(kitty.contains(&format!("\x1b_Ga=T,q=2,f=100,m=0;{PICTURE}\x1b\\")), "{kitty:?}");
    let iterm = drawn(&[("TERM", "xterm"), ("TERM_PROGRAM", "iTerm.app")], "");
    assert!(
        iterm.contains(&format!("\x1b]1337;File=inline=1;size=72;width=auto:{PICTURE}\x07")),
        "{iterm:?}"
    );
    let sixel = drawn(&[("TERM", "xterm")], "\x1b[?62;4;22c");
    assert!(sixel.contains("\x1bP0;1q\"1;1;2;1#0;2;"), "{sixel:?}");
    let blocks = drawn(&[("TERM", "xterm")], "\x1b[?62;22c");
    assert!(blocks.contains("\x1b[0;38;5;196m▀"), "{blocks:?}");
    let colours = drawn(&[("TERM", "xterm"), ("COLORTERM", "truecolor")], "\x1b[?62;22c");
    assert!(colours.contains("\x1b[0;38;2;255;0;0m▀"), "{colours:?}");
    let none = drawn(&[("TERM", "xterm"), ("NO_COLOR", "1")], "\x1b[?62;22c");
    assert!(none.contains("[image/png, 2x1, 72 bytes;"), "{none:?}");
}

#[test]
fn a_terminal_that_knows_no_images_is_not_asked_when_there_are_none() {
    let shown = Folder::new().show_in_terminal(&["nb.ipynb#0"], &[("TERM", "xterm")], "");
    assert!(!shown.contains("\x1b[c"), "{shown:?}");
}

#[test]
fn prose_is_set_to_the_width() {
    let folder = Folder::new();
    let words = "word ".repeat(40);
    let text = notebook().replace("*Soft* words.", words.trim());
    fs::write(folder.path().join("nb.ipynb"), text).unwrap();
    let widest = |shown: &str| shown.lines().map(str::len).max().unwrap();
    assert_eq!(widest(&folder.show(&["nb.ipynb#0"])), 79);
    assert_eq!(widest(&folder.show(&["--width", "30", "nb.ipynb#0"])), 29);
    assert_eq!(widest(&folder.show_in_terminal(&["nb.ipynb#0"], &[("NO_COLOR", "1")], "")), 59);
}

#[test]
fn long_outputs_are_shortened_unless_asked_for_whole() {
    let folder = Folder::new();
    let text = notebook().replace("careful", &"a line\\n".repeat(20_000));
    fs::write(folder.path().join("nb.ipynb"), text).unwrap();
    let lines = |shown: &str| shown.lines().filter(|line| line.trim() == "a line").count();
    let shortened = folder.show(&["nb.ipynb#1"]);
    assert!((1000..20_000).contains(&lines(&shortened)));
    assert!(shortened.contains("of 20001 lines are not shown here, or cut; --full shows them]"));
    assert_eq!(lines(&folder.show(&["--full", "nb.ipynb#1"])), 20_000);
}

#[test]
fn what_cannot_be_shown_is_reported() {
    let folder = Folder::new();
    fs::write(folder.path().join("broken.ipynb"), "{\"cells\": [").unwrap();
    let told = |target: &str| folder.show(&[target]);
    insta::assert_snapshot!(told("none.ipynb"), @"error: none.ipynb: no such file");
    insta::assert_snapshot!(told("broken.ipynb"), @"error: broken.ipynb is not a usable notebook: line 1, column 12: the file ends where a cell should be; the rest of the file is missing: restore it from version control, a backup or Jupyter's checkpoint");
    insta::assert_snapshot!(told("nb.ipynb#7"), @"error: nb.ipynb: there is no cell 7; the notebook has cells 0 to 3");
    insta::assert_snapshot!(told("nb.ipynb:3"), @"error: show takes cells, as in `nb.ipynb#3-7`; `cellwright read` shows lines, JSON and single outputs");
    insta::assert_snapshot!(told("nb.ipynb#x-"), @r#"error: nb.ipynb: `#x-` is not a selector: `x-` is not a cell. Cells are `#3`, `#3-7`, `#2,5-7`, `#5-`, `#id:abcd1234` or `#"A heading"`, an output `#7.0`, an attachment `#3:plot.png`; then `:raw` or lines, which count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`"#);
}

#[test]
fn a_cell_of_an_unknown_type_was_shown_as_raw_without_a_word() {
    let folder = Folder::new();
    let unknown = notebook().replace("\"cell_type\": \"raw\"", "\"cell_type\": \"mystery\"");
    fs::write(folder.path().join("nb.ipynb"), unknown).unwrap();
    let shown = folder.show(&["nb.ipynb#2"]);
    assert_eq!(shown, "[cell 2 has the unknown type `mystery` and is shown as raw]\nraw\n");
}
