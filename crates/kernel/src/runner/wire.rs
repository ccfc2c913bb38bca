//! The runner's messages: one JSON object a line (`docs/runner-protocol.md`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use cellwright_cell::{Exception, MimeBundle, MimeData, Output, OutputChange};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Event, InputAnswer};
use crate::execution::CellSource;
use crate::request::{AskError, Completions, KernelVariable, KernelVariables, Question, Reply};
use crate::setup::Setup;
use crate::transport::{CellId, KernelRequest, QuestionId, Verdict};

/// The protocol this host speaks.
pub(super) const PROTOCOL: u64 = 1;

/// A message to the runner.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(test, derive(Deserialize, PartialEq, Debug))]
pub(super) enum ToRunner {
    Hello {
        protocol: u64,
        nonce: String,
    },
    Configure(Configure),
    Execute {
        id: u64,
        code: String,
        // What is usual goes without saying: short messages are read faster.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_stdin: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        store_history: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Variables that this cell finds set.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    Withdraw {
        id: u64,
    },
    InputReply {
        id: u64,
        #[serde(flatten)]
        answer: InputAnswer,
    },
    Complete {
        id: u64,
        code: String,
        cursor: usize,
    },
    Inspect {
        id: u64,
        code: String,
        cursor: usize,
        detail: u8,
    },
    Variables {
        id: u64,
        limit: usize,
    },
    Ping {
        id: u64,
    },
    Shutdown,
}

/// The state of the process before its first cell.
#[derive(Serialize)]
#[cfg_attr(test, derive(Deserialize, PartialEq, Debug))]
pub(super) struct Configure {
    pub(super) cwd: Option<String>,
    #[serde(flatten)]
    pub(super) setup: Setup,
}

impl From<KernelRequest> for ToRunner {
    fn from(request: KernelRequest) -> Self {
        match request {
            KernelRequest::Execute { cell: CellId(id), source, allow_stdin, variables } => {
                let CellSource { code, title, silent, store_history } = source;
                let store_history = (!store_history).then_some(false);
                let text = |(name, value): (OsString, OsString)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                };
                let env = variables.into_iter().flatten().filter_map(text).collect();
                Self::Execute { id, code, allow_stdin, silent, store_history, title, env }
            }
            KernelRequest::Input { cell, answer } => Self::InputReply { id: cell.0, answer },
            KernelRequest::Ask { id: QuestionId(id), question } => match question {
                Question::Complete { code, cursor } => Self::Complete { id, code, cursor },
                Question::Inspect { code, cursor, detail } => Self::Inspect { id, code, cursor, detail },
                Question::Variables { limit } => Self::Variables { id, limit },
                // Whoever types Python knows when a statement is whole: the runner only says that it is there.
                Question::Completeness { .. } | Question::Ping => Self::Ping { id },
            },
            KernelRequest::Shutdown => Self::Shutdown,
        }
    }
}

/// A message from the runner, and its mark.
#[derive(Debug)]
pub(super) struct RunnerFrame {
    pub(super) mark: Option<u64>,
    pub(super) message: RunnerMessage,
}

#[derive(Debug)]
pub(super) enum RunnerMessage {
    Ready(RunnerReady),
    /// A Python that is too old, in its own words.
    Unfit(String),
    /// An extension module is about to run.
    Loading {
        module: String,
    },
    Configured {
        warnings: Vec<String>,
    },
    /// The main thread lets a message wait.
    Busy {
        at: Option<String>,
    },
    Event {
        id: Option<CellId>,
        event: Event,
    },
    Input {
        id: CellId,
        prompt: String,
        password: bool,
    },
    Done {
        id: CellId,
        verdict: Verdict,
        count: Option<u64>,
    },
    Reply {
        id: QuestionId,
        reply: Result<Reply, AskError>,
    },
    Warning(String),
}

/// The interpreter that runs, by its own account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RunnerReady {
    #[serde(rename = "protocol")]
    pub(super) protocol: u64,
    /// The language's version, such as `3.11.7`.
    #[serde(rename = "python")]
    pub version: String,
    /// `cpython`, `pypy`.
    pub implementation: String,
    /// `sys.executable`.
    pub executable: PathBuf,
    /// `sys.prefix`: the virtual environment's folder, or the installation's.
    pub prefix: PathBuf,
    /// Its process, and its group's.
    pub pid: u32,
}

/// Every field any message has. One flat struct is read in one pass; a tagged enum would hold a large
/// frame twice.
#[derive(Deserialize)]
struct FrameFields {
    #[serde(rename = "type")]
    kind: String,
    id: Option<u64>,
    mark: Option<u64>,
    #[serde(default)]
    data: MimeData,
    #[serde(default)]
    metadata: Map<String, Value>,
    display_id: Option<String>,
    #[serde(default)]
    update: bool,
    #[serde(default)]
    wait: bool,
    count: Option<u64>,
    status: Option<String>,
    ename: Option<String>,
    evalue: Option<String>,
    #[serde(default)]
    traceback: Vec<String>,
    line: Option<u64>,
    prompt: Option<String>,
    #[serde(default)]
    password: bool,
    #[serde(default)]
    warnings: Vec<String>,
    module: Option<String>,
    at: Option<String>,
    message: Option<String>,
    error: Option<String>,
    matches: Option<Vec<String>>,
    #[serde(default)]
    start: usize,
    #[serde(default)]
    end: usize,
    found: Option<bool>,
    variables: Option<Vec<KernelVariable>>,
    #[serde(default)]
    total: usize,
    protocol: Option<u64>,
    python: Option<String>,
    implementation: Option<String>,
    executable: Option<PathBuf>,
    prefix: Option<PathBuf>,
    pid: Option<u32>,
}

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunnerFrameError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("`{0}` is unknown or lacks a field")]
    Unknown(String),
}

