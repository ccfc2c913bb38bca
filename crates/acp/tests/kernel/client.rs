//! A kernel in this process, and a Jupyter client that talks to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cellwright_acp::agent::{AgentFiles, AgentLaunch};
use cellwright_acp::companion::CompanionSetup;
use cellwright_acp::kernel::{self, KernelSetup, NotebookPlace, OwnServers};
use cellwright_acp::permission::ApprovalMode;
use cellwright_acp::tool_door::DoorSetup;
use cellwright_cell::MimeData;
use cellwright_editing::HistoryStore;
use cellwright_jupyter::content::{
    ClearOutput, CommClose, CommMsg, CommOpen, DisplayData, ErrorOutput, ExceptionContent, ExecuteReply,
    ExecuteRequest, ExecuteResult, ExecutionState, InputReply, InputRequest, InterruptReply,
    InterruptRequest, MessageContent, ShutdownReply, ShutdownRequest, Status, StreamOutput,
    UpdateDisplayData,
};
use cellwright_jupyter::{
    Channel, ConnectionInfo, JupyterMessage, KernelClient, MessageHeader, MessageSession, SocketTransport,
};
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::zmq::ZmqLink;
use cellwright_kernel::{Gateways, KernelChoice, RunnerLaunch, StartAny, StartRunner};
use cellwright_notebook::file::SaveSettings;
use cellwright_output::{Artifacts, ImageLimits, OutputLimits};
use cellwright_session::{SessionMode, SessionSettings};
use cellwright_tools::{BackgroundPolicy, RunMode, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_mins(1);

/// A kernel and its client.
pub(crate) struct TestKernel {
    client: KernelClient,
    kernel: AbortOnDropHandle<()>,
    /// By the id of the request: what each cell has shown so far.
    cells: HashMap<String, ShownCell>,
    /// The widgets on the screen: their comms and states.
    widgets: Vec<(String, serde_json::Map<String, Value>)>,
    folder: tempfile::TempDir,
}

/// What a cell has shown, and its reply.
#[derive(Debug, Default, Clone)]
pub(crate) struct ShownCell {
    /// The text of each output. Updates replace the text of their display.
    pub(crate) outputs: Vec<String>,
    /// The types of all displays.
    pub(crate) mimes: Vec<String>,
    /// The name of the last exception that it shows.
    pub(crate) raised: Option<String>,
    displays: HashMap<String, usize>,
    reply: Option<ExecuteReply>,
    idle: bool,
}

impl TestKernel {
    /// Starts a kernel for the fault agent with these arguments.
    pub(crate) async fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let setup = setup(folder.path(), args);
        Self::with(setup, folder).await
    }

    /// Starts a kernel for the notebook `nb.ipynb` in a folder, as Jupyter Server would.
    pub(crate) async fn start_for_notebook(home: &std::path::Path, args: &[&str]) -> Self {
        let place = NotebookPlace { notebook: home.join("nb.ipynb"), conversations: home.join("state") };
        let setup = KernelSetup { notebook: Some(place), ..setup(home, args) };
        Self::with(setup, tempfile::tempdir().expect("a folder")).await
    }

    /// Starts a kernel whose agent gets the tools of the notebook.
    pub(crate) async fn start_with_tools(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut setup = setup(folder.path(), args);
        // The agent connects to the door itself.
        let door = DoorSetup { program: "/bin/false".into(), runtime: folder.path().join("run") };
        setup.companion.iter_mut().for_each(|companion| companion.door = Some(door.clone()));
        Self::with(setup, folder).await
    }

    async fn with(setup: KernelSetup, folder: tempfile::TempDir) -> Self {
        let sockets = folder.path().join("socket").display().to_string();
        let connection = ConnectionInfo::local(SocketTransport::Ipc, sockets, [1, 2, 3, 4, 5]);
        let serving = {
            let connection = connection.clone();
            async move {
                kernel::run(&connection, setup, CancellationToken::new(), Arc::new(Notify::new()))
                    .await
                    .expect("it can listen");
            }
        };
        let kernel = AbortOnDropHandle::new(tokio::spawn(serving));
        let mut client =
            KernelClient::connect(&connection, MessageSession::new("test")).expect("it is supported");
        timeout(PATIENCE, client.ready()).await.expect("it answers").expect("it introduces itself");
        Self { client, kernel, cells: HashMap::new(), widgets: Vec::new(), folder }
    }

    /// Runs a cell of a client that takes no input.
    pub(crate) async fn run(&mut self, code: &str) -> ShownCell {
        let cell = self.begin(code).await;
        self.end_of(cell).await
    }

    /// Runs a cell of a console, whose question gets this answer. Returns the question, too.
    pub(crate) async fn run_typing(&mut self, code: &str, answer: &str) -> (String, ShownCell) {
        let cell = self.begin_with_stdin(code).await;
        let question = self.question().await;
        self.answer(&question, answer).await;
        let prompt = question.parse::<InputRequest>().expect("it is a question").prompt;
        (prompt, self.end_of(cell).await)
    }

    /// Types an answer.
    pub(crate) async fn answer(&mut self, question: &JupyterMessage, answer: &str) {
        let reply = InputReply { value: answer.to_owned(), ..InputReply::default() };
        let sender = self.client.sender();
        let message = sender.session().message(&reply).with_parent(&question.header);
        sender.send(Channel::Stdin, &message).await.expect("it is open");
    }

    pub(crate) async fn begin(&mut self, code: &str) -> MessageHeader {
        self.execute(code, false).await
    }

    pub(crate) async fn begin_with_stdin(&mut self, code: &str) -> MessageHeader {
        self.execute(code, true).await
    }

    async fn execute(&mut self, code: &str, allow_stdin: bool) -> MessageHeader {
        let request = ExecuteRequest { code: code.to_owned(), allow_stdin, ..ExecuteRequest::default() };
        self.client.sender().request(Channel::Shell, &request).await.expect("it is open")
    }

    /// Waits until a cell has its reply and is idle.
    pub(crate) async fn end_of(&mut self, cell: MessageHeader) -> ShownCell {
        loop {
            if let Some(shown) = self.cells.get(cell.msg_id())
                && shown.idle
                && shown.reply.is_some()
            {
                return shown.clone();
            }
            self.receive().await;
        }
    }

    /// Waits until the kernel works on a cell. Interrupts reach the cell from then on.
    pub(crate) async fn wait_until_begun(&mut self, cell: &MessageHeader) {
        while !self.cells.contains_key(cell.msg_id()) {
            self.receive().await;
        }
    }

    /// Waits until a cell shows this text, also after its end.
    pub(crate) async fn wait_for_output(&mut self, cell: &MessageHeader, text: &str) {
        while !self.cells.get(cell.msg_id()).is_some_and(|shown| shown.text().contains(text)) {
            self.receive().await;
        }
    }

    /// Waits until the kernel asks the user something.
    pub(crate) async fn question(&mut self) -> JupyterMessage {
        loop {
            let (channel, message) = self.receive().await;
            if channel == Channel::Stdin {
                return message;
            }
        }
    }

    /// Introduces the client as one that shows widgets.
    pub(crate) async fn show_widgets(&mut self) {
        let target_name = "jupyter.widget.control".to_owned();
        let open = CommOpen { comm_id: "control".to_owned(), target_name, ..CommOpen::default() };
        self.client.sender().request(Channel::Shell, &open).await.expect("it is open");
    }

    /// Waits until there are this many buttons with a label.
    pub(crate) async fn wait_until_buttons(&mut self, label: &str, count: usize) {
        while self.buttons(label).count() != count {
            self.receive().await;
        }
    }

    fn buttons(&self, label: &str) -> impl Iterator<Item = &String> {
        let named = move |state: &serde_json::Map<String, Value>| {
            state["_model_name"] == "ButtonModel" && state["description"] == label
        };
        self.widgets.iter().filter(move |(_, state)| named(state)).map(|(comm, _)| comm)
    }

    /// The state of the widget of this kind at this place among its kind.
    #[track_caller]
    pub(crate) fn widget(&self, kind: &str, at: usize) -> serde_json::Map<String, Value> {
        self.widget_of(kind, at).1.clone()
    }

    #[track_caller]
    fn widget_of(&self, kind: &str, at: usize) -> &(String, serde_json::Map<String, Value>) {
        let model = format!("{kind}Model");
        let mut of_kind = self.widgets.iter().filter(|(_, state)| state["_model_name"] == model.as_str());
        of_kind.nth(at).unwrap_or_else(|| panic!("no {kind} {at}: {:?}", self.widgets))
    }

    /// Waits until some text of a widget contains this.
    pub(crate) async fn wait_for_widget_text(&mut self, text: &str) {
        let holds = |(_, state): &(String, serde_json::Map<String, Value>)| {
            state.get("value").and_then(Value::as_str).is_some_and(|value| value.contains(text))
        };
        while !self.widgets.iter().any(holds) {
            self.receive().await;
        }
    }

    /// Changes a widget as its user would.
    pub(crate) async fn change(&mut self, kind: &str, at: usize, state: Value) {
        let comm_id = self.widget_of(kind, at).0.clone();
        let data = json!({"method": "update", "state": state, "buffer_paths": []});
        self.send_comm(comm_id, data).await;
    }

    /// Waits until a widget of this kind has this value.
    pub(crate) async fn wait_for_widget_value(&mut self, kind: &str, value: &Value) {
        let model = format!("{kind}Model");
        let has = |(_, state): &(String, serde_json::Map<String, Value>)| {
            state["_model_name"] == model.as_str() && state["value"] == *value
        };
        while !self.widgets.iter().any(has) {
            self.receive().await;
        }
    }

    async fn send_comm(&mut self, comm_id: String, data: Value) {
        let Value::Object(data) = data else { unreachable!("it is an object") };
        let message = CommMsg { comm_id, data, ..CommMsg::default() };
        self.client.sender().request(Channel::Shell, &message).await.expect("it is open");
    }

    /// Clicks the first button with a label.
    pub(crate) async fn click(&mut self, label: &str) {
        let comm_id = self.buttons(label).next().expect("it is there").clone();
        self.send_comm(comm_id, json!({"method": "custom", "content": {"event": "click"}})).await;
    }

    pub(crate) async fn interrupt(&mut self) {
        let _: InterruptReply = self.ask(Channel::Control, &InterruptRequest::default()).await;
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn ask<R: MessageContent>(
        &mut self,
        channel: Channel,
        request: &impl MessageContent,
    ) -> R {
        let asked = self.client.sender().request(channel, request).await.expect("it is open");
        loop {
            let (from, message) = self.receive().await;
            if from == channel && message.answers(&asked) {
                return message.parse().expect("it is the reply");
            }
        }
    }

    /// Shuts the kernel down and waits for its end.
    pub(crate) async fn shut_down(mut self) {
        let _: ShutdownReply = self.ask(Channel::Control, &ShutdownRequest::default()).await;
        timeout(PATIENCE, self.kernel).await.expect("it ends").expect("it does not panic");
    }

    /// Takes the next message, and notes what it says about its cell.
    async fn receive(&mut self) -> (Channel, JupyterMessage) {
        let (channel, message) = timeout(PATIENCE, self.client.recv()).await.expect("a message comes");
        if let Some(parent) = &message.parent {
            self.cells.entry(parent.msg_id().to_owned()).or_default().take(&message);
        }
        match message.header.msg_type() {
            CommOpen::TYPE => {
                let open = parsed::<CommOpen>(&message);
                let state = open.data["state"].as_object().cloned();
                self.widgets.extend(state.map(|state| (open.comm_id, state)));
            }
            CommMsg::TYPE => {
                let update = parsed::<CommMsg>(&message);
                let known = self.widgets.iter_mut().find(|(comm, _)| *comm == update.comm_id);
                let new = update.data["state"].as_object().cloned().unwrap_or_default();
                if let Some((_, state)) = known {
                    state.extend(new);
                }
            }
            CommClose::TYPE => {
                let close = parsed::<CommClose>(&message);
                self.widgets.retain(|(comm, _)| *comm != close.comm_id);
            }
            _ => {}
        }
        (channel, message)
    }

    /// What a cell has shown so far, also after its end.
    pub(crate) fn shown(&self, cell: &MessageHeader) -> ShownCell {
        self.cells.get(cell.msg_id()).cloned().unwrap_or_default()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

impl ShownCell {
    /// All outputs, each with its line feed if it has one.
    pub(crate) fn text(&self) -> String {
        let ended = |text: &String| {
            let last = self.outputs.last() == Some(text);
            if last || text.ends_with('\n') { text.clone() } else { format!("{text}\n") }
        };
        self.outputs.iter().map(ended).collect()
    }

    /// Its reply.
    pub(crate) fn reply(&self) -> &ExecuteReply {
        self.reply.as_ref().expect("it has ended")
    }

    /// The exception in the reply.
    #[track_caller]
    pub(crate) fn failure(&self) -> ExceptionContent {
        let reply = self.reply.as_ref().expect("it has ended");
        reply.exception.clone().unwrap_or_else(|| panic!("it succeeded: {:?}", self.outputs))
    }

    fn take(&mut self, message: &JupyterMessage) {
        match message.header.msg_type() {
            ExecuteReply::TYPE => self.reply = Some(parsed(message)),
            Status::TYPE => {
                self.idle = parsed::<Status>(message).execution_state == ExecutionState::Idle;
            }
            ErrorOutput::TYPE => self.raised = Some(parsed::<ErrorOutput>(message).ename),
            ClearOutput::TYPE => self.outputs.clear(),
            StreamOutput::TYPE => self.outputs.push(parsed::<StreamOutput>(message).text),
            ExecuteResult::TYPE => self.outputs.push(plain(&parsed::<ExecuteResult>(message).data)),
            DisplayData::TYPE => {
                let display = parsed::<DisplayData>(message);
                let number = self.outputs.len();
                self.mimes.extend(display.data.iter().map(|(mime, _)| mime.to_owned()));
                self.displays.extend(display.transient.display_id.map(|id| (id, number)));
                self.outputs.push(plain(&display.data));
            }
            UpdateDisplayData::TYPE => {
                let update = parsed::<UpdateDisplayData>(message);
                let id = update.transient.display_id.expect("an update names its display");
                self.outputs[self.displays[&id]] = plain(&update.data);
            }
            _ => {}
        }
    }
}

fn parsed<C: MessageContent>(message: &JupyterMessage) -> C {
    message.parse().expect("the kernel keeps to the protocol")
}

fn plain(data: &MimeData) -> String {
    data.text("text/plain").expect("every output has a text").into_owned()
}

/// Code runs in the Python of the tests, or in a kernel that is installed there.
fn companion(folder: &std::path::Path) -> CompanionSetup {
    let python = cellwright_testkit::python();
    let variables: EnvVars = std::env::vars_os().collect();
    let search = PythonSearch {
        explicit: Some(python),
        cwd: folder.to_owned(),
        variables: variables.clone(),
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    let cache = std::env::temp_dir().join("cellwright-acp-tests");
    let launch =
        RunnerLaunch { graces: cellwright_testkit::patient_graces(), ..RunnerLaunch::new(search, cache) };
    let state = folder.join(".state");
    let tools = ToolSettings {
        mode: RunMode::Both,
        artifacts: Artifacts::new(state.join("artifacts")),
        limits: OutputLimits::default(),
        images: ImageLimits::default(),
        kernel: KernelChoice::default(),
        lifetime: SessionMode::Session,
        timeout: None,
        background: BackgroundPolicy::Asked,
        environment: launch.rules.pass(&variables),
        shell_snapshot: None,
        launch: launch.clone(),
        history: Some(HistoryStore::new(state.join("history"))),
        live: None,
        save: SaveSettings { journal: Some(state.join("journal")) },
    };
    let launcher = StartAny {
        runner: StartRunner { template: launch },
        runtime: state.join("kernels"),
        link: ZmqLink::Auto,
        gateways: Gateways::Invalid("no gateway in tests".to_owned()),
    };
    CompanionSetup { tools, sessions: SessionSettings::new(launcher), daemon: None, door: None }
}

fn setup(workspace: &std::path::Path, args: &[&str]) -> KernelSetup {
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let program = [cellwright_testkit::fault_agent().into()].into_iter();
    let launch = AgentLaunch {
        program: cellwright_testkit::python().into(),
        args: program.chain(args.iter().map(Into::into)).collect(),
        environment: environment.clone(),
        cwd: workspace.to_owned(),
        files: AgentFiles::Own,
    };
    KernelSetup {
        workspace: workspace.to_owned(),
        agents: vec![("fault".to_owned(), launch)],
        environment,
        agent: None,
        guidance: String::new(),
        trouble: None,
        approval: ApprovalMode::Ask,
        grace: Duration::from_secs(5),
        debug_updates: Vec::new(),
        own_servers: OwnServers::new(|_| Vec::new()),
        notebook: None,
        page: cellwright_acp::page::PageBridge::default(),
        companion: Some(companion(workspace)),
    }
}
