//! What code shows, as outputs of its cell.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};
use cellwright_jupyter::JupyterMessage;
use cellwright_jupyter::content::{
    ClearOutput, DisplayData, ErrorOutput, ExceptionContent, ExecuteResult, MessageContent, StreamOutput,
    Transient, UpdateDisplayData,
};
use tokio::time::Instant;

use crate::companion::CellAddress;
use crate::kernel_state::lock;
use crate::turn::{CellChannel, StopSignal};
use crate::view::OutputData;

/// How long printed text waits for more, so that a loop that prints makes few messages.
const GATHERS: Duration = Duration::from_millis(20);

/// Text that does not wait.
const ENOUGH: usize = 32 << 10;

/// Gathers text, and publishes what a cell of code shows.
#[derive(Default)]
pub(crate) struct CodeOutputs {
    waiting: Option<WaitingText>,
}

struct WaitingText {
    stream: Stream,
    text: String,
    until: Instant,
}

impl CodeOutputs {
    /// Takes what the code shows next.
    pub(crate) async fn take(
        &mut self,
        change: OutputChange,
        cell: &CellChannel,
        count: u32,
        stop: &StopSignal,
    ) {
        if let OutputChange::Added(Output::Text { stream, text }) = change {
            if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.stream == stream) {
                waiting.text.push_str(&text);
            } else {
                self.flush(cell, count, stop).await;
                self.waiting = Some(WaitingText { stream, text, until: Instant::now() + GATHERS });
            }
            if self.waiting.as_ref().is_some_and(|waiting| waiting.text.len() >= ENOUGH) {
                self.flush(cell, count, stop).await;
            }
            return;
        }
        self.flush(cell, count, stop).await;
        cell.show_change(&change, count, stop).await;
    }

    /// Whether text should be published now.
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.until <= Instant::now())
    }

    /// Waits until text should be published. Cancel-safe.
    pub(crate) async fn due(&self) {
        match &self.waiting {
            Some(waiting) => tokio::time::sleep_until(waiting.until).await,
            None => std::future::pending().await,
        }
    }

    /// Publishes the text that waits.
    pub(crate) async fn flush(&mut self, cell: &CellChannel, count: u32, stop: &StopSignal) {
        if let Some(WaitingText { stream, text, .. }) = self.waiting.take() {
            cell.show_change(&OutputChange::Added(Output::Text { stream, text }), count, stop).await;
        }
    }
}

/// What an agent's code shows, as changes to a cell that shows the agent's words as well.
#[derive(Default)]
pub(crate) struct AgentOutputs {
    turn: String,
    count: usize,
    /// The displays that the code has made since it last cleared its output.
    displays: Vec<String>,
    /// Displays that the code has cleared, and that wait for something new to show.
    cleared: VecDeque<String>,
}

impl AgentOutputs {
    pub(crate) fn new(turn: impl Into<String>) -> Self {
        Self { turn: turn.into(), ..Self::default() }
    }

    /// The same change without what would harm the rest of the cell: clearing removes only displays of the code itself,
    /// and an exception is text, because tools that run notebooks take an error output for the cell's own failure.
    pub(crate) fn adapted(&mut self, change: OutputChange) -> Vec<OutputChange> {
        match change {
            OutputChange::Added(
                Output::Result { content, .. } | Output::Display { content, display_id: None },
            ) => self.shown(content),
            OutputChange::Added(Output::Error(exception)) => {
                let mut text = exception.traceback.join("\n");
                if text.is_empty() {
                    text = format!("{}: {}", exception.name, exception.message);
                }
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                vec![OutputChange::Added(Output::text(Stream::Stderr, text))]
            }
            OutputChange::Cleared { wait } => {
                self.cleared.extend(self.displays.drain(..));
                if wait { Vec::new() } else { self.cleared.iter().map(|id| emptied(id)).collect() }
            }
            other @ (OutputChange::Added(Output::Text { .. } | Output::Display { .. })
            | OutputChange::Updated { .. }) => {
                vec![other]
            }
        }
    }

    /// A display, in the place of one that was cleared if there is one.
    fn shown(&mut self, content: Arc<MimeBundle>) -> Vec<OutputChange> {
        let Some(display_id) = self.cleared.pop_front() else {
            self.count += 1;
            let id = format!("{}-out-{}", self.turn, self.count);
            self.displays.push(id.clone());
            return vec![OutputChange::Added(Output::Display { content, display_id: Some(id) })];
        };
        let mut changes = vec![OutputChange::Updated { display_id: display_id.clone(), content }];
        changes.extend(self.cleared.iter().map(|id| emptied(id)));
        self.displays.push(display_id);
        changes
    }
}

/// A display that shows nothing any more.
fn emptied(display_id: &str) -> OutputChange {
    let mut content = MimeBundle::default();
    content.data.insert("text/plain", "");
    OutputChange::Updated { display_id: display_id.to_owned(), content: Arc::new(content) }
}