impl RunnerFrame {
    /// Reads one line.
    pub(super) fn decode(line: &[u8]) -> Result<Self, RunnerFrameError> {
        let fields: FrameFields = serde_json::from_slice(line)?;
        let mark = fields.mark;
        let kind = fields.kind.clone();
        let message = fields.message().ok_or(RunnerFrameError::Unknown(kind))?;
        Ok(Self { mark, message })
    }
}

impl FrameFields {
    fn message(self) -> Option<RunnerMessage> {
        let cell = self.id.map(CellId);
        let content = MimeBundle { data: self.data, metadata: self.metadata };
        let shows = |change| RunnerMessage::Event { id: cell, event: Event::Output(change) };
        Some(match self.kind.as_str() {
            "ready" => match self.error {
                Some(error) => RunnerMessage::Unfit(error),
                None => RunnerMessage::Ready(RunnerReady {
                    protocol: self.protocol?,
                    version: self.python?,
                    implementation: self.implementation?,
                    executable: self.executable?,
                    prefix: self.prefix?,
                    pid: self.pid?,
                }),
            },
            "loading" => RunnerMessage::Loading { module: self.module? },
            "busy" => RunnerMessage::Busy { at: self.at },
            "configured" => RunnerMessage::Configured { warnings: self.warnings },
            "display" => {
                let content = Arc::new(content);
                shows(match (self.update, self.display_id) {
                    (true, display_id) => OutputChange::Updated { display_id: display_id?, content },
                    (false, display_id) => OutputChange::Added(Output::Display { content, display_id }),
                })
            }
            "result" => {
                let content = Arc::new(content);
                shows(OutputChange::Added(Output::Result { content, count: self.count }))
            }
            "clear" => shows(OutputChange::Cleared { wait: self.wait }),
            "error" => {
                let exception = Exception {
                    name: self.ename?,
                    message: self.evalue?,
                    traceback: self.traceback,
                    line: self.line,
                };
                shows(OutputChange::Added(Output::Error(exception)))
            }
            "input" => RunnerMessage::Input { id: cell?, prompt: self.prompt?, password: self.password },
            "done" => {
                let verdict = match self.status?.as_str() {
                    "ok" => Verdict::Ok,
                    "error" => Verdict::Error,
                    "interrupted" => Verdict::Interrupted,
                    _ => return None,
                };
                RunnerMessage::Done { id: cell?, verdict, count: self.count }
            }
            "reply" => {
                let reply = match (self.error, self.matches, self.found, self.variables) {
                    (Some(error), ..) => Err(AskError::Failed(error)),
                    (None, Some(matches), ..) => {
                        Ok(Reply::Completions(Completions { matches, start: self.start, end: self.end }))
                    }
                    (None, None, Some(found), _) => Ok(Reply::Inspection(found.then_some(content))),
                    (None, None, None, Some(listed)) => {
                        Ok(Reply::Variables(KernelVariables { listed, total: self.total }))
                    }
                    (None, None, None, None) => Ok(Reply::Pong),
                };
                RunnerMessage::Reply { id: QuestionId(self.id?), reply }
            }
            "warning" => RunnerMessage::Warning(self.message?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One example of every message, which the runner's tests read as well. Its ids are strings; ours
    /// are numbers, and the runner returns what it was given.
    fn examples(from: &str) -> Vec<Value> {
        include_str!("../../python/tests/protocol.ndjson")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["from"] == from)
            .map(|mut line| {
                let message = &mut line["message"];
                if let Some(id) = message["id"].as_str() {
                    message["id"] = id[1..].parse::<u64>().unwrap().into();
                } else if message["id"].is_null() && message["type"] != "display" {
                    message.as_object_mut().unwrap().remove("id");
                }
                message.take()
            })
            .collect()
    }

    #[test]
    fn every_example_to_the_runner_is_what_we_write() {
        for example in examples("host") {
            let message: ToRunner = serde_json::from_value(example.clone()).unwrap();
            assert_eq!(serde_json::to_value(&message).unwrap(), example);
        }
    }

    #[test]
    fn every_example_from_the_runner_is_understood() {
        let frames: Vec<String> = examples("runner")
            .iter()
            .map(|example| {
                let frame = RunnerFrame::decode(example.to_string().as_bytes())
                    .unwrap_or_else(|e| panic!("{example} {e}"));
                assert_eq!(frame.mark, example["mark"].as_u64());
                format!("{:?}", frame.message)
            })
            .collect();
        for (kind, expected) in [
            ("Ready(", 1),
            ("Unfit(", 1),
            ("Configured", 1),
            ("Busy", 1),
            ("Event", 5),
            ("Input", 1),
            ("Done", 3),
            ("Reply", 5),
            ("Warning(", 1),
        ] {
            let found = frames.iter().filter(|frame| frame.starts_with(kind)).count();
            assert_eq!(found, expected, "{kind} in {frames:#?}");
        }
    }

    #[test]
    fn what_is_no_message_is_described() {
        for (line, problem) in [
            ("{", "EOF while parsing"),
            ("[1]", "invalid"),
            (r#"{"type":"dance"}"#, "`dance` is unknown"),
            (r#"{"type":"done","id":1}"#, "`done` is unknown or lacks a field"),
        ] {
            let error = RunnerFrame::decode(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{line} {error}");
        }
    }
}
