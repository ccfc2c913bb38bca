//! Connections that break while a cell prints, at the rate at which loss was measured.

use cellwright_kernel::Outcome;
use cellwright_testkit::servers::{Server, free_port};
use cellwright_testkit::{Door, eventually};

use super::proxy::Proxy;
use super::{kernel_list, run, start};

/// Each line is a message of its own, and in one write: `print` may send a line and its end apart, and lines run together
/// when an end is lost. It ends with an exception.
const CODE: &str = "import sys, time\nfor i in range(3000):\n    sys.stdout.write(f'{i}\\n')\n    sys.stdout.flush()\n    if i % 100 == 0: time.sleep(0.01)\n1/0";

/// How often it was tried when output was lost in five of six runs.
const ROUNDS: u64 = 6;

#[tokio::test]
async fn a_cut_gateway_connection_swallows_no_exception_and_the_loss_is_counted() {
    cut(Server::kernel_gateway().await).await;
}

#[tokio::test]
async fn a_cut_server_connection_swallows_no_exception_and_the_loss_is_counted() {
    cut(Server::jupyter_server().await).await;
}

async fn cut(server: Server) {
    let proxy = Proxy::before(server.port).await;
    let mut launched = start(server.address_at(proxy.port)).await;
    for round in 0..ROUNDS {
        let (seen, ()) = tokio::join!(run(&launched, CODE), async {
            // At another place in each round; the last one is near the end.
            for _ in 0..2 {
                proxy.cut_after(40_000 + round * 60_000).await;
            }
        });
        let about = format!("round {round}: {:?}, {:?}", seen.outcome, seen.warnings);
        match &seen.outcome {
            Outcome::Raised(exception) => assert_eq!(exception.name, "ZeroDivisionError", "{about}"),
            Outcome::Unknown => {}
            Outcome::Completed | Outcome::Stopped { .. } | Outcome::Died(_) => panic!("{about}"),
        }
        let numbers: Vec<u64> = seen.text.lines().map(|line| line.parse().unwrap()).collect();
        let odd: Vec<_> = numbers.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
        assert!(odd.is_empty(), "lines came twice or out of order: {odd:?}; {about}");
        let missing = 3000 - numbers.len() as u64;
        let counted = seen.warnings.iter().find_map(|warning| {
            let (_, rest) = warning.split_once(": up to ")?;
            rest.split(' ').next()?.parse::<u64>().ok()
        });
        assert!(missing <= counted.unwrap_or(0), "{missing} lines are missing; {about}");
        // Nothing of it comes later.
        let next = run(&launched, "print('next')").await;
        assert_eq!((next.text.as_str(), next.outcome), ("next\n", Outcome::Completed), "{about}");
        while let Some(event) = launched.background.try_next() {
            assert!(!matches!(event, cellwright_kernel::Event::Output(_)), "{event:?} after {about}");
        }
    }
}

#[tokio::test]
async fn a_cell_that_a_broken_connection_swallowed_is_not_reported_as_completed() {
    let listing = ["--JupyterWebsocketPersonality.list_kernels=True"];
    let server = Server::kernel_gateway_at(free_port(), &listing).await;
    let proxy = Proxy::before(server.port).await;
    let launched = start(server.address_at(proxy.port)).await;
    let door = Door::new();
    for round in 0..ROUNDS {
        // It is over while nobody is connected.
        let code =
            format!("print('begun', flush=True)\nwith {} as s: s.sendall(s.recv(1))\n1/0", door.knock());
        let (seen, ()) = tokio::join!(run(&launched, &code), async {
            proxy.cut_after(1500).await;
            proxy.shut();
            door.let_in().await;
            eventually("the end of the cell", async || {
                kernel_list(&server).await.contains("\"execution_state\": \"idle\"")
            })
            .await;
            proxy.open();
        });
        assert!(
            matches!(seen.outcome, Outcome::Raised(_) | Outcome::Unknown),
            "round {round}: {:?} {:?}",
            seen.outcome,
            seen.warnings
        );
    }
}
