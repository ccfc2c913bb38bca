//! `cellwright gateway`

use anyhow::Context as _;
use cellwright_kernel::gateway::{GatewayStatus, SharedGateway, without_secrets};
use serde_json::{Value, json};

use crate::config::LoadedConfig;
use crate::host;
use crate::print::{self, OutputFormat};

/// Start, check or stop the Jupyter gateway that your processes on this machine share
///
/// Kernels chosen with `gateway` run there, unless `gateway.url` names another server. The gateway starts when it is
/// needed, listens only on this machine, and requires a token.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright gateway start
  cellwright gateway status --json
  cellwright gateway stop")]
pub(crate) struct GatewayCommand {
    #[command(subcommand)]
    action: GatewayAction,
}

#[derive(Debug, clap::Subcommand)]
enum GatewayAction {
    /// Start the gateway, unless it is running
    Start(OutputFormat),
    /// Show whether the gateway is running, and where
    Status(OutputFormat),
    /// Stop the gateway and its kernels
    Stop(OutputFormat),
}

impl GatewayCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        host::block_on(&host::small_runtime()?, self.act())
    }

    async fn act(self) -> anyhow::Result<()> {
        let folder = std::env::current_dir().context("the current folder is gone")?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        let shared = host::shared_gateway(&config, &folder);
        match self.action {
            GatewayAction::Start(format) => {
                shared.address().await?;
                print_status(&config, &shared, format).await
            }
            GatewayAction::Status(format) => print_status(&config, &shared, format).await,
            GatewayAction::Stop(format) => {
                let stopped = shared.stop().await?;
                let text = if stopped { "stopped" } else { "it did not run" };
                answer(format, &json!({"stopped": stopped}), text)
            }
        }
    }
}

async fn print_status(
    config: &LoadedConfig,
    shared: &SharedGateway,
    format: OutputFormat,
) -> anyhow::Result<()> {
    let (mut value, mut text) = match shared.status().await {
        GatewayStatus::Stopped => (json!({"state": "stopped"}), "it does not run".to_owned()),
        GatewayStatus::Running { pid, url, python } => {
            let text = format!("runs at {url}, process {pid}, by {}", python.display());
            (json!({"state": "running", "pid": pid, "url": url, "python": python}), text)
        }
        GatewayStatus::Unwell { pid, why } => {
            let text = format!(
                "process {pid} is there and does not answer: {why}\n`cellwright gateway start` replaces it"
            );
            (json!({"state": "unwell", "pid": pid, "why": why}), text)
        }
    };
    if let Some(url) = &config.settings.gateway.url {
        let url = without_secrets(url);
        let origin = config.origin("gateway.url");
        text = format!("{text}\nit is not used: kernels run at {url}, by `gateway.url` from {origin}");
        value["instead"] = url.into();
    }
    answer(format, &value, &text)
}

fn answer(format: OutputFormat, value: &Value, text: &str) -> anyhow::Result<()> {
    if format.json { print::json(value) } else { print::plain(&format!("{text}\n")) }
}
