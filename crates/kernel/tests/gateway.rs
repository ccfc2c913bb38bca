//! Kernels behind servers when things go wrong: connections cut, servers killed, doors shut.

mod answers;
mod breaks;
mod busy;
mod joined;
mod proxy;

use std::collections::HashMap;
use std::env;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::gateway::{Address, GatewayError, GatewayKernel, GatewayLaunch};
use cellwright_kernel::{CellUpdate, Comms, Event, Execution, Exit, KernelCell, Outcome};
use cellwright_testkit::eventually;
use cellwright_testkit::servers::{Server, TOKEN, free_port};
use proxy::Proxy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn launch(address: Address, folder: &Path) -> GatewayLaunch {
    let variables: HashMap<_, _> = [("PATH".into(), env::var_os("PATH").expect("a shell has one"))].into();
    GatewayLaunch::new(address, folder, variables)
}

async fn start(address: Address) -> GatewayKernel {
    launch(address, Path::new("/")).start().await.unwrap()
}

struct Seen {
    text: String,
    warnings: Vec<String>,
    outcome: Outcome,
}

async fn run(launched: &GatewayKernel, code: &str) -> Seen {
    let (events, finished) = launched.kernel.execute(KernelCell::new(code)).await.collect().await;
    let mut seen = Seen { text: String::new(), warnings: Vec::new(), outcome: finished.outcome };
    for event in events {
        match event {
            Event::Output(OutputChange::Added(Output::Text { text, .. })) => seen.text.push_str(&text),
            Event::Warning(warning) => seen.warnings.push(warning),
            _ => {}
        }
    }
    seen
}

/// A cell that has printed and now sleeps.
async fn running(launched: &GatewayKernel) -> Execution {
    let code = "print('running', flush=True)\nimport time\ntime.sleep(600)";
    let mut execution = launched.kernel.execute(KernelCell::new(code)).await;
    while !matches!(execution.next().await, CellUpdate::Event(Event::Output(_))) {}
    execution
}

#[tokio::test]
async fn a_connection_cut_in_a_stream_doubles_nothing_and_reports_what_is_missing() {
    let server = Server::kernel_gateway().await;
    let proxy = Proxy::before(server.port).await;
    let launched = start(server.address_at(proxy.port)).await;
    let code = "import time\nfor i in range(10_000):\n    print(i, flush=i % 10 == 0)\n    if i % 100 == 0: time.sleep(0.02)";
    let (seen, ()) = tokio::join!(run(&launched, code), async {
        for _ in 0..3 {
            proxy.cut_after(30_000).await;
        }
    });
    assert_eq!(seen.outcome, Outcome::Completed, "{:?}", seen.warnings);
    let numbers: Vec<u32> = seen.text.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "lines came twice or out of order");
    let missing = 10_000 - numbers.len();
    let told = seen.warnings.iter().any(|warning| warning.contains("missing"));
    assert!(missing == 0 || told, "{missing} lines are missing, and nobody said so: {:?}", seen.warnings);
    // The connection is good again.
    assert_eq!(run(&launched, "print('here')").await.text, "here\n");
}

