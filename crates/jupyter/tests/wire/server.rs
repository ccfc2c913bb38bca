use cellwright_jupyter::content::{KernelInfoReply, KernelInfoRequest, StreamOutput};
use cellwright_jupyter::{
    Channel, ClientMessage, CloseReport, ConnectionFile, ConnectionInfo, KernelClient, KernelServer,
    MessageSession, ReservedAddresses, SocketTransport,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::echo;
use crate::python::Peer;

/// An echo kernel and a `jupyter_client` that is connected to it.
struct Driven {
    peer: Peer,
    kernel: JoinHandle<CloseReport>,
    _file: ConnectionFile,
    _folder: tempfile::TempDir,
}

impl Driven {
    async fn start(transport: SocketTransport) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let info = match transport {
            SocketTransport::Tcp => ConnectionInfo::local(SocketTransport::Tcp, "127.0.0.1".into(), [0; 5]),
            SocketTransport::Ipc => {
                let ip = folder.path().join("k").to_string_lossy().into_owned();
                ConnectionInfo::local(SocketTransport::Ipc, ip, [1, 2, 3, 4, 5])
            }
        };
        let server = KernelServer::bind(&info, MessageSession::new("echo")).await.expect("binds");
        let file = ConnectionFile::create(folder.path(), server.info()).expect("a file");
        let kernel = tokio::spawn(echo::serve(server));
        let mut peer = Peer::start();
        let info = peer.call("connect", json!({"connection_file": file.path()})).await;
        assert_eq!(info["implementation"], "echo");
        Self { peer, kernel, _file: file, _folder: folder }
    }
}

fn outputs(executed: &Value, msg_type: &str) -> Vec<Value> {
    let all = executed["outputs"].as_array().expect("outputs");
    all.iter().filter(|output| output[0] == msg_type).map(|output| output[1].clone()).collect()
}

#[tokio::test]
async fn jupyter_client_drives_our_server_over_ipc_and_tcp() {
    for transport in [SocketTransport::Ipc, SocketTransport::Tcp] {
        let Driven { mut peer, kernel, .. } = Driven::start(transport).await;
        let executed = peer.call("execute", json!({"code": "né"})).await;
        let types: Vec<_> =
            executed["outputs"].as_array().expect("outputs").iter().map(|one| &one[0]).collect();
        assert_eq!(types, ["status", "execute_input", "execute_result", "status"]);
        assert_eq!(outputs(&executed, "execute_result")[0]["data"], json!({"text/plain": "né"}));
        assert_eq!(executed["reply"]["status"], "ok");

        let completed = peer.call("call", json!({"method": "complete", "arguments": {"code": "ab"}})).await;
        assert_eq!((&completed["matches"], &completed["cursor_end"]), (&json!(["abab"]), &json!(2)));
        let unanswered = peer.call("call", json!({"method": "inspect", "arguments": {"code": "ab"}})).await;
        assert_eq!(
            (&unanswered["status"], &unanswered["ename"]),
            (&json!("error"), &json!("RequestDropped"))
        );
        assert_eq!(peer.call("is_beating", json!({})).await["beating"], true);

        let shutdown = peer
            .call("control_call", json!({"msg_type": "shutdown_request", "content": {"restart": true}}))
            .await;
        assert_eq!((&shutdown["status"], &shutdown["restart"]), (&json!("ok"), &json!(true)));
        // The socket is closed by now: its last words must be there all the same.
        assert_eq!(kernel.await.expect("it ends"), CloseReport { unsent: 0 });
        let types = peer.call("idle_of", json!({"msg_id": shutdown["msg_id"]})).await;
        assert_eq!(types["types"], json!(["status", "status"]));
    }
}

#[tokio::test]
async fn a_cell_of_ours_asks_through_jupyter_client() {
    let mut driven = Driven::start(SocketTransport::Ipc).await;
    let executed = driven.peer.call("execute", json!({"code": "ask", "answer": "me"})).await;
    assert_eq!(outputs(&executed, "execute_result")[0]["data"], json!({"text/plain": "me"}));
}

#[tokio::test]
async fn a_hanging_cell_is_interrupted_and_the_queue_goes_on() {
    let mut driven = Driven::start(SocketTransport::Ipc).await;
    let hanging = driven.peer.call("begin_execute", json!({"code": "hang"})).await["msg_id"].clone();
    let queued = driven.peer.call("begin_execute", json!({"code": "next"})).await["msg_id"].clone();
    // Shell is served while a cell runs.
    let asked = json!({"method": "complete", "arguments": {"code": "x"}});
    assert_eq!(driven.peer.call("call", asked).await["matches"], json!(["xx"]));
    driven.peer.call("control_call", json!({"msg_type": "interrupt_request", "content": {}})).await;
    for msg_id in [hanging, queued] {
        assert_eq!(driven.peer.call("shell_reply", json!({"msg_id": msg_id})).await["status"], "ok");
    }
}

