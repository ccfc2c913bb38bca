//! Peers that are broken, old, silent or mean, made of raw bytes.

use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Dealer, Endpoint, Heartbeat, Router, SocketOptions, XPub};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const DEALER: &[u8] = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER";
const SUB: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB";
const ROUTER: &[u8] = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER";

fn greeting(minor: u8) -> Vec<u8> {
    let mut greeting = b"\xff\0\0\0\0\0\0\0\0\x7f\x03".to_vec();
    greeting.push(minor);
    greeting.extend(b"NULL");
    greeting.resize(64, 0);
    greeting
}

fn loopback() -> Endpoint {
    "tcp://127.0.0.1:0".parse().expect("an endpoint")
}

async fn router(options: SocketOptions) -> Router {
    Router::bind(&loopback(), options).await.expect("binds")
}

async fn dial(endpoint: &Endpoint) -> TcpStream {
    let Endpoint::Tcp { host, port } = endpoint else { panic!("bound to tcp") };
    TcpStream::connect((host.as_str(), *port)).await.expect("someone listens")
}

/// A raw peer past its handshake; what the other side said in it has been read.
async fn introduced(endpoint: &Endpoint, minor: u8, ready: &[u8], reply: usize) -> TcpStream {
    let mut peer = dial(endpoint).await;
    peer.write_all(&greeting(minor)).await.expect("connected");
    peer.write_all(ready).await.expect("connected");
    let mut said = vec![0; 64 + reply];
    peer.read_exact(&mut said).await.expect("a greeting and a READY");
    peer
}

