//! The tools, called as clients call them.

mod background;
mod cell_calls;
mod cells;
mod choices;
mod document;
mod files;
mod founding;
mod losses;
mod messages;
mod notebooks;
mod outputs;
mod replies;
mod run_history;
mod scenarios;
mod schemas;
mod sessions;
mod shell;
mod support;
mod unknown_types;
