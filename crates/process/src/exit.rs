//! How a child ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

/// How a child ended, as far as it can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ChildExit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// A core file was written.
        core_dumped: bool,
        /// The system killed a process for lack of memory while this one ran, so it was probably
        /// this one.
        out_of_memory: bool,
    },
    /// Its status was taken by someone else, or never came.
    Unknown,
}

impl ChildExit {
    pub(crate) fn new(status: ExitStatus, system_killed_for_memory: bool) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(number)) => Self::Signal {
                number,
                core_dumped: status.core_dumped(),
                out_of_memory: number == Signal::SIGKILL as i32 && system_killed_for_memory,
            },
            (None, None) => Self::Unknown,
        }
    }

    /// Whether the child exited by itself with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal { number, core_dumped, out_of_memory } => {
                match Signal::try_from(number) {
                    Ok(signal) => write!(f, "was ended by {signal}")?,
                    Err(_) => write!(f, "was ended by signal {number}")?,
                }
                match Signal::try_from(number) {
                    Ok(Signal::SIGSEGV) => f.write_str(" (segmentation fault)")?,
                    Ok(Signal::SIGBUS) => f.write_str(" (bus error)")?,
                    Ok(Signal::SIGABRT) => f.write_str(" (abort)")?,
                    Ok(Signal::SIGILL) => f.write_str(" (illegal instruction)")?,
                    Ok(Signal::SIGFPE) => f.write_str(" (arithmetic fault)")?,
                    Ok(_) | Err(_) => {}
                }
                if out_of_memory {
                    f.write_str("; the system was out of memory")?;
                }
                if core_dumped {
                    f.write_str("; a core file was written")?;
                }
                Ok(())
            }
            Self::Unknown => f.write_str("ended in a way that could not be observed"),
        }
    }
}
