//! Jupyter's own servers, started for a test.

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

use cellwright_kernel::gateway::Address;
use cellwright_process::{ChildCommand, ChildProcess, StderrTarget};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{eventually, python};

/// What every server asks for.
pub const TOKEN: &str = "a token of the tests";

/// A server in a folder of its own. Ends when dropped, with its kernels.
pub struct Server {
    _child: ChildProcess,
    /// Where it listens on loopback.
    pub port: u16,
    path: &'static str,
    _folder: TempDir,
}

impl Server {
    /// A kernel gateway on a port of its own.
    pub async fn kernel_gateway() -> Self {
        Self::kernel_gateway_at(free_port(), &["--ZMQChannelsWebsocketConnection.limit_rate=False"]).await
    }

    /// A kernel gateway with more arguments.
    pub async fn kernel_gateway_at(port: u16, more: &[&str]) -> Self {
        let arguments = [
            "-m".to_owned(),
            "kernel_gateway".to_owned(),
            format!("--KernelGatewayApp.port={port}"),
            "--KernelGatewayApp.port_retries=0".to_owned(),
        ];
        Self::start(port, "/", arguments.into_iter().chain(more.iter().map(ToString::to_string)).collect())
            .await
    }

    /// A Jupyter server below a path of its own.
    pub async fn jupyter_server() -> Self {
        Self::jupyter_server_with(&[]).await
    }

    /// A Jupyter server with more arguments.
    pub async fn jupyter_server_with(more: &[&str]) -> Self {
        let port = free_port();
        let arguments = [
            "-m".to_owned(),
            "jupyter_server".to_owned(),
            format!("--ServerApp.port={port}"),
            "--ServerApp.port_retries=0".to_owned(),
            "--ServerApp.base_url=/user/ada/".to_owned(),
            "--ServerApp.open_browser=False".to_owned(),
            "--ServerApp.allow_root=True".to_owned(),
            format!("--IdentityProvider.token={TOKEN}"),
            "--ZMQChannelsWebsocketConnection.limit_rate=False".to_owned(),
        ];
        let arguments = arguments.into_iter().chain(more.iter().map(ToString::to_string)).collect();
        Self::start(port, "/user/ada", arguments).await
    }

    async fn start(port: u16, path: &'static str, arguments: Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = python().parent().unwrap().to_owned();
        let search = env::join_paths(
            [bin].into_iter().chain(env::split_paths(&env::var_os("PATH").expect("a shell has one"))),
        );
        let environment: HashMap<_, _> = [
            ("PATH", search.unwrap()),
            ("HOME", folder.path().into()),
            ("KG_AUTH_TOKEN", TOKEN.into()),
            ("JUPYTER_PLATFORM_DIRS", "0".into()),
        ]
        .into();
        let mut child = ChildCommand::new(python(), environment)
            .args(arguments)
            .current_dir(folder.path())
            .stderr(StderrTarget::Tail(4096))
            .spawn()
            .unwrap();
        eventually("the server", async || {
            if let Some(exit) = child.try_wait() {
                panic!("{exit}: {}", child.stderr_tail());
            }
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
        })
        .await;
        Self { _child: child, port, path, _folder: folder }
    }

    /// Where and how it is reached.
    pub fn address(&self) -> Address {
        self.address_at(self.port)
    }

    /// The same server through a proxy on another port.
    pub fn address_at(&self, port: u16) -> Address {
        Address::new(&format!("http://127.0.0.1:{port}{}", self.path), Some(TOKEN.to_owned())).unwrap()
    }
}

/// A port that nothing listens on, and that no other test gets while this process lives. The system never hands it out as a
/// free port, so a server that starts a moment later still finds it free.
pub fn free_port() -> u16 {
    const PORTS: Range<u16> = 20_000..32_000;
    static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = env::temp_dir().join("cellwright-test-ports");
    std::fs::create_dir_all(&folder).unwrap();
    // Processes begin to look apart from each other.
    let start = std::process::id() as usize * 97 % PORTS.len();
    for port in PORTS.skip(start).chain(PORTS.take(start)) {
        let lock = File::create(folder.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            TAKEN.lock().unwrap().push(lock);
            return port;
        }
    }
    panic!("all ports are taken");
}
