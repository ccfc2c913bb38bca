//! The kinds of kernels the suite runs on.

use std::collections::HashMap;
use std::env;
use std::path::Path;
use std::time::Duration;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::zmq::ZmqLink;
use cellwright_kernel::{Background, Event, Kernel, KernelCell, Outcome, RunnerLaunch, gateway, zmq};
use cellwright_kernel::{Module, Prelude, Setup};
use cellwright_testkit::servers::Server;
use cellwright_testkit::{patient_graces, python};
use tempfile::TempDir;
use tokio::time::timeout;

/// How long something that must come may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Runner,
    Ipc,
    Tcp,
    KernelGateway,
    JupyterServer,
}

/// A kernel in a folder of its own.
pub(crate) struct Fixture {
    pub(crate) kind: Kind,
    pub(crate) kernel: Kernel,
    pub(crate) background: Background,
    folder: TempDir,
    server: Option<Server>,
}

impl Fixture {
    pub(crate) async fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = match kind {
            Kind::Runner | Kind::Ipc | Kind::Tcp => None,
            Kind::KernelGateway => Some(Server::kernel_gateway().await),
            Kind::JupyterServer => Some(Server::jupyter_server().await),
        };
        let (kernel, background) = start(kind, server.as_ref(), folder.path()).await;
        Self { kind, kernel, background, folder, server }
    }

    /// A new kernel in the place of one that has ended.
    pub(crate) async fn renew(&mut self) {
        if self.kernel.exit().is_some() {
            (self.kernel, self.background) = start(self.kind, self.server.as_ref(), self.folder.path()).await;
        }
    }

    /// Runs a cell that must complete.
    pub(crate) async fn run(&self, code: &str) {
        let (events, finished) = self.kernel.execute(KernelCell::new(code)).await.collect().await;
        assert_eq!(finished.outcome, Outcome::Completed, "{events:?}");
    }

    /// Reads what belongs to no cell until it is enough.
    pub(crate) async fn late_until(&mut self, enough: impl Fn(&str) -> bool) {
        let mut late = String::new();
        while !enough(&late) {
            match timeout(PATIENCE, self.background.next()).await {
                Ok(Ok(Event::Output(OutputChange::Added(Output::Text { text, .. })))) => late.push_str(&text),
                Ok(Ok(_)) => {}
                other => panic!("{other:?} after {late:?}"),
            }
        }
    }
}

async fn start(kind: Kind, server: Option<&Server>, folder: &Path) -> (Kernel, Background) {
    let variables: HashMap<_, _> =
        [("PATH".into(), env::var_os("PATH").expect("a shell has one")), ("HOME".into(), folder.into())]
            .into();
    let search = PythonSearch {
        explicit: Some(python()),
        cwd: folder.into(),
        variables,
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    let module = folder.join("extension.py");
    std::fs::write(&module, "def extended():\n    return 'by a module'\n").unwrap();
    let setup = Setup {
        env: [("GREETING".to_owned(), Some("hello".to_owned()))].into(),
        path: vec![folder.join("library")],
        prelude: Prelude::Standard,
        modules: vec![Module { name: "extension".into(), path: module }],
        ..Setup::default()
    };
    let graces = patient_graces();
    match kind {
        Kind::Runner => {
            let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
            let launch = RunnerLaunch { setup, graces, ..RunnerLaunch::new(search, cache) };
            let launched = launch.start().await.unwrap();
            (launched.kernel, launched.background)
        }
        Kind::Ipc | Kind::Tcp => {
            let link = if kind == Kind::Ipc { ZmqLink::Ipc } else { ZmqLink::Tcp };
            let launch = zmq::ZmqLaunch {
                setup,
                graces,
                link,
                ..zmq::ZmqLaunch::new("python", search, folder.join("runtime"))
            };
            let launched = launch.start().await.unwrap();
            (launched.kernel, launched.background)
        }
        Kind::KernelGateway | Kind::JupyterServer => {
            let address = server.expect("a server was started").address();
            let launch = gateway::GatewayLaunch {
                setup,
                graces,
                ..gateway::GatewayLaunch::new(address, folder, search.variables)
            };
            let launched = launch.start().await.unwrap();
            (launched.kernel, launched.background)
        }
    }
}
