//! The notebook in the person's page: what the agent changes there, the person sees at once and can undo.
//!
//! Pages with the bridge (`labext/page.js`) answer on a comm with the target `cellwright.notebook`. Every request names
//! one page. A request may be lost, or come late: the page remembers the answers to the latest ones, and refuses a change
//! that is based on an old read. So a change that was not answered can be sent again, and is made once or not at all.

mod request;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cellwright_editing::{LiveHome, LiveNotebooks, PageError};
use cellwright_jupyter::content::{CommClose, CommMsg, CommOpen};
use cellwright_jupyter::{JupyterMessage, ServerSender};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::request::{BridgedPage, PendingAnswer};
use crate::magic::CellMode;

/// The comm target that pages with the bridge know.
const TARGET: &str = "cellwright.notebook";

/// How long pages may take to answer that they are there.
const HELLO: Duration = Duration::from_secs(3);

/// How long until they are asked again: a page that loads may know the comm only then.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a page that is there may take to say so again.
const ALIVE: Duration = Duration::from_secs(5);

/// The way from a kernel to the pages that show its notebook. Clones share it.
#[derive(Clone, Default)]
pub struct PageBridge(Arc<BridgeShared>);

#[derive(Default)]
struct BridgeShared {
    sender: OnceLock<ServerSender>,
    state: Mutex<BridgeState>,
    /// Notified when anything came from a page.
    news: Condvar,
}

#[derive(Default)]
struct BridgeState {
    /// The comms that were opened, the latest last.
    comms: Vec<String>,
    /// Pages with the bridge, by their id.
    pages: BTreeMap<String, BridgedState>,
    /// The clients that know no such comm: pages without the bridge.
    without: HashSet<String>,
    /// Some client was a page of `JupyterLab` or Notebook.
    has_seen_page: bool,
    answers: HashMap<u64, PendingAnswer>,
    requests: u64,
    /// How often pages were greeted.
    greetings: u64,
    /// The cells that pages run because we asked them to, by id.
    running: Vec<String>,
    /// What a cell is that does not say so.
    cells: CellMode,
    /// The kernel ends, and waits for no page any more.
    is_over: bool,
}

/// What a page said of itself last.
#[derive(Debug, Clone)]
struct BridgedState {
    /// The path of its notebook on its server.
    path: String,
    app: String,
    /// The person switched the bridge off.
    left: bool,
    is_visible: bool,
    /// The greeting that it answered last.
    greeting: u64,
}

impl PageBridge {
    /// Speaks through this sender from now on.
    pub(crate) fn connect(&self, sender: ServerSender) {
        drop(self.0.sender.set(sender)); // a kernel has one
    }

    /// Notes what a cell is that does not say so.
    pub(crate) fn set_cells(&self, mode: CellMode) {
        self.state().cells = mode;
    }

    /// Notes what a request to run a cell says of its client. Returns whether it is one that we asked the page for:
    /// such a cell must not wait for the cell whose agent asked.
    pub(crate) fn runs(&self, metadata: &Map<String, Value>) -> bool {
        let mut state = self.state();
        // Only JupyterLab and Notebook send this.
        state.has_seen_page |= metadata.contains_key("deletedCells");
        let Some(id) = metadata.get("cellId").and_then(Value::as_str) else { return false };
        let asked = state.running.iter().position(|running| running == id);
        asked.map(|at| state.running.remove(at)).is_some()
    }

    /// Ends all waiting for pages.
    pub(crate) fn end(&self) {
        self.state().is_over = true;
        self.0.news.notify_all();
    }

    /// Takes a message on a comm of ours. False if it is not one.
    pub(crate) fn received(&self, message: &JupyterMessage) -> bool {
        let Ok(received) = message.parse::<CommMsg>() else { return false };
        let mut state = self.state();
        if !state.comms.contains(&received.comm_id) {
            return false;
        }
        state.take(&received.data);
        drop(state);
        self.0.news.notify_all();
        true
    }

    /// Takes the end of a comm. A page without the bridge answers so.
    pub(crate) fn closed(&self, message: &JupyterMessage) -> bool {
        let Ok(close) = message.parse::<CommClose>() else { return false };
        let mut state = self.state();
        if !state.comms.contains(&close.comm_id) {
            return false;
        }
        state.without.insert(message.header.session().to_owned());
        drop(state);
        self.0.news.notify_all();
        true
    }

