//! What we do for an agent: answer its requests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest,
    KillTerminalResponse, PermissionOption, PermissionOptionId, PermissionOptionKind, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionRequest,
    SessionId, TerminalId, TerminalOutputRequest, ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind, WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use agent_client_protocol::{
    Agent as Agents, Client, ConnectTo, Error, ErrorCode, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use uuid::Uuid;

use super::event::{Elicitation, Event, Question, Unknown, Usual};
use super::files;
use super::terminals::{self, Terminal, Terminals};

/// What an agent may use of us.
pub(super) struct Served {
    pub(super) events: mpsc::Sender<Event>,
    pub(super) terminals: Terminals,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
}

/// Serves an agent until `stop`, or until it has gone. The connection is handed out as soon as it is there.
pub(super) async fn serve(
    served: Arc<Served>,
    transport: impl ConnectTo<Client> + 'static,
    connected: oneshot::Sender<ConnectionTo<Agents>>,
    stop: CancellationToken,
) -> Result<(), Error> {
    // A handler runs in the loop that receives everything else, so what may take time goes on beside it.
    macro_rules! beside {
        ($method:ident) => {{
            let served = Arc::clone(&served);
            async move |request, responder, cx: ConnectionTo<Agents>| {
                let served = Arc::clone(&served);
                cx.spawn(async move { responder.respond_with_result(served.$method(request).await) })
            }
        }};
    }
    let (permissions, elicitations, unknown) =
        (served.events.clone(), served.events.clone(), served.events.clone());
    let (shown, freed) = (Arc::clone(&served), Arc::clone(&served));
    Client
        .v1()
        .name("cellwright")
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                tell(&permissions, Event::Permission(Box::new(Question::of_agent(request, responder)))).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CreateElicitationRequest, responder, _cx| {
                tell(&elicitations, Event::Elicitation(Box::new(Elicitation::new(request, responder)))).await
            },
            on_receive_request!(),
        )
        .on_receive_request(beside!(read), on_receive_request!())
        .on_receive_request(beside!(write), on_receive_request!())
        .on_receive_request(beside!(create_terminal), on_receive_request!())
        .on_receive_request(
            async move |request: TerminalOutputRequest, responder, _cx| {
                let terminal = shown.terminal(&request.terminal_id);
                responder.respond_with_result(terminal.map(|terminal| terminal.output()))
            },
            on_receive_request!(),
        )
        .on_receive_request(beside!(wait_for_terminal), on_receive_request!())
        .on_receive_request(beside!(kill_terminal), on_receive_request!())
        .on_receive_request(
            async move |request: ReleaseTerminalRequest, responder, _cx| {
                let known = freed.terminals.release(&request.terminal_id).then(ReleaseTerminalResponse::new);
                responder.respond_with_result(known.ok_or_else(|| no_terminal(&request.terminal_id)))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |message: UntypedMessage, _cx| {
                let (method, params) = message.into_parts();
                tell(&unknown, Event::Unknown(Unknown { method, params })).await
            },
            on_receive_notification!(),
        )
        .connect_with(transport, async move |connection: ConnectionTo<Agents>| {
            drop(connected.send(connection.clone())); // the start may have been given up
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection.incoming_closed() => {}
            }
            Ok(())
        })
        .await
}

async fn tell(events: &mpsc::Sender<Event>, event: Event) -> Result<(), Error> {
    if events.send(event).await.is_err() {
        debug!("nobody listens to this agent any more");
    }
    Ok(())
}

impl Served {
    async fn read(self: Arc<Self>, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let usual =
            if files::is_inside(&request.path, &self.cwd) { Usual::Allowed } else { Usual::Undecided };
        self.ask(&request.session_id, self.touches(ToolKind::Read, "Read", &request.path), usual).await?;
        blocking(move || files::read(&request)).await.map(ReadTextFileResponse::new)
    }

    async fn write(self: Arc<Self>, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        let fields = self.touches(ToolKind::Edit, "Write", &request.path);
        self.ask(&request.session_id, fields, Usual::Undecided).await?;
        blocking(move || files::write(&request)).await.map(|()| WriteTextFileResponse::new())
    }

    async fn create_terminal(
        self: Arc<Self>,
        request: CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse, Error> {
        let line = terminals::line(&request);
        let folder = terminals::folder(&request, &self.cwd);
        let outside = (!files::is_inside(&folder, &self.cwd)).then_some(folder);
        let title = outside
            .iter()
            .fold(format!("Run `{line}`"), |title, folder| format!("{title} in {}", folder.display()));
        let fields = ToolCallUpdateFields::new()
            .kind(ToolKind::Execute)
            .title(title)
            .raw_input(json!({ "command": line }))
            .locations(outside.into_iter().map(ToolCallLocation::new).collect::<Vec<_>>());
        self.ask(&request.session_id, fields, Usual::Undecided).await?;
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

    fn terminal(&self, id: &TerminalId) -> Result<Arc<Terminal>, Error> {
        self.terminals.get(id).ok_or_else(|| no_terminal(id))
    }

    /// Something that is done to a file. Rules see where its path leads to as well, for a link has another name.
    fn touches(&self, kind: ToolKind, verb: &str, path: &Path) -> ToolCallUpdateFields {
        let real = files::leads_to(path, &self.cwd).filter(|real| real != path);
        let locations = [path.to_owned()].into_iter().chain(real).map(ToolCallLocation::new);
        ToolCallUpdateFields::new()
            .kind(kind)
            .title(format!("{verb} {}", path.display()))
            .locations(locations.collect::<Vec<_>>())
    }

    /// Waits for leave to do what the agent did not ask permission for itself.
    async fn ask(
        &self,
        session: &SessionId,
        fields: ToolCallUpdateFields,
        usual: Usual,
    ) -> Result<(), Error> {
        let call = ToolCallUpdate::new(format!("cellwright-{}", Uuid::new_v4().simple()), fields);
        let allow = PermissionOptionId::new("allow");
        let options = vec![
            PermissionOption::new(allow.clone(), "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let (question, answer) =
            Question::of_ours(RequestPermissionRequest::new(session.clone(), call, options), usual);
        tell(&self.events, Event::Permission(Box::new(question))).await?;
        match answer.await {
            Ok(chosen) if chosen == allow => Ok(()),
            Ok(_) | Err(_) => Err(files::refused("the user did not allow this".to_owned())),
        }
    }
}

fn no_terminal(id: &TerminalId) -> Error {
    Error::new(ErrorCode::RESOURCE_NOT_FOUND, format!("there is no terminal `{id}`"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or_else(|failed| Err(Error::into_internal_error(failed)))
}
