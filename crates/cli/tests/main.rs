//! The `cellwright` program, run as users run it.

mod comms;
mod daemon;
mod doctor;
mod doors;
mod export;
mod gateway;
mod install;
mod installation;
mod kernel;
mod lab;
mod looks;
mod notebooks;
mod run;
mod run_notebooks;
mod sessions;
mod shared_host;
mod show;
mod terminal;
mod tool;
