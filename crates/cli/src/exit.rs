//! How the program ends.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use cellwright_notebook::file::FileError;

/// Shown by `--help`.
pub(crate) const CODES: &str = "\
Exit codes:
  0    done
  1    not possible, or a cell failed; stderr says why (with --json as JSON)
  2    the arguments are wrong
  3    a file changed since it was read, so it was not written
  124  a cell took too long
  130  interrupted";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Changed,
    TimedOut,
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Changed => 3,
            Self::TimedOut => 124,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// How an error is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Text,
    Json,
}

/// Prints an error with its causes on one line, and chooses the exit code.
#[expect(clippy::print_stderr, reason = "this is where the program says why it failed")]
pub(crate) fn report(error: &anyhow::Error, told: Told) -> Exit {
    if let Some(io) = error.downcast_ref::<io::Error>()
        && io.kind() == io::ErrorKind::BrokenPipe
    {
        return Exit::Done; // whoever read our output has seen enough
    }
    let exit = match error.downcast_ref::<FileError>() {
        Some(FileError::Changed { .. }) => Exit::Changed,
        _ => Exit::Failed,
    };
    let why = one_line(error.as_ref());
    match told {
        Told::Text => eprintln!("error: {why}"),
        Told::Json => eprintln!("{}", serde_json::json!({ "error": why, "exit": exit.code() })),
    }
    exit
}

/// An error and its causes.
pub(crate) fn one_line(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ").replace('\n', " ")
}
