//! The MCP servers that an agent finds in its own settings.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cellwright_acp::agent::AgentLaunch;
use cellwright_acp::kernel::OwnServer;
use serde_json::{Map, Value};

use crate::commands::install::{ClientEnvironment, InstallScope, McpClient, settings_of};

/// Those of the agent that is started so. Files that cannot be read have none: the agent will say so itself.
pub(crate) fn of(launch: &AgentLaunch) -> Vec<OwnServer> {
    let variables: HashMap<OsString, OsString> = launch.environment.iter().cloned().collect();
    let around = ClientEnvironment { variables: &variables, folder: &launch.cwd };
    let words = std::iter::once(&launch.program).chain(&launch.args);
    let mut names = words.filter_map(|word| Path::new(word).file_name()?.to_str());
    let Some((like, files)) = names.find_map(|name| files(name, around)) else { return Vec::new() };
    let mut servers = Vec::new();
    for file in files {
        let Ok(Some(settings)) = settings_of(like, &file) else { continue };
        let section = like.section();
        // Claude keeps those of one project in the user's file.
        let project = &settings["projects"][launch.cwd.to_string_lossy().as_ref()];
        for listed in [&settings[section], &project[section]].into_iter().filter_map(Value::as_object) {
            servers.extend(listed.iter().filter_map(|(name, entry)| server(name, entry.as_object()?, &file)));
        }
    }
    servers
}

/// The files an agent reads, by the name of its program, and whose way of writing they follow.
fn files(program: &str, around: ClientEnvironment<'_>) -> Option<(McpClient, Vec<PathBuf>)> {
    let client = match program {
        "claude-agent-acp" | "claude-code-acp" => McpClient::Claude,
        "codex-acp" => McpClient::Codex,
        "gemini" => McpClient::Gemini,
        "opencode" => McpClient::Opencode,
        "qwen" => McpClient::Qwen,
        "copilot" => McpClient::Copilot,
        _ => return None,
    };
    let scopes = [InstallScope::User, InstallScope::Project];
    Some((client, scopes.into_iter().filter_map(|scope| client.file(scope, around)).collect()))
}

fn server(name: &str, entry: &Map<String, Value>, from: &Path) -> Option<OwnServer> {
    let words = |key: &str| match entry.get(key) {
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(word)) => vec![word.clone()],
        _ => Vec::new(),
    };
    let command = [words("command"), words("args")].concat();
    let url = || ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(*key)?.as_str());
    let address = match command.as_slice() {
        // What follows the question mark may be a key.
        [] => url()?.split('?').next().unwrap_or_default().to_owned(),
        command => shell_words::join(command),
    };
    let is = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
    let enabled = !is("enabled", false) && !is("disabled", true);
    Some(OwnServer { name: name.to_owned(), address, from: from.to_owned(), enabled })
}

#[cfg(test)]
mod tests {
    use cellwright_acp::agent::AgentFiles;

    use super::*;

    #[track_caller]
    fn check(program: &str, files: &[(&str, &str)], expected: &[(&str, &str, &str, bool)]) {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        std::fs::create_dir(&work).unwrap();
        for (file, text) in files {
            let file = home.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text.replace("WORK", work.to_str().unwrap())).unwrap();
        }
        let launch = AgentLaunch {
            program: program.into(),
            args: vec!["--acp".into()],
            environment: vec![("HOME".into(), home.path().into())],
            cwd: work,
            files: AgentFiles::Own,
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, address, from, enabled)| OwnServer {
                name: (*name).to_owned(),
                address: (*address).to_owned(),
                from: home.path().join(from),
                enabled: *enabled,
            })
            .collect();
        assert_eq!(of(&launch), expected);
    }

    #[test]
    fn servers_of_agents_are_found_in_their_own_files() {
        check(
            "/opt/bin/claude-agent-acp",
            &[
                (
                    ".claude.json",
                    r#"{"mcpServers": {"a": {"command": "run", "args": ["two words"], "env": {"KEY": "secret"}}},
                        "projects": {"WORK": {"mcpServers": {"b": {"type": "http", "url": "https://x/mcp?key=secret"}}}}}"#,
                ),
                ("work/.mcp.json", r#"{"mcpServers": {"c": {"command": "c", "disabled": true}}}"#),
            ],
            &[
                ("a", "run 'two words'", ".claude.json", true),
                ("b", "https://x/mcp", ".claude.json", true),
                ("c", "c", "work/.mcp.json", false),
            ],
        );
        check(
            "codex-acp",
            &[(".codex/config.toml", "[mcp_servers.docs]\ncommand = \"docs\"\nargs = [\"-v\"]\n")],
            &[("docs", "docs -v", ".codex/config.toml", true)],
        );
        check(
            "opencode",
            &[(
                ".config/opencode/opencode.jsonc",
                r#"{"mcp": {"x": {"type": "local", "command": ["x", "y"], "enabled": false}, /* none */}}"#,
            )],
            &[("x", "x y", ".config/opencode/opencode.jsonc", false)],
        );
        check(
            "qwen",
            &[(".qwen/settings.json", r#"{"mcpServers": {"q": {"httpUrl": "http://localhost:1/mcp"}}}"#)],
            &[("q", "http://localhost:1/mcp", ".qwen/settings.json", true)],
        );
    }

    #[test]
    fn files_that_say_nothing_have_no_servers() {
        check("gemini", &[(".gemini/settings.json", "{broken")], &[]);
        check("gemini", &[(".gemini/settings.json", r#"{"mcpServers": [1], "projects": 3}"#)], &[]);
        check("some-agent", &[(".gemini/settings.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#)], &[]);
    }
}
