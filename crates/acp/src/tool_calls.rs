//! The tool calls of a turn: what the agent reported about each, and what was decided about it.
//!
//! This is the model of a turn. Session updates feed it, permissions are judged by it, and the view
//! renders it. It knows neither of them.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, ToolCall, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use serde_json::Value;

use crate::permission::PermissionDecision;

/// The tool calls of one turn, in the order in which the agent first named them.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    entries: Vec<ToolCallEntry>,
    index: HashMap<ToolCallId, usize>,
}

/// All that is known about one tool call.
#[derive(Debug)]
pub(crate) struct ToolCallEntry {
    pub(crate) call: ToolCall,
    pub(crate) permission: PermissionState,
    asker: PermissionAsker,
    /// The call that this entry asks about, if it is one more question about a call that waits for
    /// an answer already.
    asks_about: Option<ToolCallId>,
    /// The turn ended before the call did.
    left_open: bool,
    /// The code that it ran in the kernel of the notebook, and its language.
    pub(crate) code: Option<(String, String)>,
}

/// The permission of a tool call.
#[derive(Debug)]
pub(crate) enum PermissionState {
    NotAsked,
    Waiting,
    Decided {
        allowed: bool,
        how: String,
    },
    /// The agent ran or changed something that it should have asked about.
    Bypassed,
}

/// Which side asks for a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionAsker {
    /// The agent, for a tool call that it reports on afterwards.
    Agent,
    /// The kernel, before it does something for the agent. The agent reports the result by tool
    /// calls of its own.
    Kernel,
}

/// What a session update changed.
#[expect(clippy::large_enum_variant, reason = "it is matched at once and never stored")]
#[derive(Debug)]
pub(crate) enum TurnChange {
    ToolCall(ToolCallChange),
    /// The update is about something else.
    Other(SessionUpdate),
}

/// A change to one tool call.
#[derive(Debug)]
pub(crate) struct ToolCallChange {
    pub(crate) id: ToolCallId,
    /// Whether the content was replaced.
    pub(crate) new_content: bool,
    /// The open questions about this call that no longer describe it.
    pub(crate) altered_questions: Vec<ToolCallId>,
    /// Extensions of the protocol that came with the update.
    pub(crate) meta: Option<Meta>,
}

impl ToolCalls {
    /// Takes in a session update, if it is about a tool call.
    pub(crate) fn apply(&mut self, update: SessionUpdate) -> TurnChange {
        match update {
            SessionUpdate::ToolCall(call) => TurnChange::ToolCall(self.announce(call)),
            SessionUpdate::ToolCallUpdate(update) => TurnChange::ToolCall(self.update(update)),
            other => TurnChange::Other(other),
        }
    }

    /// Notes a question about a call, and returns the id of the entry that waits for its answer.
    ///
    /// A question stays as it was asked. If the call waits for an answer already, the new question
    /// gets an entry of its own.
    pub(crate) fn ask_permission(
        &mut self,
        update: ToolCallUpdate,
        asker: PermissionAsker,
    ) -> ToolCallChange {
        let ToolCallUpdate { tool_call_id: named, fields, meta, .. } = update;
        let mut id = named.clone();
        for number in 2.. {
            if !self.get(&id).is_some_and(ToolCallEntry::is_waiting) {
                break;
            }
            id = ToolCallId::new(format!("{named} (question {number})"));
        }
        if id != named {
            let mut call = self.entry(&named).call.clone();
            call.tool_call_id = id.clone();
            let entry = self.entry(&id);
            entry.call = call;
            entry.asks_about = Some(named);
        }
        // Only an update of the call changes what is being asked. Another question does not.
        let change = self.merge(ToolCallUpdate::new(id, fields).meta(meta));
        let entry = self.entry(&change.id);
        entry.permission = PermissionState::Waiting;
        entry.asker = asker;
        change
    }

    /// Notes how the permission was decided.
    pub(crate) fn decide(&mut self, id: &ToolCallId, decision: &PermissionDecision) {
        let (allowed, how) = (decision.allowed(), decision.to_string());
        self.entry(id).permission = PermissionState::Decided { allowed, how };
    }

    /// Notes the code that a call runs in the kernel of the notebook.
    pub(crate) fn runs(&mut self, id: &ToolCallId, language: &str, source: &str) {
        self.entry(id).code = Some((language.to_owned(), source.to_owned()));
    }

