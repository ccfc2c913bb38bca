//! One client's side of the server.
#![expect(deprecated, reason = "roots and logging are deprecated by a version of MCP that we do not speak")]

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_tools::{CallContext, InputPrompter, ProgressSink, PythonState, ToolClient};
use futures_util::FutureExt as _;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::answer::{self, StructuredContent};
use crate::call::{ProgressReporter, UserQuestions};
use crate::host::{McpHost, WorkspaceRoots};
use crate::log::ClientLog;
use crate::{prompts, resources};

/// The newest version spoken; the next one has no sessions.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// How long a client may take to name its roots. Calls wait for it, for a path may depend on it.
const ROOTS_ANSWER: Duration = Duration::from_secs(5);

const INSTRUCTIONS: &str = "\
Cellwright gives you live Python kernels and Jupyter notebooks. `eval` runs code in a kernel that keeps its variables \
between calls. `read` shows .ipynb files as text with a marker line per cell; `edit`, `write` and `notebook` change them without \
touching anything else: never write notebook JSON by hand. Long outputs are cut, and the notice names an \
artifact://ID that `read` opens in parts or searches.";

/// One client. Dropping it stops what it started.
pub(crate) struct ClientServer {
    host: Arc<McpHost>,
    pub(crate) client: Arc<ToolClient>,
    /// Parent of every call's token.
    stop: CancellationToken,
    /// Whether it is known where the client works.
    settled: watch::Sender<bool>,
    log: ClientLog,
    /// Whether Python works, since the client connected.
    python: watch::Receiver<PythonState>,
    /// Whether Python had failed by then, as the client's first list of tools says.
    failed: bool,
}

impl Drop for ClientServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ClientServer {
    /// `number` distinguishes it from the other clients of the same server.
    pub(crate) fn new(
        host: Arc<McpHost>,
        stop: CancellationToken,
        number: Option<u64>,
    ) -> std::io::Result<Self> {
        let client = host.client(number)?;
        let python = host.toolbox.python();
        let failed = matches!(*python.borrow(), PythonState::Fails(_));
        Ok(Self {
            host,
            client,
            stop,
            settled: watch::Sender::new(true),
            log: ClientLog::default(),
            python,
            failed,
        })
    }

    /// Notifies the client when its tools change, for as long as it is connected.
    fn watch_tools(&self, peer: Peer<RoleServer>) {
        let (mut python, mut failed) = (self.python.clone(), self.failed);
        let (log, stop) = (self.log.clone(), self.stop.clone());
        // Ends with the client.
        drop(tokio::spawn(
            stop.run_until_cancelled_owned(async move {
                while python.changed().await.is_ok() {
                    let (fails, text) = match &*python.borrow_and_update() {
                        PythonState::Untried => continue,
                        PythonState::Works => (false, "Python works".to_owned()),
                        PythonState::Fails(why) => (true, format!("Python does not work: {why}")),
                    };
                    let level = if fails { LoggingLevel::Warning } else { LoggingLevel::Info };
                    log.send(&peer, level, text).await;
                    // The list assumes that Python works, so only a difference is news.
                    if fails != failed && peer.notify_tool_list_changed().await.is_err() {
                        return; // it is gone
                    }
                    failed = fails;
                }
            })
            .boxed(),
        ));
    }

