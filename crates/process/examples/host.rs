//! A host for the test of what happens when one is killed: starts a shell with a child of its own,
//! prints their process ids, and waits.

use std::env;
use std::io::{self, Write};

use cellwright_process::{ChildCommand, StdoutTarget};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut child = ChildCommand::new("/bin/sh", env::vars_os())
        .args(["-c", "sleep 600 & echo $$ $!; wait"])
        .stdout(StdoutTarget::Piped)
        .spawn()
        .map_err(io::Error::other)?;
    let stdout = child.stdout.take().expect("stdout was piped");
    let mut ids = String::new();
    BufReader::new(stdout).read_line(&mut ids).await?;
    io::stdout().write_all(ids.as_bytes())?;
    io::stdout().flush()?;
    child.wait().await;
    Ok(())
}
