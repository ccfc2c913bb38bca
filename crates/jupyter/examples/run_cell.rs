//! Runs code in a kernel that is already there: `run_cell CONNECTION_FILE CODE`.
//!
//! Streams go straight from the frame they came in to standard output, however long they are.

use std::path::Path;

use cellwright_jupyter::content::{ExecuteRequest, ExecutionState, MessageContent, Status, StreamOutput};
use cellwright_jupyter::{Channel, ConnectionInfo, KernelClient, MessageSession, StreamText};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, code] = arguments.as_slice() else {
        return Err("usage: run_cell CONNECTION_FILE CODE".into());
    };

    let mut client =
        KernelClient::connect(&ConnectionInfo::read(Path::new(file))?, MessageSession::new("example"))?;
    client.ready().await?;
    let request = ExecuteRequest { code: code.clone(), allow_stdin: false, ..ExecuteRequest::default() };
    let request = client.sender().request(Channel::Shell, &request).await?;

    // A cell is over when both its reply and its idle have come, in either order.
    let (mut replied, mut idle) = (false, false);
    let mut out = std::io::stdout().lock();
    while !(replied && idle) {
        let (channel, message) = client.recv().await;
        if !message.answers(&request) {
            continue;
        }
        replied |= channel == Channel::Shell;
        match message.header.msg_type() {
            StreamOutput::TYPE => StreamText::parse(&message.content)?.write_to(&mut out)?,
            Status::TYPE => idle |= message.parse::<Status>()?.execution_state == ExecutionState::Idle,
            _ => {}
        }
    }
    client.close().await;
    Ok(())
}
