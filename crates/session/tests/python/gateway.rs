//! A session whose kernel is behind a server that goes away.

use std::time::Duration;

use cellwright_kernel::gateway::{Address, GatewayLaunch};
use cellwright_kernel::{AboutKernel, Death, Exit, KernelStart, Launcher, StartError, StartedKernel};
use cellwright_session::{CellStatus, KernelReplacement, KernelUse};
use cellwright_testkit::servers::{Server, free_port};
use futures_util::future::BoxFuture;

use super::support::{Fixture, until_printed};

/// Kernels on a server that may be out of reach for a moment only.
struct OnServer(Address);

impl Launcher for OnServer {
    fn start(&self, start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>> {
        Box::pin(async move {
            let launch = GatewayLaunch::new(self.0.clone(), start.cwd, [].into());
            let launched = GatewayLaunch { away: Duration::from_millis(300), ..launch }.start().await;
            let launched = launched.map_err(|error| StartError::Other(error.to_string()))?;
            Ok(StartedKernel {
                kernel: launched.kernel,
                background: launched.background,
                about: AboutKernel::default(),
                warnings: Vec::new(),
            })
        })
    }
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_with_the_truth_and_the_session_works_when_it_is_back() {
    let port = free_port();
    let server = Server::kernel_gateway_at(port, &[]).await;
    let address = server.address();
    let fixture = Fixture::with(|settings, _| settings.launcher = std::sync::Arc::new(OnServer(address)));
    assert_eq!(fixture.text("x = 1\nprint(x)").await, "1\n");
    let cell = "print('running', flush=True)\nimport time\ntime.sleep(600)";
    let running = until_printed(&fixture.client, fixture.call(&[cell])).await;
    drop(server);
    let report = running.report().await;
    let CellStatus::Died(Death { exit, started: true }) = &report.cells[0].status else {
        panic!("{report:#?}")
    };
    assert!(matches!(exit, Exit::OutOfReach(_)), "{exit}");
    assert_eq!(exit.variables(), "whether it lives, and its variables with it, is not known");
    // Meanwhile a call says that there is no server, and not that its cell ran.
    let report = fixture.run(&["print(2)"]).await;
    let error = report.error.as_ref().expect("there is no kernel").to_string();
    assert!(error.contains("cannot be reached"), "{error}");

    let _again = Server::kernel_gateway_at(port, &[]).await;
    let report = fixture.run(&["print('x' in globals())"]).await;
    assert_eq!(report.cells[0].output.text.text, "False\n");
    let usage = &report.kernel.usage;
    assert!(
        matches!(usage, KernelUse::Replaced(KernelReplacement::DiedEarlier(Exit::OutOfReach(_)))),
        "{usage:?}"
    );
}
