//! One running ACP agent.
//!
//! `AgentProcess::start` starts the process and agrees on what both sides can do.
//! `AgentProcess::call_text` sends any request of the protocol. Meanwhile, `AgentEvent`s carry
//! what the agent reports and asks. This module serves files and terminals to the agent, once the
//! owner of the events allows it. The agent's commands end with it, and nothing survives a dropped
//! `AgentProcess`.

mod calls;
mod connection;
mod event;
mod files;
mod log;
mod page_files;
mod services;
mod terminals;
#[cfg(test)]
mod tests;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthCapabilities, AuthMethod, BooleanConfigOptionCapabilities, CancelNotification,
    ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationUrlCapabilities, Error, ErrorCode, FileSystemCapabilities,
    Implementation, InitializeRequest, InitializeResponse, McpServer, Meta, NoticeCapabilities,
    PlanCapabilities, SessionConfigOptionsCapabilities, SessionId, TerminalId,
};
use cellwright_process::{
    ChildCommand, ChildExit, ChildProcess, SpawnError, StderrTarget, StdinSource, StdoutTarget, StopGraces,
    is_zombie,
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

pub(crate) use self::calls::{AgentCall, AnswerText, CallText, PromptAnswer};
use self::connection::{AgentConnection, RequestError};
pub(crate) use self::event::{
    AgentEvent, OpenElicitation, PermissionQuestion, QuestionDefault, UnknownMessage,
};
pub(crate) use self::files::leads_to;
pub(crate) use self::log::AgentLog;
use self::page_files::PageFiles;
use self::services::{AgentServices, AgentStreams};
use self::terminals::AgentTerminals;
pub(crate) use self::terminals::TerminalNews;
use self::wire::IncomingLines;
use crate::page::PageBridge;
use crate::task;

/// The most events that wait. When the channel is full, the agent waits.
const EVENTS: usize = 256;

/// How an agent is stopped: its input ends, then it is signalled.
const GRACES: StopGraces = StopGraces {
    asked: Duration::from_millis(500),
    interrupted: Duration::ZERO,
    terminated: Duration::from_millis(500),
};

/// How long an agent that closed its output may take to end by itself.
const LEAVING: Duration = Duration::from_secs(2);

/// How long to wait for the rest of its standard error after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLaunch {
    /// A path, or a name to look up in the `PATH` of the environment.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder in which it works. Files inside it may be read without asking.
    pub cwd: PathBuf,
    /// Whether we offer to read and write files for it. An agent that asks without the offer is
    /// served, too.
    pub files: AgentFiles,
}

/// Whether we offer an agent to read and write files for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentFiles {
    /// It reads and writes files itself. Some agents end at any error, so they could not create
    /// files through us.
    #[default]
    Own,
    /// It gets the offer.
    Offered,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentStartError {
    #[error("there is no folder `{}` for the agent to work in", .0.display())]
    NoFolder(PathBuf),
    /// Its program could not be run.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It did not agree on a protocol.
    #[error("the agent did not answer `initialize` correctly")]
    Initialize(#[source] CallError),
}

/// Why a request got no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// The user has to sign in first.
    #[error("the agent wants you to sign in first")]
    AuthRequired,
    /// It does not know this request.
    #[error("the agent does not support `{method}`")]
    Unsupported { method: String },
    #[error("the agent answered with an error: {message}")]
    Refused { code: i32, message: String },
    #[error("the agent {exit}")]
    Ended {
        exit: ChildExit,
        /// The end of its standard error.
        stderr: String,
    },
}

impl CallError {
    /// Reads the error that an agent answered.
    fn of_agent(method: &str, error: &Error) -> Self {
        match error.code {
            ErrorCode::AuthRequired => Self::AuthRequired,
            ErrorCode::MethodNotFound => Self::Unsupported { method: method.to_owned() },
            code => {
                let details = error.data.as_ref().and_then(words_of).filter(|words| *words != error.message);
                let details = details.map(|words| format!(" ({words})")).unwrap_or_default();
                Self::Refused { code: code.into(), message: format!("{}{details}", error.message) }
            }
        }
    }
}

