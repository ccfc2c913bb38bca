//! How things look in a terminal: text in styles, code, tables, trees and pictures as rows that fit, and the screen that
//! rows are drawn on.
//!
//! Every command that draws for a person draws with this. Nothing here knows of sessions or notebooks.

pub(crate) mod code;
pub(crate) mod look;
pub(crate) mod markdown;
pub(crate) mod picture;
pub(crate) mod screen;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod traceback;
pub(crate) mod tree;
pub(crate) mod wrap;