    async fn learn_roots(&self, peer: &Peer<RoleServer>) {
        let answer = timeout(ROOTS_ANSWER, peer.list_roots()).await;
        match answer {
            Ok(Ok(answer)) => {
                let folders = answer.roots.iter().map(|root| folder(&root.uri)).collect();
                match self.host.workspace(folders) {
                    Ok(workspace) => {
                        let (roots, missing) = (listed(workspace.roots()), listed(workspace.missing()));
                        self.client.move_to(workspace);
                        if !missing.is_empty() {
                            let text = format!("not a folder on this machine, so not used: {missing}");
                            self.log.send(peer, LoggingLevel::Warning, text).await;
                        }
                        if !roots.is_empty() {
                            self.log.send(peer, LoggingLevel::Info, format!("working in {roots}")).await;
                        }
                    }
                    Err(error) => tracing::warn!(%error, "the start folder is gone"),
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "the client did not name its roots"),
            Err(_) => tracing::warn!("the client took too long to name its roots"),
        }
    }

    fn has_roots(&self, peer: &Peer<RoleServer>) -> bool {
        let offered = peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
        offered && self.host.roots == WorkspaceRoots::Client
    }

    pub(crate) async fn settle(&self) {
        let mut settled = self.settled.subscribe();
        // A client that never says that it is initialized has the start folder.
        drop(timeout(ROOTS_ANSWER, settled.wait_for(|settled| *settled)).await);
    }

    pub(crate) fn context(&self, request: &RequestContext<RoleServer>) -> CallContext {
        let mut context = CallContext::new(Arc::clone(&self.client), self.stop.child_token());
        context.ask =
            UserQuestions::of(&request.peer).map(|elicit| Arc::new(elicit) as Arc<dyn InputPrompter>);
        context
    }

    pub(crate) fn host(&self) -> &McpHost {
        &self.host
    }
}

/// The folder of a `file:` address. Any other address is returned as it is, and reported as missing later.
fn folder(uri: &str) -> PathBuf {
    let folder = Url::parse(uri).ok().and_then(|url| url.to_file_path().ok());
    folder.unwrap_or_else(|| PathBuf::from(uri))
}

fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl ServerHandler for ClientServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("cellwright", self.host.version.clone()).with_title("Cellwright"),
            )
            .with_instructions(INSTRUCTIONS)
            .with_protocol_version(NEWEST)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        if self.has_roots(&context.peer) {
            self.settled.send_replace(false);
        }
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.has_roots(&context.peer) {
            self.learn_roots(&context.peer).await;
        }
        self.settled.send_replace(true);
        self.watch_tools(context.peer);
        if self.host.warm_up {
            self.host.toolbox.warm_up(&self.client).await;
        }
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        if self.has_roots(&context.peer) {
            self.learn_roots(&context.peer).await;
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.log.set_level(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.host.toolbox.specs().into_iter().map(answer::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.settle().await;
        let structured = StructuredContent::for_client(context.client_info().as_ref());
        let reporter = ProgressReporter::new();
        let mut surroundings = self.context(&context);
        let token = context.meta.get_progress_token();
        if token.is_some() {
            surroundings.progress = Some(Arc::clone(&reporter) as Arc<dyn ProgressSink>);
        }
        let stop = surroundings.stop.clone();
        let reporting = reporter.report(context.peer.clone(), token);
        tokio::pin!(reporting);
        let call =
            self.host.toolbox.call(&request.name, request.arguments.unwrap_or_default(), &surroundings);
        tokio::pin!(call);
        let reply = loop {
            tokio::select! {
                reply = &mut call => break reply,
                () = context.ct.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                never = &mut reporting => match never {},
            }
        };
        Ok(answer::result(reply, structured).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.settle().await;
        Ok(ListResourcesResult::with_all_items(resources::list(self).await))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.settle().await;
        Ok(resources::read(self, &request.uri, &context).await?.into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.settle().await;
        Ok(prompts::get(self, request, &context).await?.into())
    }

    /// A request whose parameters do not fit its method ends up here too.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let known = [
            "tools/call",
            "resources/read",
            "prompts/get",
            "logging/setLevel",
            "tools/list",
            "resources/list",
            "prompts/list",
            "resources/templates/list",
            "completion/complete",
        ];
        Err(if known.contains(&request.method.as_str()) {
            ErrorData::invalid_params(format!("the parameters of {} are malformed", request.method), None)
        } else {
            ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {}", request.method),
                None,
            )
        })
    }
}
