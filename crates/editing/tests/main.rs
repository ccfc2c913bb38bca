//! Reading and changing files through the crate's public door.

mod broken;
mod keeping;
mod live;
mod losses;
mod model;
mod page;
mod support;
mod undoing;
mod view;
mod view_laws;
mod widgets;
