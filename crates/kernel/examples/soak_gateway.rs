//! Many kernels on one server from one process: `soak_gateway URL TOKEN COUNT`. Each runs cells at the same time as the
//! others, and must see its own output and nothing else.

use std::env;
use std::time::Instant;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::gateway::{Address, GatewayKernel, GatewayLaunch};
use cellwright_kernel::{Event, KernelCell, Outcome};
use futures_util::{StreamExt as _, stream};

/// Kernels that start at the same time: more would only wait for each other.
const STARTING: usize = 4;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the answer")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, token, count] = arguments.as_slice() else { panic!("usage: soak_gateway URL TOKEN COUNT") };
    let address = Address::new(url, Some(token.clone())).expect("a URL");
    let count: usize = count.parse().expect("a number");
    let began = Instant::now();
    let starts = (0..count).map(|_| start(address.clone()));
    let kernels: Vec<_> = stream::iter(starts).buffer_unordered(STARTING).collect().await;
    println!("{count} kernels started in {:.1} s", began.elapsed().as_secs_f32());
    let began = Instant::now();
    let runs = kernels.iter().enumerate().map(|(index, launched)| run(launched, index));
    futures_util::future::join_all(runs).await;
    println!(
        "each ran its cells, all at once, in {:.1} s, and saw its own output",
        began.elapsed().as_secs_f32()
    );
    futures_util::future::join_all(kernels.iter().map(|launched| launched.kernel.shutdown())).await;
}

async fn start(address: Address) -> GatewayKernel {
    GatewayLaunch::new(address, "/", env::vars_os().collect()).start().await.expect("a kernel")
}

async fn run(launched: &GatewayKernel, index: usize) {
    for round in 0..3 {
        let code = format!("for i in range(100): print({index}, {round}, i)");
        let (events, finished) = launched.kernel.execute(KernelCell::new(code)).await.collect().await;
        assert_eq!(finished.outcome, Outcome::Completed);
        let printed = events.iter().filter_map(|event| match event {
            Event::Output(OutputChange::Added(Output::Text { text, .. })) => Some(text.as_str()),
            _ => None,
        });
        let expected: Vec<_> = (0..100).map(|i| format!("{index} {round} {i}")).collect();
        assert_eq!(printed.collect::<String>().lines().collect::<Vec<_>>(), expected);
    }
}
