//! One client's side of the server.
#![expect(
    deprecated,
    reason = "roots, logging and subscribe are deprecated by the newest version of MCP, but older clients have no others"
)]

use std::borrow::Cow;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cellwright_tools::{CallContext, InputPrompter, ProgressSink, PythonState, ToolClient};
use futures_util::{FutureExt as _, future};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::answer;
use crate::attached::AttachedCall;
use crate::call::{ProgressReporter, UserQuestions};
use crate::host::{McpHost, WorkspaceRoots};
use crate::log::ClientLog;
use crate::profile::{ClientProfile, ProgressPolicy};
use crate::watching::{WatchStamp, WatchedResources};
use crate::{arrival, attached, instructions, prompts, resources};

/// The newest version that begins with `initialize`, and the newest spoken over HTTP: later ones have no sessions
/// there, and a live kernel belongs to one.
const NEWEST_WITH_SESSIONS: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// The newest version spoken with the client on stdin, whose connection is its session.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// Files that one subscription may have.
const LISTENED: usize = 64;

/// How long a client may take to name its roots. Calls wait for it, for a path may depend on it.
const ROOTS_ANSWER: Duration = Duration::from_secs(5);

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
    transport: ClientTransport,
    /// Whether the client has introduced itself.
    is_introduced: AtomicBool,
    watched: WatchedResources,
}

/// The way a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientTransport {
    Stdio,
    Http,
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
            transport: if number.is_none() { ClientTransport::Stdio } else { ClientTransport::Http },
            is_introduced: AtomicBool::new(false),
            watched: WatchedResources::default(),
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
        context.left = self.stop.clone();
        context.room = profile(request).room;
        context.ask =
            UserQuestions::of(&request.peer).map(|elicit| Arc::new(elicit) as Arc<dyn InputPrompter>);
        context
    }

    pub(crate) fn host(&self) -> &McpHost {
        &self.host
    }
}

/// Every list is one page, so no cursor of ours can be given back.
fn refuse_cursor(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        Some(_) => {
            Err(ErrorData::invalid_params("this list has one page; ask for it without a cursor", None))
        }
        None => Ok(()),
    }
}

/// What the client that sent a request does with replies.
fn profile(request: &RequestContext<RoleServer>) -> ClientProfile {
    let capabilities = request.client_capabilities();
    let experimental = capabilities.as_ref().and_then(|offered| offered.experimental.as_ref());
    let is_asked = request.meta.0.0.get(answer::WANTS_STRUCTURE) == Some(&Value::Bool(true))
        || experimental.is_some_and(|offered| offered.contains_key(answer::WANTS_STRUCTURE));
    ClientProfile::of(request.client_info().as_ref()).structured_if(is_asked)
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
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("cellwright", self.host.version.clone()).with_title("Cellwright"),
            )
            .with_instructions(match &self.host.attached {
                Some(attached) => attached.instructions(),
                None => instructions::of(&self.host.toolbox.specs()),
            })
            .with_protocol_version(NEWEST_WITH_SESSIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(match self.transport {
            ClientTransport::Stdio => &NEWEST,
            ClientTransport::Http => &NEWEST_WITH_SESSIONS,
        }))
    }

    /// The first request of clients that need not introduce themselves.
    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        if self.host.warm_up && self.transport == ClientTransport::Stdio {
            let (toolbox, client) = (self.host.toolbox.clone(), Arc::clone(&self.client));
            let warm_up = async move { toolbox.warm_up(&client).await };
            // Ends by itself, or with the client.
            drop(tokio::spawn(self.stop.clone().run_until_cancelled_owned(warm_up).boxed()));
        }
        let versions = match context.client_capabilities() {
            // The newest version has no requests to clients, so a client that names roots or can ask its user
            // is better off with an older one.
            Some(offered) if offered.roots.is_some() || offered.elicitation.is_some() => {
                ProtocolVersion::known_up_to(&NEWEST_WITH_SESSIONS).to_vec()
            }
            _ => self.supported_protocol_versions().into_owned(),
        };
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if self.is_introduced.swap(true, Ordering::Relaxed) {
            return Err(ErrorData::invalid_request("this connection is initialized already", None));
        }
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
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(page)?;
        let profile = profile(&context);
        let specs = match &self.host.attached {
            Some(attached) => attached.specs(),
            None => self.host.toolbox.specs(),
        };
        let tools = specs.into_iter().map(|spec| answer::tool(spec, profile)).collect();
        if let Some(attached) = &self.host.attached {
            attached.listed();
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.settle().await;
        let profile = profile(&context);
        if let Some(attached) = &self.host.attached {
            let stop = self.stop.child_token();
            let call = AttachedCall {
                name: request.name.to_string(),
                arguments: request.arguments.unwrap_or_default(),
                id: attached::shown_id(&context.meta.0),
                stop: stop.clone(),
                room: attached::room(profile.room),
            };
            let mut reply = attached.call(call);
            // No progress: what the call shows, the program shows itself.
            let reply = loop {
                tokio::select! {
                    reply = &mut reply => break reply,
                    () = context.ct.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                }
            };
            return Ok(answer::result(reply, profile, self.host.toolbox.artifacts()).into());
        }
        let reporter = ProgressReporter::new();
        let mut surroundings = self.context(&context);
        surroundings.arrival = arrival::place(&context.extensions);
        let token = match profile.progress {
            ProgressPolicy::Sent => context.meta.get_progress_token(),
            ProgressPolicy::Withheld => None,
        };
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
        reporter.before_reply().await;
        Ok(answer::result(reply, profile, self.host.toolbox.artifacts()).into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        refuse_cursor(page)?;
        self.settle().await;
        Ok(ListResourcesResult::with_all_items(resources::list(self).await))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(page)?;
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

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.settle().await;
        resources::complete(self, &request).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.settle().await;
        let path = resources::readable(self, &request.uri)?;
        self.watched.add(request.uri, path, context.peer)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut python = self.python.clone();
        let mut files = Vec::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten().take(LISTENED) {
            let path = resources::readable(self, uri)?;
            files.push((uri.clone(), WatchStamp::of(&path), path));
        }
        let sink = context.sink().clone();
        let wants_tools = context.accepted().tools_list_changed == Some(true);
        let tools = async {
            while wants_tools && python.changed().await.is_ok() {
                if sink.notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        let files = future::join_all(files.into_iter().map(|(uri, mut stamp, path)| {
            let sink = sink.clone();
            async move {
                loop {
                    stamp = stamp.changed(&path).await;
                    if sink.notify_resource_updated(uri.clone()).await.is_err() {
                        break;
                    }
                }
            }
        }));
        tokio::select! {
            () = context.cancelled() => {}
            () = self.stop.cancelled() => {}
            never = async { future::join(tools, files).await; std::future::pending::<Infallible>().await } => match never {},
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        refuse_cursor(page)?;
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
