//! What code shows, as outputs of its cell.

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
