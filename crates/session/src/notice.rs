//! What a user should know about a session that is no output of a cell.

use std::fmt;
use std::time::Duration;

use cellwright_kernel::Exit;
use serde::{Deserialize, Serialize};

use crate::identity::SessionKey;
use crate::words::duration_words;

/// Something to know. Its `Display` is a sentence for people and models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The session existed before and was ended.
    Departed(Departure),
    /// The kernel died while no cell ran.
    DiedIdle(Exit),
    /// The kernel died before the cell began; the cell ran on a fresh one.
    RanElsewhere {
        /// Which cell.
        cell: usize,
        /// How the kernel died.
        exit: Exit,
    },
    /// The kernel died while the cell ran; the cell was run again on a fresh one, as the settings say.
    Replayed {
        /// Which cell.
        cell: usize,
        /// How the kernel died.
        exit: Exit,
    },
    /// Another call that waited asked for a reset too; the kernel was reset once for both.
    ResetJoined {
        /// Which cell.
        cell: usize,
    },
    /// The session was given a fresh kernel, which stopped the call.
    Restarted,
    /// The daemon that had the sessions is gone, and another one was started.
    DaemonReplaced,
    /// The system had no room for another kernel, so these idle sessions were ended.
    Dropped(Vec<SessionKey>),
    /// A kernel more than there may be was started for this call, so these idle sessions were ended.
    MadeRoom {
        /// Which.
        ended: Vec<SessionKey>,
        /// How many kernels there may be.
        limit: usize,
    },
    /// The call named a Python, so it has a kernel of its own beside this one of the same session.
    SecondKernel(SessionKey),
    /// The kernel takes much memory.
    Memory {
        /// What it takes, in bytes.
        resident: u64,
        /// What was set.
        limit: u64,
    },
    /// A cell asked for input that nobody could give.
    InputRefused {
        /// Which cell.
        cell: usize,
    },
    /// The kernel, or its start, warned.
    Warning(String),
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Departure {
    /// Nobody held it, and it had no call for so long.
    Idle(Duration),
    /// Another session needed the room.
    MadeRoom {
        /// How many there may be.
        limit: usize,
    },
    /// The system had no room for another kernel.
    Exhausted,
    /// Someone ended it.
    ShutDown,
    /// The process that kept it ended first.
    DaemonEnded,
}

/// Cells are named by their place in the call, counted from 1.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|cell| (cell + 1).to_string())
    }
}

impl Notice {
    /// The sentence, with the numbers that the reader knows the cells by: those of a notebook, say.
    pub fn with_cells(&self, number: impl Fn(usize) -> String) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, &number))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, number: &dyn Fn(usize) -> String) -> fmt::Result {
        match self {
            Self::Departed(why) => {
                write!(f, "the session's earlier kernel is gone with its variables: {why}")
            }
            Self::DiedIdle(exit) => {
                let then = match exit {
                    Exit::Process(_) | Exit::Lost(_) => "a fresh one was started, ",
                    Exit::Left(_) | Exit::OutOfReach(_) => "",
                };
                write!(f, "{exit} while no cell ran; {then}{}", exit.variables())
            }
            Self::RanElsewhere { cell, exit } => {
                write!(
                    f,
                    "{exit} before cell {} began; it ran on a fresh one, {}",
                    number(*cell),
                    exit.variables()
                )
            }
            Self::Replayed { cell, exit } => {
                write!(
                    f,
                    "{exit} while cell {} ran; it was run again from its beginning on a fresh one, {}",
                    number(*cell),
                    exit.variables()
                )
            }
            Self::ResetJoined { cell } => write!(
                f,
                "cell {} was not given a kernel of its own: another call that asked at the same time had just reset it",
                number(*cell)
            ),
            Self::Restarted => {
                f.write_str("someone restarted the session, which stopped the call; the variables are gone")
            }
            Self::DaemonReplaced => f.write_str(
                "the process that kept the sessions has died; another one was started, all variables are gone",
            ),
            Self::Dropped(sessions) => {
                f.write_str("the system had no room for another kernel; ended with their variables: ")?;
                list(f, sessions)
            }
            Self::MadeRoom { ended, limit } => {
                write!(
                    f,
                    "at most {limit} kernels run at once (session.limit), so this one took the place of the one that was \
                     idle for longest; ended with its variables: "
                )?;
                list(f, ended)
            }
            Self::SecondKernel(other) => write!(
                f,
                "the call names another Python, so it has a second kernel in this session; the variables of the first are \
                 in session {other}"
            ),
            Self::Memory { resident, limit } => {
                write!(
                    f,
                    "the kernel takes {} of memory, more than the {} that were set; delete what is not needed, or reset",
                    ByteCount(*resident),
                    ByteCount(*limit)
                )
            }
            Self::InputRefused { cell } => {
                write!(
                    f,
                    "cell {} asked for input, which this call cannot give; pass the value in the code",
                    number(*cell)
                )
            }
            Self::Warning(text) => f.write_str(text),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, sessions: &[SessionKey]) -> fmt::Result {
    for (place, session) in sessions.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        write!(f, "{comma}session {session}")?;
    }
    Ok(())
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(time) => write!(f, "it was idle for {}, and nobody used it", duration_words(*time)),
            Self::MadeRoom { limit } => {
                write!(f, "it was the oldest idle one of {limit}, and another session needed the room")
            }
            Self::Exhausted => f.write_str("the system had no room for another kernel, and it was idle"),
            Self::ShutDown => f.write_str("it was shut down"),
            Self::DaemonEnded => f.write_str(
                "the session daemon ended with all kernels (it was killed, or the machine was restarted)",
            ),
        }
    }
}

struct ByteCount(u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tenths, in integers: exact enough for people.
        let (unit, name) = if self.0 >= 1 << 30 { (1 << 30, "GiB") } else { (1 << 20, "MiB") };
        let tenths = self.0.saturating_mul(10) / unit;
        write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
    }
}
