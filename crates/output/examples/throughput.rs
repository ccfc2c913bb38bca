//! How fast the sink takes what comes: `cargo run --release -p cellwright-output --example throughput`.
#![expect(clippy::print_stdout, reason = "it reports to a terminal")]

use std::time::{Duration, Instant};

use cellwright_cell::Stream;
use cellwright_output::{Artifacts, Colours, OutputLimits, OutputSink};

fn main() -> std::io::Result<()> {
    let store = std::env::temp_dir().join(format!("cellwright-throughput-{}", std::process::id()));
    let artifacts = Artifacts::new(&store);
    let lines = "an ordinary line of output, eighty characters long, as logs and programs print\n";
    let wide = format!("{}\n", "0123456789".repeat(1000));
    let unicode = "naïve façade 漢字 — a line with characters of two and three bytes …\n";
    let colour = "\x1b[32mINFO\x1b[0m a coloured line, \x1b[1mbold\x1b[0m in the middle\n";
    let progress = "\r 42%|████▏     | 420/1000 [00:01<00:02, 314.15it/s]";
    let garbage: Vec<u8> =
        (0..1 << 16).map(|i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    for (name, unit, chunk) in [
        ("lines", lines.as_bytes(), 64 * 1024),
        ("lines", lines.as_bytes(), 1024 * 1024),
        ("lines", lines.as_bytes(), 10),
        ("short lines", b"123456789\n", 64 * 1024),
        ("short lines", b"123456789\n", 10),
        ("wide lines", wide.as_bytes(), 64 * 1024),
        ("one line", b"x", 64 * 1024),
        ("empty lines", b"\n", 64 * 1024),
        ("unicode", unicode.as_bytes(), 64 * 1024),
        ("crlf", b"a line that ends as on windows\r\n", 64 * 1024),
        ("colours", colour.as_bytes(), 64 * 1024),
        ("progress", progress.as_bytes(), 64 * 1024),
        ("garbage", &garbage, 64 * 1024),
    ] {
        let bytes = unit.repeat((1 << 20) * 4 / unit.len() + 1);
        let rounds = if chunk < 100 { 3 } else { 25 };
        let plain =
            time(&bytes, chunk, rounds, || OutputSink::new(OutputLimits::default(), Colours::Dropped));
        let stored = time(&bytes, chunk, rounds, || {
            OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts)
        });
        // Bytes a microsecond are megabytes a second.
        let speed = |time: Duration| (bytes.len() * rounds) as u128 / time.as_micros().max(1);
        println!(
            "{name:12} {chunk:8}-byte chunks {:6} MB/s, {:6} MB/s with artifact",
            speed(plain),
            speed(stored)
        );
    }
    std::fs::remove_dir_all(store)
}

fn time(bytes: &[u8], chunk: usize, rounds: usize, sink: impl Fn() -> OutputSink) -> Duration {
    let mut sink = sink();
    let start = Instant::now();
    for _ in 0..rounds {
        for chunk in bytes.chunks(chunk) {
            sink.write(Stream::Stdout, chunk);
        }
    }
    drop(sink.finish());
    start.elapsed()
}
