//! The calls of our tools in a turn, and the cards that the agent reports for them.
//!
//! A call and its card are one. Agents that name the call by the card's id make that easy. For the others the rule is:
//! the same tool and equal arguments, oldest first; else the oldest card of that tool that shows no arguments. A card
//! may come before its call or after it.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    ContentBlock, Meta, SessionUpdate, ToolCallContent, ToolCallId, ToolCallStatus,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::tool_door::{NAME, OTHER_NAME};

/// What is known of the calls of our tools in one turn.
#[derive(Debug, Default)]
pub(crate) struct NotebookCalls {
    calls: Vec<JoinedCall>,
    /// Cards that the agent reported and that have no call yet, oldest first.
    waiting: Vec<ReportedCard>,
    /// The agent's ids of cards that have a call, with ours.
    joined: HashMap<ToolCallId, ToolCallId>,
}

#[derive(Debug)]
struct JoinedCall {
    number: u64,
    tool: String,
    arguments: Value,
    card: ToolCallId,
    /// The agent has reported it.
    is_reported: bool,
    stop: CancellationToken,
}

#[derive(Debug)]
struct ReportedCard {
    id: ToolCallId,
    tool: String,
    arguments: Option<Value>,
}

impl NotebookCalls {
    /// Notes a call that begins, and returns the id of its card.
    pub(crate) fn begin(
        &mut self,
        number: u64,
        tool: &str,
        arguments: Value,
        id: Option<&str>,
        stop: CancellationToken,
    ) -> ToolCallId {
        let card = match id {
            Some(id) => {
                self.waiting.retain(|card| *card.id.0 != *id);
                let id = ToolCallId::new(id.to_owned());
                self.joined.insert(id.clone(), id.clone());
                Some(id)
            }
            None => self.reported(tool, &arguments).inspect(|id| {
                self.joined.insert(id.clone(), id.clone());
            }),
        };
        let is_reported = card.is_some();
        let card = card.unwrap_or_else(|| ToolCallId::new(format!("cellwright-call-{number}")));
        let tool = tool.to_owned();
        self.calls.push(JoinedCall { number, tool, arguments, card: card.clone(), is_reported, stop });
        card
    }

    /// The card of a call that runs.
    pub(crate) fn card(&self, number: u64) -> Option<&ToolCallId> {
        self.calls.iter().rev().find(|call| call.number == number).map(|call| &call.card)
    }

    /// Stops all calls.
    pub(crate) fn stop(&self) {
        self.calls.iter().for_each(|call| call.stop.cancel());
    }

    /// Takes the oldest card that the agent reported for such a call.
    fn reported(&mut self, tool: &str, arguments: &Value) -> Option<ToolCallId> {
        let of_tool = |card: &&ReportedCard| card.tool == tool;
        let equal =
            self.waiting.iter().position(|card| of_tool(&card) && card.arguments.as_ref() == Some(arguments));
        let blank = || self.waiting.iter().position(|card| of_tool(&card) && card.arguments.is_none());
        let at = equal.or_else(blank)?;
        Some(self.waiting.remove(at).id)
    }