/// What the data of an error says to people. Agents put words for them into one of a few fields, some
/// of them into a field of a field.
fn words_of(data: &Value) -> Option<String> {
    match data {
        Value::Null | Value::Bool(_) => None,
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(items) => items.iter().find_map(words_of),
        Value::Object(fields) => {
            let known = ["details", "message", "error", "reason", "data"];
            let words = known.iter().find_map(|name| words_of(fields.get(*name)?));
            let all =
                || fields.iter().filter_map(|(name, value)| Some(format!("{name}: {}", words_of(value)?)));
            words.or_else(|| Some(all().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()))
        }
    }
}

/// A running agent. Dropping it kills the agent and everything that it started.
pub(crate) struct AgentProcess {
    greeting: InitializeResponse,
    pid: u32,
    connection: AgentConnection,
    log: AgentLog,
    served: Arc<AgentServices>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<ChildExit>>,
    keeper: AbortOnDropHandle<()>,
    /// Cancelled when all of its standard error is in the log.
    drained: CancellationToken,
    _serving: AbortOnDropHandle<()>,
    _draining: AbortOnDropHandle<()>,
}

impl AgentProcess {
    /// Starts an agent and agrees with it on version 1 of the protocol. The caller must receive the
    /// events, or the agent waits. `log` holds its standard error from the first moment. Dropping
    /// this future ends the agent.
    pub(crate) async fn start(
        launch: &AgentLaunch,
        log: AgentLog,
        page: PageBridge,
    ) -> Result<(Self, mpsc::Receiver<AgentEvent>), AgentStartError> {
        if !launch.cwd.is_dir() {
            return Err(AgentStartError::NoFolder(launch.cwd.clone()));
        }
        let mut child =
            ChildCommand::new(&launch.program, launch.environment.iter().map(|(name, value)| (name, value)))
                .args(&launch.args)
                .current_dir(&launch.cwd)
                .mark_descendants()
                .stdin(StdinSource::Piped)
                .stdout(StdoutTarget::Piped)
                .stderr(StderrTarget::Piped)
                .spawn()?;
        let (events, inbox) = mpsc::channel(EVENTS);
        let stdout = child.stdout.take().expect("stdout was piped");
        let streams = AgentStreams {
            stdin: child.stdin.take().expect("stdin was piped"),
            lines: IncomingLines::new(stdout, events.clone(), log.clone()),
        };
        let drained = CancellationToken::new();
        let draining = task::spawn({
            let draining = log.clone().drain(child.stderr.take().expect("stderr was piped"));
            let drained = drained.clone();
            async move {
                draining.await;
                drained.cancel();
            }
        });
        let served = Arc::new(AgentServices {
            events,
            terminals: AgentTerminals::default(),
            environment: launch.environment.clone(),
            cwd: launch.cwd.clone(),
            notebooks: PageFiles::new(page),
        });
        let stop = CancellationToken::new();
        let (connection, outgoing) = AgentConnection::new();
        let serving = task::spawn({
            let serving =
                services::serve(Arc::clone(&served), connection.clone(), outgoing, streams, stop.clone());
            async move {
                if let Err(error) = serving.await {
                    debug!(%error, "the connection to an agent ended");
                }
            }
        });
        let (exit, ended) = watch::channel(None);
        let pid = child.id();
        let keeper = task::spawn(keep(child, stop.clone(), exit));
        let mut agent = Self {
            greeting: InitializeResponse::new(ProtocolVersion::V1),
            pid,
            connection,
            log,
            served,
            stop,
            ended,
            keeper,
            drained,
            _serving: serving,
            _draining: draining,
        };
        agent.greeting = agent.greet(launch.files).await.map_err(AgentStartError::Initialize)?;
        Ok((agent, inbox))
    }

    /// Its name and version.
    pub(crate) fn info(&self) -> Option<&Implementation> {
        self.greeting.agent_info.as_ref()
    }

    /// Its capabilities.
    pub(crate) fn can(&self) -> &AgentCapabilities {
        &self.greeting.agent_capabilities
    }

    /// Whether it can use an MCP server of this kind.
    pub(crate) fn supports(&self, server: &McpServer) -> bool {
        let can = &self.can().mcp_capabilities;
        match server {
            McpServer::Http(_) => can.http,
            McpServer::Sse(_) => can.sse,
            _ => true,
        }
    }

    /// How a user can sign in.
    pub(crate) fn auth_methods(&self) -> &[AuthMethod] {
        &self.greeting.auth_methods
    }

    /// Waits until a command that it runs through us writes something or ends. Cancel-safe.
    pub(crate) async fn terminal_changed(&self) {
        self.served.terminals.changed().await;
    }

