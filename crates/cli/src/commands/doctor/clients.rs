//! Programs that use our tools, and agents we can use.

use std::path::Path;

use serde_json::json;

use super::report::{Check, Report, Section};
use crate::commands::install::{Client, NAME, Scope, Standing, Surroundings, on_path};
use crate::config::Config;

/// Programs that speak the Agent Client Protocol, by themselves or with an argument.
const AGENTS: &[(&str, &[&str])] = &[
    ("claude-agent-acp", &[]),
    ("claude-code-acp", &[]),
    ("codex-acp", &[]),
    ("gemini", &["--acp"]),
    ("opencode", &["acp"]),
    ("qwen", &["--acp"]),
    ("goose", &["acp"]),
];

/// Looks for clients and whether they know us, and for agents.
pub(super) fn examine(config: &Config, folder: &Path, report: &mut Report) {
    let around = Surroundings { variables: &config.environment, folder };
    let mut any = false;
    for client in Client::ALL {
        let program = client.programs().iter().find_map(|name| on_path(&config.environment, name));
        let mut standings = Vec::new();
        let mut unreadable = false;
        for (scope, name) in [(Scope::User, "user"), (Scope::Project, "project")] {
            let file = client.file(scope, around);
            match Standing::of(client, &file) {
                Ok(Standing::Absent) => {}
                Ok(standing) => standings.push((name, file, standing)),
                Err(error) => {
                    unreadable = true;
                    let told = format!("{}: {}", client.title(), crate::exit::one_line(error.as_ref()));
                    report.add(Check::warning(Section::Clients, told).fix("correct the file"));
                }
            }
        }
        any |= unreadable || program.is_some() || !standings.is_empty();
        if standings.is_empty() && program.is_some() && !unreadable {
            let fix = format!("cellwright mcp install {}", client.argument());
            let told = format!("{} is here and does not use the tools yet", client.title());
            let details = json!({ "client": client.argument(), "program": program, "configured": [] });
            report.add(Check::note(Section::Clients, told).fix(fix).details(details));
        }
        for (scope, file, standing) in standings {
            let details = json!({
                "client": client.argument(), "program": program, "scope": scope, "file": file,
            });
            report.add(configured(client, scope, &file, &standing).details(details));
        }
    }
    if !any {
        let fix = "install one, then run: cellwright mcp install claude (or codex, gemini, opencode, vscode, zed, cursor)";
        report.add(Check::note(Section::Clients, "none found").fix(fix));
    }
    agents(config, report);
}

fn configured(client: Client, scope: &str, file: &Path, standing: &Standing) -> Check {
    let (title, file) = (client.title(), file.display());
    let project = if scope == "project" { " --project" } else { "" };
    let fix = format!("cellwright mcp install {}{project}", client.argument());
    match standing {
        Standing::Ours => Check::good(Section::Clients, format!("{title} uses this program ({file})")),
        Standing::Off => {
            let told = format!("{title} has `{NAME}` switched off ({file})");
            Check::note(Section::Clients, told).fix(format!("switch it on in {file}"))
        }
        Standing::Another(command) if Path::new(command).is_file() => {
            let told = format!("{title} uses another program, `{command}` ({file})");
            Check::note(Section::Clients, told).fix(fix)
        }
        Standing::Another(command) => {
            let told = format!("{title} starts `{command}`, which is not there ({file})");
            Check::warning(Section::Clients, told).fix(fix)
        }
        Standing::Absent => unreachable!("absent ones are told elsewhere"),
    }
}

fn agents(config: &Config, report: &mut Report) {
    let found = AGENTS.iter().filter_map(|(name, arguments)| {
        let program = on_path(&config.environment, name)?;
        Some((program, [&[*name], *arguments].concat().join(" ")))
    });
    let found: Vec<_> = found.collect();
    for (program, command) in &found {
        let check = Check::good(Section::Agents, format!("`{command}` ({})", program.display()));
        report.add(check.details(json!({ "program": program, "command": command })));
    }
    if found.is_empty() {
        report.add(Check::note(Section::Agents, "none found; needed only for agent notebooks"));
    }
}
