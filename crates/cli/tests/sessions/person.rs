//! A person at a terminal, who types and reads the screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};

use avt::Terminal;
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};

use super::UserHome;

/// Whatever has to come takes less, on a busy machine, too.
const PATIENCE: u16 = 60_000;

pub(super) struct Person {
    child: Child,
    keyboard: File,
    terminal: Terminal,
    /// Everything that the terminal was sent.
    pub(super) sent: Vec<u8>,
    /// How much of it the emulator has.
    fed: usize,
}

impl Person {
    /// Sits down at a terminal of 80 columns, where the program is started.
    pub(super) fn at(home: &UserHome, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: 80, ws_xpixel: 800, ws_ypixel: 800 };
        let pty = openpty(Some(&size), None).unwrap();
        let theirs = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = home.command(arguments);
        for name in ["KITTY_WINDOW_ID", "LC_TERMINAL", "NO_COLOR", "TERM_PROGRAM", "TMUX"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        let child = command.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        let terminal = Terminal::with_scrollback(80, 40, None).unwrap();
        Self { child, keyboard: pty.master.into(), terminal, sent: Vec::new(), fed: 0 }
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the window narrower or wider.
    pub(super) fn resizes(&mut self, columns: u16) {
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 800, ws_ypixel: 800 };
        // First the window, as terminals do it: what comes then is drawn for its new width.
        self.terminal.resize(columns.into(), 40);
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
        // The signal goes to those in the terminal's foreground, which a test's child is not in.
        let child = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(child, rustix::process::Signal::WINCH).unwrap();
    }

    /// Types a line when the prompt with this number is there.
    pub(super) fn enters(&mut self, number: usize, line: &str) {
        self.sees(&format!("In [{number}]:"));
        self.types(&format!("{line}\r"));
    }

    /// Looks until the screen shows `text`.
    #[track_caller]
    pub(super) fn sees(&mut self, text: &str) {
        self.looks_until(text, |screen| screen.contains(text));
    }

    #[track_caller]
    pub(super) fn looks_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) {
        while !holds(&self.screen()) {
            let mut ready = [PollFd::new(self.keyboard.as_fd(), PollFlags::POLLIN)];
            let is_there = poll(&mut ready, PATIENCE).unwrap() > 0;
            assert!(is_there && self.read() > 0, "waited in vain for {what:?}:\n{}", self.screen());
        }
    }

    /// What is on the screen and above it, without empty lines at the end.
    pub(super) fn screen(&self) -> String {
        let lines: Vec<_> =
            self.terminal.screen().all_lines().map(|line| line.text().trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Reads until the program has ended, and returns its exit code.
    #[track_caller]
    pub(super) fn leaves(&mut self) -> i32 {
        let status = self.child.wait().unwrap();
        loop {
            let mut ready = [PollFd::new(self.keyboard.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, 0_u16).unwrap() == 0 || self.read() == 0 {
                return status.code().expect("it was not killed");
            }
        }
    }

    fn read(&mut self) -> usize {
        let mut bytes = [0; 8192];
        // Linux says "input/output error" when the last process has left.
        let length = self.keyboard.read(&mut bytes).unwrap_or(0);
        self.sent.extend_from_slice(&bytes[..length]);
        let unread = &self.sent[self.fed..];
        // A character may be cut.
        let whole = unread.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.fed += whole.len();
        self.terminal.feed(whole);
        length
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait())); // it may have ended
    }
}