    /// Whether a terminal is one that it made through us.
    pub(crate) fn made_terminal(&self, id: &TerminalId) -> bool {
        self.served.terminals.made(id)
    }

    /// What these commands wrote since the last call.
    pub(crate) fn terminal_news(&self) -> Vec<TerminalNews> {
        self.served.terminals.news()
    }

    /// Whether its process has ended, even if it ended just now.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some() || is_zombie(self.pid)
    }

    /// Sends a request and waits for its answer, however long that takes. Dropping this future
    /// cancels the request.
    pub(crate) fn call_text(&self, call: CallText) -> BoxFuture<'_, Result<AnswerText, CallError>> {
        Box::pin(async move {
            let CallText { method, params } = call;
            match self.connection.request(method, params).await {
                Ok(result) => Ok(AnswerText { method, result }),
                Err(RequestError::Closed) => Err(self.farewell().await),
                Err(RequestError::Refused(error)) => Err(CallError::of_agent(method, &error)),
            }
        })
    }

    /// Asks it to end its turn. The turn ends when the prompt is answered.
    pub(crate) fn cancel(&self, session: &SessionId) {
        let cancel = to_raw_value(&CancelNotification::new(session.clone()));
        self.connection.notify("session/cancel", &cancel.expect("a session's name can be written"));
    }

    /// Ends it politely, then firmly.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        drop(self.keeper.await); // it only fails if the runtime ends first
    }

    /// Sends our capabilities and receives the agent's.
    async fn greet(&self, files: AgentFiles) -> Result<InitializeResponse, CallError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SpokenVersion {
            protocol_version: ProtocolVersion,
        }
        let answer = self.call_text(CallText::new(&introduction(files))?).await?;
        // An agent of another version may write the rest differently.
        let SpokenVersion { protocol_version: spoken } = answer.read()?;
        if spoken != ProtocolVersion::V1 {
            return Err(CallError::Refused {
                code: ErrorCode::InvalidRequest.into(),
                message: format!(
                    "it speaks version {spoken} of the protocol, but only version 1 is supported"
                ),
            });
        }
        answer.read()
    }

    /// The error for a request after its output ended.
    async fn farewell(&self) -> CallError {
        let mut ended = self.ended.clone();
        if timeout(LEAVING, ended.wait_for(Option::is_some)).await.is_err() {
            self.stop.cancel(); // it closed its output but still runs, and cannot be talked to
        }
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        drop(timeout(LAST_WORDS, self.drained.cancelled()).await); // a process that it started may keep the pipe open
        CallError::Ended { exit: exit.unwrap_or(ChildExit::Unknown), stderr: self.log.text() }
    }
}

impl std::fmt::Debug for AgentProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

/// Owns the process until it has ended.
async fn keep(mut child: ChildProcess, stop: CancellationToken, ended: watch::Sender<Option<ChildExit>>) {
    let exit = tokio::select! {
        exit = child.wait() => exit,
        () = stop.cancelled() => child.stop(GRACES).await,
    };
    ended.send_replace(Some(exit));
}

/// Our capabilities: exactly what we do for an agent.
fn introduction(files: AgentFiles) -> InitializeRequest {
    let offered = files == AgentFiles::Offered;
    let session = ClientSessionCapabilities::new()
        .compaction(CompactionCapabilities::new())
        .config_options(
            SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new()),
        )
        .notices(NoticeCapabilities::new());
    let elicitation = ElicitationCapabilities::new()
        .form(ElicitationFormCapabilities::new())
        .url(ElicitationUrlCapabilities::new());
    // Extensions of the protocol. With these, some agents send the output of commands that they run
    // themselves, and how to sign in at a terminal.
    let Value::Object(extensions) =
        json!({"terminal_output": true, "terminal_output_delta": true, "terminal-auth": true})
    else {
        unreachable!("an object was written")
    };
    let capabilities = ClientCapabilities::new()
        .fs(FileSystemCapabilities::new().read_text_file(offered).write_text_file(offered))
        .terminal(true)
        .session(session)
        .plan(PlanCapabilities::new())
        .auth(AuthCapabilities::new().terminal(true))
        .elicitation(elicitation)
        .meta(Meta::from_iter(extensions));
    InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities).client_info(
        Implementation::new("cellwright", env!("CARGO_PKG_VERSION")).title("Cellwright".to_owned()),
    )
}