async fn hung_up(peer: &mut TcpStream) {
    let mut rest = Vec::new();
    match peer.read_to_end(&mut rest).await {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

/// The socket still serves others.
async fn still_serves(router: &mut Router) {
    let dealer = Dealer::connect(router.endpoint(), SocketOptions::default());
    dealer.sender().send(vec![Bytes::from_static(b"hello")]).await.expect("open");
    let (_, message) = router.recv().await;
    assert_eq!(message, [Bytes::from_static(b"hello")]);
}

#[tokio::test]
async fn garbage_is_hung_up_on() {
    let mut router = router(SocketOptions::default()).await;
    let mut old_version = greeting(0);
    old_version[10] = 1;
    let mut curve = greeting(1);
    curve[12..17].copy_from_slice(b"CURVE");
    let mut publisher = greeting(1);
    publisher.extend(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB");
    let mut truncated_property = greeting(1);
    truncated_property.extend(b"\x04\x08\x05READY\x0bS");
    let mut hijacker = greeting(1);
    hijacker
        .extend(b"\x04\x2a\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x01\x00");
    let mut early_message = greeting(1);
    early_message.extend(b"\x00\x01x");
    for garbage in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        old_version,
        curve,
        publisher,
        truncated_property,
        hijacker,
        early_message,
    ] {
        let mut peer = dial(router.endpoint()).await;
        peer.write_all(&garbage).await.expect("connected");
        hung_up(&mut peer).await;
        still_serves(&mut router).await;
    }
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_connection() {
    let mut router = router(SocketOptions::default()).await;
    for header in [b"\x02\x00\x00\x20\x00\x00\x00\x00\x00", b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"] {
        let mut peer = introduced(router.endpoint(), 1, DEALER, 30).await;
        peer.write_all(header).await.expect("connected");
        hung_up(&mut peer).await;
        still_serves(&mut router).await;
    }
}

#[tokio::test]
async fn a_stranger_sends_large_messages_only_after_it_was_vouched_for() {
    let mut router = router(SocketOptions { max_unvouched: Some(1000), ..SocketOptions::default() }).await;
    let large = [&b"\x02\x00\x00\x00\x00\x00\x00\x07\xd0"[..], &[b'l'; 2000]].concat();
    // Its large message is there before its first one is looked at, and is read all the same.
    let mut known = introduced(router.endpoint(), 1, DEALER, 30).await;
    known.write_all(&[b"\x00\x01?", large.as_slice()].concat()).await.expect("connected");
    let (identity, first) = router.recv().await;
    assert_eq!(first, [Bytes::from_static(b"?")]);
    router.sender().vouch(&identity);
    assert_eq!(router.recv().await.1[0].len(), 2000);
    still_serves(&mut router).await;

    let mut stranger = introduced(router.endpoint(), 1, DEALER, 30).await;
    stranger.write_all(&large).await.expect("connected");
    tokio::time::pause(); // nobody vouches for it, however long it takes
    hung_up(&mut stranger).await;
}

#[tokio::test]
async fn a_peer_that_never_introduces_itself_is_disconnected() {
    let mut router =
        router(SocketOptions { handshake: Duration::from_millis(100), ..SocketOptions::default() }).await;
    let mut silent = dial(router.endpoint()).await;
    let mut half = dial(router.endpoint()).await;
    half.write_all(&greeting(1)[..20]).await.expect("connected");
    hung_up(&mut silent).await;
    hung_up(&mut half).await;
    still_serves(&mut router).await;
}

#[tokio::test]
async fn a_peer_that_stops_answering_heartbeats_is_disconnected() {
    let heartbeat = Heartbeat { interval: Duration::from_millis(50), timeout: Duration::from_millis(100) };
    let router = router(SocketOptions { heartbeat: Some(heartbeat), ..SocketOptions::default() }).await;
    let mut peer = introduced(router.endpoint(), 1, DEALER, 30).await;
    let mut ping = [0; 9];
    peer.read_exact(&mut ping).await.expect("a PING");
    assert_eq!(&ping, b"\x04\x07\x04PING\x00\x01", "150 ms are one tenth of a second, rounded down");
    hung_up(&mut peer).await;
}

#[tokio::test]
async fn a_peer_that_breaks_its_promised_time_is_disconnected() {
    let router = router(SocketOptions::default()).await;
    let mut peer = introduced(router.endpoint(), 1, DEALER, 30).await;
    peer.write_all(b"\x04\x0b\x04PING\x00\x01mark").await.expect("connected");
    let mut pong = [0; 11];
    peer.read_exact(&mut pong).await.expect("a PONG");
    assert_eq!(&pong, b"\x04\x09\x04PONGmark");
    hung_up(&mut peer).await;
}

#[tokio::test]
async fn a_subscriber_of_version_3_0_subscribes_by_message() {
    let heartbeat = Heartbeat { interval: Duration::from_millis(1), timeout: Duration::from_millis(1) };
    let options = SocketOptions { heartbeat: Some(heartbeat), ..SocketOptions::default() };
    let mut publisher = XPub::bind(&loopback(), options).await.expect("binds");
    let mut peer = introduced(publisher.endpoint(), 0, SUB, 28).await;
    peer.write_all(b"\x00\x02\x01a").await.expect("connected");
    assert_eq!(publisher.recv().await.topic, b"a"[..]);
    publisher.sender().send(&vec![Bytes::from_static(b"a!")]).expect("open");
    let mut received = [0; 4];
    peer.read_exact(&mut received).await.expect("the message, and no PING before it");
    assert_eq!(&received, b"\x00\x02a!");
}

#[tokio::test]
async fn a_publisher_of_version_3_0_is_subscribed_to_by_message() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let endpoint = format!("tcp://{}", listener.local_addr().expect("bound")).parse().expect("an endpoint");
    let sub = cellwright_zmtp::Sub::connect(&endpoint, SocketOptions::default());
    sub.subscribe(b"a");
    let (mut peer, _) = listener.accept().await.expect("it connects");
    peer.write_all(&greeting(0)).await.expect("connected");
    peer.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB").await.expect("connected");
    let mut said = [0; 64 + 27 + 4];
    peer.read_exact(&mut said).await.expect("greeting, READY and subscription");
    assert_eq!(&said[64 + 27..], b"\x00\x02\x01a");
}

#[tokio::test]
async fn commands_that_mean_nothing_here_are_not_messages() {
    let mut router = router(SocketOptions::default()).await;
    let mut peer = introduced(router.endpoint(), 1, DEALER, 30).await;
    peer.write_all(b"\x04\x0b\x09SUBSCRIBEa\x04\x07\x06FUTURE\x00\x01!").await.expect("connected");
    assert_eq!(router.recv().await.1, [Bytes::from_static(b"!")]);
}

#[tokio::test]
async fn a_peer_whose_messages_nobody_takes_does_not_hold_up_another() {
    let mut router = router(SocketOptions { receive_queue: 1000, ..SocketOptions::default() }).await;
    let mut flooding = introduced(router.endpoint(), 1, DEALER, 30).await;
    // More than the queue and both socket buffers hold, so that writing it all would not end.
    let flood =
        async { while flooding.write_all(&[b"\x00\xc8", &[b'f'; 200][..]].concat()).await.is_ok() {} };
    let others = async {
        let dealer = Dealer::connect(router.endpoint(), SocketOptions::default());
        dealer.sender().send(vec![Bytes::from_static(b"hello")]).await.expect("open");
        let mut flooded = 0;
        while router.recv().await.1 != [Bytes::from_static(b"hello")] {
            flooded += 1;
        }
        flooded
    };
    tokio::select! {
        () = flood => panic!("the flood was swallowed"),
        _ = others => {}
    }
}

#[tokio::test]
async fn a_router_that_never_reads_stalls_only_its_dealer_and_close_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let endpoint = format!("tcp://{}", listener.local_addr().expect("bound")).parse().expect("an endpoint");
    let options = SocketOptions { linger: Duration::from_millis(50), ..SocketOptions::default() };
    let dealer = Dealer::connect(&endpoint, options);
    let (mut peer, _) = listener.accept().await.expect("it connects");
    peer.write_all(&[greeting(1).as_slice(), ROUTER].concat()).await.expect("connected");
    for _ in 0..32 {
        dealer.sender().send(vec![vec![0; 1 << 20].into()]).await.expect("room");
    }
    assert!(dealer.close().await > 0);
}

#[tokio::test]
async fn socket_files_of_the_dead_are_replaced_and_those_of_the_living_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let endpoint = Endpoint::Ipc(path.clone());

    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    let router = Router::bind(&endpoint, SocketOptions::default()).await.expect("replaces a dead socket");
    let taken = Router::bind(&endpoint, SocketOptions::default()).await.err().expect("it lives");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    router.close().await;

    std::fs::write(&path, "precious").expect("writable");
    let taken = Router::bind(&endpoint, SocketOptions::default()).await.err().expect("not a socket");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
}

#[tokio::test]
async fn what_waited_for_a_dead_connection_goes_to_the_one_that_takes_its_identity() {
    let mut router = router(SocketOptions::default()).await;
    let ready = b"\x04\x2d\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x04same";
    let mut dead = introduced(router.endpoint(), 1, ready, 30).await;
    dead.write_all(b"\x00\x01?").await.expect("connected");
    assert_eq!(router.recv().await.0, b"same"[..]);
    // More than the system buffers for a peer that does not read.
    for number in 0..32_u8 {
        router.sender().send(b"same", vec![vec![number; 1 << 20].into()]).expect("room");
    }
    let options = SocketOptions { identity: Bytes::from_static(b"same"), ..SocketOptions::default() };
    let mut back = Dealer::connect(router.endpoint(), options);
    while back.recv().await[0][0] != 31 {}
}
