//! Requests to one page, and their answers.

use std::fmt;
use std::time::{Duration, Instant};

use cellwright_editing::{LivePage, PageCell, PageContent, PageError, PageStep};
use cellwright_jupyter::content::CommMsg;
use serde_json::{Map, Value, json};

use super::{ALIVE, PageBridge};
use crate::magic::{self, CellBody, ParsedCell};

/// How long a page may take to send its notebook.
const READ: Duration = Duration::from_secs(30);

/// How long a page may take to send what a prompt takes along.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How long a change may take to be answered before it is sent again. Longer than the page accepts changes for after the
/// read that they are based on: one that was not made by then is never made.
const CHANGE: Duration = Duration::from_secs(10);

/// How long it may take then.
const CHANGE_AGAIN: Duration = Duration::from_secs(20);

/// How long a page is left alone while it runs cells.
const RUN: Duration = Duration::from_secs(15);

/// A page with the bridge.
pub(super) struct BridgedPage {
    bridge: PageBridge,
    client: String,
}

/// An answer that is awaited.
#[derive(Default)]
pub(super) struct PendingAnswer {
    pub(super) client: String,
    pieces: Vec<Option<String>>,
}

impl PendingAnswer {
    /// Takes a piece of the answer.
    pub(super) fn take(&mut self, data: &Map<String, Value>) {
        let number = |name| data.get(name).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
        let (Some(piece), Some(pieces)) = (number("piece"), number("pieces")) else { return };
        // Not more than a notebook of some gigabytes has.
        if piece >= pieces || pieces > 10_000 {
            return;
        }
        self.pieces.resize(pieces, None);
        self.pieces[piece] = data.get("text").and_then(Value::as_str).map(ToOwned::to_owned);
    }

    fn is_whole(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(Option::is_some)
    }

    fn value(self) -> Option<Value> {
        serde_json::from_str(&self.pieces.into_iter().collect::<Option<String>>()?).ok()
    }
}

/// A request that a page may have got. It can be sent again: the page carries it out once.
struct PageRequest<'a> {
    page: &'a BridgedPage,
    id: u64,
    data: Map<String, Value>,
}

impl BridgedPage {
    pub(super) fn new(bridge: PageBridge, client: String) -> Self {
        Self { bridge, client }
    }

    /// Whether the page answers.
    pub(super) fn ping(&self) -> Result<(), PageError> {
        self.request("state", json!({})).answer(ALIVE).map(drop)
    }

    /// The notebook without its outputs.
    pub(super) fn sources(&self) -> Result<Value, PageError> {
        let mut result = self.request("read", json!({"outputs": false})).answer(AT_ONCE)?;
        Ok(result["notebook"].take())
    }

    fn request(&self, operation: &str, arguments: Value) -> PageRequest<'_> {
        let mut state = self.bridge.state();
        state.requests += 1;
        let id = state.requests;
        let answer = PendingAnswer { client: self.client.clone(), ..PendingAnswer::default() };
        state.answers.insert(id, answer);
        drop(state);
        let mut data = match arguments {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        data.extend([
            ("id".to_owned(), id.into()),
            ("to".to_owned(), self.client.clone().into()),
            ("op".to_owned(), operation.into()),
        ]);
        let request = PageRequest { page: self, id, data };
        request.send();
        request
    }
}

impl LivePage for BridgedPage {
    fn read(&self) -> Result<PageContent, PageError> {
        let mut result = self.request("read", json!({})).answer(READ)?;
        let read_at = result["at"].as_f64().unwrap_or_default();
        Ok(PageContent { json: result["notebook"].take(), read_at })
    }

    fn change(&self, read_at: f64, steps: &[PageStep]) -> Result<(), PageError> {
        let request = self.request("change", json!({ "at": read_at, "steps": steps }));
        match request.wait(CHANGE) {
            Err(PageError::Away) => {}
            answered => return answered.map(drop),
        }
        request.send();
        match request.answer(CHANGE_AGAIN) {
            Err(PageError::Away) => Err(PageError::Unanswered),
            answered => answered.map(drop),
        }
    }

