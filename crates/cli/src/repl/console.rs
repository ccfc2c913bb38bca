//! The terminal of a person who types: keys come one by one, and what is printed never tears the text that is typed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use unicode_width::UnicodeWidthStr as _;

use crate::line::{KeyParser, LayoutRow, PromptLayout, TypedKey};

/// How long the rest of a key's sequence may take after its Escape.
const REST_OF_KEY: Duration = Duration::from_millis(50);
/// The longest unfinished line that is drawn once more in front of what follows it.
const OPEN_LINE: usize = 4096;

/// The terminal's modes from before it gave us single keys.
static USUAL_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal on stdin and stdout. Dropping it leaves the terminal as it was.
pub(crate) struct ReplConsole {
    input: AsyncFd<io::Stdin>,
    parser: KeyParser,
    keys: VecDeque<TypedKey>,
    /// What stands at the cursor while a text is typed.
    shown: Option<PromptLayout>,
    /// What was printed since the last line's end.
    open_line: String,
    /// The open line stands above what is shown.
    is_above: bool,
}

impl ReplConsole {
    /// Takes the terminal over. From here on it shows only what is printed here.
    pub(crate) fn open() -> anyhow::Result<Self> {
        begin_keys().context("could not set up the terminal")?;
        #[expect(
            deprecated,
            reason = "it may be given a descriptor that is closed too early; this one never is"
        )]
        let input = AsyncFd::with_interest(io::stdin(), Interest::READABLE);
        Ok(Self {
            input: input.context("could not wait for standard input")?,
            parser: KeyParser::default(),
            keys: VecDeque::new(),
            shown: None,
            open_line: String::new(),
            is_above: false,
        })
    }

    /// Columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// The next key; `None` when the terminal is gone. Cancel-safe.
    pub(crate) async fn key(&mut self) -> io::Result<Option<TypedKey>> {
        loop {
            if let Some(key) = self.keys.pop_front() {
                return Ok(Some(key));
            }
            let waits = self.parser.waits();
            let mut ready = tokio::select! {
                ready = self.input.readable() => ready?,
                () = tokio::time::sleep(REST_OF_KEY), if waits => {
                    self.keys.extend(self.parser.give_up());
                    continue;
                }
            };
            let stdin = self.input.get_ref();
            if poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&Timespec::default()))? == 0 {
                ready.clear_ready();
                continue;
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(stdin, &mut bytes) {
                // It was closed.
                Ok(0) | Err(rustix::io::Errno::IO) => return Ok(None),
                Ok(length) => self.keys.extend(self.parser.take(&bytes[..length])),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks the terminal what it is. It answers with a key.
    #[expect(clippy::unused_self, reason = "only an open console reads the answer")]
    pub(crate) fn ask_attributes(&self) -> io::Result<()> {
        write_out("\x1b[c")
    }

    /// Keys that came too early are typed again.
    pub(crate) fn give_back(&mut self, keys: impl IntoIterator<Item = TypedKey>) {
        let later = std::mem::take(&mut self.keys);
        self.keys = keys.into_iter().chain(later).collect();
    }

    /// Prints, above a text that is typed. Draw that again afterwards.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = self.taken_away();
        out.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, line)) => line.clone_into(&mut self.open_line),
            None => self.open_line.push_str(text),
        }
        write_out(&out)
    }

    /// Prints on lines of its own.
    pub(crate) fn print_line(&mut self, text: &str) -> io::Result<()> {
        let start = if self.open_line.is_empty() { "" } else { "\n" };
        self.print(&format!("{start}{text}\n"))
    }

    /// Shows a text that is typed, in place of what was shown of it.
    pub(crate) fn draw(&mut self, layout: PromptLayout) -> io::Result<()> {
        let (_, height) = Self::size();
        let layout = within(layout, height);
        if self.shown.as_ref() == Some(&layout) {
            return Ok(());
        }
        let mut out = String::from("\x1b[?25l");
        if self.shown.is_some() {
            out.push_str(&self.to_start());
        } else if !self.open_line.is_empty() {
            // It goes on above if more comes of it, unless it is longer than the screen is wide.
            let is_short = self.open_line.len() <= OPEN_LINE && self.open_line.width() < Self::size().0;
            out.push('\n');
            self.is_above = is_short && !self.open_line.contains('\r');
            if !self.is_above {
                self.open_line.clear();
            }
        }
        for (at, LayoutRow { painted, .. }) in layout.rows.iter().enumerate() {
            let start = if at > 0 { "\n" } else { "" };
            out.push_str(start);
            out.push_str(painted);
        }
        let (row, column) = layout.cursor;
        out.push('\r');
        go(&mut out, layout.rows.len() - 1 - row, 'A');
        go(&mut out, column, 'C');
        out.push_str("\x1b[?25h");
        self.shown = Some(layout);
        write_out(&out)
    }

    /// The text that is shown stays; what follows begins below it.
    pub(crate) fn leave_prompt(&mut self) -> io::Result<()> {
        let Some(shown) = self.shown.take() else { return Ok(()) };
        (self.is_above, self.open_line) = (false, String::new());
        let mut out = String::from("\r");
        go(&mut out, shown.rows.len() - 1 - shown.cursor.0, 'B');
        out.push('\n');
        write_out(&out)
    }

    /// Removes the text that is shown, as if it had not been drawn.
    pub(crate) fn hide_prompt(&mut self) -> io::Result<()> {
        let out = self.taken_away();
        write_out(&out)
    }

    pub(crate) fn clear_screen(&mut self) -> io::Result<()> {
        (self.shown, self.is_above, self.open_line) = (None, false, String::new());
        write_out("\x1b[H\x1b[2J")
    }

    /// Stops this program, as its shell wants it, until it is continued.
    pub(crate) fn suspend(&mut self) -> anyhow::Result<()> {
        self.hide_prompt()?;
        restore();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        begin_keys().context("could not set up the terminal")
    }

    /// What removes the text that is shown, and returns to the end of the open line above it.
    fn taken_away(&mut self) -> String {
        if self.shown.is_none() {
            return String::new();
        }
        let mut out = self.to_start();
        self.shown = None;
        if std::mem::take(&mut self.is_above) {
            out.push_str("\x1b[A\x1b[J");
            out.push_str(&self.open_line);
        }
        out
    }

    /// From the cursor to the first column of the first row, which is emptied with all below it.
    fn to_start(&self) -> String {
        let mut out = String::from("\r");
        go(&mut out, self.shown.as_ref().map_or(0, |shown| rows_above(shown, Self::size().0)), 'A');
        out.push_str("\x1b[J");
        out
    }
}

