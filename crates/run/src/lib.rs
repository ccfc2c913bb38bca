//! Running notebooks.
//!
//! A [`Draft`] reads a notebook and decides which cells run, where ([`home`]), with which parameters, and changes nothing; written, it is a [`Plan`], and
//! [`Plan::start`] runs it as one call of a session. A [`NotebookRun`] hands on what happens and keeps the outputs in the file while it goes on: each cell's as soon
//! as it is over, those of a long cell now and then, the file valid at any moment. Others may change the file meanwhile: see [`Change`] and
//! [`SideFile`].
//!
//! How a run is shown is left to the caller.

mod displays;
mod draft;
mod history;
mod keeper;
mod meanwhile;
mod note;
mod parameters;
mod plan;
mod replaced;
mod running;
mod unsaved;

pub use displays::{EarlierDisplay, Elsewhere};
pub use draft::Draft;
pub use history::History;
pub use keeper::{Kept, SideFile};
pub use meanwhile::Change;
pub use note::RunNote;
pub use parameters::{Parameter, Unwritable};
pub use plan::{Errors, Home, Plan, PlanError, PlannedCell, Request, Selection, home};
pub use running::{Finished, Next, NotebookRun};
