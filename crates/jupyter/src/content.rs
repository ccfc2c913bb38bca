//! What messages say, by type. One struct per message type we read or write.
//!
//! Reading is lenient: a field that is missing or `null` takes its default, fields we do not know are kept in `extra` and
//! written back. Field meanings are those of <https://jupyter-client.readthedocs.io/en/stable/messaging.html>.

mod comm;
mod execute;
mod introspect;
mod kernel;
mod output;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use comm::{CommClose, CommInfoReply, CommInfoRequest, CommMsg, CommOpen};
pub use execute::{ExceptionContent, ExecuteInput, ExecuteReply, ExecuteRequest, InputReply, InputRequest};
pub use introspect::{
    CompleteReply, CompleteRequest, HistoryReply, HistoryRequest, InspectReply, InspectRequest,
    IsCompleteReply, IsCompleteRequest,
};
pub use kernel::{
    CreateSubshellReply, CreateSubshellRequest, DebugEvent, DebugReply, DebugRequest, DeleteSubshellReply,
    DeleteSubshellRequest, InterruptReply, InterruptRequest, IopubWelcome, KernelInfoReply,
    KernelInfoRequest, LanguageInfo, ListSubshellReply, ListSubshellRequest, ShutdownReply, ShutdownRequest,
};
pub use output::{
    ClearOutput, DisplayData, ErrorOutput, ExecuteResult, ExecutionState, Status, StreamOutput, Transient,
    UpdateDisplayData,
};

/// The content of a message of type [`MessageContent::TYPE`].
pub trait MessageContent: Serialize + DeserializeOwned {
    /// The `msg_type` in the header.
    const TYPE: &'static str;
}

/// How a request went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStatus {
    /// It was done.
    #[default]
    Ok,
    /// It failed; the reply has the exception.
    Error,
    /// It was not tried, since an earlier one failed.
    #[serde(alias = "abort")]
    Aborted,
    /// Something newer than us.
    #[serde(untagged)]
    Other(String),
}

/// Declares content types, and parts of them that have no message type: each field may be missing or null,
/// unknown fields are kept.
macro_rules! contents {
    ($($(#[$attribute:meta])* $($type:literal =>)? $name:ident {
        $($(#[$field_attribute:meta])* $field:ident: $field_type:ty,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$field_attribute])*
                #[serde(deserialize_with = "crate::content::null_as_default")]
                pub $field: $field_type,
            )*
            /// Fields we do not know.
            #[serde(flatten)]
            pub extra: serde_json::Map<String, serde_json::Value>,
        }

        $(impl crate::content::MessageContent for $name {
            const TYPE: &'static str = $type;
        })?
    )*};
}
use contents;

pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An execution count, when it is one: some kernels send strings or nothing, which must not cost the message.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}
