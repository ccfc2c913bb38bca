//! Which kernel runs this call.
//!
//! [`Sessions`] keeps live kernels under their [`SessionKey`], one owner task each, and runs [`Call`]s in them one after
//! the other. A [`CallHandle`] call says what happens as [`CallEvent`]s and ends in a [`CallReport`] that states the
//! truth about cells and kernel. Kernels that died are replaced, idle ones evicted, long calls go on in the
//! background as jobs.
//!
//! Nothing here reads the environment or prints: the maker of [`SessionSettings`] decides. How a kernel is talked to is
//! left to `kernel`, how results look to the caller.

pub mod bridge;
mod call;
mod client;
mod collect;
mod comm;
pub mod daemon;
mod error;
mod identity;
mod interrupt;
mod jobs;
mod journal;
mod ledger;
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
    Abandoned, Call, CallEvent, CallHandle, CallUpdate, CellRequest, CollectMode, InputRequest, LateOutput,
    LetGo, Reset, SessionMode, Timeout, Turn, TurnRequest, Turns,
};
pub use client::SessionClient;
pub use collect::{CollectedOutput, Collector, NotStored, ReportOutputs, ShownOutput};
pub use comm::{Comm, CommBuffer};
pub use error::SessionError;
pub use identity::{InvalidSessionId, SessionId, SessionKey};
pub use jobs::{JobId, JobInfo, JobState, QueuePlace};
pub use journal::{FollowFrom, SessionEvent, SessionFollower};
pub use notice::{Departure, Notice};
pub use report::{
    CallReport, CellReport, CellStatus, KernelAfter, KernelReplacement, KernelReport, KernelUse, NotRun,
};
pub use sessions::{Activity, Force, InterruptDefence, InterruptResult, JobStop, SessionInfo, Sessions};
pub use settings::{
    CallSettings, ImageCount, OutputSettings, ResetPolicy, Retry, ScriptFile, SessionLimits, SessionSettings,
    StoredOutputs,
};
pub use words::{KernelFate, duration_words};