    /// Looks at an update of the agent. True if it is about a card that shows a call of ours: what the agent says of it
    /// is not shown then.
    pub(crate) fn covers(&mut self, update: &SessionUpdate) -> bool {
        let (id, facts) = match update {
            SessionUpdate::ToolCall(call) => (
                &call.tool_call_id,
                CardFacts {
                    id: &call.tool_call_id.0,
                    title: Some(&call.title),
                    input: call.raw_input.as_ref(),
                    content: Some(&call.content),
                    meta: call.meta.as_ref(),
                },
            ),
            SessionUpdate::ToolCallUpdate(update) => (
                &update.tool_call_id,
                CardFacts {
                    id: &update.tool_call_id.0,
                    title: update.fields.title.as_deref(),
                    input: update.fields.raw_input.as_ref(),
                    content: update.fields.content.as_ref(),
                    meta: update.meta.as_ref(),
                },
            ),
            _ => return false,
        };
        if self.joined.contains_key(id) {
            return true;
        }
        let known = self.waiting.iter().position(|card| card.id == *id);
        let tool = facts.tool().map(str::to_owned).or_else(|| Some(self.waiting[known?].tool.clone()));
        let Some(tool) = tool else { return false };
        let arguments = facts.arguments();
        // A call that came before its card. Without arguments the card is the oldest call's, or waits for its own.
        let call = self.calls.iter_mut().find(|call| {
            let equal = arguments.as_ref().is_none_or(|arguments| *arguments == call.arguments);
            !call.is_reported && call.tool == tool && equal
        });
        if let Some(call) = call {
            call.is_reported = true;
            self.joined.insert(id.clone(), call.card.clone());
            self.waiting.retain(|card| card.id != *id);
            // A card that was shown before stays as it is.
            return known.is_none();
        }
        match known {
            Some(at) => self.waiting[at].arguments = arguments.or_else(|| self.waiting[at].arguments.take()),
            None => self.waiting.push(ReportedCard { id: id.clone(), tool, arguments }),
        }
        let is_over =
            |status: ToolCallStatus| matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        let status = match update {
            SessionUpdate::ToolCall(call) => Some(call.status),
            SessionUpdate::ToolCallUpdate(update) => update.fields.status,
            _ => None,
        };
        if status.is_some_and(is_over) {
            self.waiting.retain(|card| card.id != *id); // it never became a call
        }
        false
    }
}

/// What an update says of its card.
struct CardFacts<'a> {
    id: &'a str,
    title: Option<&'a str>,
    input: Option<&'a Value>,
    content: Option<&'a Vec<ToolCallContent>>,
    meta: Option<&'a Meta>,
}

impl CardFacts<'_> {
    /// The tool of ours that the card is about.
    fn tool(&self) -> Option<&'static str> {
        let path = self.input.and_then(|input| input.get("path")).and_then(Value::as_str);
        let meta = |names: &[&str]| {
            let mut value = self.meta?.get(names[0])?;
            for name in &names[1..] {
                value = value.get(*name)?;
            }
            value.as_str()
        };
        let named = [Some(self.id), self.title, path, meta(&["claudeCode", "toolName"]), meta(&["toolName"])];
        let codex =
            self.input.and_then(|input| Some((input.get("server")?.as_str()?, input.get("tool")?.as_str()?)));
        ["eval", "notebook", "kernel"].into_iter().find(|tool| {
            [NAME, OTHER_NAME].iter().any(|server| {
                let is_named = |text: &str| {
                    text == format!("mcp__{server}__{tool}")
                        || text == format!("xd://mcp__{server}_{tool}")
                        || text == format!("{server}_{tool}")
                        || text == format!("{tool} ({server} MCP Server)")
                        || text.starts_with(&format!("mcp_{server}_{tool}__"))
                };
                named.into_iter().flatten().any(is_named) || codex == Some((*server, tool))
            })
        })
    }

    /// The arguments of the call, if the card has them.
    fn arguments(&self) -> Option<Value> {
        let is_full = |value: &&Value| value.as_object().is_some_and(|fields| !fields.is_empty());
        if let Some(input) = self.input.filter(is_full) {
            if let Some(arguments) = input.get("arguments").filter(|_| input.get("server").is_some()) {
                return Some(arguments.clone());
            }
            if let Some(text) =
                input.get("content").and_then(Value::as_str).filter(|_| input.get("path").is_some())
            {
                return serde_json::from_str(text).ok();
            }
            return Some(input.clone());
        }
        // Gemini: the arguments are the text of the card.
        self.content?.iter().find_map(|content| match content {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Text(text) => {
                    serde_json::from_str(&text.text).ok().filter(|value: &Value| is_full(&value))
                }
                _ => None,
            },
            _ => None,
        })
    }
}

