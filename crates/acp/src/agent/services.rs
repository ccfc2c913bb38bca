//! What we do for an agent: serving its requests for files, terminals and answers.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, Diff, Error, ErrorCode, KillTerminalRequest,
    KillTerminalResponse, PermissionOption, PermissionOptionId, PermissionOptionKind, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse, RequestId,
    RequestPermissionRequest, SessionId, TerminalId, TerminalOutputRequest, ToolCallContent,
    ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields, ToolKind, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use uuid::Uuid;

use super::LEAVING;
use super::connection::{AgentConnection, IncomingMessage, OutgoingLines, RequestResponder};
use super::event::{AgentEvent, OpenElicitation, PermissionQuestion, QuestionDefault, UnknownMessage};
use super::files;
use super::page_files::{PageFiles, PageWrite};
use super::terminals::{self, AgentTerminal, AgentTerminals};
use super::wire::{self, IncomingLines};
use crate::permission;

/// The services for one agent.
pub(super) struct AgentServices {
    pub(super) events: mpsc::Sender<AgentEvent>,
    pub(super) terminals: AgentTerminals,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    /// Notebooks that are open in pages.
    pub(super) notebooks: PageFiles,
}

/// Our ends of an agent's pipes.
pub(super) struct AgentStreams {
    pub(super) stdin: pipe::Sender,
    pub(super) lines: IncomingLines,
}

/// Serves an agent until `stop`, or until the agent ends. Then closes the connection, and the
/// agent's input once the agent has received all lines.
pub(super) async fn serve(
    served: Arc<AgentServices>,
    connection: AgentConnection,
    outgoing: OutgoingLines,
    streams: AgentStreams,
    stop: CancellationToken,
) -> io::Result<()> {
    let AgentStreams { stdin, mut lines } = streams;
    let mut writing = pin!(wire::write(outgoing, stdin));
    let mut listening = Box::pin(listen(&served, &connection, &mut lines));
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(()),
        ended = &mut listening => ended,
        written = &mut writing => {
            // An agent that reads nothing more is about to end. What it wrote before still counts.
            drop(timeout(LEAVING, listening).await);
            connection.close();
            return written;
        }
    };
    connection.close();
    drop(listening); // and with it all work for the agent
    ended.and(writing.await)
}

/// Handles the agent's lines in order. Events that came before an answer are in the channel before
/// the answer is handed over.
async fn listen(
    served: &Arc<AgentServices>,
    connection: &AgentConnection,
    lines: &mut IncomingLines,
) -> io::Result<()> {
    // Work that may take time is done beside the loop.
    let mut beside = JoinSet::new();
    while let Some(line) = lines.next().await? {
        match IncomingMessage::read(&line) {
            IncomingMessage::Answer { id, answer } => connection.settle(&id, answer.map(ToOwned::to_owned)),
            IncomingMessage::Request { id, method, params } => {
                let responder = RequestResponder::new(connection.clone(), id);
                let request = OpenRequest { params, responder };
                if let Some(work) = served.take(&method, request).await {
                    while beside.try_join_next().is_some() {} // drops finished work
                    beside.spawn(work);
                }
            }
            IncomingMessage::Notification { method, params } => {
                let params = serde_json::from_str(params.get()).unwrap_or_default();
                deliver(&served.events, AgentEvent::Unknown(UnknownMessage { method, params })).await;
            }
            IncomingMessage::Invalid(error) => {
                debug!(?error, "an agent sent a message that is not of the protocol");
                if let Some(error) = error {
                    connection.answer(&RequestId::Null, &Err(error));
                }
            }
        }
    }
    Ok(())
}

/// A request of the agent that is not parsed yet.
struct OpenRequest<'a> {
    params: &'a RawValue,
    responder: RequestResponder,
}

impl OpenRequest<'_> {
    /// Parses the request. If that fails, the agent gets an error.
    fn read<R: DeserializeOwned>(self) -> Option<(R, RequestResponder)> {
        match serde_json::from_str(self.params.get()) {
            Ok(request) => Some((request, self.responder)),
            Err(error) => {
                self.refuse(Error::invalid_params().data(error.to_string()));
                None
            }
        }
    }

    fn refuse(self, error: Error) {
        self.responder.respond::<()>(Err(error));
    }

    /// Answers at once.
    fn answer<R: DeserializeOwned, T: Serialize>(self, answer: impl FnOnce(R) -> Result<T, Error>) {
        if let Some((request, responder)) = self.read() {
            responder.respond(answer(request));
        }
    }

    /// Answers when the work is done.
    fn work<R, T, W>(self, work: impl FnOnce(R) -> W) -> Option<BoxFuture<'static, ()>>
    where
        R: DeserializeOwned,
        T: Serialize,
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (request, responder) = self.read()?;
        let work = work(request);
        Some(Box::pin(async move { responder.respond(work.await) }))
    }
}

async fn deliver(events: &mpsc::Sender<AgentEvent>, event: AgentEvent) {
    if events.send(event).await.is_err() {
        debug!("nobody listens to this agent any more");
    }
}