#[tokio::test]
async fn a_flood_reaches_a_client_that_reads() {
    let mut driven = Driven::start(SocketTransport::Ipc).await;
    let executed = driven.peer.call("execute", json!({"code": "flood"})).await;
    let text: String = outputs(&executed, "stream")
        .iter()
        .map(|stream| stream["text"].as_str().expect("text").to_owned())
        .collect();
    let expected: Vec<_> = (0..2_000).map(|number| number.to_string()).collect();
    assert!(text.lines().eq(&expected), "{} lines", text.lines().count());
}

#[tokio::test]
async fn a_client_that_does_not_read_its_iopub_still_gets_its_replies() {
    let mut info = ConnectionInfo::local(SocketTransport::Tcp, "127.0.0.1".into(), [0; 5]);
    info.key.clear(); // signing this much takes long in a debug build
    let mut server = KernelServer::bind(&info, MessageSession::new("kernel")).await.expect("binds");
    let connected = KernelClient::connect(server.info(), MessageSession::new("client")).expect("supported");
    let request =
        connected.sender().request(Channel::Shell, &KernelInfoRequest::default()).await.expect("open");
    let ClientMessage::Request(asked) = server.recv().await else { panic!("not on stdin") };
    // More than any queue holds: nothing reads it.
    let output = asked.output(&StreamOutput { text: "x".repeat(1 << 20), ..StreamOutput::default() });
    for _ in 0..100 {
        asked.sender().publish(output.clone());
    }
    asked.reply(&KernelInfoReply { banner: "hello".into(), ..KernelInfoReply::default() });
    let mut client = connected;
    loop {
        let (channel, message) = client.recv().await;
        if channel == Channel::Shell && message.answers(&request) {
            return assert_eq!(message.parse::<KernelInfoReply>().expect("well formed").banner, "hello");
        }
    }
}

#[tokio::test]
async fn reserved_ports_are_given_to_nobody_else() {
    let reserved = ReservedAddresses::tcp("127.0.0.1".parse().expect("an address")).expect("ports");
    let ports = [reserved.info.shell_port, reserved.info.iopub_port];
    for _ in 0..100 {
        let other = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        assert!(!ports.contains(&other.local_addr().expect("bound").port()));
    }
    // The one it is for asks by number.
    KernelServer::bind(&reserved.info, MessageSession::new("kernel"))
        .await
        .expect("the ports are free for it");
}

#[tokio::test]
async fn a_client_that_has_signed_a_message_may_send_large_ones_and_a_stranger_may_not() {
    let info = ConnectionInfo::local(SocketTransport::Tcp, "127.0.0.1".into(), [0; 5]);
    let mut server = KernelServer::bind(&info, MessageSession::new("kernel")).await.expect("binds");
    let client = KernelClient::connect(server.info(), MessageSession::new("client")).expect("supported");
    let sender = client.sender();
    let mut large = sender.session().message(&KernelInfoRequest::default());
    large.buffers.push(vec![0; 65 << 20].into());
    sender.request(Channel::Shell, &KernelInfoRequest::default()).await.expect("open");
    sender.send(Channel::Shell, &large).await.expect("open");
    for buffers in [0, 1] {
        let ClientMessage::Request(asked) = server.recv().await else { panic!("not on stdin") };
        assert_eq!(asked.message().buffers.len(), buffers);
    }

    let port = server.info().shell_port;
    let mut stranger = TcpStream::connect(("127.0.0.1", port)).await.expect("someone listens");
    let mut hello = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01NULL".to_vec();
    hello.resize(64, 0);
    hello.extend(b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER");
    stranger.write_all(&hello).await.expect("connected");
    let mut answer = [0; 64 + 30];
    stranger.read_exact(&mut answer).await.expect("a greeting and a READY");
    // The header of a frame of 65 MiB.
    stranger.write_all(b"\x02\x00\x00\x00\x00\x04\x10\x00\x00").await.expect("connected");
    tokio::time::pause(); // however long it takes to sign
    assert_eq!(stranger.read(&mut answer).await.expect("hung up"), 0);
}
