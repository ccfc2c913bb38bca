//! What an agent says between our requests and its answers to them.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, PermissionOptionId, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::connection::RequestResponder;

/// What an agent says or asks, in the order it came.
#[derive(Debug)]
pub(crate) enum AgentEvent {
    /// Something happened in a session.
    Update(Box<SessionNotification>),
    /// May it do this?
    Permission(Box<PermissionQuestion>),
    /// It wants to know something of the user.
    Elicitation(Box<OpenElicitation>),
    /// A notification that this version of the protocol does not know. Worth showing to those who debug, never fatal.
    Unknown(UnknownMessage),
}

/// A permission the agent waits for. One that is dropped was refused.
#[derive(Debug)]
pub(crate) struct PermissionQuestion {
    /// What it asks for.
    pub(crate) request: RequestPermissionRequest,
    answer: QuestionOrigin,
}

#[derive(Debug)]
enum QuestionOrigin {
    /// The agent asked.
    Agent(Option<RequestResponder>),
    /// The agent acted, through a file or a terminal of ours, and we ask.
    Ours(Option<oneshot::Sender<PermissionOptionId>>, QuestionDefault),
}

/// What becomes of a question of ours when neither a rule nor the mode decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionDefault {
    /// It is allowed: a file of the workspace is read.
    Allowed,
    /// Someone is asked.
    Undecided,
}

impl PermissionQuestion {
    pub(super) fn of_agent(request: RequestPermissionRequest, responder: RequestResponder) -> Self {
        Self { request, answer: QuestionOrigin::Agent(Some(responder)) }
    }

    pub(super) fn of_ours(
        request: RequestPermissionRequest,
        usual: QuestionDefault,
    ) -> (Self, oneshot::Receiver<PermissionOptionId>) {
        let (chosen, answer) = oneshot::channel();
        (Self { request, answer: QuestionOrigin::Ours(Some(chosen), usual) }, answer)
    }

    /// Whether the agent did not ask but acted, and waits for our leave without knowing.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.answer, QuestionOrigin::Ours(..))
    }

    /// Whether nobody needs to be asked unless a rule or the mode refuses: it is about reading a file of the workspace.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.answer, QuestionOrigin::Ours(_, QuestionDefault::Allowed))
    }

    /// Answers with one of the request's options.
    pub(crate) fn choose(mut self, option: PermissionOptionId) {
        self.finish(Some(option));
    }

    /// Answers that the turn is being cancelled.
    pub(crate) fn cancel(self) {
        drop(self);
    }

    fn finish(&mut self, option: Option<PermissionOptionId>) {
        match &mut self.answer {
            QuestionOrigin::Agent(responder) => {
                let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |option| {
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option))
                });
                if let Some(responder) = responder.take() {
                    responder.respond(Ok(RequestPermissionResponse::new(outcome)));
                }
            }
            QuestionOrigin::Ours(sender, _) => {
                if let Some((sender, option)) = sender.take().zip(option) {
                    drop(sender.send(option)); // the agent may have gone
                }
            }
        }
    }
}

impl Drop for PermissionQuestion {
    fn drop(&mut self) {
        self.finish(None);
    }
}

/// A question to the user. One that is dropped was cancelled.
#[derive(Debug)]
pub(crate) struct OpenElicitation {
    /// What it asks.
    pub(crate) request: CreateElicitationRequest,
    responder: Option<RequestResponder>,
}

impl OpenElicitation {
    pub(super) fn new(request: CreateElicitationRequest, responder: RequestResponder) -> Self {
        Self { request, responder: Some(responder) }
    }

    /// Answers.
    pub(crate) fn answer(mut self, response: CreateElicitationResponse) {
        if let Some(responder) = self.responder.take() {
            responder.respond(Ok(response));
        }
    }
}

impl Drop for OpenElicitation {
    fn drop(&mut self) {
        use agent_client_protocol_schema::v1::ElicitationAction;
        if let Some(responder) = self.responder.take() {
            responder.respond(Ok(CreateElicitationResponse::new(ElicitationAction::Cancel)));
        }
    }
}

/// A message we have no type for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnknownMessage {
    /// The method, for example `session/update`.
    pub(crate) method: String,
    /// As it came.
    pub(crate) params: Value,
}
