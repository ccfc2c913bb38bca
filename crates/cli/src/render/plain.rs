//! For people: what cells print goes where it would go without us, everything else is a line of text.

use std::io::{self, IsTerminal as _, Write as _};

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};
use cellwright_output::{Display, json_text};
use cellwright_session::{CallEvent, CallReport, KernelFate};

use super::{CallRender, closing};
use crate::draw::look::LookArguments;
use crate::draw::style::TextPen;
use crate::draw::traceback;
use crate::exit::PythonExit;

/// Streams to stdout and stderr as they come.
pub(crate) struct PlainRender {
    /// Names of the cells; headings are shown when there are several and a person looks.
    titles: Vec<Option<String>>,
    headings: bool,
    kernel: KernelFate,
    pens: StreamPens,
}

/// How each stream is written.
#[derive(Debug, Clone, Copy)]
struct StreamPens {
    stdout: TextPen,
    stderr: TextPen,
}

impl PlainRender {
    pub(crate) fn new(titles: Vec<Option<String>>, kernel: KernelFate, look: LookArguments) -> Self {
        let headings = titles.len() > 1 && io::stderr().is_terminal();
        let pens = StreamPens { stdout: look.pen(), stderr: look.pen_of_stderr() };
        Self { titles, headings, kernel, pens }
    }
}

impl CallRender for PlainRender {
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()> {
        match event {
            CallEvent::CellStarted { cell } if self.headings => {
                let title = self.titles[*cell].as_deref().unwrap_or_default();
                print_line(&format!("── cell {} of {} {title}", cell + 1, self.titles.len()))
            }
            CallEvent::Output { change: OutputChange::Added(Output::Error(exception)), .. }
                if self.kernel == KernelFate::Ends
                    && let Some(exit) = PythonExit::of(exception) =>
            {
                exit.message.map_or(Ok(()), |message| print_line(&message))
            }
            CallEvent::Output { change, .. } | CallEvent::Late(change) => shown(change, self.pens),
            CallEvent::LateBefore(late) => on_stdout(&late.collected.text.text),
            CallEvent::Queued { behind } => {
                let calls =
                    if *behind == 1 { "another call".to_owned() } else { format!("{behind} other calls") };
                print_line(&format!("waiting for {calls} in this session"))
            }
            CallEvent::Notice(notice) => print_line(&format!("note: {notice}")),
            CallEvent::CellStarted { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::Input { .. }
            | CallEvent::Comm { .. }
            | CallEvent::Turn { .. }
            | CallEvent::Stopping { .. }
            | CallEvent::CellFinished(_) => Ok(()),
        }
    }

    fn end(&mut self, report: &CallReport) -> anyhow::Result<()> {
        closing::lines(report, &self.titles, self.kernel).iter().try_for_each(|line| print_line(line))
    }
}

fn shown(change: &OutputChange, pens: StreamPens) -> anyhow::Result<()> {
    match change {
        OutputChange::Added(Output::Text { stream: Stream::Stdout, text }) => on_stdout(text),
        OutputChange::Added(Output::Text { stream: Stream::Stderr, text }) => on_stderr(text),
        OutputChange::Added(Output::Display { content, .. } | Output::Result { content, .. })
        | OutputChange::Updated { content, .. } => displayed(content, pens.stdout),
        OutputChange::Added(Output::Error(exception)) if exception.traceback.is_empty() => {
            print_line(&format!("{}: {}", exception.name, exception.message))
        }
        OutputChange::Added(Output::Error(exception)) => {
            let traceback = exception.traceback.join("\n");
            print_line(&if pens.stderr.is_plain() {
                without_colours(&traceback)
            } else {
                traceback::lines(&traceback, "python", usize::MAX, pens.stderr).join("\n")
            })
        }
        OutputChange::Cleared { .. } => Ok(()), // what a terminal has scrolled cannot be taken back
    }
}

/// A traceback or a value for a file: kernels colour tracebacks for every reader, and Deno colours values too.
pub(crate) fn without_colours(traceback: &str) -> String {
    let (start, rest) = traceback.split_once("\x1b[").unwrap_or((traceback, ""));
    let mut plain = start.to_owned();
    for piece in rest.split("\x1b[") {
        let codes = piece.trim_start_matches(|code: char| code.is_ascii_digit() || code == ';');
        plain.push_str(codes.strip_prefix('m').unwrap_or(piece));
    }
    plain
}

fn displayed(content: &MimeBundle, pen: TextPen) -> anyhow::Result<()> {
    let display = Display::from_bundle(&content.data);
    let text = display.text.or_else(|| display.json.as_ref().map(|value| json_text(value, None).text));
    if let Some(text) = text {
        let text = if pen.is_plain() { without_colours(&text) } else { text };
        on_stdout(&(text + "\n"))?;
    }
    match display.image {
        Some(image) => on_stdout(&format!("[{image}]\n")),
        None => Ok(()),
    }
}

fn on_stdout(text: &str) -> anyhow::Result<()> {
    crate::print::raw(text)
}

fn on_stderr(text: &str) -> anyhow::Result<()> {
    Ok(io::stderr().lock().write_all(text.as_bytes())?)
}

fn print_line(line: &str) -> anyhow::Result<()> {
    on_stderr(&format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceback_in_a_file_has_no_colours() {
        for (coloured, plain) in [
            ("", ""),
            ("plain", "plain"),
            ("\x1b[31mZeroDivisionError\x1b[39m: x\x1b[0m", "ZeroDivisionError: x"),
            ("a\x1b[38;5;28;01mb\x1b[mc\n[0m]", "abc\n[0m]"),
        ] {
            assert_eq!(without_colours(coloured), plain);
        }
    }
}
