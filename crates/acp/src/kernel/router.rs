//! Answers messages of clients, or hands them to the queue of their shell.

use std::collections::HashMap;
use std::sync::Arc;

use cellwright_jupyter::content::{
    CommInfoRequest, CompleteRequest, CreateSubshellReply, DeleteSubshellReply, DeleteSubshellRequest,
    HistoryRequest, InspectRequest, InterruptReply, IsCompleteRequest, KernelInfoReply, LanguageInfo,
    ListSubshellReply, ReplyStatus, ShutdownReply, ShutdownRequest,
};
use cellwright_jupyter::{ClientMessage, ClientRequest, KernelServer, PROTOCOL_VERSION};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::KernelSetup;
use super::cell_queue::CellQueue;
use super::cell_run::PromptKernel;
use crate::companion::CommDelivery;
use crate::kernel_state::{KernelState, lock};

pub(crate) struct MessageRouter {
    server: KernelServer,
    kernel: Arc<PromptKernel>,
    main: CellQueue,
    /// The cells that an agent asked the page to run. The cell of its turn waits for them.
    asked: CellQueue,
    subshells: HashMap<String, CellQueue>,
    /// Requests that are being answered.
    answers: JoinSet<()>,
    /// Notified when the last comm message was delivered.
    delivered: Option<Arc<Notify>>,
}

enum RouterStep {
    Message,
    ShutDown,
}

impl MessageRouter {
    pub(crate) fn new(server: KernelServer, setup: Arc<KernelSetup>) -> Self {
        let state = KernelState::new(&setup);
        state.page.connect(server.sender().clone());
        let kernel = Arc::new(PromptKernel::new(setup, Arc::new(state)));
        let main = CellQueue::new(Arc::clone(&kernel));
        let asked = CellQueue::new(Arc::clone(&kernel));
        let (subshells, answers) = (HashMap::new(), JoinSet::new());
        Self { server, kernel, main, asked, subshells, answers, delivered: None }
    }

    pub(crate) async fn run(mut self, end: CancellationToken, interrupts: &Notify) {
        loop {
            let arrival = tokio::select! {
                arrival = self.server.recv() => arrival,
                () = interrupts.notified() => {
                    self.kernel.state.interrupt();
                    continue;
                }
                () = end.cancelled() => break,
            };
            match arrival {
                ClientMessage::Input(message) => self.kernel.state.stdin.answered(&message),
                ClientMessage::Request(request) => match self.take(request) {
                    RouterStep::Message => {}
                    RouterStep::ShutDown => break,
                },
            }
        }
        self.kernel.state.end();
        self.kernel.state.page.end();
        self.kernel.retire_menu().await;
        self.kernel.sessions.end().await;
        // Before the sockets close, every cell is answered and its output is sent.
        let queues = self.subshells.into_values().chain([self.main, self.asked]);
        futures_util::future::join_all(queues.map(CellQueue::end)).await;
        self.answers.shutdown().await; // a dropped request is answered with an error
        if let Some(companion) = &self.kernel.state.companion {
            companion.end().await;
        }
        let closed = self.server.close().await;
        if closed.unsent > 0 {
            tracing::debug!(unsent = closed.unsent, "clients did not take everything");
        }
    }

