use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Endpoint, Rep, Router, SendError, SocketOptions, SubscriptionChange, XPub};
use serde_json::json;

use super::python::Python;
use super::{BIG, SMALL_MESSAGES, big_body, endpoints, loopback, message, quick_heartbeat};

async fn router(endpoint: &Endpoint) -> (Router, String) {
    let router = Router::bind(endpoint, SocketOptions::default()).await.expect("binds");
    let endpoint = router.endpoint().to_string();
    (router, endpoint)
}

async fn publisher(options: SocketOptions) -> (XPub, String) {
    let publisher = XPub::bind(&loopback(), options).await.expect("binds");
    let endpoint = publisher.endpoint().to_string();
    (publisher, endpoint)
}

#[tokio::test]
async fn a_router_answers_a_dealer_by_its_identity_over_tcp_and_ipc() {
    let mut python = Python::start();
    let (_folder, endpoints) = endpoints();
    for (name, endpoint) in ["tcp", "ipc"].into_iter().zip(&endpoints) {
        let (mut router, address) = router(endpoint).await;
        python.open(name, "DEALER", json!({"connect": address, "options": {"IDENTITY": "client"}})).await;
        python.send(name, &[b"", b"question"]).await;
        let (identity, question) = router.recv().await;
        assert_eq!((identity.as_ref(), question), (&b"client"[..], message(&[b"", b"question"])));
        router.sender().send(&identity, message(&[b"", b"answer"])).expect("routed");
        assert_eq!(python.recv(name).await, [&b""[..], b"answer"]);
        assert_eq!(router.sender().send(b"nobody", message(&[b"x"])), Err(SendError::Unroutable));
        assert_eq!(router.close().await, 0);
    }
}