impl CellChannel {
    /// Shows a change that code made. `count` is the number of the cell, for its result.
    async fn show_change(&self, change: &OutputChange, count: u32, stop: &StopSignal) {
        self.note(change);
        match change {
            OutputChange::Added(Output::Result { content, .. }) => {
                let MimeBundle { data, metadata } = content.as_ref().clone();
                let execution_count = Some(count.into());
                let result = ExecuteResult { execution_count, data, metadata, ..ExecuteResult::default() };
                self.publish(&result, stop).await;
            }
            OutputChange::Added(Output::Text { stream, text }) => {
                self.publish(&printed(*stream, text), stop).await;
            }
            OutputChange::Added(Output::Display { content, display_id }) => {
                self.publish(&displayed(content, display_id.as_deref()), stop).await;
            }
            OutputChange::Added(Output::Error(exception)) => {
                self.publish(&raised(exception), stop).await;
            }
            OutputChange::Updated { display_id, content } => {
                self.publish(&updated(content, display_id), stop).await;
            }
            OutputChange::Cleared { wait } => {
                self.publish(&ClearOutput { wait: *wait, ..ClearOutput::default() }, stop).await;
            }
        }
    }

    /// Notes a change in the record of the cell.
    pub(crate) fn note(&self, change: &OutputChange) {
        let mut record = lock(self.record());
        match change {
            OutputChange::Added(Output::Text { stream, text }) => record.stream(*stream, text),
            OutputChange::Added(Output::Display { content, display_id }) => {
                record.display_as(display_id.as_deref(), &data_of(content));
            }
            OutputChange::Added(Output::Result { content, .. }) => {
                record.display_as(None, &data_of(content));
            }
            OutputChange::Added(Output::Error(exception)) => {
                record.stream(Stream::Stderr, &format!("{}: {}\n", exception.name, exception.message));
            }
            OutputChange::Updated { display_id, content } => record.update(display_id, &data_of(content)),
            OutputChange::Cleared { .. } => record.clear(),
        }
    }
}

/// A value as views have it.
fn data_of(content: &MimeBundle) -> OutputData {
    content.data.iter().map(|(mime, value)| (mime.to_owned(), value.json().value())).collect()
}

fn printed(name: Stream, text: &str) -> StreamOutput {
    StreamOutput { name, text: text.to_owned(), ..StreamOutput::default() }
}

fn transient(display_id: Option<&str>) -> Transient {
    Transient { display_id: display_id.map(str::to_owned), ..Transient::default() }
}

pub(crate) fn displayed(content: &MimeBundle, display_id: Option<&str>) -> DisplayData {
    let MimeBundle { data, metadata } = content.clone();
    DisplayData { data, metadata, transient: transient(display_id), ..DisplayData::default() }
}

pub(crate) fn updated(content: &MimeBundle, display_id: &str) -> UpdateDisplayData {
    let MimeBundle { data, metadata } = content.clone();
    UpdateDisplayData {
        data,
        metadata,
        transient: transient(Some(display_id)),
        ..UpdateDisplayData::default()
    }
}

pub(crate) fn exception_of(exception: &cellwright_cell::Exception) -> ExceptionContent {
    let cellwright_cell::Exception { name, message, traceback, .. } = exception.clone();
    ExceptionContent { ename: name, evalue: message, traceback }
}

pub(crate) fn raised(exception: &cellwright_cell::Exception) -> ErrorOutput {
    let ExceptionContent { ename, evalue, traceback } = exception_of(exception);
    ErrorOutput { ename, evalue, traceback, ..ErrorOutput::default() }
}

/// What a cell shows after its end, as a message.
pub(crate) fn late_message(change: &OutputChange, cell: &CellAddress) -> Option<JupyterMessage> {
    fn message(content: &impl MessageContent, cell: &CellAddress) -> JupyterMessage {
        cell.sender.session().message(content).with_parent(&cell.header)
    }
    Some(match change {
        OutputChange::Added(Output::Text { stream, text }) => message(&printed(*stream, text), cell),
        OutputChange::Added(Output::Display { content, display_id }) => {
            message(&displayed(content, display_id.as_deref()), cell)
        }
        OutputChange::Added(Output::Result { content, .. }) => message(&displayed(content, None), cell),
        OutputChange::Added(Output::Error(exception)) => message(&raised(exception), cell),
        OutputChange::Updated { display_id, content } => message(&updated(content, display_id), cell),
        // It would remove what the cell itself has shown.
        OutputChange::Cleared { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(text: &str) -> OutputChange {
        let mut content = MimeBundle::default();
        content.data.insert("text/plain", text);
        OutputChange::Added(Output::Result { content: Arc::new(content), count: Some(1) })
    }

    fn words(changes: Vec<OutputChange>) -> Vec<String> {
        let words = changes.into_iter().map(|change| match change {
            OutputChange::Added(Output::Display { content, display_id }) => {
                format!(
                    "{} {}",
                    display_id.unwrap_or_default(),
                    content.data.text("text/plain").unwrap_or_default()
                )
            }
            OutputChange::Updated { display_id, content } => {
                format!("{display_id} = {}", content.data.text("text/plain").unwrap_or_default())
            }
            other => format!("{other:?}"),
        });
        words.collect()
    }

    #[test]
    fn clearing_removes_only_what_the_agents_code_has_shown() {
        let mut outputs = AgentOutputs::new("t");
        assert_eq!(words(outputs.adapted(plot("a"))), ["t-out-1 a"]);
        assert_eq!(words(outputs.adapted(plot("b"))), ["t-out-2 b"]);
        assert_eq!(words(outputs.adapted(OutputChange::Cleared { wait: true })), Vec::<String>::new());
        assert_eq!(words(outputs.adapted(plot("c"))), ["t-out-1 = c", "t-out-2 = "]);
        assert_eq!(
            words(outputs.adapted(OutputChange::Cleared { wait: false })),
            ["t-out-2 = ", "t-out-1 = "]
        );
    }
}
