//! The Jupyter client that a cell came from: its input field and its widgets.

pub(crate) mod stdin;
pub(crate) mod widgets;
