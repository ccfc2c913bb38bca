//! What happens in a session, as text for a terminal that nobody types at, or for a file.

use std::io::{self, IsTerminal as _};

use cellwright_output::visible;
use cellwright_session::{FollowFrom, SessionClient, SessionEvent, SessionKey, duration_words};

use super::view::{CellAuthor, SessionView};
use crate::draw::style::TextPen;
use crate::exit::CommandExit;
use crate::print;

/// How much of a session is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowStyle {
    /// What is kept of the past.
    Past,
    /// The same, and what comes until the session ends.
    PastAndFuture,
}

/// Prints what happens in a session, whoever runs it.
pub(crate) async fn follow_session(
    client: &SessionClient,
    key: &SessionKey,
    style: FollowStyle,
) -> anyhow::Result<CommandExit> {
    let is_coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let view = SessionView {
        pen: if is_coloured { TextPen::Colours } else { TextPen::Plain },
        language: "python".to_owned(),
        images: None,
    };
    let mut follower = client.follow(key, FollowFrom::Beginning).await?;
    let mut is_line_open = false;
    while let Some(event) = follower.read().await {
        let text = match &*event {
            SessionEvent::Present if style == FollowStyle::Past => break,
            SessionEvent::Output { change, .. } => {
                let text = view.change(change, CellAuthor::Other);
                print::plain(&text)?;
                is_line_open = if text.is_empty() { is_line_open } else { !text.ends_with('\n') };
                continue;
            }
            SessionEvent::CellStarted { code, title, .. } => view.code(code, title.as_deref()),
            SessionEvent::CellFinished { status, duration, .. } => {
                let how = format!("{}, {}", status.word(), duration_words(*duration));
                format!("{}\n", view.note(&how))
            }
            SessionEvent::CallFinished { error: Some(error), .. } => format!("error: {}\n", visible(error)),
            SessionEvent::InputAsked { prompt, .. } => format!("{}\n", visible(prompt)),
            SessionEvent::Missed { events } => {
                format!("{}\n", view.note(&format!("{events} events are not kept any more")))
            }
            SessionEvent::Notice(notice) => format!("{}\n", view.note(&format!("note: {notice}"))),
            SessionEvent::KernelStarted(about) => format!("{}\n", view.note(&about.to_string())),
            SessionEvent::Ended(why) => {
                format!("{}\n", view.note(&format!("the session has ended: {why}")))
            }
            SessionEvent::Present
            | SessionEvent::Comm(_)
            | SessionEvent::CallStarted { .. }
            | SessionEvent::Stopping { .. }
            | SessionEvent::CallFinished { error: None, .. } => continue,
        };
        let start = if std::mem::take(&mut is_line_open) { "\n" } else { "" };
        print::plain(&format!("{start}{text}"))?;
    }
    Ok(CommandExit::Done)
}