/// Whether an agent asks about a call of ours, for which we ask ourselves.
pub(crate) fn is_ours(call: &agent_client_protocol_schema::v1::ToolCallUpdate) -> bool {
    let facts = CardFacts {
        id: &call.tool_call_id.0,
        title: call.fields.title.as_deref(),
        input: call.fields.raw_input.as_ref(),
        content: call.fields.content.as_ref(),
        meta: call.meta.as_ref(),
    };
    facts.tool().is_some()
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{ToolCall, ToolCallUpdate, ToolCallUpdateFields};
    use serde_json::json;

    use super::*;

    fn begin(calls: &mut NotebookCalls, number: u64, code: &str, id: Option<&str>) -> String {
        calls.begin(number, "eval", json!({ "code": code }), id, CancellationToken::new()).0.to_string()
    }

    fn reported(calls: &mut NotebookCalls, id: &str, title: &str, input: Value) -> bool {
        let call = ToolCall::new(id.to_owned(), title.to_owned()).raw_input(input);
        calls.covers(&SessionUpdate::ToolCall(call))
    }

    #[test]
    fn a_call_that_names_its_card_is_that_card_before_and_after() {
        let mut calls = NotebookCalls::default();
        assert!(!reported(&mut calls, "toolu_1", "mcp__cellwright__eval", json!({})));
        assert_eq!(begin(&mut calls, 0, "a", Some("toolu_1")), "toolu_1");
        assert!(reported(&mut calls, "toolu_1", "mcp__cellwright__eval", json!({"code": "a"})));
        assert_eq!(begin(&mut calls, 1, "b", Some("toolu_2")), "toolu_2");
        assert!(reported(&mut calls, "toolu_2", "mcp__cellwright__eval", json!({})));
    }

    #[test]
    fn a_card_is_found_by_its_arguments_and_else_by_its_age() {
        let mut calls = NotebookCalls::default();
        for (id, code) in [("1", "a"), ("2", "b")] {
            assert!(!reported(&mut calls, id, "cellwright_eval", json!({ "code": code })));
        }
        assert!(!reported(&mut calls, "3", "cellwright_eval", json!({})));
        assert_eq!(begin(&mut calls, 0, "b", None), "2");
        assert_eq!(begin(&mut calls, 1, "c", None), "3");
        assert_eq!(begin(&mut calls, 2, "a", None), "1");
        assert_eq!(begin(&mut calls, 3, "d", None), "cellwright-call-3");
        assert!(reported(&mut calls, "4", "cellwright_eval", json!({})), "the card came after the call");
        assert!(!reported(&mut calls, "5", "cellwright_eval", json!({"code": "e"})));
        assert!(!reported(&mut calls, "6", "bash", json!({"code": "d"})));
    }

    #[test]
    fn every_agent_names_our_tools_in_its_way() {
        let mut calls = NotebookCalls::default();
        let code = json!({"code": "x"});
        for (id, title, input) in [
            ("codex", "", json!({"server": "cellwright", "tool": "eval", "arguments": code})),
            ("mcp_cellwright_eval__1", "eval (cellwright MCP Server)", json!({"code": "x"})),
            ("omp", "write", json!({"path": "xd://mcp__cellwright_eval", "content": code.to_string()})),
        ] {
            assert!(!reported(&mut calls, id, title, input), "{id}");
            assert_eq!(begin(&mut calls, 0, "x", None), id);
        }
        let meta = json!({"toolName": "mcp__cellwright__eval"}).as_object().cloned().expect("an object");
        let fields = ToolCallUpdateFields::new().raw_input(code);
        let update = ToolCallUpdate::new("qwen", fields).meta(meta);
        assert!(is_ours(&update) && !calls.covers(&SessionUpdate::ToolCallUpdate(update)));
        assert_eq!(begin(&mut calls, 1, "x", None), "qwen");
    }
}
