//! `cellwright mcp`

mod attach;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_mcp::{HttpOptions, HttpServer, McpHost, TokenFile, WorkspaceRoots, serve_stdio};
use cellwright_tools::Toolbox;

use super::install::InstallCommand;
use crate::config::LoadedConfig;
use crate::offer::{ToolOptions, stopped_by_signal};
use crate::{host, print};

/// Offer the tools to an agent over the Model Context Protocol
///
/// Serves the client that starts it, over stdin and stdout, or with --http every client that connects. When a
/// client leaves, everything it started ends.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  cellwright mcp install claude
  cellwright mcp --root ~/work --session work
  cellwright mcp --http 127.0.0.1:8931 --token-file ~/.config/cellwright/mcp-token"
)]
pub(crate) struct ServeMcp {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// Serve HTTP on this address instead; clients need a token, which is printed and stored
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// With --http: read the token from FILE, and create it if needed [default: a new token at each start]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// With --http: a web page that may connect, such as `https://example.org`; can be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    origin: Vec<String>,
    /// With --http: another host name that clients may use, besides localhost; can be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    host: Vec<String>,
    #[command(flatten)]
    offer: ToolOptions,
    /// Do not check Python or start a kernel before a call needs it
    #[arg(long)]
    no_warm_up: bool,
    /// Pass everything on to the notebook that started this agent; the agent kernel uses it
    #[arg(long, hide = true)]
    attach: bool,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    Install(InstallCommand),
}

impl ServeMcp {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(McpCommand::Install(install)) = self.command {
            return install.run();
        }
        if self.attach {
            return attach::run();
        }
        let runtime = host::runtime()?;
        let served = host::block_on(&runtime, self.serve());
        // A read of stdin that waits for ever must not keep us.
        runtime.shutdown_background();
        served
    }

    async fn serve(self) -> anyhow::Result<()> {
        let start = std::env::current_dir().context("the current folder is gone")?;
        let config = LoadedConfig::load(&start, Vec::new())?;
        let mut sessions = host::session_settings(&config, &start);
        if self.http.is_some() {
            // Each client has a session of its own, at least, and none takes the place of all others.
            sessions.limits.per_client = sessions.limits.sessions;
            sessions.limits.sessions = sessions.limits.sessions.max(HTTP_SESSIONS);
        }
        let toolbox = Toolbox::new(self.offer.settings(&config, &start, &sessions)?, sessions);
        let roots = self.offer.roots(&config)?;
        let host = McpHost {
            toolbox: toolbox.clone(),
            daemon: self.offer.daemon(&config, &start)?,
            start,
            roots: if roots.is_empty() { WorkspaceRoots::Client } else { WorkspaceRoots::Fixed(roots) },
            outside: self.offer.outside(&config),
            names: self.offer.names(),
            warm_up: !self.no_warm_up && !config.settings.python.skip_check,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attached: None,
        };
        let stop = stopped_by_signal()?;
        match self.http {
            None => Box::pin(serve_stdio(host, stop)).await.context("could not serve stdin and stdout")?,
            Some(address) => self.listen(&config, address).await?.serve(host, stop).await?,
        }
        toolbox.shutdown().await;
        Ok(())
    }

    #[expect(
        clippy::print_stderr,
        reason = "the address and the token are shown where a person looks, and not on stdout"
    )]
    async fn listen(self, config: &LoadedConfig, address: SocketAddr) -> anyhow::Result<HttpServer> {
        let options = HttpOptions {
            address,
            token: match self.token_file {
                Some(file) => TokenFile::Kept(file),
                None => TokenFile::In(config.places.runtime.clone()),
            },
            hosts: self.host,
            origins: self.origin,
        };
        let server = HttpServer::bind(options).await?;
        if !address.ip().is_loopback() {
            print::note(
                "other machines can reach this address, and the connection is not encrypted: the token and all code \
                 can be read on the way; use an SSH tunnel, or a server with TLS in front",
            );
        }
        eprintln!(
            "listening on {}\ntoken: {}\n(also in {})",
            server.url(),
            server.token(),
            server.token_file().display()
        );
        Ok(server)
    }
}

/// An address by its number, or on this machine by the name it has everywhere.
fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numbers
        .parse()
        .map_err(|_| anyhow::anyhow!("an address looks like 127.0.0.1:8931, [::1]:8931 or localhost:8931"))
}

/// Sessions that HTTP clients may have at once, in all.
const HTTP_SESSIONS: usize = 64;
