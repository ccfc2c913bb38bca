//! JSON-RPC 2.0 with an agent: our requests, its answers, and our answers to its requests.
//!
//! This module only knows ids and text. [`super::calls`] knows the methods that we call, and
//! [`super::services`] those that we serve.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{CancelRequestNotification, Error, RequestId};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

/// Lines for the agent, without their line feed.
///
/// The queue has no bound, because a dropped question is answered, and a drop cannot wait. In
/// practice it is short: one line for each of our few requests, and one for each request of the
/// agent, which waits for the answer.
pub(super) type OutgoingLines = mpsc::UnboundedReceiver<String>;

/// Our end of a connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct AgentConnection(Arc<Mutex<ConnectionState>>);

#[derive(Debug)]
struct ConnectionState {
    /// `None` once the connection is closed.
    outgoing: Option<mpsc::UnboundedSender<String>>,
    last_id: i64,
    waiting: HashMap<i64, oneshot::Sender<AgentAnswer>>,
}

type AgentAnswer = Result<Box<RawValue>, Error>;

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The connection is closed: there is no answer any more.
    Closed,
    /// The agent answered with an error.
    Refused(Error),
}

impl AgentConnection {
    /// Opens a connection. Returns the lines to write, too.
    pub(super) fn new() -> (Self, OutgoingLines) {
        let (outgoing, lines) = mpsc::unbounded_channel();
        let state = ConnectionState { outgoing: Some(outgoing), last_id: 0, waiting: HashMap::new() };
        (Self(Arc::new(Mutex::new(state))), lines)
    }

    /// Sends a request when first polled, and waits for its answer. Dropping the future while it
    /// waits asks the agent to cancel the request.
    pub(super) fn request(
        &self,
        method: &'static str,
        params: Box<RawValue>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RequestError>> {
        Box::pin(async move {
            let (id, answer) = self.begin(method, &params).ok_or(RequestError::Closed)?;
            let _call = PendingCall { connection: self, id };
            match answer.await {
                Ok(answer) => answer.map_err(RequestError::Refused),
                Err(_) => Err(RequestError::Closed),
            }
        })
    }

    fn begin(&self, method: &str, params: &RawValue) -> Option<(i64, oneshot::Receiver<AgentAnswer>)> {
        let mut state = self.state();
        state.outgoing.as_ref()?;
        state.last_id += 1;
        let id = state.last_id;
        let (answered, answer) = oneshot::channel();
        state.waiting.insert(id, answered);
        state.send(&OutgoingMessage {
            id: Some(&RequestId::Number(id)),
            method: Some(method),
            params: Some(params),
            ..OutgoingMessage::default()
        });
        Some((id, answer))
    }

    /// Sends a notification, if the connection is still open.
    pub(super) fn notify(&self, method: &str, params: &RawValue) {
        let message =
            OutgoingMessage { method: Some(method), params: Some(params), ..OutgoingMessage::default() };
        self.state().send(&message);
    }

    /// Hands an answer to the request that waits for it. Ignores the answer if the request was
    /// given up or never existed.
    pub(super) fn settle(&self, id: &RequestId, answer: AgentAnswer) {
        let waiting = match id {
            RequestId::Number(id) => self.state().waiting.remove(id),
            RequestId::Null | RequestId::Str(_) => None, // ours are numbers
        };
        if let Some(waiting) = waiting {
            drop(waiting.send(answer)); // the request may have just been given up
        } else {
            debug!(%id, "an agent answered a request that nobody waits for");
        }
    }

    /// Answers a request of the agent. The id is `null` if it could not be read.
    pub(super) fn answer(&self, id: &RequestId, answer: &AgentAnswer) {
        self.state().send(&OutgoingMessage {
            id: Some(id),
            result: answer.as_deref().ok(),
            error: answer.as_ref().err(),
            ..OutgoingMessage::default()
        });
    }

    /// Closes the connection. Requests that wait fail, and nothing more is sent. Lines that were
    /// sent before stay in the queue, which ends after them.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.outgoing = None;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionState {
    fn send(&self, message: &OutgoingMessage<'_>) {
        if let Some(outgoing) = &self.outgoing {
            let line = serde_json::to_string(message).expect("text, numbers and JSON can be written");
            drop(outgoing.send(line)); // the agent may have ended
        }
    }
}

/// A request of ours that waits for its answer.
struct PendingCall<'a> {
    connection: &'a AgentConnection,
    id: i64,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let given_up = self.connection.state().waiting.remove(&self.id).is_some();
        if given_up && let Ok(params) = to_raw_value(&CancelRequestNotification::new(self.id)) {
            self.connection.notify("$/cancel_request", &params);
        }
    }
}

