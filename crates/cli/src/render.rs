//! What a person, or a program, sees of a call while it runs.
//!
//! [`JsonRender`] writes every event for programs. [`PlainRender`] writes what cells print as it comes, for pipes and files.
//! [`CellRender`] draws cells at a terminal, and changes what it drew while they run.

mod block;
mod cells;
mod closing;
pub(crate) mod edits;
mod json;
mod plain;
mod preview;
mod shown;
mod status;

use std::time::Instant;

use cellwright_session::{CallEvent, CallReport};

pub(crate) use cells::{CellHeadings, CellRender};
pub(crate) use json::{JsonRender, event as event_json};
pub(crate) use plain::{PlainRender, without_colours};
pub(crate) use preview::{CellLook, FullOutputs, PreviewLines};
pub(crate) use shown::value_lines;
pub(crate) use status::{CellHeading, StatusMark, seconds};

/// Shows a call.
pub(crate) trait CallRender {
    /// Something happened.
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()>;
    /// It is over.
    fn end(&mut self, report: &CallReport) -> anyhow::Result<()>;
    /// When [`CallRender::tick`] is to be called, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Time has passed.
    fn tick(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// Somebody else writes to the terminal from now on: what is drawn stays as it is.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// The terminal is this render's again.
    fn resume(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
