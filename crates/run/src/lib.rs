//! Running notebooks.
//!
//! A [`RunDraft`] reads a notebook and decides which cells run, where ([`home`]), with which parameters, and changes nothing; written, it is a [`RunPlan`], and
//! [`RunPlan::start`] runs it as one call of a session. A [`NotebookRun`] hands on what happens and keeps the outputs in the file while it goes on: each cell's as soon
//! as it is over, those of a long cell now and then, the file valid at any moment. Others may change the file meanwhile: see [`MeanwhileChange`] and
//! [`SideFile`].
//!
//! How a run is shown is left to the caller.

mod displays;
mod draft;
mod history;
mod keeper;
mod meanwhile;
mod note;
mod outputs;
mod parameters;
mod plan;
mod replaced;
mod running;
mod unsaved;

pub use displays::{EarlierDisplay, OtherDisplays};
pub use draft::RunDraft;
pub use history::RunRecord;
pub use keeper::{KeptResults, SideFile};
pub use meanwhile::MeanwhileChange;
pub use note::RunNote;
pub use outputs::RunProgress;
pub use parameters::{Parameter, ParameterValue, UnwritableParameter};
pub use plan::{CodeSelection, ErrorPolicy, NotebookHome, PlanError, PlannedCell, RunPlan, RunRequest, home};
pub use running::{FinishedRun, NotebookRun, RunUpdate};