impl Drop for ReplConsole {
    fn drop(&mut self) {
        restore();
    }
}

/// Rows above the cursor. A window that is narrower now than when they were drawn has broken them into more, and a key
/// may come before the signal that says so.
fn rows_above(shown: &PromptLayout, columns: usize) -> usize {
    let (row, column) = shown.cursor;
    let above = shown.rows.iter().take(row).map(|row| row.columns.saturating_sub(1) / columns + 1);
    above.sum::<usize>() + column / columns
}

/// The rows around the cursor that fit on the screen.
fn within(layout: PromptLayout, height: usize) -> PromptLayout {
    let PromptLayout { mut rows, cursor: (row, column) } = layout;
    if rows.len() <= height {
        return PromptLayout { rows, cursor: (row, column) };
    }
    let first = (row + 1).saturating_sub(height);
    let rows = rows.drain(first..(first + height).min(rows.len())).collect();
    PromptLayout { rows, cursor: (row - first, column) }
}

fn go(out: &mut String, steps: usize, direction: char) {
    if steps > 0 {
        write!(out, "\x1b[{steps}{direction}").expect("a String takes everything");
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Has the terminal hand over each key as it is typed, and pasted text as such.
fn begin_keys() -> io::Result<()> {
    let usual = tcgetattr(io::stdin())?;
    let mut single = usual.clone();
    single.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
    single.input_modes -= InputModes::ICRNL | InputModes::IXON;
    single.special_codes[SpecialCodeIndex::VMIN] = 1;
    single.special_codes[SpecialCodeIndex::VTIME] = 0;
    USUAL_MODES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(usual);
    tcsetattr(io::stdin(), OptionalActions::Now, &single)?;
    write_out("\x1b[?2004h")
}

/// Leaves the terminal as it was: also if the program ends without dropping anything.
pub(crate) fn restore() {
    if let Some(usual) = USUAL_MODES.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // The terminal may be gone.
        let _ = write_out("\x1b[?2004l\x1b[?25h");
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &usual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_around_the_cursor_are_shown_of_a_text_that_is_higher_than_the_screen() {
        let row = |number: usize| LayoutRow { painted: number.to_string(), columns: 1 };
        let shown = |cursor| {
            let layout = PromptLayout { rows: (0..9).map(row).collect(), cursor: (cursor, 1) };
            let PromptLayout { rows, cursor } = within(layout, 4);
            (rows.into_iter().map(|row| row.painted).collect::<String>(), cursor)
        };
        assert_eq!(shown(8), ("5678".into(), (3, 1)));
        assert_eq!(shown(2), ("0123".into(), (2, 1)));
    }
}
