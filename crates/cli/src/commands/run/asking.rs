//! Asking the person at the terminal for a line that a cell waits for.

use std::io::{self, BufRead as _, Write as _};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use cellwright_session::InputRequest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The terminal's modes from before its echo was turned off.
static SHOWING: Mutex<Option<Termios>> = Mutex::new(None);

/// A question that was put to the person. Dropping it leaves the terminal as it was.
pub(super) struct TerminalQuestion {
    request: InputRequest,
    stdin: AsyncFd<io::Stdin>,
    hidden: Option<HiddenInput>,
}

impl TerminalQuestion {
    /// Shows the prompt. What is typed after it is hidden when it is a secret.
    pub(super) fn put(request: InputRequest) -> anyhow::Result<Self> {
        let hidden = request.password.then(HiddenInput::begin).transpose();
        let hidden = hidden.context("could not hide what is typed")?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(request.prompt.as_bytes())?;
        stdout.flush()?;
        #[expect(
            deprecated,
            reason = "it may be given a descriptor that is closed too early; this one never is"
        )]
        let stdin = AsyncFd::with_interest(io::stdin(), Interest::READABLE);
        Ok(Self { request, stdin: stdin.context("could not wait for standard input")?, hidden })
    }

    /// Waits until a line, or the end, can be read without waiting. Cancel-safe.
    pub(super) async fn typed(&self) -> io::Result<()> {
        loop {
            let mut ready = self.stdin.readable().await?;
            let mut stdin = [PollFd::new(self.stdin.get_ref(), PollFlags::IN)];
            if poll(&mut stdin, Some(&Timespec::default()))? > 0 {
                return Ok(());
            }
            ready.clear_ready();
        }
    }

    /// Hands the cell the line that was typed. A terminal gives one line at a time, so none is left behind in a buffer.
    pub(super) fn answer(self) -> anyhow::Result<()> {
        let mut line = String::new();
        let length = io::stdin().lock().read_line(&mut line).context("could not read standard input")?;
        if self.hidden.is_some() {
            io::stdout().write_all(b"\n")?; // the one that was typed was not shown
        }
        match length {
            0 => self.request.refuse("end of file on standard input"),
            _ => self.request.answer(line.trim_end_matches('\n')),
        }
        Ok(())
    }
}

/// While it lives, what is typed is not shown.
struct HiddenInput;

impl HiddenInput {
    fn begin() -> io::Result<Self> {
        let shown = tcgetattr(io::stdin())?;
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        *SHOWING.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        show_typing();
    }
}

/// Shows what is typed again, if it was hidden: also if the program ends without dropping anything.
pub(super) fn show_typing() {
    if let Some(modes) = SHOWING.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &modes); // the terminal may be gone
    }
}