#[tokio::test]
async fn the_file_of_a_unix_socket_goes_with_the_socket() {
    let (folder, [_, ipc]) = endpoints();
    let (router, _) = router(&ipc).await;
    let path = folder.path().join("socket");
    assert!(path.exists());
    router.close().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_rep_echoes_requests_of_a_req() {
    let mut python = Python::start();
    let mut rep = Rep::bind(&loopback(), SocketOptions::default()).await.expect("binds");
    python.open("req", "REQ", json!({"connect": rep.endpoint().to_string()})).await;
    for beat in [&b"ping"[..], b"", b"again"] {
        python.send("req", &[beat]).await;
        let (to, request) = rep.recv().await;
        rep.send(to, request).expect("routed");
        assert_eq!(python.recv("req").await, [beat]);
    }
}

#[tokio::test]
async fn subscribers_get_what_they_subscribed_to_and_the_publisher_sees_it() {
    let mut python = Python::start();
    let (mut publisher, address) = publisher(SocketOptions::default()).await;
    python.open("sub", "SUB", json!({"connect": address, "subscribe": ["a"]})).await;
    let SubscriptionChange { peer, topic, active } = publisher.recv().await;
    assert_eq!((topic, active), (Bytes::from_static(b"a"), true));
    let sender = publisher.sender();
    sender.send_to(&peer, message(&[b"a welcome"])).expect("routed");
    for text in [&b"b1"[..], b"a1", b"", b"a2"] {
        sender.send(&message(&[text, b"body"])).expect("open");
    }
    assert_eq!(python.recv("sub").await, [b"a welcome"]);
    assert_eq!(python.recv("sub").await, [&b"a1"[..], b"body"]);
    assert_eq!(python.recv("sub").await, [&b"a2"[..], b"body"]);
}

#[tokio::test]
async fn a_client_that_comes_back_under_its_identity_gets_the_answers() {
    let mut python = Python::start();
    let (mut router, address) = router(&loopback()).await;
    let options = json!({"connect": address, "options": {"IDENTITY": "same"}});
    for name in ["old", "new"] {
        python.open(name, "DEALER", options.clone()).await;
        python.send(name, &[name.as_bytes()]).await;
        assert_eq!(router.recv().await, (Bytes::from_static(b"same"), message(&[name.as_bytes()])));
    }
    router.sender().send(b"same", message(&[b"answer"])).expect("routed");
    assert_eq!(python.recv("new").await, [b"answer"]);
}

#[tokio::test]
async fn closing_right_after_sending_loses_nothing() {
    let mut python = Python::start();
    let (mut router, shell) = router(&loopback()).await;
    let (mut publisher, iopub) = publisher(SocketOptions::default()).await;
    python.open("sub", "SUB", json!({"connect": iopub, "subscribe": [""]})).await;
    publisher.recv().await;
    python.open("dealer", "DEALER", json!({"connect": shell})).await;
    python.send("dealer", &[b"shutdown"]).await;
    let (identity, _) = router.recv().await;
    // Unread input must not turn our close into a reset.
    python.send("dealer", &[b"never read"]).await;

    for number in 0..1000 {
        let number = number.to_string();
        router.sender().send(&identity, message(&[number.as_bytes()])).expect("routed");
        publisher.sender().send(&message(&[b"topic", number.as_bytes()])).expect("open");
    }
    assert_eq!((router.close().await, publisher.close().await), (0, 0));
    for name in ["dealer", "sub"] {
        let answer = python.call("recv_many", json!({"name": name, "count": 1000})).await;
        assert_eq!(answer, json!({"received": 1000}));
    }
}

#[tokio::test]
async fn heartbeats_both_ways_keep_a_quiet_connection() {
    let mut python = Python::start();
    let options = SocketOptions { heartbeat: Some(quick_heartbeat()), ..SocketOptions::default() };
    let mut router = Router::bind(&loopback(), options).await.expect("binds");
    let heartbeat = json!({"HEARTBEAT_IVL": 20, "HEARTBEAT_TIMEOUT": 2000, "HEARTBEAT_TTL": 2000});
    python
        .open("dealer", "DEALER", json!({"connect": router.endpoint().to_string(), "options": heartbeat}))
        .await;
    python.send("dealer", &[b"before"]).await;
    let (before, _) = router.recv().await;
    let quiet = python.call("recv", json!({"name": "dealer", "timeout": 300})).await;
    assert_eq!(quiet, json!({"frames": null}));
    python.send("dealer", &[b"after"]).await;
    let (after, _) = router.recv().await;
    assert_eq!(before, after, "a reconnect would have made up a new identity");
}

#[tokio::test]
async fn a_stalled_subscriber_costs_the_others_nothing() {
    const BODY: [u8; 4096] = [b'x'; 4096];
    let mut python = Python::start();
    let (mut publisher, address) =
        publisher(SocketOptions { send_queue: 1 << 20, ..SocketOptions::default() }).await;
    let stalled = json!({"connect": address, "subscribe": [""], "options": {"RCVHWM": 1, "RCVBUF": 4096}});
    python.open("stalled", "SUB", stalled).await;
    python.open("reading", "SUB", json!({"connect": address, "subscribe": [""]})).await;
    publisher.recv().await;
    publisher.recv().await;

    python.begin("recv_many", json!({"name": "reading", "count": 10_000})).await;
    let sender = publisher.sender();
    for number in 0..10_000 {
        sender.room(Duration::from_millis(200)).await;
        sender.send(&message(&[b"", &BODY, number.to_string().as_bytes()])).expect("open");
    }
    assert_eq!(python.answer().await, json!({"received": 10_000}));
    assert!(publisher.dropped() > 0, "the stalled one had to miss some");
    let first = python.recv("stalled").await;
    assert_eq!(first[2], b"0", "what it was sent before it stalled is still in order");
}

#[tokio::test]
async fn a_flood_of_small_messages_arrives_whole_both_ways() {
    let mut python = Python::start();
    let (mut router, address) = router(&loopback()).await;
    let unlimited = json!({"RCVHWM": 0, "SNDHWM": 0});
    python.open("dealer", "DEALER", json!({"connect": address, "options": unlimited})).await;
    python.begin("send_many", json!({"name": "dealer", "count": SMALL_MESSAGES})).await;
    let mut identity = Bytes::new();
    for number in 0..SMALL_MESSAGES {
        let (from, body) = router.recv().await;
        assert_eq!(body, message(&[number.to_string().as_bytes()]));
        identity = from;
    }
    python.answer().await;
    python.begin("recv_many", json!({"name": "dealer", "count": SMALL_MESSAGES})).await;
    for number in 0..SMALL_MESSAGES {
        router.sender().send(&identity, message(&[number.to_string().as_bytes()])).expect("room");
    }
    assert_eq!(python.answer().await, json!({"received": SMALL_MESSAGES}));
}

#[tokio::test]
async fn a_message_of_64_megabytes_passes_both_ways() {
    let mut python = Python::start();
    let (mut router, address) = router(&loopback()).await;
    python.open("dealer", "DEALER", json!({"connect": address})).await;
    python.begin("send_big", json!({"name": "dealer", "size": BIG})).await;
    let (identity, received) = router.recv().await;
    assert!(received == [big_body()], "damaged");
    python.answer().await;
    router.sender().send(&identity, vec![big_body()]).expect("room");
    let answer = python.call("recv_big", json!({"name": "dealer", "size": BIG})).await;
    assert_eq!(answer, json!({"intact": true}));
}
