//! Messages: their sender, their content, and what they answer.

use std::time::SystemTime;

use bytes::Bytes;
use cellwright_cell::timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content::MessageContent;
use crate::json::JsonText;

/// The messaging protocol's version that our own messages follow.
pub const PROTOCOL_VERSION: &str = "5.5";

/// A Jupyter message. Metadata and content stay text until someone parses them; all of it is cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JupyterMessage {
    /// Routing frames: where the answer goes, or the topic on iopub.
    pub identities: Vec<Bytes>,
    /// What this message is.
    pub header: MessageHeader,
    /// The header of the request that caused it.
    pub parent: Option<MessageHeader>,
    /// Extra facts, by convention few.
    pub metadata: JsonText,
    /// The message's own fields.
    pub content: JsonText,
    /// Binary data that the content refers to.
    pub buffers: Vec<Bytes>,
}

impl JupyterMessage {
    /// The content as the type that belongs to the message's type.
    pub fn parse<C: MessageContent>(&self) -> Result<C, MessageContentError> {
        let failed = |source| MessageContentError { msg_type: C::TYPE, source };
        self.content.parse().map_err(failed)
    }

    /// Whether this answers, or was caused by, the request with this header.
    pub fn answers(&self, request: &MessageHeader) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.msg_id() == request.msg_id())
    }

    /// The same as caused by a request.
    #[must_use]
    pub fn with_parent(self, parent: &MessageHeader) -> Self {
        Self { parent: Some(parent.clone()), ..self }
    }

    /// The same with metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: &impl Serialize) -> Self {
        Self { metadata: JsonText::of(metadata), ..self }
    }

    /// The same with binary buffers.
    #[must_use]
    pub fn with_buffers(self, buffers: Vec<Bytes>) -> Self {
        Self { buffers, ..self }
    }
}

/// The content is not what its message's type promises.
#[derive(Debug, thiserror::Error)]
#[error("malformed content of `{msg_type}`")]
pub struct MessageContentError {
    msg_type: &'static str,
    source: serde_json::Error,
}

/// A message's header, kept as it came so that an answer can repeat it with every field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHeader {
    text: Bytes,
    fields: HeaderFields,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct HeaderFields {
    msg_id: String,
    msg_type: String,
    session: String,
    username: String,
    date: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subshell_id: Option<String>,
}

impl MessageHeader {
    /// Reads a header. `None` for the empty object, which means that there is no parent, and for the `null` that xeus sends.
    pub fn parse(text: Bytes) -> Result<Option<Self>, serde_json::Error> {
        let fields: Option<HeaderFields> = JsonText::from(text.clone()).parse()?;
        let fields = fields.filter(|fields| !(fields.msg_id.is_empty() && fields.msg_type.is_empty()));
        Ok(fields.map(|fields| Self { text, fields }))
    }

    fn new(fields: HeaderFields) -> Self {
        Self { text: JsonText::of(&fields).bytes().clone(), fields }
    }

    /// The header as it travels.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Unique among all messages.
    pub fn msg_id(&self) -> &str {
        &self.fields.msg_id
    }

    /// For example `execute_request`.
    pub fn msg_type(&self) -> &str {
        &self.fields.msg_type
    }

    /// The session of the sender.
    pub fn session(&self) -> &str {
        &self.fields.session
    }

    /// The protocol version the sender follows; empty when it did not say.
    pub fn version(&self) -> &str {
        &self.fields.version
    }

    /// The subshell the message is for (protocol 5.5).
    pub fn subshell_id(&self) -> Option<&str> {
        self.fields.subshell_id.as_deref()
    }

    /// The same for a subshell.
    #[must_use]
    pub fn for_subshell(self, subshell_id: &str) -> Self {
        Self::new(HeaderFields { subshell_id: Some(subshell_id.to_owned()), ..self.fields })
    }
}

/// One party of the conversation: makes messages that are distinct from all others'.
#[derive(Debug)]
pub struct MessageSession {
    id: String,
    username: String,
}

impl MessageSession {
    /// A new session for a user. The name is shown, not checked.
    pub fn new(username: &str) -> Self {
        Self::with_id(Uuid::new_v4().simple().to_string(), username)
    }

    /// A session that continues under an id it had before.
    pub fn with_id(id: String, username: &str) -> Self {
        Self { id, username: username.to_owned() }
    }

    /// The id in every header of this session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A new message.
    pub fn message<C: MessageContent>(&self, content: &C) -> JupyterMessage {
        self.message_of_type(C::TYPE, JsonText::of(content))
    }

    /// A new message of a type we have no struct for.
    pub fn message_of_type(&self, msg_type: &str, content: JsonText) -> JupyterMessage {
        let header = MessageHeader::new(HeaderFields {
            msg_id: Uuid::new_v4().simple().to_string(),
            msg_type: msg_type.to_owned(),
            session: self.id.clone(),
            username: self.username.clone(),
            date: timestamp(SystemTime::now()),
            version: PROTOCOL_VERSION.to_owned(),
            subshell_id: None,
        });
        JupyterMessage {
            identities: Vec::new(),
            header,
            parent: None,
            metadata: JsonText::default(),
            content,
            buffers: Vec::new(),
        }
    }

    /// An answer, addressed to the sender of the request.
    pub fn reply<C: MessageContent>(&self, request: &JupyterMessage, content: &C) -> JupyterMessage {
        JupyterMessage {
            identities: request.identities.clone(),
            ..self.message(content).with_parent(&request.header)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_keeps_fields_it_does_not_know() {
        let text = Bytes::from_static(br#"{"msg_id":"1","msg_type":"x","newer":{"a":1}}"#);
        let header = MessageHeader::parse(text.clone()).expect("JSON").expect("not empty");
        assert_eq!((header.text(), header.msg_type(), header.session()), (&text, "x", ""));
        assert_eq!(MessageHeader::parse(Bytes::from_static(b"{}")).expect("JSON"), None);
    }
}
