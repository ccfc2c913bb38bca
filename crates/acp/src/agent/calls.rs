//! The requests that we send to agents.

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, AuthenticateResponse, CloseSessionRequest, CloseSessionResponse,
    DeleteSessionRequest, DeleteSessionResponse, ErrorCode, ForkSessionRequest, ForkSessionResponse,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    ResumeSessionRequest, ResumeSessionResponse, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::CallError;

pub(crate) trait AgentCall: Serialize {
    /// Its method in the protocol.
    const METHOD: &'static str;
    /// The type of its answer.
    type Response: DeserializeOwned;
}

macro_rules! agent_calls {
    ($($method:literal: $request:ty => $response:ty,)*) => {$(
        impl AgentCall for $request {
            const METHOD: &'static str = $method;
            type Response = $response;
        }
    )*};
}

agent_calls! {
    "initialize": InitializeRequest => InitializeResponse,
    "authenticate": AuthenticateRequest => AuthenticateResponse,
    "session/new": NewSessionRequest => NewSessionResponse,
    "session/load": LoadSessionRequest => LoadSessionResponse,
    "session/resume": ResumeSessionRequest => ResumeSessionResponse,
    "session/fork": ForkSessionRequest => ForkSessionResponse,
    "session/list": ListSessionsRequest => ListSessionsResponse,
    "session/close": CloseSessionRequest => CloseSessionResponse,
    "session/delete": DeleteSessionRequest => DeleteSessionResponse,
    "session/set_mode": SetSessionModeRequest => SetSessionModeResponse,
    "session/set_config_option": SetSessionConfigOptionRequest => SetSessionConfigOptionResponse,
    "session/prompt": PromptRequest => PromptResponse,
}

/// A request as text, so that the code that sends it is compiled once.
#[derive(Debug)]
pub(crate) struct CallText {
    pub(super) method: &'static str,
    pub(super) params: Box<RawValue>,
}

impl CallText {
    /// Writes a request. Fails if it holds a path that is not UTF-8.
    pub(crate) fn new<R: AgentCall>(request: &R) -> Result<Self, CallError> {
        let params = to_raw_value(request).map_err(|error| CallError::Refused {
            code: ErrorCode::InternalError.into(),
            message: format!("`{}` could not be written ({error})", R::METHOD),
        })?;
        Ok(Self { method: R::METHOD, params })
    }
}

/// An answer as text.
#[derive(Debug)]
pub(crate) struct AnswerText {
    pub(super) method: &'static str,
    pub(super) result: Box<RawValue>,
}

impl AnswerText {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_str(self.result.get()).map_err(|error| CallError::Refused {
            code: ErrorCode::ParseError.into(),
            message: format!("its answer to `{}` could not be read ({error})", self.method),
        })
    }
}

#[derive(Debug)]
pub(crate) struct PromptAnswer {
    pub(crate) response: PromptResponse,
    /// A reason to stop that this version of the protocol does not know. The response then says
    /// `end_turn`.
    pub(crate) unknown_reason: Option<String>,
}

impl PromptAnswer {
    /// Reads the answer to a prompt.
    pub(crate) fn read(answer: &AnswerText) -> Result<Self, CallError> {
        let unread = match answer.read() {
            Ok(response) => return Ok(Self { response, unknown_reason: None }),
            Err(unread) => unread,
        };
        let mut value: Value = answer.read()?;
        let Some(Value::String(reason)) = value.get_mut("stopReason") else { return Err(unread) };
        let reason = std::mem::replace(reason, "end_turn".to_owned());
        // If the reason was not what is wrong, the first error says what is.
        let response = serde_json::from_str(&value.to_string()).map_err(|_| unread)?;
        Ok(Self { response, unknown_reason: Some(reason) })
    }
}
