//! The agents there are: those of the settings and the environment, then the known ones found in `PATH`.

pub(crate) mod own_servers;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use cellwright_acp::catalog::{self, KNOWN};

use crate::config::LoadedConfig;

/// How to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredAgent {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// Beyond what it sees anyway.
    pub(crate) env: BTreeMap<String, String>,
    /// Where it comes from: a file, a variable, or `PATH`.
    pub(crate) from: String,
}

impl ConfiguredAgent {
    pub(crate) fn command_line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        shell_words::join(words)
    }
}

/// The agents there are, best first, each name once.
pub(crate) fn all(config: &LoadedConfig) -> Vec<ConfiguredAgent> {
    let mut agents: Vec<ConfiguredAgent> = Vec::new();
    let settings = &config.settings.agent;
    if let Some(command) = &settings.command {
        agents.push(ConfiguredAgent {
            name: "environment".to_owned(),
            command: command.clone(),
            args: settings.args.clone(),
            env: BTreeMap::new(),
            from: config.origin("agent.command").to_string(),
        });
    }
    agents.extend(config.settings.agents.iter().map(|(name, agent)| ConfiguredAgent {
        name: name.clone(),
        command: agent.command.clone(),
        args: agent.args.clone(),
        env: agent.env.clone(),
        from: config.places.user_settings().display().to_string(),
    }));
    for known in catalog::installed(|program| in_path(config, program).is_some()) {
        if !agents.iter().any(|agent| agent.name == known.name) {
            agents.push(ConfiguredAgent {
                name: known.name.to_owned(),
                command: known.program.to_owned(),
                args: known.args.iter().map(|word| (*word).to_owned()).collect(),
                env: BTreeMap::new(),
                from: "PATH".to_owned(),
            });
        }
    }
    if let Some(at) =
        settings.default.as_ref().and_then(|name| agents.iter().position(|agent| agent.name == *name))
    {
        agents[..=at].rotate_right(1);
    }
    agents
}

/// The agent of that name.
pub(crate) fn find(config: &LoadedConfig, name: &str) -> anyhow::Result<ConfiguredAgent> {
    let agents = all(config);
    if let Some(agent) = agents.iter().find(|agent| agent.name == name) {
        return Ok(agent.clone());
    }
    if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
        anyhow::bail!(
            "{} is not installed: `{}` is not in PATH; run: {}",
            known.title,
            known.program,
            known.install
        );
    }
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    anyhow::bail!(
        "there is no agent `{name}`; there are: {there}. Declare it as [agents.{name}] in your settings"
    )
}

/// A program of that name in `PATH`.
pub(crate) fn in_path(config: &LoadedConfig, program: &str) -> Option<PathBuf> {
    let path = config.environment.get(OsStr::new("PATH"))?;
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|folder| folder.join(program)).find(executable)
}
