//! `cellwright config`

use cellwright_kernel::gateway::without_secrets;
use serde_json::Value;

use crate::agents;
use crate::config::{KEYS, LoadedConfig};
use crate::print::{self, OutputFormat};

/// Show every setting, its value, and where the value comes from
///
/// Later sources override earlier ones: defaults, your config.toml, the project's .cellwright/config.toml,
/// environment variables, flags.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigCommand {
    #[command(flatten)]
    format: OutputFormat,
}

impl ConfigCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = LoadedConfig::load(&std::env::current_dir()?, Vec::new())?;
        let values = serde_json::to_value(&config.settings)?;
        let value = |name: &str| {
            let value = &values[name.split('.').next().unwrap_or_default()]
                [name.split('.').nth(1).unwrap_or_default()];
            // Nobody should read a token over the user's shoulder.
            match value {
                Value::String(_) if name.ends_with("token") => Value::from("(set)"),
                Value::String(url) if name.ends_with("url") => Value::from(without_secrets(url)),
                _ => value.clone(),
            }
        };
        if self.format.json {
            let rows = KEYS.iter().map(|key| {
                serde_json::json!({
                    "key": key.name, "value": value(key.name), "origin": config.origin(key.name).to_string(), "about": key.about,
                })
            });
            return print::json(&rows.collect::<Vec<_>>());
        }
        let mut out = String::new();
        for key in KEYS {
            let line =
                format!("{:<25} {:<12} {}", key.name, value(key.name).to_string(), config.origin(key.name));
            out.extend([&line, "\n", "    ", key.about, "\n"]);
        }
        for agent in agents::all(&config) {
            out.extend([
                &format!("agents.{:<18} ", agent.name),
                &agent.command_line(),
                "  ",
                &agent.from,
                "\n",
            ]);
        }
        let (user, project) = (config.places.user_settings(), config.places.project_settings());
        out.extend(["\nyour settings:    ", &user.display().to_string(), "\n"]);
        if let Some(project) = project {
            out.extend(["project settings: ", &project.display().to_string(), "\n"]);
        }
        print::plain(&out)
    }
}
