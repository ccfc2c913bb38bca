//! One running interpreter.
//!
//! A [`Kernel`] is the handle, `driver` the policy behind it, and a [`transport::Transport`] the way
//! to talk: the embedded [`runner`] over pipes, or Jupyter's protocol over
//! [`zmq`] or through a [`gateway`]. [`interpreter`] finds the Python to
//! run and [`environment`] what it may see of ours.
//!
//! [`StartAny`] starts whichever kernel a [`KernelChoice`] names. When one is replaced is left to the session.

mod comm;
mod conversation;
mod driver;
pub mod environment;
mod event;
mod execution;
pub mod gateway;
pub mod interpreter;
mod kernel;
mod kernelspecs;
mod mailbox;
mod outcome;
mod request;
pub mod runner;
mod setup;
mod start;
pub mod startup;
mod token;
pub mod transport;
pub mod zmq;

pub use cellwright_process::ChildExit as ProcessExit;
pub use comm::{CommKind, CommMessage, CommRequest, Comms, OpenComm};
pub use driver::Graces;
pub use event::{CellStage, Event, InputAnswer, KernelInput};
pub use execution::{Background, CellSource, CellUpdate, Execution, KernelCell, Stdin};
pub use kernel::Kernel;
pub use outcome::{Death, Exit, Fate, FinishedCell, Outcome, StopReason};
pub use request::{
    AskError, CodeCompleteness, Completions, KernelVariable, KernelVariables, Question, Reply,
};
pub use runner::{LaunchError, RunnerKernel, RunnerLaunch};
pub use setup::{Module, Prelude, RunnerLimits, Setup};
pub use start::{
    AboutKernel, ExistingKernel, Gateways, InvalidKernelChoice, KernelChoice, KernelStart, Launcher,
    StartAny, StartError, StartRunner, StartedKernel,
};
pub use token::random_token;