    fn run(&self, cells: &[PageCell]) -> Result<(), PageError> {
        for cell in cells {
            let mode = self.bridge.state().cells;
            let why = match magic::parse(&cell.source, mode) {
                Ok(ParsedCell { magics, body: CellBody::Code(_) }) if magics.is_empty() => continue,
                Ok(ParsedCell { body: CellBody::Prompt { text, .. }, .. }) if !text.is_empty() => "a prompt",
                // They decide what the agent may do.
                Ok(ParsedCell { magics, .. }) if !magics.is_empty() => "a command to the kernel",
                Ok(_) | Err(_) => continue, // it does nothing
            };
            let why = format!("cell {} is {why}; only the person can send it", cell.id);
            return Err(PageError::Failed(why));
        }
        let ids: Vec<_> = cells.iter().map(|cell| cell.id.clone()).collect();
        let sources: Vec<_> = cells.iter().map(|cell| &cell.source).collect();
        self.bridge.state().running.extend(ids.iter().cloned());
        let request = self.request("run", json!({ "ids": ids, "expect": sources }));
        let ended = loop {
            match request.wait(RUN) {
                Err(PageError::Away) if self.ping().is_ok() => request.send(),
                Err(PageError::Away) => break Err(PageError::Unanswered),
                answered => break answered.map(drop),
            }
        };
        self.bridge.state().running.retain(|running| !ids.contains(running));
        ended
    }
}

impl PageRequest<'_> {
    fn send(&self) {
        let (Some(sender), Some(comm_id)) =
            (self.page.bridge.0.sender.get(), self.page.bridge.state().comms.last().cloned())
        else {
            return;
        };
        let message = CommMsg { comm_id, data: self.data.clone(), ..CommMsg::default() };
        sender.publish(sender.session().message(&message));
    }

    /// The answer, if it comes in this time.
    fn answer(self, time: Duration) -> Result<Value, PageError> {
        self.wait(time)
    }

    fn wait(&self, time: Duration) -> Result<Value, PageError> {
        let bridge = &self.page.bridge;
        let is_over = |state: &super::BridgeState| {
            // Reloaded or closed: nobody answers.
            let is_gone = !state.pages.contains_key(&self.page.client);
            is_gone || state.answers.get(&self.id).is_none_or(PendingAnswer::is_whole)
        };
        let mut state = bridge.wait(bridge.state(), Instant::now() + time, is_over);
        let Some(answer) = state.answers.get_mut(&self.id).filter(|answer| answer.is_whole()) else {
            return Err(PageError::Away);
        };
        let answer = std::mem::take(answer).value();
        drop(state);
        let mut answer = answer.ok_or_else(|| PageError::Failed("an answer that is not JSON".to_owned()))?;
        if answer["ok"] == json!(true) {
            return Ok(answer["result"].take());
        }
        Err(refusal(&answer["error"]))
    }
}

impl Drop for PageRequest<'_> {
    fn drop(&mut self) {
        self.page.bridge.state().answers.remove(&self.id);
    }
}

/// What a page refused, in our words.
fn refusal(error: &Value) -> PageError {
    let id = || error["id"].as_str().unwrap_or_default().to_owned();
    match error["kind"].as_str() {
        Some("stale") => PageError::Stale { id: id() },
        Some("typing") => PageError::Typing { id: id() },
        Some("running") => PageError::Running { id: id() },
        Some("locked") => PageError::Locked { id: id() },
        Some("readOnly") => PageError::ReadOnly,
        Some("left") => PageError::Left,
        Some("late") => PageError::Late,
        Some("closed") => PageError::Away,
        _ => PageError::Failed(error["message"].as_str().unwrap_or("no reason").to_owned()),
    }
}

impl fmt::Debug for BridgedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgedPage").field("client", &self.client).finish_non_exhaustive()
    }
}
