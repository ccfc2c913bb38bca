//! `cellwright tool`

use std::io::Read as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_tools::{
    BackgroundPolicy, CallContext, ReplyPart, SessionHome, ToolReply, ToolSpec, Toolbox, Workspace,
};
use serde_json::{Map, Value, json};
use tokio::signal::unix::SignalKind;
use tokio_util::sync::CancellationToken;

use crate::config::LoadedConfig;
use crate::exit::CommandExit;
use crate::host;
use crate::offer::{ToolOptions, cancelled_by};
use crate::print::{self, OutputFormat};

/// Call one of the tools that `cellwright mcp` offers
///
/// For scripts, and for agents that have a shell but no MCP: the same tools with the same replies. The tool's result
/// goes to stdout, notes about it go to stderr. The calls of one caller share a memory of what they read. With
/// --session, variables and background cells stay for the next call. Exits with 1 if the tool failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright tool                                            list the tools
  cellwright tool eval '{\"code\": \"6 * 7\"}' --session work
  cellwright tool read '{\"path\": \"analysis.ipynb#3-7\"}'
  cellwright tool write - < arguments.json")]
pub(crate) struct ToolCommand {
    /// The tool; without it, the tools are listed
    name: Option<String>,
    /// Its arguments as a JSON object (`-`: stdin)
    #[arg(default_value = "{}")]
    arguments: String,
    #[command(flatten)]
    offer: ToolOptions,
    #[command(flatten)]
    format: OutputFormat,
}

impl ToolCommand {
    pub(crate) fn run(self) -> anyhow::Result<CommandExit> {
        let runtime = host::runtime()?;
        let exit = host::block_on(&runtime, self.call());
        // A kernel's last threads must not keep us: whatever they hold is gone with the process.
        runtime.shutdown_background();
        exit
    }

    async fn call(self) -> anyhow::Result<CommandExit> {
        let start = std::env::current_dir().context("the current folder is gone")?;
        let config = LoadedConfig::load(&start, Vec::new())?;
        let sessions = host::session_settings(&config, &start);
        let mut settings = self.offer.settings(&config, &start, &sessions)?;
        settings.background = BackgroundPolicy::Nothing;
        let toolbox = Toolbox::new(settings, sessions);
        let Some(name) = &self.name else { return list(&toolbox.specs(), self.format) };
        let arguments = self.arguments()?;
        let workspace = Workspace::new(&start)
            .context("the current folder is gone")?
            .with_roots(self.offer.roots(&config)?)
            .with_outside(self.offer.outside(&config));
        let home = match self.offer.daemon(&config, &start)? {
            None => toolbox.home(),
            Some(daemon) => SessionHome::Daemon(daemon),
        };
        let (names, memory) = (self.offer.names(), self.offer.memory(&config));
        let client = toolbox.client_remembering(home, workspace, names, memory);
        let left = CancellationToken::new();
        cancelled_by(&left, [SignalKind::terminate(), SignalKind::hangup()])?;
        // Only Ctrl-C asks for an end of a cell in a session that stays.
        let stop = left.child_token();
        cancelled_by(&stop, [SignalKind::interrupt()])?;
        let mut context = CallContext::new(client, stop);
        context.left = left;
        let reply = toolbox.call(name, arguments, &context).await;
        drop(context);
        toolbox.shutdown().await;
        print_reply(&reply, self.format)?;
        Ok(if reply.is_error { CommandExit::Failed } else { CommandExit::Done })
    }

    fn arguments(&self) -> anyhow::Result<Map<String, Value>> {
        let mut text = self.arguments.clone();
        if text == "-" {
            text.clear();
            std::io::stdin().lock().read_to_string(&mut text).context("could not read stdin")?;
        }
        serde_json::from_str(&text).context("the arguments are not a JSON object")
    }
}

fn list(specs: &[ToolSpec], format: OutputFormat) -> anyhow::Result<CommandExit> {
    if format.json {
        let specs = specs.iter().map(|spec| {
            json!({
                "name": spec.name, "title": spec.title, "description": spec.description,
                "schema": spec.schema, "read_only": spec.read_only,
            })
        });
        print::json(&specs.collect::<Vec<_>>())?;
    } else {
        let lines = specs.iter().map(|spec| format!("{:<10}{}\n", spec.name, spec.description));
        print::plain(&lines.collect::<String>())?;
    }
    Ok(CommandExit::Done)
}

/// What the tool said on stdout, our remarks on stderr.
fn print_reply(reply: &ToolReply, format: OutputFormat) -> anyhow::Result<()> {
    if format.json {
        let content = reply.content.iter().map(|content| match content {
            ReplyPart::Text(text) => json!({ "type": "text", "text": text }),
            ReplyPart::Note(text) => json!({ "type": "note", "text": text }),
            ReplyPart::Image(image) => json!({
                "type": "image", "mime": image.format.mime(), "data": BASE64_STANDARD.encode(&image.bytes),
            }),
        });
        return print::json(&json!({
            "content": content.collect::<Vec<_>>(), "structured": reply.structured, "is_error": reply.is_error,
        }));
    }
    let mut said = String::new();
    for content in &reply.content {
        match content {
            ReplyPart::Text(text) => said.push_str(text),
            ReplyPart::Image(image) => said.extend(["[", &image.to_string(), "]"]),
            ReplyPart::Note(note) => {
                print::remark(note);
                continue;
            }
        }
        if !said.ends_with('\n') {
            said.push('\n');
        }
    }
    print::plain(&said)
}
