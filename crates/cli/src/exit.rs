//! How the program ends.

use std::error::Error;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::{fmt, io};

use cellwright_cell::{Exception, with_causes};
use cellwright_editing::EditingError;
use cellwright_notebook::file::FileError;
use cellwright_output::{visible, visible_coloured};

/// Shown by `--help`.
pub(crate) const CODES: &str = "\
Exit codes:
  0    done
  1    the command or a cell failed; stderr says why (as JSON with --json)
  2    the arguments are wrong
  3    a file changed since it was read, so it was not written
  124  a cell took too long
  130  interrupted";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandExit {
    Done,
    Failed,
    Misused,
    Changed,
    TimedOut,
    Interrupted,
    /// As the code that ran asked for.
    Asked(u8),
}

impl CommandExit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Changed => 3,
            Self::TimedOut => 124,
            Self::Interrupted => 130,
            Self::Asked(code) => code,
        }
    }
}

/// How Python itself would have ended at a `SystemExit`.
pub(crate) struct PythonExit {
    pub(crate) exit: CommandExit,
    /// What it would have printed on stderr.
    pub(crate) message: Option<String>,
}

impl PythonExit {
    /// `None` for every other exception.
    pub(crate) fn of(exception: &Exception) -> Option<Self> {
        if exception.name != "SystemExit" {
            return None;
        }
        let of = |exit, message| Self { exit, message };
        Some(match exception.message.as_str() {
            "" | "None" | "0" => of(CommandExit::Done, None),
            text => match text.parse::<i128>() {
                // The system keeps the lowest byte.
                Ok(code) => {
                    of(CommandExit::Asked(u8::try_from(code & 0xff).expect("it has eight bits")), None)
                }
                Err(_) => of(CommandExit::Failed, Some(text.to_owned())),
            },
        })
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit.code())
    }
}

/// How an error is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Text,
    Json,
}

/// Arguments that each are right but do not go together.
#[derive(Debug)]
pub(crate) struct WrongArguments(pub(crate) &'static str);

impl fmt::Display for WrongArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for WrongArguments {}

/// Reports wrong arguments. (Clap ends the program for help and the version in the same way; those are no mistakes.)
pub(crate) fn misused(error: &clap::Error, format: ErrorFormat) -> CommandExit {
    if format == ErrorFormat::Text || !error.use_stderr() {
        return wrong_usage(error);
    }
    // Up to the empty line before the usage, in words alone.
    let text = error.render().to_string();
    let why = text.split("\n\n").next().unwrap_or(&text);
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    print_error(why.strip_prefix("error: ").unwrap_or(&why), CommandExit::Misused, format);
    CommandExit::Misused
}

/// Prints what clap says. Arguments may be names of files that somebody else chose.
fn wrong_usage(error: &clap::Error) -> CommandExit {
    if !error.use_stderr() {
        error.exit(); // help and versions are ours
    }
    let said = error.render();
    let said = if io::stderr().is_terminal() { said.ansi().to_string() } else { said.to_string() };
    // A closed stderr does not change how we end.
    let _ = write!(io::stderr().lock(), "{}", visible_coloured(&said));
    CommandExit::Misused
}

/// The exit code for an error.
pub(crate) fn of_error(error: &anyhow::Error) -> CommandExit {
    let is_change = match (error.downcast_ref::<FileError>(), error.downcast_ref::<EditingError>()) {
        (Some(FileError::Changed { .. }), _) => true,
        (_, Some(error)) => error.is_change(),
        (_, None) => false,
    };
    match () {
        () if is_change => CommandExit::Changed,
        () if error.is::<WrongArguments>() => CommandExit::Misused,
        () => CommandExit::Failed,
    }
}

/// Prints an error with its causes on one line, and chooses the exit code.
pub(crate) fn report(error: &anyhow::Error, format: ErrorFormat) -> CommandExit {
    if is_broken_pipe(error) {
        return CommandExit::Done; // the reader of our output has seen enough
    }
    let exit = of_error(error);
    // A refusal shows versions of cells, which have lines.
    let why = match error.downcast_ref::<EditingError>() {
        Some(EditingError::Refused { .. }) => with_causes(error.as_ref()),
        Some(_) | None => one_line(error.as_ref()),
    };
    print_error(&why, exit, format);
    exit
}

#[expect(clippy::print_stderr, reason = "this is where the program says why it failed")]
fn print_error(why: &str, exit: CommandExit, format: ErrorFormat) {
    match format {
        ErrorFormat::Text => eprintln!("error: {}", visible(why)),
        ErrorFormat::Json => eprintln!("{}", serde_json::json!({ "error": why, "exit": exit.code() })),
    }
}

/// Whether nobody reads what we print any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// An error and its causes, on one line.
pub(crate) fn one_line(error: &(dyn Error + 'static)) -> String {
    with_causes(error).replace('\n', " ")
}
