//! Tools for cells: `tool.read(path="a.txt")` in a cell is a call of the client whose session runs it. Cells have a
//! memory of their own: the client's model has not seen what a cell reads.

use std::sync::{Arc, OnceLock, Weak};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_session::bridge::{ToolAnswer, ToolCallError, ToolHost, ToolScope};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::client::{SessionNames, ToolClient};
use crate::reply::{ReplyPart, ToolReply};
use crate::toolbox::{CallContext, ToolboxState};

/// The tools of one client, for the cells it runs. Weak, for it is the client that runs them.
struct ClientTools {
    toolbox: Weak<ToolboxState>,
    client: Weak<ToolClient>,
}

/// The tools as a call of `client` brings them to its cells.
pub(crate) fn of(toolbox: &Arc<ToolboxState>, client: &Arc<ToolClient>) -> Arc<dyn ToolHost> {
    Arc::new(ClientTools { toolbox: Arc::downgrade(toolbox), client: Arc::downgrade(client) })
}

impl ToolHost for ClientTools {
    fn call(&self, scope: ToolScope, name: String, args: Value) -> ToolAnswer<'_> {
        Box::pin(async move {
            let toolbox = self.toolbox.upgrade().ok_or(GONE)?;
            let client = self.client.upgrade().ok_or(GONE)?;
            call(&toolbox, client, &scope, &name, args).await
        })
    }
}

const GONE: &str = "the client of this session is gone";

/// The toolbox as sessions see it, for cells that go on after their call. Weak, for it is the toolbox that has the sessions.
#[derive(Default)]
pub(crate) struct ToolBridge {
    toolbox: OnceLock<Weak<ToolboxState>>,
}

impl ToolBridge {
    pub(crate) fn open(&self, toolbox: &Arc<ToolboxState>) {
        self.toolbox.set(Arc::downgrade(toolbox)).expect("a bridge is opened once");
    }
}

impl ToolHost for ToolBridge {
    fn call(&self, scope: ToolScope, name: String, args: Value) -> ToolAnswer<'_> {
        Box::pin(async move {
            let toolbox = self.toolbox.get().and_then(Weak::upgrade).ok_or("the tools are gone")?;
            let client = toolbox.client_with(&scope.session).ok_or(GONE)?;
            call(&toolbox, client, &scope, &name, args).await
        })
    }
}

async fn call(
    toolbox: &Arc<ToolboxState>,
    client: Arc<ToolClient>,
    scope: &ToolScope,
    name: &str,
    args: Value,
) -> Result<Value, ToolCallError> {
    let Value::Object(args) = args else { return Err("arguments are an object".into()) };
    if name == "eval" && would_wait_for_itself(&args, &client.names, scope) {
        return Err("eval in the session that runs this cell would wait for itself; just run the code".into());
    }
    let stop = CancellationToken::new();
    // A cell that stops waiting stops the call.
    let _stops = stop.clone().drop_guard();
    let context = CallContext::of_cell(client, stop, &scope.session);
    value(toolbox.call(name, args, &context).await)
}

fn would_wait_for_itself(args: &Map<String, Value>, names: &SessionNames, scope: &ToolScope) -> bool {
    let asked = args.get("session").and_then(Value::as_str);
    names.session(asked).is_ok_and(|session| session == scope.session.session)
}

/// A reply as a value: its text, its images, our remarks, and its facts.
fn value(reply: ToolReply) -> Result<Value, ToolCallError> {
    if reply.is_error {
        return Err(ToolCallError(reply.to_text()));
    }
    let mut value = match reply.structured {
        Some(Value::Object(value)) => value,
        _ => Map::new(),
    };
    let (mut text, mut notes, mut images) = (String::new(), Vec::new(), Vec::new());
    for content in reply.content {
        match content {
            ReplyPart::Text(part) => text.push_str(&part),
            ReplyPart::Note(note) => notes.push(Value::from(note)),
            ReplyPart::Image(image) => images.push(Value::from(BASE64_STANDARD.encode(&image.bytes))),
        }
    }
    value.insert("text".into(), text.into());
    for (name, parts) in [("notes", notes), ("images", images)] {
        if !parts.is_empty() {
            value.insert(name.into(), parts.into());
        }
    }
    Ok(Value::Object(value))
}
