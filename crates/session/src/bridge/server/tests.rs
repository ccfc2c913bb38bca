use std::path::Path;

use cellwright_kernel::KernelChoice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::*;
use crate::bridge::{Bridge, BridgeAccess, Caller, ToolAnswer, ToolScope};
use crate::identity::SessionKey;

/// Answers with the arguments; `wait` never does, and says when it is dropped.
struct Host(mpsc::UnboundedSender<&'static str>);

struct Waiting(mpsc::UnboundedSender<&'static str>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.send("dropped"); // the test may be over
    }
}

impl ToolHost for Host {
    fn call(&self, _: ToolScope, name: String, args: Value) -> ToolAnswer<'_> {
        Box::pin(async move {
            if name == "wait" {
                let _waiting = Waiting(self.0.clone());
                self.0.send("waiting").unwrap();
                std::future::pending::<()>().await;
            }
            Ok(args)
        })
    }
}

struct Fixture {
    bridge: Bridge,
    heard: mpsc::UnboundedReceiver<&'static str>,
    stop: CancellationToken,
}

impl Fixture {
    async fn new() -> Self {
        let (teller, heard) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let bridge = Bridge::open(Arc::new(Host(teller)), &TaskTracker::new(), stop.clone()).await.unwrap();
        Self { bridge, heard, stop }
    }

    fn admit(&self) -> BridgeAccess {
        let key = SessionKey {
            session: "a".parse().unwrap(),
            cwd: Path::new("/").into(),
            kernel: KernelChoice::Python { named: None },
        };
        self.bridge.admit(key, Caller::default())
    }

    /// Sends the headers of a call.
    async fn begin(&self, token: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.bridge.address).await.unwrap();
        let head = format!(
            "POST /v1/tool HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nConnection: close\r\n{more}\r\n\r\n",
            self.bridge.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn call(&self, access: &BridgeAccess, scope: &str, name: &str) -> TcpStream {
        let body = format!(r#"{{"session": "{scope}", "name": "{name}", "args": {{"n": 1}}}}"#);
        let mut stream = self.begin(&access.token, &format!("Content-Length: {}", body.len())).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The status and the body of what comes.
async fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn a_token_opens_its_own_session_alone() {
    let fixture = Fixture::new().await;
    let (ours, theirs) = (fixture.admit(), fixture.admit());
    let called = answer(fixture.call(&ours, &ours.scope, "echo").await).await;
    assert_eq!(called, (200, r#"{"ok":true,"value":{"n":1}}"#.to_owned()));
    let refused = (401, r#"{"ok":false,"error":"unknown session or wrong token"}"#.to_owned());
    assert_eq!(answer(fixture.call(&ours, &theirs.scope, "echo").await).await, refused);
    let (token, scope) = (ours.token.clone(), ours.scope.clone());
    drop(ours);
    let gone = BridgeAccess { token, scope, url: String::new(), scopes: Scopes::default() };
    assert_eq!(answer(fixture.call(&gone, &gone.scope, "echo").await).await, refused);
}

#[tokio::test]
async fn an_unknown_token_is_refused_before_the_body_is_sent() {
    let fixture = Fixture::new().await;
    let _access = fixture.admit();
    for token in ["", "wrong", &"0".repeat(32)] {
        let mut stream = fixture.begin(token, "Content-Length: 60000000").await;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 401");
    }
}

#[tokio::test]
async fn a_client_that_sends_first_and_reads_later_gets_the_refusal() {
    let fixture = Fixture::new().await;
    let mut stream = fixture.begin("wrong", "Content-Length: 300000").await;
    for _ in 0..3 {
        stream.write_all(&vec![b' '; 100_000]).await.unwrap();
    }
    assert_eq!(answer(stream).await.0, 401);
}

#[tokio::test]
async fn a_call_that_is_too_large_is_refused_in_words() {
    let fixture = Fixture::new().await;
    let access = fixture.admit();
    let size = LONGEST_REQUEST + 1;
    let refused =
        (413, format!(r#"{{"ok":false,"error":"a call may have at most {LONGEST_REQUEST} bytes"}}"#));
    let mut told = fixture.begin(&access.token, &format!("Content-Length: {size}")).await;
    told.write_all(&vec![b' '; size]).await.unwrap();
    assert_eq!(answer(told).await, refused);
    let mut untold = fixture.begin(&access.token, "Transfer-Encoding: chunked").await;
    untold.write_all(format!("{size:x}\r\n").as_bytes()).await.unwrap();
    untold.write_all(&vec![b' '; size]).await.unwrap();
    untold.write_all(b"\r\n0\r\n\r\n").await.unwrap();
    assert_eq!(answer(untold).await, refused);
}

#[tokio::test]
async fn a_call_is_dropped_when_the_cell_stops_waiting() {
    let mut fixture = Fixture::new().await;
    let access = fixture.admit();
    let stream = fixture.call(&access, &access.scope, "wait").await;
    assert_eq!(fixture.heard.recv().await, Some("waiting"));
    drop(stream);
    assert_eq!(fixture.heard.recv().await, Some("dropped"));
    // And when the bridge is closed.
    let _stream = fixture.call(&access, &access.scope, "wait").await;
    assert_eq!(fixture.heard.recv().await, Some("waiting"));
    fixture.stop.cancel();
    assert_eq!(fixture.heard.recv().await, Some("dropped"));
}
