//! `cellwright mcp --attach`: passes lines between an agent and the notebook that it works in.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use anyhow::Context as _;
use cellwright_acp::tool_door::{SOCKET, TOKEN, WELCOME};

/// Copies both ways until one side ends.
pub(super) fn run() -> anyhow::Result<()> {
    let variable = |name: &str| {
        std::env::var(name).with_context(|| format!("{name} is not set; only the agent kernel starts this"))
    };
    let (socket, token) = (variable(SOCKET)?, variable(TOKEN)?);
    let mut notebook =
        UnixStream::connect(&socket).with_context(|| format!("could not reach the notebook at {socket}"))?;
    notebook.write_all(format!("{token}\n").as_bytes()).context("the notebook has gone")?;
    let mut welcome = vec![0; WELCOME.len()];
    let answered = notebook.read_exact(&mut welcome);
    anyhow::ensure!(answered.is_ok() && welcome == WELCOME, "the notebook does not know this session");
    let mut target = notebook.try_clone()?;
    // Ends with the process. A read of stdin cannot be ended otherwise.
    drop(thread::spawn(move || {
        drop(io::copy(&mut io::stdin().lock(), &mut target)); // either side may leave at any time
        drop(target.shutdown(Shutdown::Write)); // the notebook answers what is left, then closes
    }));
    let mut stdout = io::stdout().lock();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match notebook.read(&mut chunk) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => {
                let written = stdout.write_all(&chunk[..length]).and_then(|()| stdout.flush());
                if written.is_err() {
                    return Ok(()); // the agent has gone
                }
            }
        }
    }
}
