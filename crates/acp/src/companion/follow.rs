//! What kernels say between cells: late output, and the comms of widgets in both directions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cellwright_jupyter::JupyterMessage;
use cellwright_jupyter::content::{CommClose, CommMsg, CommOpen, MessageContent};
use cellwright_kernel::CommKind;
use cellwright_session::{Comm, CommBuffer, SessionClient, SessionEvent, SessionFollower, SessionKey};
use serde_json::{Map, Value, json};

use super::CellAddress;
use crate::cell_output::late_message;
use crate::kernel_state::lock;

/// The comms that are open between clients and kernels, by id.
#[derive(Default)]
pub(crate) struct OpenComms(Mutex<HashMap<String, OpenedComm>>);

struct OpenedComm {
    way: CommWay,
    target: String,
}

/// The way to the kernel of a comm.
#[derive(Clone)]
pub(crate) struct CommWay {
    pub(super) client: Arc<SessionClient>,
    pub(super) key: SessionKey,
}

/// A message of a client on its way to a kernel.
pub(crate) struct CommDelivery {
    way: CommWay,
    comm: Comm,
}

impl CommDelivery {
    /// Hands it to the kernel.
    pub(crate) async fn deliver(self) {
        let Self { way, comm } = self;
        if let Err(error) = way.client.say(&way.key, comm).await {
            tracing::debug!(%error, "a message of a widget was lost");
        }
    }
}

impl OpenComms {
    /// Passes a message of a kernel on to the client of a cell.
    pub(super) fn said(&self, way: &CommWay, comm: &Comm, cell: &CellAddress) {
        let id = comm.comm.clone();
        match &comm.kind {
            CommKind::Open { target } => {
                let opened = OpenedComm { way: way.clone(), target: target.clone() };
                lock(&self.0).insert(id, opened);
            }
            CommKind::Close => drop(lock(&self.0).remove(&id)),
            CommKind::Message => {}
        }
        cell.sender.publish(message(comm, cell));
    }

    /// What becomes of a message of a client. `None` if its comm is not one of a kernel.
    pub(super) fn delivery(&self, message: &JupyterMessage) -> Option<CommDelivery> {
        let (comm, kind, data) = match message.header.msg_type() {
            CommMsg::TYPE => {
                let said = message.parse::<CommMsg>().ok()?;
                (said.comm_id, CommKind::Message, said.data)
            }
            CommClose::TYPE => {
                let said = message.parse::<CommClose>().ok()?;
                (said.comm_id, CommKind::Close, said.data)
            }
            _ => return None,
        };
        let mut open = lock(&self.0);
        let way = open.get(&comm)?.way.clone();
        if kind == CommKind::Close {
            open.remove(&comm);
        }
        let metadata: Map<String, Value> = message.metadata.parse().unwrap_or_default();
        let buffers = message
            .buffers
            .iter()
            .map(|buffer| CommBuffer { bytes: buffer.len(), base64: Some(BASE64.encode(buffer)) });
        Some(CommDelivery { way, comm: Comm { comm, kind, data, metadata, buffers: buffers.collect() } })
    }

    /// The open comms, as `comm_info_reply` lists them.
    pub(crate) fn listed(&self, target: Option<&str>) -> Vec<(String, Value)> {
        let open = lock(&self.0);
        let of_target = open.iter().filter(|(_, comm)| target.is_none_or(|target| comm.target == target));
        of_target.map(|(id, comm)| (id.clone(), json!({"target_name": comm.target}))).collect()
    }

    fn forget(&self, key: &SessionKey) {
        lock(&self.0).retain(|_, comm| comm.way.key != *key);
    }
}

/// Shows what comes between cells, in the cell that ran last, until the session ends.
pub(super) async fn pass_on(
    mut follower: SessionFollower,
    way: CommWay,
    comms: Arc<OpenComms>,
    last_cell: Arc<Mutex<Option<CellAddress>>>,
) {
    while let Some(event) = follower.read().await {
        let Some(cell) = lock(&last_cell).clone() else { continue };
        match &*event {
            SessionEvent::Output { call: None, change } => {
                if let Some(message) = late_message(change, &cell) {
                    cell.sender.publish_when_read(message).await;
                }
            }
            SessionEvent::Comm(comm) => comms.said(&way, comm, &cell),
            SessionEvent::Ended(_) => comms.forget(&way.key),
            SessionEvent::Present
            | SessionEvent::KernelStarted(_)
            | SessionEvent::Missed { .. }
            | SessionEvent::CallStarted { .. }
            | SessionEvent::CellStarted { .. }
            | SessionEvent::Output { call: Some(_), .. }
            | SessionEvent::InputAsked { .. }
            | SessionEvent::Stopping { .. }
            | SessionEvent::CellFinished { .. }
            | SessionEvent::CallFinished { .. }
            | SessionEvent::Notice(_) => {}
        }
    }
}

/// A comm message for the client of a cell.
fn message(comm: &Comm, cell: &CellAddress) -> JupyterMessage {
    let (comm_id, data) = (comm.comm.clone(), comm.data.clone());
    let session = cell.sender.session();
    let message = match &comm.kind {
        CommKind::Open { target } => {
            let target_name = target.clone();
            session.message(&CommOpen { comm_id, target_name, data, ..CommOpen::default() })
        }
        CommKind::Message => session.message(&CommMsg { comm_id, data, ..CommMsg::default() }),
        CommKind::Close => session.message(&CommClose { comm_id, data, ..CommClose::default() }),
    };
    let bytes = |buffer: &CommBuffer| {
        BASE64.decode(buffer.base64.as_deref().unwrap_or_default()).unwrap_or_default().into()
    };
    let buffers = comm.buffers.iter().map(bytes).collect();
    message.with_parent(&cell.header).with_metadata(&comm.metadata).with_buffers(buffers)
}
