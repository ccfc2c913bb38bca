//! The tools, called as clients call them.

mod background;
mod cells;
mod files;
mod notebooks;
mod schemas;
mod shell;
mod support;
