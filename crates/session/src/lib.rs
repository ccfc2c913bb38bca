//! Which kernel runs this call.
//!
//! [`Sessions`] keeps live kernels under their [`SessionKey`], one owner task each, and runs [`Call`]s in them one after
//! the other. A [`Running`] call says what happens as [`CallEvent`]s and ends in a [`CallReport`] that states the
//! truth about cells and kernel. Kernels that died are replaced, idle ones evicted, long calls go on in the
//! background as jobs.
//!
//! Nothing here reads the environment or prints: the maker of [`Settings`] decides. How a kernel is talked to is
//! left to `kernel`, how results look to the caller.

pub mod bridge;
mod call;
mod client;
mod collect;
mod comm;
pub mod daemon;
mod error;
mod identity;
mod jobs;
mod local;
mod notice;
mod registry;
mod report;
mod sessions;
mod settings;
mod setup;
mod wire;
mod words;
mod worker;

pub use call::{
    Abandoned, Call, CallEvent, CellRequest, InputRequest, LateOutput, Mode, Next, Reset, Running, Timeout,
    Turn, TurnRequest, Turns,
};
pub use client::Client;
pub use collect::{Collected, Collector, Shown};
pub use comm::{Comm, CommBuffer};
pub use error::SessionError;
pub use identity::{InvalidSessionId, SessionId, SessionKey};
pub use jobs::{JobId, JobInfo, JobState};
pub use notice::{Departure, Notice};
pub use report::{After, CallReport, CellReport, CellStatus, KernelReport, KernelUse, NotRun, Replacement};
pub use sessions::{Activity, Force, SessionInfo, Sessions};
pub use settings::{Limits, OutputSettings, Retry, Settings, Stored};
pub use words::{KernelFate, duration_words};
