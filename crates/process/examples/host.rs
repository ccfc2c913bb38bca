//! A host for the test of what happens when one is killed: starts a shell with a child of its own, and
//! another such shell in a session of its own. A second child leaves a process behind that has neither its group nor
//! a parent, only its mark. Prints their process ids, and waits.

use std::env;
use std::fs::File;
use std::io::{self, Write};

use cellwright_process::{ChildCommand, StdoutTarget};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut child = ChildCommand::new("/bin/sh", env::vars_os())
        .args(["-c", "sleep 600 & echo $$ $!; setsid sh -c 'sleep 600 & echo $$ $!; wait' & wait"])
        .stdout(StdoutTarget::Piped)
        .spawn()
        .map_err(io::Error::other)?;
    let stdout = child.stdout.take().expect("stdout was piped");
    let mut ids = String::new();
    let mut lines = BufReader::new(stdout);
    for _ in 0..2 {
        lines.read_line(&mut ids).await?;
    }
    let mut marked = ChildCommand::new("/bin/sh", env::vars_os())
        .args(["-c", "(setsid sleep 600 & echo $!); exec sleep 600"])
        .mark_descendants()
        .stdout(StdoutTarget::Piped)
        .spawn()
        .map_err(io::Error::other)?;
    BufReader::new(marked.stdout.take().expect("stdout was piped")).read_line(&mut ids).await?;
    // The system closes them one by one, after the pipe to the guard. So there is a while in which the guard knows
    // that we die, and our children are still ours.
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    writeln!(io::stdout(), "{}", ids.replace('\n', " "))?;
    io::stdout().flush()?;
    child.wait().await;
    Ok(())
}
