use bytes::Bytes;
use cellwright_zmtp::{Dealer, Endpoint, Req, SocketOptions, Sub};
use serde_json::json;

use super::python::Python;
use super::{BIG, SMALL_MESSAGES, big_body, endpoints, message, quick_heartbeat};

fn dealer(endpoint: &str) -> Dealer {
    let options = SocketOptions { identity: Bytes::from_static(b"ours"), ..SocketOptions::default() };
    Dealer::connect(&endpoint.parse().expect("an endpoint"), options)
}

/// A tcp port nobody listens on yet: the system hands out another one next time.
fn future_endpoint() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    format!("tcp://{}", listener.local_addr().expect("bound"))
}

#[tokio::test]
async fn a_dealer_reaches_a_router_that_comes_up_later_and_comes_back() {
    let mut python = Python::start();
    let (_folder, [_, ipc]) = endpoints();
    for endpoint in [future_endpoint(), ipc.to_string()] {
        let mut dealer = dealer(&endpoint);
        for life in [&b"first"[..], b"second"] {
            dealer.sender().send(message(&[life])).await.expect("open");
            python.open("router", "ROUTER", json!({"bind": endpoint})).await;
            assert_eq!(python.recv("router").await, [&b"ours"[..], life]);
            python.send("router", &[b"ours", b"answer", life]).await;
            assert_eq!(dealer.recv().await, message(&[b"answer", life]));
            assert_eq!(dealer.trouble(), None);
            python.call("close", json!({"name": "router"})).await;
            while dealer.trouble().is_none() {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn a_sub_subscribes_again_after_the_publisher_came_back() {
    let mut python = Python::start();
    let (_folder, [_, ipc]) = endpoints();
    let endpoint = ipc.to_string();
    let mut sub = Sub::connect(&endpoint.parse().expect("an endpoint"), SocketOptions::default());
    sub.subscribe(b"gone");
    sub.unsubscribe(b"gone");
    sub.subscribe(b"a");
    for life in [&b"a first"[..], b"a second"] {
        python.open("xpub", "XPUB", json!({"bind": endpoint})).await;
        assert_eq!(python.recv("xpub").await, [b"\x01a"]);
        for topic in [&b"gone"[..], b"b", life] {
            python.send("xpub", &[topic]).await;
        }
        assert_eq!(sub.recv().await, message(&[life]));
        python.call("close", json!({"name": "xpub"})).await;
    }
}

#[tokio::test]
async fn a_live_subscription_change_reaches_the_publisher() {
    let mut python = Python::start();
    let endpoint = python.open("xpub", "XPUB", json!({"bind": "tcp://127.0.0.1:*"})).await;
    let sub = Sub::connect(&endpoint.parse().expect("an endpoint"), SocketOptions::default());
    sub.subscribe(b"a");
    assert_eq!(python.recv("xpub").await, [b"\x01a"]);
    sub.subscribe(b"b");
    sub.unsubscribe(b"a");
    assert_eq!(python.recv("xpub").await, [b"\x01b"]);
    assert_eq!(python.recv("xpub").await, [b"\x00a"]);
}

#[tokio::test]
async fn a_req_is_answered_by_rep_and_by_router() {
    let mut python = Python::start();
    for kind in ["REP", "ROUTER"] {
        let endpoint = python.open(kind, kind, json!({"bind": "tcp://127.0.0.1:*"})).await;
        let mut req = Req::connect(&endpoint.parse().expect("an endpoint"), SocketOptions::default());
        python.begin("echo", json!({"name": kind, "count": 2})).await;
        for beat in [&b"one"[..], b"two"] {
            assert_eq!(req.request(message(&[beat])).await, Ok(message(&[beat])));
        }
        python.answer().await;
    }
}

#[tokio::test]
async fn closing_right_after_sending_loses_nothing() {
    let mut python = Python::start();
    let endpoint = python.open("router", "ROUTER", json!({"bind": "tcp://127.0.0.1:*"})).await;
    let dealer = dealer(&endpoint);
    for number in 0..1000 {
        dealer.sender().send(message(&[number.to_string().as_bytes()])).await.expect("open");
    }
    assert_eq!(dealer.close().await, 0);
    let answer = python.call("recv_many", json!({"name": "router", "count": 1000})).await;
    assert_eq!(answer, json!({"received": 1000}));
}

#[tokio::test]
async fn closing_towards_nobody_ends_and_says_what_was_not_sent() {
    let (_folder, [_, ipc]) = endpoints();
    let options = SocketOptions { linger: std::time::Duration::from_millis(50), ..SocketOptions::default() };
    let dealer = Dealer::connect(&ipc, options);
    dealer.sender().send(message(&[b"lost"])).await.expect("open");
    assert_eq!(dealer.close().await, 1);
}

#[tokio::test]
async fn heartbeats_both_ways_keep_a_quiet_connection() {
    let mut python = Python::start();
    let heartbeat = json!({"HEARTBEAT_IVL": 20, "HEARTBEAT_TIMEOUT": 2000, "HEARTBEAT_TTL": 2000});
    let endpoint =
        python.open("router", "ROUTER", json!({"bind": "tcp://127.0.0.1:*", "options": heartbeat})).await;
    let options = SocketOptions { heartbeat: Some(quick_heartbeat()), ..SocketOptions::default() };
    let dealer = Dealer::connect(&endpoint.parse().expect("an endpoint"), options);
    dealer.sender().send(message(&[b"before"])).await.expect("open");
    let before = python.recv("router").await;
    let quiet = python.call("recv", json!({"name": "router", "timeout": 300})).await;
    assert_eq!(quiet, json!({"frames": null}));
    dealer.sender().send(message(&[b"after"])).await.expect("open");
    assert_eq!(python.recv("router").await[0], before[0], "a reconnect would have made up a new identity");
}

#[tokio::test]
async fn a_peer_that_wants_a_password_is_reported() {
    let mut python = Python::start();
    let plain = json!({"bind": "tcp://127.0.0.1:*", "options": {"PLAIN_SERVER": 1}});
    let endpoint = python.open("router", "ROUTER", plain).await;
    let dealer = dealer(&endpoint);
    let told = loop {
        match dealer.trouble() {
            Some(trouble) if trouble != "not connected yet" => break trouble,
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(told.contains("may want a security mechanism"), "{told}");
}

#[tokio::test]
async fn a_flood_of_small_messages_arrives_whole_both_ways() {
    let mut python = Python::start();
    let unlimited = json!({"RCVHWM": 0, "SNDHWM": 0});
    let endpoint =
        python.open("router", "ROUTER", json!({"bind": "tcp://127.0.0.1:*", "options": unlimited})).await;
    let mut dealer = dealer(&endpoint);
    python.begin("recv_many", json!({"name": "router", "count": SMALL_MESSAGES})).await;
    for number in 0..SMALL_MESSAGES {
        dealer.sender().send(message(&[number.to_string().as_bytes()])).await.expect("open");
    }
    assert_eq!(python.answer().await, json!({"received": SMALL_MESSAGES}));
    let to_us = json!({"name": "router", "count": SMALL_MESSAGES, "prefix": ["b3Vycw=="]});
    python.begin("send_many", to_us).await;
    for number in 0..SMALL_MESSAGES {
        assert_eq!(dealer.recv().await, message(&[number.to_string().as_bytes()]));
    }
    python.answer().await;
}

#[tokio::test]
async fn a_message_of_64_megabytes_passes_both_ways() {
    let mut python = Python::start();
    let (_folder, [_, ipc]) = endpoints();
    let endpoint: Endpoint =
        python.open("dealer", "DEALER", json!({"bind": ipc.to_string()})).await.parse().expect("an endpoint");
    let mut dealer = Dealer::connect(&endpoint, SocketOptions::default());
    dealer.sender().send(vec![big_body()]).await.expect("open");
    let answer = python.call("recv_big", json!({"name": "dealer", "size": BIG})).await;
    assert_eq!(answer, json!({"intact": true}));
    python.begin("send_big", json!({"name": "dealer", "size": BIG})).await;
    assert!(dealer.recv().await == [big_body()], "damaged");
    python.answer().await;
}