impl AgentServices {
    /// Begins to serve a request, and returns the work that is left to do beside the loop.
    async fn take(
        self: &Arc<Self>,
        method: &str,
        request: OpenRequest<'_>,
    ) -> Option<BoxFuture<'static, ()>> {
        let served = Arc::clone(self);
        match method {
            "session/request_permission" => {
                let (request, responder) = request.read()?;
                let question = PermissionQuestion::of_agent(request, responder);
                deliver(&self.events, AgentEvent::Permission(Box::new(question))).await;
            }
            "elicitation/create" => {
                let (request, responder) = request.read()?;
                let elicitation = OpenElicitation::new(request, responder);
                deliver(&self.events, AgentEvent::Elicitation(Box::new(elicitation))).await;
            }
            "fs/read_text_file" => return request.work(|request| served.read(request)),
            "fs/write_text_file" => return request.work(|request| served.write(request)),
            "terminal/create" => return request.work(|request| served.create_terminal(request)),
            "terminal/output" => request.answer(|request: TerminalOutputRequest| {
                self.terminal(&request.terminal_id).map(|terminal| terminal.output())
            }),
            "terminal/wait_for_exit" => return request.work(|request| served.wait_for_terminal(request)),
            "terminal/kill" => return request.work(|request| served.kill_terminal(request)),
            "terminal/release" => request.answer(|request: ReleaseTerminalRequest| {
                let known = self.terminals.release(&request.terminal_id).then(ReleaseTerminalResponse::new);
                known.ok_or_else(|| no_terminal(&request.terminal_id))
            }),
            unknown => request.refuse(Error::method_not_found().data(unknown)),
        }
        None
    }

    async fn read(self: Arc<Self>, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let usual = if files::is_inside(&request.path, &self.cwd) {
            QuestionDefault::Allowed
        } else {
            QuestionDefault::Undecided
        };
        self.ask(&request.session_id, self.touches(ToolKind::Read, "Read", &request.path), usual).await?;
        blocking(move || match self.notebooks.read(&request.path)? {
            Some(text) => Ok(files::part(&text, &request)),
            None => files::read(&request),
        })
        .await
        .map(ReadTextFileResponse::new)
    }

    async fn write(self: Arc<Self>, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        let fields = self.touches(ToolKind::Edit, "Write", &request.path);
        let path = request.path.clone();
        let old = blocking(move || Ok(files::old_text(&path))).await?;
        let change = Diff::new(request.path.clone(), request.content.clone()).old_text(old);
        let fields = fields.content(vec![ToolCallContent::Diff(change)]);
        self.ask(&request.session_id, fields, QuestionDefault::Undecided).await?;
        blocking(move || match self.notebooks.write(&request.path, &request.content)? {
            PageWrite::Page => Ok(()),
            PageWrite::File => files::write(&request),
        })
        .await
        .map(|()| WriteTextFileResponse::new())
    }

    async fn create_terminal(
        self: Arc<Self>,
        request: CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse, Error> {
        let line = terminals::line(&request);
        let folder = terminals::folder(&request, &self.cwd);
        let outside = (!files::is_inside(&folder, &self.cwd)).then(|| folder.clone());
        let mut input = json!({ "command": line });
        if !request.env.is_empty() {
            let variables = request.env.iter().map(|variable| (variable.name.clone(), json!(variable.value)));
            input["env"] = Value::Object(variables.collect());
        }
        if folder != self.cwd {
            input["cwd"] = json!(folder);
        }
        let whole = permission::command_of(&input).unwrap_or_else(|| line.clone());
        let place = if folder == self.cwd { String::new() } else { format!(" in {}", folder.display()) };
        let fields = ToolCallUpdateFields::new()
            .kind(ToolKind::Execute)
            .title(format!("Run `{whole}`{place}"))
            .raw_input(input)
            .locations(outside.into_iter().map(ToolCallLocation::new).collect::<Vec<_>>());
        self.ask(&request.session_id, fields, QuestionDefault::Undecided).await?;
        let created = self.terminals.create(&request, &self.environment, &self.cwd);
        created
            .map(CreateTerminalResponse::new)
            .map_err(|error| files::refused(format!("could not start `{line}`: {error}")))
    }

    async fn wait_for_terminal(
        self: Arc<Self>,
        request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse, Error> {
        Ok(WaitForTerminalExitResponse::new(self.terminal(&request.terminal_id)?.wait().await))
    }

    async fn kill_terminal(
        self: Arc<Self>,
        request: KillTerminalRequest,
    ) -> Result<KillTerminalResponse, Error> {
        self.terminal(&request.terminal_id)?.kill().await;
        Ok(KillTerminalResponse::new())
    }

    fn terminal(&self, id: &TerminalId) -> Result<Arc<AgentTerminal>, Error> {
        self.terminals.get(id).ok_or_else(|| no_terminal(id))
    }

    /// The tool call for a file. Rules also see the target of a link.
    fn touches(&self, kind: ToolKind, verb: &str, path: &Path) -> ToolCallUpdateFields {
        let real = files::leads_to(path, &self.cwd).filter(|real| real != path);
        let locations = [path.to_owned()].into_iter().chain(real).map(ToolCallLocation::new);
        ToolCallUpdateFields::new()
            .kind(kind)
            .title(format!("{verb} {}", path.display()))
            .locations(locations.collect::<Vec<_>>())
    }

    /// Asks for the permission that the agent did not ask for.
    async fn ask(
        &self,
        session: &SessionId,
        fields: ToolCallUpdateFields,
        usual: QuestionDefault,
    ) -> Result<(), Error> {
        let call = ToolCallUpdate::new(format!("cellwright-{}", Uuid::new_v4().simple()), fields);
        let allow = PermissionOptionId::new("allow");
        let options = vec![
            PermissionOption::new(allow.clone(), "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let (question, answer) =
            PermissionQuestion::of_ours(RequestPermissionRequest::new(session.clone(), call, options), usual);
        deliver(&self.events, AgentEvent::Permission(Box::new(question))).await;
        match answer.await {
            Ok(chosen) if chosen == allow => Ok(()),
            Ok(_) | Err(_) => Err(files::refused("the user did not allow this".to_owned())),
        }
    }
}

fn no_terminal(id: &TerminalId) -> Error {
    Error::new(ErrorCode::ResourceNotFound.into(), format!("there is no terminal `{id}`"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|failed| Err(Error::into_internal_error(failed)))
}
