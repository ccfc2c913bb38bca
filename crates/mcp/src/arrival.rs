//! Marks calls with their place when they arrive: afterwards each request is a task of its own, and tasks overtake each other.

use bytes::Bytes;
use cellwright_tools::{CallLine, CallPlace};
use hyper::http::request::Parts;
use rmcp::model::{ClientRequest, Extensions, GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage};

/// Gives a call of a tool its place. Other messages need none.
pub(crate) fn mark(message: &mut RxJsonRpcMessage<RoleServer>, line: &CallLine) {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(_) = &request.request
    {
        request.request.extensions_mut().insert(line.arrive());
    }
}

/// Gives an HTTP request its place, if it may be a call of a tool. Another one that mentions it keeps its place for as
/// long as it takes.
pub(crate) fn mark_post(parts: &mut Parts, body: &Bytes, line: &CallLine) {
    const CALL: &[u8] = b"\"tools/call\"";
    if body.windows(CALL.len()).any(|part| part == CALL) {
        parts.extensions.insert(line.arrive());
    }
}

/// The place that a request was given.
pub(crate) fn place(extensions: &Extensions) -> Option<CallPlace> {
    let of_post = || extensions.get::<Parts>()?.extensions.get::<CallPlace>();
    extensions.get::<CallPlace>().or_else(of_post).cloned()
}
