//! A workspace and a client in it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellwright_editing::HistoryStore;
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{KernelChoice, RunnerLaunch, StartRunner};
use cellwright_notebook::file::SaveSettings;
use cellwright_output::{Artifacts, ImageLimits, OutputLimits};
use cellwright_testkit::{patient_graces, python};
use cellwright_tools::{
    BackgroundPolicy, CallContext, ReplyPart, RunMode, SessionNames, ToolClient, ToolReply, ToolSettings,
    ToolSpec, Toolbox, Workspace,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// One red pixel.
pub(crate) const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 12, b'I', b'D', b'A', b'T', 8, 0xd7, 0x63, 0xf8, 0xcf, 0xc0,
    0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

pub(crate) struct Fixture {
    folder: Arc<tempfile::TempDir>,
    toolbox: Toolbox,
    client: Arc<ToolClient>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::changed(|_| {})
    }

    /// A toolbox that is different in something.
    pub(crate) fn changed(change: impl FnOnce(&mut ToolSettings)) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let mut environment: HashMap<_, _> = std::env::vars_os().collect();
        // Login files of this machine are none of ours: they may take a minute, or break when they are stopped.
        environment.insert("HOME".into(), folder.path().into());
        let search = PythonSearch {
            explicit: Some(python()),
            cwd: folder.path().to_owned(),
            variables: environment.clone(),
            managed: None,
            trust: cellwright_ownership::FolderTrust::Everything,
        };
        let launch = RunnerLaunch {
            graces: patient_graces(),
            ..RunnerLaunch::new(search, folder.path().join("cache"))
        };
        let artifacts = Artifacts::new(folder.path().join("artifacts"));
        let mut settings = ToolSettings {
            mode: RunMode::Both,
            artifacts: artifacts.clone(),
            limits: OutputLimits::default(),
            images: ImageLimits::default(),
            kernel: KernelChoice::default(),
            lifetime: cellwright_session::SessionMode::Session,
            timeout: Some(Duration::from_secs(30)),
            background: BackgroundPolicy::Asked,
            environment: launch.rules.pass(&environment),
            shell_snapshot: None,
            launch,
            history: Some(HistoryStore::new(folder.path().join("history"))),
            live: None,
            save: SaveSettings { journal: Some(folder.path().join("journal")) },
        };
        change(&mut settings);
        let mut sessions =
            cellwright_session::SessionSettings::new(StartRunner { template: settings.launch.clone() });
        sessions.output.artifacts = Some(artifacts);
        Self::with(folder, Toolbox::new(settings, sessions))
    }

    fn with(folder: Arc<tempfile::TempDir>, toolbox: Toolbox) -> Self {
        let names = SessionNames::shared("default".parse().unwrap());
        let client = toolbox.client(Workspace::new(folder.path()).unwrap(), names);
        Self { folder, toolbox, client }
    }

    /// Another client of the same toolbox.
    pub(crate) fn another(&self) -> Self {
        Self::with(Arc::clone(&self.folder), self.toolbox.clone())
    }

    /// The client goes; its folder stays.
    pub(crate) fn leave(self) -> Arc<tempfile::TempDir> {
        self.folder
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.toolbox.specs()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        self.put_bytes(name, text.as_bytes());
    }

    pub(crate) fn put_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The circumstances of a call, to be changed.
    pub(crate) fn context(&self) -> CallContext {
        CallContext::new(Arc::clone(&self.client), CancellationToken::new())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolReply {
        self.call_in(tool, arguments, &self.context()).await
    }

    pub(crate) async fn call_in(&self, tool: &str, arguments: Value, context: &CallContext) -> ToolReply {
        let Value::Object(arguments) = arguments else { panic!("arguments are objects") };
        self.toolbox.call(tool, arguments, context).await
    }

    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments).await;
        assert!(!reply.is_error, "{}", reply.to_text());
        reply.to_text()
    }

    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments).await;
        assert!(reply.is_error, "{}", reply.to_text());
        reply.to_text()
    }

    /// What a cell or a command printed, without remarks.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments).await;
        let texts = reply.content.iter().filter_map(|content| match content {
            ReplyPart::Text(text) => Some(text.as_str()),
            ReplyPart::Note(_) | ReplyPart::Image(_) => None,
        });
        texts.collect()
    }
}
