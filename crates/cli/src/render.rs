//! What a person, or a program, sees of a call while it runs.

mod json;
mod plain;

use cellwright_session::{CallEvent, CallReport};

pub(crate) use json::{JsonRender, event as event_json};
pub(crate) use plain::PlainRender;

/// Shows a call.
pub(crate) trait CallRender {
    /// Something happened.
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()>;
    /// It is over.
    fn end(&mut self, report: &CallReport) -> anyhow::Result<()>;
}
