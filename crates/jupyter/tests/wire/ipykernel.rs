use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;

use cellwright_jupyter::content::{
    ErrorOutput, ExecuteReply, ExecuteRequest, ExecuteResult, ExecutionState, InputReply, InputRequest,
    InterruptRequest, KernelInfoReply, MessageContent, ReplyStatus, ShutdownReply, ShutdownRequest, Status,
    StreamOutput,
};
use cellwright_jupyter::{
    Channel, ConnectionFile, ConnectionInfo, HeartbeatState, InterruptMode, JupyterEnvironment,
    JupyterMessage, KernelClient, KernelFolder, KernelSpec, MessageHeader, MessageSession, PythonPrefix,
    ReservedAddresses, SocketTransport,
};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::python::prefix;

/// An ipykernel and a client that is ready.
struct Kernel {
    client: KernelClient,
    child: Child,
    info: KernelInfoReply,
    spec: KernelSpec,
    file: ConnectionFile,
    reserved: ReservedAddresses,
    _sockets: KernelFolder,
    _folder: tempfile::TempDir,
}

impl Kernel {
    async fn start(transport: SocketTransport) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let surroundings = JupyterEnvironment {
            variable: &|_| None,
            home: folder.path().into(),
            prefixes: vec![PythonPrefix { path: prefix(), is_environment: true }],
        };
        let spec = KernelSpec::find(&surroundings.kernel_path(), "python3").expect("ipykernel is installed");
        let sockets = KernelFolder::new_in(folder.path()).expect("a folder");
        let reserved = match transport {
            SocketTransport::Ipc => ReservedAddresses::ipc(&sockets),
            SocketTransport::Tcp => ReservedAddresses::tcp(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        let reserved = reserved.expect("addresses");
        let file = ConnectionFile::create(&folder.path().join("runtime"), &reserved.info).expect("a file");
        let command = spec.command(file.path(), surroundings.prefix_of(&spec.resource_dir));
        let child = Command::new(&command[0])
            .args(&command[1..])
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("the kernel starts");
        let mut client =
            KernelClient::connect(&reserved.info, MessageSession::new("tests")).expect("supported");
        let info = client.ready().await.expect("kernel info");
        Self { client, child, info, spec, file, reserved, _sockets: sockets, _folder: folder }
    }

    async fn execute(&self, code: &str) -> MessageHeader {
        let request = ExecuteRequest { code: code.to_owned(), ..ExecuteRequest::default() };
        self.client.sender().request(Channel::Shell, &request).await.expect("open")
    }

    /// Everything that came for a request, up to both its reply and its idle.
    async fn finish(&mut self, request: &MessageHeader) -> Vec<(Channel, JupyterMessage)> {
        let (mut came, mut replied, mut idle) = (Vec::new(), false, false);
        while !(replied && idle) {
            let (channel, message) = self.client.recv().await;
            if !message.answers(request) {
                continue;
            }
            replied |= channel == Channel::Shell;
            let status = message.parse::<Status>().ok().filter(|_| message.header.msg_type() == Status::TYPE);
            idle |= status.is_some_and(|status| status.execution_state == ExecutionState::Idle);
            came.push((channel, message));
        }
        came
    }

    async fn run(&mut self, code: &str) -> Vec<(Channel, JupyterMessage)> {
        let request = self.execute(code).await;
        self.finish(&request).await
    }

    /// Waits for a message of this type that belongs to the request.
    async fn next<C: MessageContent>(&mut self, request: &MessageHeader) -> (JupyterMessage, C) {
        loop {
            let (_, message) = self.client.recv().await;
            if message.answers(request) && message.header.msg_type() == C::TYPE {
                let content = message.parse().expect("well formed");
                return (message, content);
            }
        }
    }
}

fn all<C: MessageContent>(came: &[(Channel, JupyterMessage)]) -> Vec<C> {
    let of_type = came.iter().filter(|(_, message)| message.header.msg_type() == C::TYPE);
    of_type.map(|(_, message)| message.parse().expect("well formed")).collect()
}

fn text(came: &[(Channel, JupyterMessage)]) -> String {
    all::<StreamOutput>(came).into_iter().map(|stream| stream.text).collect()
}

#[tokio::test]
async fn a_real_kernel_runs_cells_over_ipc_and_tcp() {
    for transport in [SocketTransport::Ipc, SocketTransport::Tcp] {
        let mut kernel = Kernel::start(transport).await;
        assert_eq!(kernel.info.language_info.name, "python");
        assert_eq!(kernel.client.trouble(), None);

        let came =
            kernel.run("print('né', flush=True)\nimport sys\nprint('bad', file=sys.stderr)\n6 * 7").await;
        assert_eq!(text(&came), "né\nbad\n");
        let result = &all::<ExecuteResult>(&came)[0];
        assert_eq!(
            (result.execution_count, result.data.text("text/plain").as_deref()),
            (Some(1), Some("42"))
        );
        assert_eq!(all::<ExecuteReply>(&came)[0].status, ReplyStatus::Ok);

        let came = kernel.run("1 / 0").await;
        let reply = &all::<ExecuteReply>(&came)[0];
        assert_eq!(reply.status, ReplyStatus::Error);
        let exception = reply.exception.as_ref().expect("an exception");
        assert_eq!(
            (exception.ename.as_str(), exception.evalue.as_str()),
            ("ZeroDivisionError", "division by zero")
        );
        assert_eq!(all::<ErrorOutput>(&came)[0].traceback, exception.traceback);

        let mut pulse = kernel.client.pulse();
        pulse.wait_for(|pulse| *pulse == HeartbeatState::Beating).await.expect("watched");

        let shutdown = kernel.client.sender().request(Channel::Control, &ShutdownRequest::default()).await;
        let (_, reply) = kernel.next::<ShutdownReply>(&shutdown.expect("open")).await;
        assert_eq!(reply.status, ReplyStatus::Ok);
        assert!(kernel.child.wait().await.expect("it ends").success());
        if transport == SocketTransport::Ipc {
            pulse.wait_for(|pulse| matches!(pulse, HeartbeatState::Silent { .. })).await.expect("watched");
        }

        let path = kernel.file.path().to_owned();
        drop(kernel);
        assert!(!path.exists(), "the connection file stayed behind");
    }
}

#[tokio::test]
async fn a_cell_asks_and_is_answered() {
    let mut kernel = Kernel::start(SocketTransport::Ipc).await;
    let request = kernel.execute("print('hello ' + input('name? '))").await;
    let (question, content) = kernel.next::<InputRequest>(&request).await;
    assert_eq!((content.prompt.as_str(), content.password), ("name? ", false));
    let sender = kernel.client.sender();
    let answer =
        sender.session().reply(&question, &InputReply { value: "you".into(), ..InputReply::default() });
    let answer = JupyterMessage { identities: Vec::new(), ..answer };
    sender.send(Channel::Stdin, &answer).await.expect("open");
    assert_eq!(text(&kernel.finish(&request).await), "hello you\n");
}

#[tokio::test]
async fn a_running_cell_is_interrupted_by_signal_and_by_message() {
    let mut kernel = Kernel::start(SocketTransport::Ipc).await;
    assert_eq!(kernel.spec.description.interrupt_mode, InterruptMode::Signal);
    // Not by a word it prints: ipykernel may drop an interrupt that comes while it flushes one. And not in one long
    // call: Python notices an interrupt that comes just before a call blocks when that call is over.
    let door = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has free ports");
    let port = door.local_addr().expect("it is bound").port();
    let code = format!(
        "import socket, time\nknock = socket.create_connection(('127.0.0.1', {port}))\nwhile True: time.sleep(0.01)"
    );
    for mode in [InterruptMode::Signal, InterruptMode::Message] {
        let request = kernel.execute(&code).await;
        let _guest = door.accept().await.expect("the cell runs");
        match mode {
            InterruptMode::Signal => {
                let pid = i32::try_from(kernel.child.id().expect("running")).expect("a pid");
                killpg(Pid::from_raw(pid), Signal::SIGINT).expect("its group is there");
            }
            InterruptMode::Message => {
                let sender = kernel.client.sender();
                sender.request(Channel::Control, &InterruptRequest::default()).await.expect("open");
            }
        }
        let came = kernel.finish(&request).await;
        assert_eq!(all::<ErrorOutput>(&came)[0].ename, "KeyboardInterrupt");
    }
    assert_eq!(text(&kernel.run("print('alive')").await), "alive\n");
}

#[tokio::test]
async fn a_kernel_with_another_key_is_reported() {
    let mut kernel = Kernel::start(SocketTransport::Ipc).await;
    let info = ConnectionInfo { key: "another".to_owned(), ..kernel.reserved.info.clone() };
    let mut stranger = KernelClient::connect(&info, MessageSession::new("tests")).expect("supported");
    // The kernel ignores us, but what it says on iopub reaches us, wrongly signed for our key.
    while !stranger.trouble().is_some_and(|trouble| trouble.contains("the signature is wrong")) {
        tokio::select! {
            info = stranger.ready() => panic!("{info:?} for a wrong key"),
            _ = kernel.run("1") => {}
        }
    }
}
