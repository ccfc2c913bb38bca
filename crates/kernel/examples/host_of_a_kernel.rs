//! A host for the test of what happens when one is killed: starts a kernel whose cell waits for a
//! child, prints their process ids, and waits.
//!
//! `host_of_a_kernel PYTHON CACHE`

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{CellUpdate, Event, KernelCell, RunnerLaunch};

const CELL: &str = "import os, subprocess\n\
    child = subprocess.Popen(['sleep', '600'])\n\
    print(os.getpid(), child.pid, flush=True)\n\
    child.wait()";

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let python = arguments.next().expect("host_of_a_kernel PYTHON CACHE");
    let cache = arguments.next().expect("host_of_a_kernel PYTHON CACHE");
    let cwd = env::current_dir()?;
    let search = PythonSearch {
        explicit: Some(python),
        cwd,
        variables: env::vars_os().collect(),
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    let launched = RunnerLaunch::new(search, cache).start().await.map_err(io::Error::other)?;
    let mut execution = launched.kernel.execute(KernelCell::new(CELL)).await;
    loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text, .. }))) => {
                io::stdout().write_all(text.as_bytes())?;
                io::stdout().flush()?;
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(_) => return Ok(()),
        }
    }
}
