//! Programs that use our tools, and agents we can use.

use std::path::Path;

use serde_json::json;

use super::report::{DoctorCheck, DoctorReport, DoctorTopic};
use crate::commands::install::{ClientEnvironment, InstallScope, InstallState, McpClient, NAME, on_path};
use crate::config::LoadedConfig;

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
pub(super) fn examine(config: &LoadedConfig, folder: &Path, report: &mut DoctorReport) {
    let around = ClientEnvironment { variables: &config.environment, folder };
    let mut any = false;
    for client in McpClient::ALL {
        let program = client.programs().iter().find_map(|name| on_path(&config.environment, name));
        let mut standings = Vec::new();
        let mut unreadable = false;
        for (scope, name) in [(InstallScope::User, "user"), (InstallScope::Project, "project")] {
            let Some(file) = client.file(scope, around) else { continue };
            match InstallState::of(client, &file) {
                Ok(InstallState::Absent) => {}
                Ok(standing) => standings.push((name, file, standing)),
                Err(error) => {
                    unreadable = true;
                    let message = format!("{}: {}", client.title(), crate::exit::one_line(error.as_ref()));
                    report.add(DoctorCheck::warning(DoctorTopic::Clients, message).fix("correct the file"));
                }
            }
        }
        any |= unreadable || program.is_some() || !standings.is_empty();
        if standings.is_empty() && program.is_some() && !unreadable {
            let fix = format!("cellwright mcp install {}", client.argument());
            let message = format!("{} is installed and does not use the tools yet", client.title());
            let details = json!({ "client": client.argument(), "program": program, "configured": [] });
            report.add(DoctorCheck::note(DoctorTopic::Clients, message).fix(fix).details(details));
        }
        for (scope, file, standing) in standings {
            let details = json!({
                "client": client.argument(), "program": program, "scope": scope, "file": file,
            });
            report.add(configured(client, scope, &file, &standing).details(details));
        }
    }
    if !any {
        let fix = "install one, then run: cellwright mcp install claude (or another that `cellwright mcp install --help` lists)";
        report.add(DoctorCheck::note(DoctorTopic::Clients, "none found").fix(fix));
    }
    agents(config, report);
}

fn configured(client: McpClient, scope: &str, file: &Path, standing: &InstallState) -> DoctorCheck {
    let (title, file) = (client.title(), file.display());
    let project = if scope == "project" { " --project" } else { "" };
    let fix = format!("cellwright mcp install {}{project}", client.argument());
    match standing {
        InstallState::Ours => {
            DoctorCheck::good(DoctorTopic::Clients, format!("{title} uses this program ({file})"))
        }
        InstallState::Off => {
            let message = format!("{title} has `{NAME}` switched off ({file})");
            DoctorCheck::note(DoctorTopic::Clients, message).fix(format!("switch it on in {file}"))
        }
        InstallState::Another(command) if Path::new(command).is_file() => {
            let message = format!("{title} uses another program, `{command}` ({file})");
            DoctorCheck::note(DoctorTopic::Clients, message).fix(fix)
        }
        InstallState::Another(command) => {
            let message = format!("{title} starts `{command}`, which does not exist ({file})");
            DoctorCheck::warning(DoctorTopic::Clients, message).fix(fix)
        }
        InstallState::Absent => unreachable!("absent ones are reported elsewhere"),
    }
}

fn agents(config: &LoadedConfig, report: &mut DoctorReport) {
    let found = AGENTS.iter().filter_map(|(name, arguments)| {
        let program = on_path(&config.environment, name)?;
        Some((program, [&[*name], *arguments].concat().join(" ")))
    });
    let found: Vec<_> = found.collect();
    for (program, command) in &found {
        let check = DoctorCheck::good(DoctorTopic::Agents, format!("`{command}` ({})", program.display()));
        report.add(check.details(json!({ "program": program, "command": command })));
    }
    if found.is_empty() {
        report.add(DoctorCheck::note(DoctorTopic::Agents, "none found; needed only for agent notebooks"));
    }
}
