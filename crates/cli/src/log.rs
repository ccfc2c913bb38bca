//! Logs on standard error. Standard output belongs to the result.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Where the messages between us and our runners are logged.
const MESSAGES: &str = "cellwright::ipc";

/// Tells warnings from now on and, when they are traced, the messages. Only the first call counts.
pub(crate) fn begin(traced: bool) {
    let messages = if traced { LevelFilter::INFO } else { LevelFilter::WARN };
    let ours = Targets::new().with_default(LevelFilter::ERROR).with_target("cellwright", LevelFilter::WARN);
    let wanted = ours.with_target(MESSAGES, messages);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    drop(tracing_subscriber::registry().with(lines.with_filter(wanted)).try_init());
}
