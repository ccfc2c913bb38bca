//! Comms, for callers that want them.

use cellwright_jupyter::content::{
    CommClose, CommInfoReply, CommInfoRequest, CommMsg, CommOpen, ExecutionState, MessageContent,
};
use cellwright_jupyter::{Channel, JupyterMessage, MessageSession};

use super::{Conversation, PendingRequest, UnreadableContent, done};
use crate::comm::{CommKind, CommMessage, CommRequest, Comms, OpenComm};
use crate::event::Event;
use crate::request::{AskError, Reply};
use crate::transport::{Incoming, QuestionId};

impl Conversation {
    /// What becomes of comm messages from here on.
    pub(crate) fn pass_comms(&mut self, comms: Comms) {
        self.comms = comms;
    }

    /// The message for a request about comms.
    pub(crate) fn say_on_comms(
        &mut self,
        session: &MessageSession,
        id: QuestionId,
        request: CommRequest,
    ) -> (Channel, JupyterMessage) {
        let (asked, message) = match request {
            CommRequest::Say(message) => (PendingRequest::Said(id), said(session, message)),
            CommRequest::List { target: target_name } => {
                let content = CommInfoRequest { target_name, ..CommInfoRequest::default() };
                (PendingRequest::Comms(id), session.message(&content))
            }
        };
        (Channel::Shell, self.ask(asked, message))
    }

    /// Takes a comm message of the kernel.
    pub(super) fn take_comm(
        &mut self,
        message: &JupyterMessage,
        of_cell: bool,
    ) -> Result<(), UnreadableContent> {
        match self.comms {
            Comms::Forwarded => {}
            // Before it is parsed: what nobody wants should cost nothing.
            Comms::Dropped => return Ok(()),
        }
        let (comm, kind, data) = match message.header.msg_type() {
            CommOpen::TYPE => {
                let CommOpen { comm_id, target_name, data, .. } = message.parse()?;
                (comm_id, CommKind::Open { target: target_name }, data)
            }
            CommMsg::TYPE => {
                let CommMsg { comm_id, data, .. } = message.parse()?;
                (comm_id, CommKind::Message, data)
            }
            _ => {
                let CommClose { comm_id, data, .. } = message.parse()?;
                (comm_id, CommKind::Close, data)
            }
        };
        let metadata = message.metadata.parse()?;
        let message = CommMessage { comm, kind, data, metadata, buffers: message.buffers.clone() };
        let cell = self.owner(of_cell);
        self.ready.push_back(Incoming::Event { cell, event: Event::Comm(Box::new(message)) });
        Ok(())
    }

    /// A comm message has no reply: the kernel has dealt with it when it is idle again.
    pub(super) fn take_comm_idle(&mut self, state: &ExecutionState, message: &JupyterMessage) {
        let parent = message.parent.as_ref().filter(|_| *state == ExecutionState::Idle);
        let Some(parent) = parent.map(cellwright_jupyter::MessageHeader::msg_id) else { return };
        if let Some(PendingRequest::Said(id)) = self.asked.get(parent).copied() {
            self.asked.remove(parent);
            self.ready.push_back(Incoming::Answered { id, reply: Ok(Reply::Said) });
        }
    }
}

fn said(session: &MessageSession, message: CommMessage) -> JupyterMessage {
    let CommMessage { comm: comm_id, kind, data, metadata, buffers } = message;
    let message = match kind {
        CommKind::Open { target: target_name } => {
            session.message(&CommOpen { comm_id, target_name, data, ..CommOpen::default() })
        }
        CommKind::Message => session.message(&CommMsg { comm_id, data, ..CommMsg::default() }),
        CommKind::Close => session.message(&CommClose { comm_id, data, ..CommClose::default() }),
    };
    message.with_metadata(&metadata).with_buffers(buffers)
}

/// The comms that a kernel says are open.
pub(super) fn listed(message: &JupyterMessage) -> Result<Result<Reply, AskError>, UnreadableContent> {
    let CommInfoReply { status, comms, .. } = message.parse()?;
    let open = comms.into_iter().map(|(comm, about)| {
        let target = about.get("target_name").and_then(|target| target.as_str()).unwrap_or_default();
        OpenComm { target: target.to_owned(), comm }
    });
    Ok(done(&status).map(|()| Reply::Comms(open.collect())))
}