#[tokio::test]
async fn a_cut_while_the_cell_is_quiet_loses_nothing() {
    let server = Server::jupyter_server().await;
    let proxy = Proxy::before(server.port).await;
    let launched = start(server.address_at(proxy.port)).await;
    let mut execution = launched
        .kernel
        .execute(KernelCell::new(
            "import time\nprint('before', flush=True)\ntime.sleep(1)\nprint('after')\n1/0",
        ))
        .await;
    let (mut text, mut cut) = (String::new(), false);
    let finished = loop {
        match execution.next().await {
            CellUpdate::Event(Event::Output(OutputChange::Added(Output::Text { text: more, .. }))) => {
                text.push_str(&more);
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => break finished,
        }
        if text.contains("before") && !std::mem::replace(&mut cut, true) {
            proxy.cut.notify_waiters();
        }
    };
    assert_eq!(text, "before\nafter\n");
    assert!(matches!(finished.outcome, Outcome::Raised(exception) if exception.name == "ZeroDivisionError"));
}

#[tokio::test]
async fn a_server_that_knows_only_the_old_framing_is_spoken_to_in_it() {
    let old = ["--ZMQChannelsWebsocketConnection.kernel_ws_protocol="];
    let server = Server::jupyter_server_with(&old).await;
    let proxy = Proxy::before(server.port).await;
    let launched = start(server.address_at(proxy.port)).await;
    let seen = run(&launched, "print('é' * 3, '\\u2028')\nprint('x' * 2_000_000)\n1/0").await;
    assert!(seen.text.starts_with("ééé \u{2028}\nxxx"), "{}", &seen.text[..40]);
    assert_eq!(seen.text.matches('x').count(), 2_000_000, "{}", &seen.text[seen.text.len() - 40..]);
    assert!(matches!(seen.outcome, Outcome::Raised(exception) if exception.name == "ZeroDivisionError"));
    // A comm carries its buffers beside the JSON.
    let comm = "from comm import create_comm\ncreate_comm('none', buffers=[b'\\0\\xff'])\nprint('after')";
    assert_eq!(run(&launched, comm).await.text, "after\n");
    launched.kernel.pass_comms(Comms::Forwarded).await;
    let (events, _) = launched.kernel.execute(KernelCell::new(comm)).await.collect().await;
    let buffers = events.iter().find_map(|event| match event {
        Event::Comm(message) => Some(&message.buffers),
        _ => None,
    });
    assert_eq!(buffers.unwrap(), &[&b"\0\xff"[..]]);
    assert!(proxy.as_text.load(Ordering::Relaxed), "the server has spoken in the new framing");
}

#[tokio::test]
async fn a_gateway_that_is_killed_and_started_anew_ends_the_cell_with_the_truth() {
    let port = free_port();
    let server = Server::kernel_gateway_at(port, &[]).await;
    let launched = start(server.address()).await;
    let execution = running(&launched).await;
    drop(server);
    let again = Server::kernel_gateway_at(port, &[]).await;
    let (_, finished) = execution.collect().await;
    let Outcome::Died(death) = finished.outcome else { panic!("{finished:?}") };
    assert!(death.started);
    assert!(matches!(&death.exit, Exit::Lost(why) if why.contains("no longer knows the kernel")), "{death}");
    // The one that took its place is as good.
    assert_eq!(run(&start(again.address()).await, "print(1)").await.text, "1\n");
}

#[tokio::test]
async fn a_kernel_whose_server_lets_us_in_no_more_is_out_of_reach_and_not_said_to_be_gone() {
    let port = free_port();
    let server = Server::kernel_gateway_at(port, &[]).await;
    let launched = start(server.address()).await;
    let execution = running(&launched).await;
    drop(server);
    let _again = Server::kernel_gateway_at(port, &["--KernelGatewayApp.auth_token=another"]).await;
    let (_, finished) = execution.collect().await;
    let Outcome::Died(death) = finished.outcome else { panic!("{finished:?}") };
    assert!(matches!(&death.exit, Exit::OutOfReach(why) if why.contains("refuses us")), "{death}");
}

#[tokio::test]
async fn a_link_that_stays_cut_is_given_up_and_another_kernel_is_as_good() {
    let server = Server::kernel_gateway().await;
    let proxy = Proxy::before(server.port).await;
    let launch = GatewayLaunch {
        away: Duration::from_millis(300),
        ..launch(server.address_at(proxy.port), Path::new("/"))
    };
    let launched = launch.start().await.unwrap();
    let execution = running(&launched).await;
    proxy.shut();
    let (_, finished) = execution.collect().await;
    let Outcome::Died(death) = finished.outcome else { panic!("{finished:?}") };
    assert!(death.started);
    assert!(
        matches!(&death.exit, Exit::OutOfReach(why) if why.starts_with("the connection broke (")),
        "{death}"
    );
    // Whoever asks later is told the same, at once.
    assert!(
        matches!(run(&launched, "1").await.outcome, Outcome::Died(later) if later.exit == death.exit && !later.started)
    );
    proxy.open();
    assert_eq!(run(&launch.start().await.unwrap(), "print(1)").await.text, "1\n");
}

#[tokio::test]
async fn output_that_a_server_discards_is_reported() {
    let server = Server::kernel_gateway_at(free_port(), &[]).await;
    let launched = start(server.address()).await;
    let seen = run(&launched, "for i in range(30): print('x' * 1_000_000, flush=True)").await;
    assert_eq!(seen.outcome, Outcome::Completed);
    assert!(seen.text.len() < 30_000_000);
    assert!(seen.warnings.iter().any(|warning| warning.contains("limit_rate=False")), "{:?}", seen.warnings);
}

#[tokio::test]
async fn shut_doors_say_what_opens_them() {
    let server = Server::kernel_gateway().await;
    let url = format!("http://127.0.0.1:{}", server.port);
    let https = format!("https://127.0.0.1:{}", plain_server());
    let closed = format!("http://127.0.0.1:{}", free_port());
    for (url, token, told) in [
        (&url, None, "refuses us (401 Unauthorized); it wants a token: set CELLWRIGHT_GATEWAY_TOKEN"),
        (&url, Some("wrong"), "check that CELLWRIGHT_GATEWAY_TOKEN is its token"),
        (
            &format!("{url}/wrong/base"),
            Some(TOKEN),
            "check that the URL is that of a Jupyter server, with its base path",
        ),
        (&closed, Some(TOKEN), "cannot be reached"),
        (&https, Some(TOKEN), "no secure connection to"),
    ] {
        let address = Address::new(url, token.map(str::to_owned)).unwrap();
        let error = launch(address, Path::new("/")).start().await.unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(!error.to_string().contains(TOKEN));
    }
    let unknown = GatewayLaunch { name: Some("cobol".into()), ..launch(server.address(), Path::new("/")) };
    let error = unknown.start().await.unwrap_err();
    assert!(
        matches!(&error, GatewayError::NoKernelSpec { installed, .. } if installed == &["python3"]),
        "{error}"
    );
}

/// The port of a server that knows no TLS.
fn plain_server() -> u16 {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            drop(client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
        }
    });
    port
}

#[tokio::test]
async fn a_kernel_that_is_dropped_does_not_stay_on_the_server() {
    let listing = ["--JupyterWebsocketPersonality.list_kernels=True"];
    let server = Server::kernel_gateway_at(free_port(), &listing).await;
    let one = start(server.address()).await;
    let two = start(server.address()).await;
    assert_eq!(kernels(&server).await, 2);
    drop(one);
    two.kernel.shutdown().await;
    eventually("the end of both kernels", async || kernels(&server).await == 0).await;
}

/// How many kernels a server has.
async fn kernels(server: &Server) -> usize {
    kernel_list(server).await.matches("\"id\"").count()
}

/// The kernels of a server, asked by hand.
async fn kernel_list(server: &Server) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).await.unwrap();
    let request = format!(
        "GET /api/kernels HTTP/1.1\r\nHost: localhost\r\nAuthorization: token {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}
