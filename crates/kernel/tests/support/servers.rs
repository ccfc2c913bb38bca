//! Jupyter's own servers, started for a test.

use std::collections::HashMap;
use std::env;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use cellwright_kernel::gateway::Address;
use cellwright_process::{Child, Command, Stderr};
use cellwright_testkit::python;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

pub(crate) const TOKEN: &str = "a token of the tests";

/// A server in a folder of its own. Ends when dropped, with its kernels.
pub(crate) struct Server {
    _child: Child,
    pub(crate) port: u16,
    path: &'static str,
    _folder: TempDir,
}

impl Server {
    pub(crate) async fn kernel_gateway() -> Self {
        Self::kernel_gateway_at(free_port(), &["--ZMQChannelsWebsocketConnection.limit_rate=False"]).await
    }

    pub(crate) async fn kernel_gateway_at(port: u16, more: &[&str]) -> Self {
        let arguments = [
            "-m".to_owned(),
            "kernel_gateway".to_owned(),
            format!("--KernelGatewayApp.port={port}"),
            "--KernelGatewayApp.port_retries=0".to_owned(),
        ];
        Self::start(port, "/", arguments.into_iter().chain(more.iter().map(ToString::to_string)).collect())
            .await
    }

    pub(crate) async fn jupyter_server() -> Self {
        Self::jupyter_server_with(&[]).await
    }

    pub(crate) async fn jupyter_server_with(more: &[&str]) -> Self {
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
        let mut child = Command::new(python(), environment)
            .args(arguments)
            .current_dir(folder.path())
            .stderr(Stderr::Tail(4096))
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            if let Some(exit) = child.try_wait() {
                panic!("{exit}: {}", child.stderr_tail());
            }
            assert!(Instant::now() < deadline, "{}", child.stderr_tail());
            sleep(Duration::from_millis(20)).await;
        }
        Self { _child: child, port, path, _folder: folder }
    }

    pub(crate) fn address(&self) -> Address {
        self.address_at(self.port)
    }

    /// The same server through a proxy on another port.
    pub(crate) fn address_at(&self, port: u16) -> Address {
        Address::new(&format!("http://127.0.0.1:{port}{}", self.path), Some(TOKEN.to_owned())).unwrap()
    }
}

/// A port that nothing listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