    fn take(&mut self, mut request: ClientRequest) -> RouterStep {
        let msg_type = request.header().msg_type().to_owned();
        if msg_type == "execute_request" {
            let metadata = request.message().metadata.parse().unwrap_or_default();
            let is_asked = self.kernel.state.page.runs(&metadata);
            match request.header().subshell_id() {
                None if is_asked => self.asked.push(request),
                None => self.main.push(request),
                Some(id) => match self.subshells.get(id) {
                    Some(queue) => queue.push(request),
                    None => drop(request), // answered with an error
                },
            }
            return RouterStep::Message;
        }
        request.begin();
        match msg_type.as_str() {
            "kernel_info_request" => request.reply(&self.info()),
            "complete_request" => {
                let asked = request.message().parse::<CompleteRequest>().unwrap_or_default();
                self.answer(request, async move |kernel, request| {
                    request.reply(&kernel.complete_cell(&asked).await);
                });
            }
            "inspect_request" => {
                let asked = request.message().parse::<InspectRequest>().unwrap_or_default();
                self.answer(request, async move |kernel, request| {
                    request.reply(&kernel.inspect_cell(&asked).await);
                });
            }
            "is_complete_request" => {
                let asked = request.message().parse::<IsCompleteRequest>().unwrap_or_default();
                self.answer(request, async move |kernel, request| {
                    request.reply(&kernel.is_complete(&asked.code).await);
                });
            }
            "history_request" => {
                let asked = request.message().parse::<HistoryRequest>().unwrap_or_default();
                let reply = lock(&self.kernel.state.history).reply(&asked);
                request.reply(&reply);
            }
            "comm_info_request" => {
                let asked = request.message().parse::<CommInfoRequest>().unwrap_or_default();
                let target = asked.target_name.as_deref();
                let mut reply = self.kernel.state.comms.info(target);
                if let Some(companion) = &self.kernel.state.companion {
                    reply.comms.extend(companion.comms().listed(target));
                }
                request.reply(&reply);
            }
            "comm_open" => {
                self.kernel.state.comms.opened(request.message(), request.sender());
                request.done();
            }
            "comm_msg" => {
                if self.kernel.state.page.received(request.message()) {
                    request.done();
                } else if let Some(delivery) = self.delivery(&request) {
                    self.deliver(request, delivery);
                } else {
                    self.kernel.state.comms.received(request.message(), request.sender());
                    request.done();
                }
            }
            "comm_close" => {
                if self.kernel.state.page.closed(request.message()) {
                    request.done();
                } else if let Some(delivery) = self.delivery(&request) {
                    self.deliver(request, delivery);
                } else {
                    self.kernel.state.comms.closed(request.message());
                    request.done();
                }
            }
            "interrupt_request" => {
                self.kernel.state.interrupt();
                request.reply(&InterruptReply::default());
            }
            "shutdown_request" => {
                let asked = request.message().parse::<ShutdownRequest>().unwrap_or_default();
                request.reply(&ShutdownReply { restart: asked.restart, ..ShutdownReply::default() });
                return RouterStep::ShutDown;
            }
            "create_subshell_request" => {
                let subshell_id = Uuid::new_v4().to_string();
                self.subshells.insert(subshell_id.clone(), CellQueue::new(Arc::clone(&self.kernel)));
                request.reply(&CreateSubshellReply { subshell_id, ..CreateSubshellReply::default() });
            }
            "delete_subshell_request" => {
                let asked = request.message().parse::<DeleteSubshellRequest>().unwrap_or_default();
                let known = self.subshells.remove(&asked.subshell_id).is_some();
                let status = if known { ReplyStatus::Ok } else { ReplyStatus::Error };
                request.reply(&DeleteSubshellReply { status, ..DeleteSubshellReply::default() });
            }
            "list_subshell_request" => {
                let subshell_id = self.subshells.keys().cloned().collect();
                request.reply(&ListSubshellReply { subshell_id, ..ListSubshellReply::default() });
            }
            _ => drop(request), // answered with an error
        }
        RouterStep::Message
    }

    /// Answers a request beside others: it may need the kernel of code cells.
    fn answer<F>(
        &mut self,
        request: ClientRequest,
        answer: impl FnOnce(Arc<PromptKernel>, ClientRequest) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        while self.answers.try_join_next().is_some() {}
        self.answers.spawn(answer(Arc::clone(&self.kernel), request).boxed());
    }

    /// A comm message for a kernel of code cells.
    fn delivery(&self, request: &ClientRequest) -> Option<CommDelivery> {
        self.kernel.state.companion.as_ref()?.takes(request.message())
    }

    fn deliver(&mut self, request: ClientRequest, delivery: CommDelivery) {
        // In their order: the next one waits for this.
        let before = self.delivered.replace(Arc::new(Notify::new()));
        let after = self.delivered.clone().expect("it was set");
        self.answer(request, async move |_, request| {
            if let Some(before) = before {
                before.notified().await;
            }
            delivery.deliver().await;
            after.notify_one();
            request.done();
        });
    }

    fn info(&self) -> KernelInfoReply {
        let version = env!("CARGO_PKG_VERSION");
        let choice = self.kernel.sessions.current().1.facts().choice;
        let agent =
            choice.map_or_else(|| "no agent yet".to_owned(), |choice| format!("agent: {}", choice.name));
        KernelInfoReply {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            implementation: "cellwright".to_owned(),
            implementation_version: version.to_owned(),
            // A cell is prose for an agent.
            language_info: LanguageInfo {
                name: "agent".to_owned(),
                version: version.to_owned(),
                mimetype: "text/markdown".to_owned(),
                // Not that of Markdown: `nbconvert --to script` would overwrite `--to markdown`.
                file_extension: ".txt".to_owned(),
                pygments_lexer: Some("markdown".to_owned()),
                codemirror_mode: Some(json!("markdown")),
                ..LanguageInfo::default()
            },
            banner: format!("Cellwright {version}, {agent}. A cell is a prompt; `%agent?` helps."),
            supported_features: vec!["kernel subshells".to_owned()],
            ..KernelInfoReply::default()
        }
    }
}