/// An open request of the agent, to be answered once. If it is dropped because the service failed,
/// the agent gets an error.
#[derive(Debug)]
pub(super) struct RequestResponder {
    connection: AgentConnection,
    id: Option<RequestId>,
}

impl RequestResponder {
    pub(super) fn new(connection: AgentConnection, id: RequestId) -> Self {
        Self { connection, id: Some(id) }
    }

    pub(super) fn respond<T: Serialize>(self, result: Result<T, Error>) {
        self.finish(&result.and_then(|result| to_raw_value(&result).map_err(Error::into_internal_error)));
    }

    fn finish(mut self, answer: &AgentAnswer) {
        if let Some(id) = self.id.take() {
            self.connection.answer(&id, answer);
        }
    }
}

impl Drop for RequestResponder {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.connection.answer(&id, &Err(Error::internal_error()));
        }
    }
}

/// A message of ours as it is written.
#[derive(Serialize)]
struct OutgoingMessage<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

impl Default for OutgoingMessage<'_> {
    fn default() -> Self {
        Self { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None }
    }
}

/// A line of the agent.
#[derive(Debug)]
pub(super) enum IncomingMessage<'a> {
    /// To a request of ours.
    Answer { id: RequestId, answer: Result<&'a RawValue, Error> },
    /// It wants an answer.
    Request { id: RequestId, method: String, params: &'a RawValue },
    /// It wants none.
    Notification { method: String, params: &'a RawValue },
    /// Not JSON-RPC. The agent gets this error, unless the line was meant as an answer.
    Invalid(Option<Error>),
}

impl<'a> IncomingMessage<'a> {
    pub(super) fn read(line: &'a str) -> Self {
        let envelope: MessageEnvelope<'a> = match serde_json::from_str(line) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => return Self::Invalid(Some(Error::invalid_request())),
            Err(error) => return Self::Invalid(Some(Error::parse_error().data(error.to_string()))),
        };
        envelope.message().unwrap_or_else(|| {
            let answers =
                envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some());
            Self::Invalid((!answers).then(Error::invalid_request))
        })
    }
}

/// The fields of a message. A `null` counts as present, because results and ids can be `null`.
#[derive(Deserialize)]
struct MessageEnvelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

impl<'a> MessageEnvelope<'a> {
    fn message(&self) -> Option<IncomingMessage<'a>> {
        let version: String = read(self.jsonrpc?)?;
        if version != "2.0" {
            return None;
        }
        let params = self.params.unwrap_or(RawValue::NULL);
        match (self.method, self.id, self.result, self.error) {
            (Some(method), Some(id), None, None) => {
                Some(IncomingMessage::Request { id: read(id)?, method: read(method)?, params })
            }
            (Some(method), None, None, None) => {
                Some(IncomingMessage::Notification { method: read(method)?, params })
            }
            (None, Some(id), Some(result), None) => {
                Some(IncomingMessage::Answer { id: read(id)?, answer: Ok(result) })
            }
            (None, Some(id), None, Some(error)) => {
                // An error in another format is still an error.
                let error = read(error).unwrap_or_else(|| Error::internal_error().data(error.get()));
                Some(IncomingMessage::Answer { id: read(id)?, answer: Err(error) })
            }
            _ => None,
        }
    }
}

fn read<T: DeserializeOwned>(value: &RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}