    /// Notes that nobody was asked about a call, although the permissions required it.
    pub(crate) fn bypassed(&mut self, id: &ToolCallId) {
        self.entry(id).permission = PermissionState::Bypassed;
    }

    /// Closes the calls that are still open when the turn ends, and returns them.
    pub(crate) fn end(&mut self) -> Vec<ToolCallId> {
        let mut left = Vec::new();
        for entry in &mut self.entries {
            if entry.is_waiting() {
                entry.permission = PermissionState::NotAsked;
            }
            if !entry.has_ended() {
                entry.left_open = true;
                left.push(entry.call.tool_call_id.clone());
            }
        }
        left
    }

    pub(crate) fn get(&self, id: &ToolCallId) -> Option<&ToolCallEntry> {
        self.index.get(id).map(|at| &self.entries[*at])
    }

    /// The calls that wait for a permission.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &ToolCall> {
        self.entries.iter().filter(|entry| entry.is_waiting()).map(|entry| &entry.call)
    }

    /// A call that is announced again adds to what is known: an empty list in it removes nothing.
    fn announce(&mut self, mut call: ToolCall) -> ToolCallChange {
        let meta = call.meta.take();
        let mut update = ToolCallUpdate::from(call);
        update.meta = meta;
        update.fields.content = update.fields.content.filter(|content| !content.is_empty());
        update.fields.locations = update.fields.locations.filter(|locations| !locations.is_empty());
        update.fields.title = update.fields.title.filter(|title| !title.is_empty());
        self.update(update)
    }

    /// Takes in what an update says about a call. The agent need not have announced it.
    pub(crate) fn update(&mut self, update: ToolCallUpdate) -> ToolCallChange {
        let (id, fields) = (&update.tool_call_id, &update.fields);
        let open = self.entries.iter().filter(|entry| entry.is_waiting() && entry.is_question_about(id));
        let altered = open.filter(|entry| {
            let mut after = entry.call.clone();
            after.update(fields.clone());
            !describes_the_same(&entry.call, &after)
        });
        let altered_questions = altered.map(|entry| entry.call.tool_call_id.clone()).collect();
        ToolCallChange { altered_questions, ..self.merge(update) }
    }

    /// Adds what an update says to the entry with its id.
    fn merge(&mut self, update: ToolCallUpdate) -> ToolCallChange {
        let ToolCallUpdate { tool_call_id: id, fields, meta, .. } = update;
        let new_content = fields.content.is_some();
        let entry = self.entry(&id);
        if matches!(fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed)) {
            entry.left_open = false; // it ended after its turn
        }
        entry.call.update(fields);
        ToolCallChange { id, new_content, altered_questions: Vec::new(), meta }
    }

    /// The entry of a call, which is made if there is none.
    fn entry(&mut self, id: &ToolCallId) -> &mut ToolCallEntry {
        let at = *self.index.entry(id.clone()).or_insert_with(|| {
            self.entries.push(ToolCallEntry {
                call: ToolCall::new(id.clone(), ""),
                permission: PermissionState::NotAsked,
                asker: PermissionAsker::Agent,
                asks_about: None,
                left_open: false,
                code: None,
            });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }
}

/// Whether a call still describes the deed that the user was asked about. How far it is does not
/// matter, and neither does what it shows beside that: progress, a terminal, the line in a file.
fn describes_the_same(asked: &ToolCall, now: &ToolCall) -> bool {
    let is_empty = |input: &Value| match input {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    let input = |call: &ToolCall| call.raw_input.clone().filter(|input| !is_empty(input));
    let paths = |call: &ToolCall| -> BTreeSet<PathBuf> {
        call.locations.iter().map(|location| location.path.clone()).collect()
    };
    let is_known = |block: &ToolCallContent| asked.content.contains(block);
    let is_harmless = |block: &ToolCallContent| is_known(block) || !matches!(block, ToolCallContent::Diff(_));
    asked.title == now.title
        && asked.kind == now.kind
        && (input(now).is_none() || input(asked) == input(now))
        && paths(asked) == paths(now)
        && asked.content.iter().all(|block| now.content.contains(block))
        && now.content.iter().all(is_harmless)
}

impl ToolCallEntry {
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.permission, PermissionState::Waiting)
    }

    fn is_question_about(&self, call: &ToolCallId) -> bool {
        self.asks_about.as_ref().unwrap_or(&self.call.tool_call_id) == call
    }

    /// Whether the agent ran or changed something and nobody was asked about it.
    pub(crate) fn ran_unasked(&self) -> bool {
        let acts =
            matches!(self.call.kind, ToolKind::Execute | ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
        // An agent may begin a call before it asks about it, so only its end counts.
        let ended = matches!(self.call.status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        acts && ended && matches!(self.permission, PermissionState::NotAsked)
    }

    /// What to show about the permission, and whether it is good news.
    pub(crate) fn permission_note(&self) -> Option<(bool, &str)> {
        match &self.permission {
            PermissionState::NotAsked | PermissionState::Waiting => None,
            PermissionState::Decided { allowed, how } => Some((*allowed, how)),
            PermissionState::Bypassed => Some((false, "the agent did not ask before this")),
        }
    }

    /// Whether the turn ended before the call did.
    pub(crate) fn is_left_open(&self) -> bool {
        self.left_open
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.left_open
            || self.answer().is_some()
            || matches!(self.call.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
    }

    /// Whether the call was allowed, where the answer is all that the call is for.
    pub(crate) fn answer(&self) -> Option<bool> {
        let only_a_question = self.asker == PermissionAsker::Kernel || self.asks_about.is_some();
        match &self.permission {
            PermissionState::Decided { allowed, .. } => Some(*allowed).filter(|_| only_a_question),
            PermissionState::NotAsked | PermissionState::Waiting | PermissionState::Bypassed => None,
        }
    }

    /// Whether the user or a rule refused the call, and it came to nothing.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.permission, PermissionState::Decided { allowed: false, .. })
            && self.call.status != ToolCallStatus::Completed
            && self.has_ended()
    }

    /// The title of the call, or else its name, or else its id.
    pub(crate) fn title(&self) -> &str {
        let title = self.call.title.trim();
        let name = self.call.name.as_deref().unwrap_or(&self.call.tool_call_id.0);
        if title.is_empty() { name } else { title }
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::ToolCallUpdateFields;

    use super::*;
    use crate::permission::{DecisionSource, PermissionDecision};

    fn asked(calls: &mut ToolCalls, id: &'static str, asker: PermissionAsker) -> ToolCallId {
        let fields = ToolCallUpdateFields::new().title("Touch a file".to_owned());
        calls.ask_permission(ToolCallUpdate::new(id, fields), asker).id
    }

    #[test]
    fn two_questions_about_one_call_wait_for_two_answers() {
        let mut calls = ToolCalls::default();
        let first = asked(&mut calls, "1", PermissionAsker::Agent);
        let second = asked(&mut calls, "1", PermissionAsker::Agent);
        assert_ne!(first, second);
        calls.decide(&first, &PermissionDecision { option: None, by: DecisionSource::User });
        assert_eq!(calls.waiting().map(|call| &call.tool_call_id).collect::<Vec<_>>(), [&second]);
    }

    #[test]
    fn an_update_that_says_something_else_alters_an_open_question() {
        let mut calls = ToolCalls::default();
        let id = asked(&mut calls, "1", PermissionAsker::Agent);
        let title = |title: &str| ToolCallUpdateFields::new().title(title.to_owned());
        let mut altered = |fields| calls.update(ToolCallUpdate::new(id.clone(), fields)).altered_questions;
        assert_eq!(altered(title("Touch a file").status(ToolCallStatus::InProgress)), []);
        assert_eq!(altered(title("ls")), std::slice::from_ref(&id));
    }

    #[test]
    fn progress_and_a_line_number_do_not_alter_an_open_question() {
        use agent_client_protocol_schema::v1::{Diff, Terminal, ToolCallLocation};

        let mut calls = ToolCalls::default();
        let change = ToolCallContent::from(Diff::new("/a", "new"));
        let asked = ToolCallUpdateFields::new()
            .title("Edit /a".to_owned())
            .raw_input(serde_json::json!({"path": "/a"}))
            .locations(vec![ToolCallLocation::new("/a")])
            .content(vec![change.clone()]);
        let id = calls.ask_permission(ToolCallUpdate::new("1", asked), PermissionAsker::Agent).id;
        let mut altered = |fields| calls.update(ToolCallUpdate::new(id.clone(), fields)).altered_questions;
        let terminal = ToolCallContent::Terminal(Terminal::new("t"));
        let fields = ToolCallUpdateFields::new();
        let located = |path: &str| vec![ToolCallLocation::new(path.to_owned()).line(7)];
        assert_eq!(altered(fields.clone().content(vec![change.clone(), "looks".into(), terminal])), []);
        assert_eq!(altered(fields.clone().locations(located("/a"))), []);
        assert_eq!(altered(fields.clone().raw_input(serde_json::json!({}))), []);
        for other in [
            fields.clone().content(vec![ToolCallContent::from(Diff::new("/a", "other"))]),
            fields.clone().locations(located("/b")),
            fields.clone().raw_input(serde_json::json!({"path": "/b"})),
            fields.kind(ToolKind::Delete),
        ] {
            assert_eq!(altered(other.clone()), std::slice::from_ref(&id), "{other:?}");
        }
    }

    #[test]
    fn an_update_alters_every_open_question_about_its_call() {
        let mut calls = ToolCalls::default();
        let questions = ["1", "1", "1"].map(|id| asked(&mut calls, id, PermissionAsker::Agent));
        let [first, second, third] = &questions;
        calls.decide(first, &PermissionDecision { option: None, by: DecisionSource::User });
        let fields = ToolCallUpdateFields::new().title("rm -rf ~".to_owned());
        let change = calls.update(ToolCallUpdate::new("1", fields));
        assert_eq!(change.altered_questions, [second.clone(), third.clone()]);
        assert_eq!(calls.get(second).map(ToolCallEntry::title), Some("Touch a file"), "it stays as asked");
    }

    #[test]
    fn a_further_question_does_not_alter_those_that_are_open() {
        let mut calls = ToolCalls::default();
        let [first, second] = ["1", "1"].map(|id| asked(&mut calls, id, PermissionAsker::Agent));
        calls.decide(&first, &PermissionDecision { option: None, by: DecisionSource::User });
        let fields = ToolCallUpdateFields::new().title("Another".to_owned());
        let third = calls.ask_permission(ToolCallUpdate::new("1", fields), PermissionAsker::Agent);
        assert_eq!(third.altered_questions, []);
        assert_eq!(calls.waiting().count(), 2);
        assert_eq!(calls.get(&second).map(ToolCallEntry::title), Some("Touch a file"));
    }

    #[test]
    fn a_call_waits_until_its_permission_is_decided() {
        let mut calls = ToolCalls::default();
        let id = asked(&mut calls, "1", PermissionAsker::Agent);
        assert_eq!(calls.waiting().map(|call| call.title.as_str()).collect::<Vec<_>>(), ["Touch a file"]);
        calls.decide(&id, &PermissionDecision { option: None, by: DecisionSource::User });
        assert_eq!(calls.waiting().count(), 0);
        assert_eq!(calls.get(&id).map(ToolCallEntry::has_ended), Some(false));
    }

    #[test]
    fn a_decision_ends_a_question_of_the_kernel() {
        let mut calls = ToolCalls::default();
        let id = asked(&mut calls, "1", PermissionAsker::Kernel);
        calls.decide(&id, &PermissionDecision { option: None, by: DecisionSource::User });
        assert_eq!(calls.get(&id).and_then(ToolCallEntry::answer), Some(false));
        assert_eq!(calls.end(), []);
    }

    #[test]
    fn the_end_of_a_turn_closes_open_calls_once() {
        let mut calls = ToolCalls::default();
        let id = asked(&mut calls, "1", PermissionAsker::Agent);
        let done = ToolCall::new("2", "Done").status(ToolCallStatus::Completed);
        calls.apply(SessionUpdate::ToolCall(done));
        assert_eq!(calls.end(), [id]);
        assert_eq!((calls.end(), calls.waiting().count()), (Vec::new(), 0));
    }

    #[test]
    fn a_second_announcement_keeps_what_it_does_not_mention() {
        let mut calls = ToolCalls::default();
        let first = ToolCall::new("1", "Read").content(vec!["text".into()]);
        calls.apply(SessionUpdate::ToolCall(first));
        let TurnChange::ToolCall(change) = calls.apply(SessionUpdate::ToolCall(ToolCall::new("1", "")))
        else {
            panic!("it is about a tool call");
        };
        assert!(!change.new_content);
        let entry = calls.get(&change.id).expect("it is known");
        assert_eq!((entry.title(), entry.call.content.len()), ("Read", 1));
    }
}
