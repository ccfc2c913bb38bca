//! What an agent reports and asks while our requests wait for answers.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, PermissionOptionId, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::connection::RequestResponder;

/// What an agent reports or asks, in order of arrival.
#[derive(Debug)]
pub(crate) enum AgentEvent {
    /// Something happened in a session.
    Update(Box<SessionNotification>),
    /// The agent asks for a permission.
    Permission(Box<PermissionQuestion>),
    /// The agent asks the user something else.
    Elicitation(Box<OpenElicitation>),
    /// A notification that this version of the protocol does not know. It is of use for debugging,
    /// and never fatal.
    Unknown(UnknownMessage),
}

/// A permission that the agent waits for. Dropping it refuses.
#[derive(Debug)]
pub(crate) struct PermissionQuestion {
    pub(crate) request: RequestPermissionRequest,
    answer: QuestionOrigin,
}

#[derive(Debug)]
enum QuestionOrigin {
    /// The agent asked.
    Agent(Option<RequestResponder>),
    /// The agent uses a file or a terminal through us, and we ask.
    Ours(Option<oneshot::Sender<PermissionOptionId>>, QuestionDefault),
}

/// What happens to a question of ours if neither a rule nor the mode decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionDefault {
    /// It is allowed, because it reads a file of the workspace.
    Allowed,
    /// The user is asked.
    Undecided,
    /// The user is asked, and the rules are those for running code in the notebook.
    Run,
}

impl PermissionQuestion {
    pub(super) fn of_agent(request: RequestPermissionRequest, responder: RequestResponder) -> Self {
        Self { request, answer: QuestionOrigin::Agent(Some(responder)) }
    }

    pub(crate) fn of_ours(
        request: RequestPermissionRequest,
        usual: QuestionDefault,
    ) -> (Self, oneshot::Receiver<PermissionOptionId>) {
        let (chosen, answer) = oneshot::channel();
        (Self { request, answer: QuestionOrigin::Ours(Some(chosen), usual) }, answer)
    }

    /// Whether we ask, because the agent acted without asking.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.answer, QuestionOrigin::Ours(..))
    }

    /// Whether it is allowed unless a rule or the mode refuses, because it reads a file of the
    /// workspace.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.answer, QuestionOrigin::Ours(_, QuestionDefault::Allowed))
    }

    /// Whether it is about code that runs in the kernel of the notebook.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.answer, QuestionOrigin::Ours(_, QuestionDefault::Run))
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
                    drop(sender.send(option)); // the agent may have ended
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

/// A question to the user. Dropping it cancels.
#[derive(Debug)]
pub(crate) struct OpenElicitation {
    pub(crate) request: CreateElicitationRequest,
    responder: Option<RequestResponder>,
}

impl OpenElicitation {
    pub(super) fn new(request: CreateElicitationRequest, responder: RequestResponder) -> Self {
        Self { request, responder: Some(responder) }
    }

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

/// A message without a type in this version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnknownMessage {
    /// The method, for example `session/update`.
    pub(crate) method: String,
    /// Its parameters, as they came.
    pub(crate) params: Value,
}
