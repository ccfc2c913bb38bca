//! Reading and changing files through the crate's public door.

mod model;
mod page;
mod view;