    /// Whether a page with the bridge answers. It may need a moment until its script has run.
    pub(crate) fn is_bridged(&self) -> bool {
        let until = Instant::now() + HELLO;
        loop {
            self.greet(None);
            let state = self.state();
            if state.pages.values().any(|page| page.greeting == state.greetings) {
                return true;
            }
            if state.is_over || state.without.is_empty() || Instant::now() > until {
                return false;
            }
            drop(state);
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What is known of the pages, for people.
    pub(crate) fn summary(&self) -> String {
        self.greet(None);
        let state = self.state();
        let mut lines: Vec<String> = state
            .pages
            .values()
            .map(|page| {
                let how = match page.left {
                    _ if page.greeting < state.greetings => ", but does not answer",
                    true => ", switched off by you",
                    false => "",
                };
                format!("{} shows {}{how}", page.app, page.path)
            })
            .collect();
        if !state.without.is_empty() {
            lines.push("a page without the bridge is open; `cellwright lab install` installs it".to_owned());
        }
        if lines.is_empty() {
            lines.push("no page answers".to_owned());
        }
        lines.join("\n")
    }

    /// Opens comms, and waits until a page with this notebook answers, or one that has no bridge.
    fn greet(&self, path: Option<&Path>) {
        let mut state = self.state();
        state.greetings += 1;
        let greeting = state.greetings;
        state.without.clear();
        drop(state);
        let is_answered = |state: &BridgeState| {
            let answers =
                |page: &BridgedState| page.greeting >= greeting && path.is_none_or(|path| page.shows(path));
            !state.without.is_empty() || state.pages.values().any(answers)
        };
        let until = Instant::now() + HELLO;
        // A page that says nothing, not even farewell, stays known: it may be asleep with what the person typed.
        while Instant::now() < until {
            self.open_comm();
            let state = self.wait(self.state(), until.min(Instant::now() + AGAIN), is_answered);
            if state.is_over || is_answered(&state) {
                return;
            }
        }
    }

    fn open_comm(&self) {
        let Some(sender) = self.0.sender.get() else { return };
        let comm_id = Uuid::new_v4().simple().to_string();
        let mut state = self.state();
        state.comms.push(comm_id.clone());
        // A page that is slow may still answer on an older one.
        let old = state.comms.len().saturating_sub(8);
        state.comms.drain(..old);
        drop(state);
        let data = Map::from_iter([("v".to_owned(), json!(1))]);
        let open = CommOpen { comm_id, target_name: TARGET.to_owned(), data, ..CommOpen::default() };
        sender.publish(sender.session().message(&open));
    }

    /// The pages with this notebook: the one that is looked at comes first.
    fn showing(&self, path: &Path) -> Vec<(String, BridgedState)> {
        let state = self.state();
        let shows = |(_, page): &(&String, &BridgedState)| page.shows(path);
        let mut pages: Vec<_> =
            state.pages.iter().filter(shows).map(|(client, page)| (client.clone(), page.clone())).collect();
        pages.sort_by_key(|(_, page)| !page.is_visible);
        pages
    }

    /// The notebook of a page without its outputs, if a page shows it and answers at once. Blocks.
    pub(crate) fn sources(&self, path: &Path) -> Option<Value> {
        let (client, _) = self.showing(path).into_iter().find(|(_, page)| !page.left)?;
        BridgedPage::new(self.clone(), client).sources().ok()
    }

    fn forget(&self, client: &str) {
        self.state().pages.remove(client);
    }

    /// The first page with this notebook that answers.
    fn answering(&self, path: &Path) -> Option<Result<BridgedPage, PageError>> {
        let mut left = None;
        for (client, page) in self.showing(path) {
            if page.left {
                left = Some(Err(PageError::Left));
                continue;
            }
            let page = BridgedPage::new(self.clone(), client);
            match page.ping() {
                Ok(()) => return Some(Ok(page)),
                Err(PageError::Left) => left = Some(Err(PageError::Left)),
                Err(_) => {}
            }
        }
        left
    }

    fn state(&self) -> MutexGuard<'_, BridgeState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds, but not for longer than this.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, BridgeState>,
        until: Instant,
        holds: impl Fn(&BridgeState) -> bool,
    ) -> MutexGuard<'a, BridgeState> {
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.0.news.wait_timeout_while(state, left, |state| !state.is_over && !holds(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl LiveNotebooks for PageBridge {
    fn find(&self, path: &Path) -> LiveHome {
        let place = |found| match found {
            Ok(page) => LiveHome::Page(Arc::new(page)),
            Err(error) => LiveHome::OutOfReach(error),
        };
        if let Some(found) = self.answering(path) {
            return place(found);
        }
        // Clients that are no pages need not be waited for.
        if !self.state().has_seen_page {
            return LiveHome::File;
        }
        let silent: Vec<_> = self.showing(path).into_iter().map(|(client, _)| client).collect();
        self.greet(Some(path));
        if let Some(found) = self.answering(path) {
            // The page was loaded again, and the one before it is gone.
            for client in &silent {
                self.forget(client);
            }
            return place(found);
        }
        let state = self.state();
        // Without an answer, a kernel that ends does not know that no page is open.
        if state.is_over || state.pages.values().any(|page| page.shows(path)) {
            return LiveHome::OutOfReach(PageError::Away);
        }
        if state.without.is_empty() { LiveHome::File } else { LiveHome::OutOfReach(PageError::NoBridge) }
    }
}

impl BridgeState {
    fn take(&mut self, data: &Map<String, Value>) {
        let Some(client) = data.get("client").and_then(Value::as_str).map(ToOwned::to_owned) else { return };
        if let Some(id) = data.get("re").and_then(Value::as_u64) {
            if let Some(answer) = self.answers.get_mut(&id).filter(|answer| answer.client == client) {
                answer.take(data);
            }
            return;
        }
        match data.get("ev").and_then(Value::as_str) {
            Some("hello") => {
                let mut page = BridgedState::of(data);
                data.get("app").and_then(Value::as_str).unwrap_or("a page").clone_into(&mut page.app);
                page.greeting = self.greetings;
                self.has_seen_page = true;
                self.pages.insert(client, page);
            }
            Some("bye") if data.get("left") == Some(&json!(true)) => {
                if let Some(page) = self.pages.get_mut(&client) {
                    page.left = true;
                }
            }
            Some("bye") => {
                self.pages.remove(&client);
            }
            Some("changed") => {
                if let Some(page) = self.pages.get_mut(&client) {
                    let (app, greeting) = (std::mem::take(&mut page.app), page.greeting);
                    *page = BridgedState { app, greeting, ..BridgedState::of(data) };
                }
            }
            _ => {} // a later version of the page says more
        }
    }
}

impl BridgedState {
    fn of(data: &Map<String, Value>) -> Self {
        let state = data.get("state").unwrap_or(&Value::Null);
        Self {
            path: state["path"].as_str().unwrap_or_default().to_owned(),
            app: String::new(),
            left: data.get("left") == Some(&json!(true)),
            is_visible: state["visible"] == json!(true),
            greeting: 0,
        }
    }

    /// Whether its notebook is this file. Pages know paths below the root of their server, some with a drive before it.
    fn shows(&self, path: &Path) -> bool {
        let path_in_page = self.path.split_once(':').map_or(&*self.path, |(_, path)| path);
        !path_in_page.is_empty() && path.ends_with(PathBuf::from(path_in_page))
    }
}

impl fmt::Debug for PageBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageBridge").field("pages", &self.state().pages).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str) -> BridgedState {
        BridgedState::of(json!({"state": {"path": path}}).as_object().expect("an object"))
    }

    #[test]
    fn a_page_shows_the_file_that_its_path_leads_to() {
        let file = Path::new("/home/p/work/a.ipynb");
        for path in ["a.ipynb", "work/a.ipynb", "RTC:work/a.ipynb"] {
            assert!(page(path).shows(file), "{path}");
        }
        for path in ["", "b.ipynb", "other/a.ipynb", "k/a.ipynb"] {
            assert!(!page(path).shows(file), "{path}");
        }
    }

    #[test]
    fn a_page_that_says_farewell_is_forgotten_and_one_that_is_switched_off_is_not() {
        let mut state = BridgeState::default();
        let say = |state: &mut BridgeState, message: &Value| {
            state.take(message.as_object().expect("an object"));
        };
        say(&mut state, &json!({"client": "c", "ev": "hello", "left": false, "state": {"path": "a.ipynb"}}));
        say(&mut state, &json!({"client": "c", "ev": "bye", "left": true}));
        assert!(state.pages["c"].left);
        say(&mut state, &json!({"client": "c", "ev": "bye", "left": false}));
        assert!(state.pages.is_empty());
    }
}
