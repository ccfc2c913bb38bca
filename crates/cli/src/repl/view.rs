//! How a session looks to a person who watches it: what cells show, and what is known of them.

use std::borrow::Cow;
use std::fmt::Write as _;

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};
use cellwright_kernel::{Fate, StopReason};
use cellwright_output::{Display, json_text, visible, visible_coloured};
use cellwright_session::{CellStatus, KernelFate};

use crate::draw::code;
use crate::draw::picture::drawn;
use crate::draw::style::{TextPen, TextStyle};
use crate::draw::terminal::{ImageProtocol, TerminalSize};
use crate::draw::traceback;
use crate::render::{value_lines, without_colours};

/// The origin of a cell: this prompt or another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellAuthor {
    /// The person at this prompt: their terminal gets what their program prints.
    Person,
    /// An agent or another terminal.
    Other,
}

/// Turns what happens in a session into text for a terminal or a file.
pub(crate) struct SessionView {
    pub(crate) pen: TextPen,
    /// The language of the kernel, as far as it is known.
    pub(crate) language: String,
    /// How pictures are drawn, if they are.
    pub(crate) images: Option<(ImageProtocol, TerminalSize)>,
}

impl SessionView {
    pub(crate) fn is_python(&self) -> bool {
        self.language.to_lowercase().contains("python")
    }

    /// Code in pieces.
    pub(crate) fn pieces<'a>(&self, text: &'a str) -> Vec<(TextStyle, &'a str)> {
        code::pieces(text, &self.language).unwrap_or_else(|| vec![(TextStyle::PLAIN, text)])
    }

    /// The code of a cell that somebody else runs.
    pub(crate) fn code(&self, code: &str, title: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(title) = title {
            let _ = writeln!(text, "{}", self.dim(&format!("── {}", visible(title))));
        }
        // Cells of a script begin with the empty lines that their place in it is counted by.
        let code = visible(code.trim_end().trim_start_matches('\n'));
        let painted: String =
            self.pieces(&code).iter().map(|(style, piece)| self.pen.paint(*style, piece)).collect();
        for line in painted.split('\n') {
            let _ = writeln!(text, "{} {line}", self.dim("│"));
        }
        text
    }

    /// What a cell shows, as whole as it came: lines of text may be unfinished.
    pub(crate) fn change(&self, change: &OutputChange, author: CellAuthor) -> String {
        match change {
            OutputChange::Added(Output::Text { stream: Stream::Stdout | Stream::Stderr, text }) => {
                self.text(text, author)
            }
            OutputChange::Added(Output::Result { content, .. } | Output::Display { content, .. })
            | OutputChange::Updated { content, .. } => self.bundle(content, author),
            OutputChange::Added(Output::Error(exception)) if exception.traceback.is_empty() => {
                self.text(&format!("{}: {}\n", exception.name, exception.message), author)
            }
            OutputChange::Added(Output::Error(exception)) => {
                let traceback = exception.traceback.join("\n");
                if !self.pen.is_plain() {
                    return traceback::lines(&traceback, &self.language, usize::MAX, self.pen).join("\n")
                        + "\n";
                }
                self.text(&(traceback.trim_end_matches('\n').to_owned() + "\n"), author)
            }
            // What a terminal has scrolled cannot be taken back.
            OutputChange::Cleared { .. } => String::new(),
        }
    }

    /// What there is to say of a cell's end; nothing of most.
    pub(crate) fn ending(&self, status: &CellStatus) -> Option<String> {
        match status {
            // What is drawn says it.
            CellStatus::Ok
            | CellStatus::Error(_)
            | CellStatus::Stopped {
                reason: StopReason::Interrupted | StopReason::Cancelled,
                kernel: Fate::Survived,
            } => None,
            _ => Some(self.note(&format!("the cell {}", status.ending(KernelFate::Stays)))),
        }
    }

    /// A remark of ours.
    pub(crate) fn note(&self, text: &str) -> String {
        self.dim(&visible(text))
    }

    fn dim(&self, text: &str) -> String {
        self.pen.paint(TextStyle::DIM, text).into_owned()
    }

    fn text(&self, text: &str, author: CellAuthor) -> String {
        let text = match author {
            CellAuthor::Person => Cow::Borrowed(text),
            // Progress bars return to the start of their line; nothing else of what they send is acted on.
            CellAuthor::Other => {
                Cow::Owned(text.split('\r').map(visible_coloured).collect::<Vec<_>>().join("\r"))
            }
        };
        match self.pen {
            TextPen::Colours | TextPen::DarkColours => text.into_owned(),
            TextPen::Plain => without_colours(&text),
        }
    }

    fn bundle(&self, content: &MimeBundle, author: CellAuthor) -> String {
        let display = Display::from_bundle(&content.data);
        let drawn_text = (!self.pen.is_plain()).then(|| {
            let columns = TerminalSize::on_stdout().unwrap_or_default().columns;
            value_lines(content, &display, self.pen, columns).join("\n")
        });
        let image = display.image.map(|image| {
            let drawing = self.images.map(|(by, terminal)| drawn(&image, by, terminal, terminal.columns));
            match drawing {
                Some(Ok(drawing)) => drawing + "\n",
                Some(Err(_)) | None => format!("[{image}]\n"),
            }
        });
        let text = display.text.or_else(|| display.json.as_ref().map(|value| json_text(value, None).text));
        let text = drawn_text.filter(|text| !text.is_empty()).or(text);
        // A picture says what its text stands for: `<Figure size 640x480 with 1 Axes>`.
        let text = text.filter(|_| image.is_none() || self.images.is_none());
        let text = text.map(|text| self.text(&text, author) + "\n").unwrap_or_default();
        format!("{text}{}", image.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_drawn_as_cells_of_a_run_are() {
        let view = |pen| SessionView { pen, language: "python".to_owned(), images: None };
        let shown = |pen, data: serde_json::Value| {
            let serde_json::Value::Object(data) = data else { panic!("a bundle is an object") };
            let content = std::sync::Arc::new(data.into());
            let change = OutputChange::Added(Output::Display { content, display_id: None });
            view(pen).change(&change, CellAuthor::Other)
        };
        let table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>";
        let drawn = shown(TextPen::Colours, json!({"text/html": table, "text/plain": "a b"}));
        assert!(drawn.contains("\x1b[2m──┼──\x1b[0m\n"), "{drawn:?}");
        let tree = shown(TextPen::Colours, json!({"application/json": {"n": 1}}));
        assert_eq!(tree, "\x1b[34mn: \x1b[0m\x1b[36m1\x1b[0m\n");
        assert_eq!(shown(TextPen::Plain, json!({"application/json": {"n": 1}})), "{\n  \"n\": 1\n}\n");
    }
}
