//! How a cell goes, in a line: a mark, its place, its title, how long it took, and what came of it.

use std::time::Duration;

use cellwright_kernel::StopReason;
use cellwright_output::visible;
use cellwright_session::{CellStatus, NotRun};

use crate::draw::style::{StyledText, TextPen, TextStyle, painted, width};
use crate::draw::wrap::{clipped, fitting};

/// Frames of the mark of what runs.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How long each of them stands.
const SPIN: Duration = Duration::from_millis(100);

/// How something goes that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusMark {
    Waiting,
    /// For so long.
    Running(Duration),
    /// It runs, and its line will not be drawn again.
    Begun,
    Ok(Duration),
    /// It raised an exception, as it may.
    Raised(Duration, String),
    Failed(Duration, String),
    /// It was stopped, with what stopped it.
    Stopped(Duration, String),
    /// Why not.
    NotRun(&'static str),
}

/// A line that says which cell this is and how it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellHeading<'a> {
    /// `2/5`; empty if there is nothing to count.
    pub(crate) place: &'a str,
    pub(crate) title: &'a str,
}

impl StatusMark {
    /// How a cell went that is over, or not begun.
    pub(crate) fn of(status: &CellStatus, duration: Duration, may_raise: bool) -> Self {
        match status {
            CellStatus::Waiting => Self::Waiting,
            CellStatus::Running => Self::Running(duration),
            CellStatus::Ok => Self::Ok(duration),
            CellStatus::Error(exception) if may_raise => Self::Raised(duration, exception.name.clone()),
            CellStatus::Error(exception) => Self::Failed(duration, exception.name.clone()),
            CellStatus::Stopped { reason, .. } => {
                let why = match reason {
                    StopReason::Cancelled => "cancelled",
                    StopReason::TimedOut(_) => "took too long",
                    StopReason::Interrupted => "interrupted",
                    StopReason::Shutdown => "ended with its kernel",
                };
                Self::Stopped(duration, why.to_owned())
            }
            CellStatus::Died(_) => Self::Failed(duration, "the kernel died".to_owned()),
            CellStatus::Unknown => Self::Failed(duration, "its end is not known".to_owned()),
            CellStatus::NotRun(NotRun::Withdrawn) => Self::NotRun("removed before its turn"),
            CellStatus::NotRun(NotRun::AfterFailure | NotRun::Stopped | NotRun::Error) => {
                Self::NotRun("not run")
            }
        }
    }

    /// One character and its style.
    pub(crate) fn symbol(&self) -> (TextStyle, &'static str) {
        match self {
            Self::Waiting | Self::NotRun(_) => (TextStyle::DIM, "○"),
            Self::Running(since) => {
                let frame = since.as_millis() / SPIN.as_millis();
                let frame = usize::try_from(frame % 10).expect("it is one of ten");
                (TextStyle::CYAN.bold(), SPINNER[frame])
            }
            Self::Begun => (TextStyle::CYAN.bold(), "▸"),
            Self::Ok(_) => (TextStyle::GREEN.bold(), "✓"),
            Self::Raised(..) => (TextStyle::YELLOW.bold(), "!"),
            Self::Failed(..) => (TextStyle::RED.bold(), "✗"),
            Self::Stopped(..) => (TextStyle::YELLOW.bold(), "■"),
        }
    }

    /// What follows the title: the time, and what came of it.
    pub(crate) fn detail(&self) -> StyledText {
        let (took, what) = match self {
            Self::Waiting | Self::Begun => return StyledText::new(),
            Self::NotRun(why) => return vec![(TextStyle::DIM, (*why).to_owned())],
            Self::Running(took) | Self::Ok(took) => (took, None),
            Self::Raised(took, name) => {
                (took, Some((TextStyle::YELLOW, format!("raised {name}, as it may"))))
            }
            Self::Failed(took, what) => (took, Some((TextStyle::RED, what.clone()))),
            Self::Stopped(took, why) => (took, Some((TextStyle::YELLOW, why.clone()))),
        };
        let mut detail = vec![(TextStyle::DIM, seconds(*took))];
        if let Some((style, what)) = what.filter(|(_, what)| !what.is_empty()) {
            detail.push((TextStyle::PLAIN, "  ".to_owned()));
            detail.push((style, visible(&what).replace('\n', " ")));
        }
        detail
    }
}

impl CellHeading<'_> {
    /// The line, in at most so many columns: a long title is cut.
    pub(crate) fn line(self, mark: &StatusMark, room: usize, pen: TextPen) -> String {
        let (style, symbol) = mark.symbol();
        let mut pieces = vec![(style, symbol.to_owned())];
        if !self.place.is_empty() {
            pieces.push((TextStyle::DIM, format!(" {}", self.place)));
        }
        let detail = mark.detail();
        let is_quiet = matches!(mark, StatusMark::Waiting | StatusMark::NotRun(_));
        let style = if is_quiet { TextStyle::DIM } else { TextStyle::PLAIN.bold() };
        let first = visible(self.title);
        let first = first.trim().lines().next().unwrap_or_default().replace('\t', " ");
        let left = room.saturating_sub(width(&pieces) + 1 + 2 + width(&detail));
        let title = fitting(&first, left);
        let title = if title.len() < first.len() {
            format!("{}…", fitting(&first, left.saturating_sub(1)))
        } else {
            title.to_owned()
        };
        if !title.is_empty() && left > 0 {
            pieces.push((TextStyle::PLAIN, " ".to_owned()));
            pieces.push((style, title));
        }
        if !detail.is_empty() {
            pieces.push((TextStyle::PLAIN, if self.title.is_empty() { " " } else { "  " }.to_owned()));
            pieces.extend(detail);
        }
        clipped(&painted(&pieces, pen), room)
    }
}

/// `0.25 s`, `12 s`, `3 min 20 s`: tenths while they can be read.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(title: &str, mark: &StatusMark, room: usize) -> String {
        CellHeading { place: "2/5", title }.line(mark, room, TextPen::Plain)
    }

    #[test]
    fn a_heading_says_how_its_cell_goes() {
        let took = Duration::from_millis(1240);
        for (mark, expected) in [
            (StatusMark::Waiting, "○ 2/5 load"),
            (StatusMark::Running(took), "⠹ 2/5 load  1.2 s"),
            (StatusMark::Begun, "▸ 2/5 load"),
            (StatusMark::Ok(took), "✓ 2/5 load  1.2 s"),
            (StatusMark::Failed(took, "KeyError".to_owned()), "✗ 2/5 load  1.2 s  KeyError"),
            (
                StatusMark::Raised(took, "KeyError".to_owned()),
                "! 2/5 load  1.2 s  raised KeyError, as it may",
            ),
            (StatusMark::Stopped(took, "interrupted".to_owned()), "■ 2/5 load  1.2 s  interrupted"),
            (StatusMark::NotRun("not run"), "○ 2/5 load  not run"),
        ] {
            assert_eq!(line("load", &mark, 80), expected);
        }
    }

    #[test]
    fn a_long_title_is_cut_and_a_hostile_one_is_visible() {
        let took = StatusMark::Ok(Duration::from_secs(75));
        assert_eq!(line("the data of all years", &took, 30), "✓ 2/5 the data of…  1 min 15 s");
        assert_eq!(line("表計算の題", &took, 26), "✓ 2/5 表計算…  1 min 15 s");
        assert_eq!(
            line("a\x1b]0;x\x07\u{202e}b", &StatusMark::Waiting, 80),
            "○ 2/5 a\\u{1b}]0;x\\u{7}\\u{202e}b"
        );
    }
}
