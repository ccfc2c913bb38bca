//! The programs that can use our tools, and where each keeps its list of servers.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{jsonc, settings_file, toml_text, yaml_text};
use crate::config::{absolute_path, home_folder};

/// What our server is called in every list.
pub(crate) const NAME: &str = "cellwright";

/// Seconds that Codex, which gives up after 60, and Goose wait for a tool: longer than any cell may take.
const WAITS: u32 = 660;

/// What a client needs to know of a server, in the order people write it.
pub(super) type ServerEntry = Vec<(&'static str, Value)>;

/// A program that can use our tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum McpClient {
    /// Claude Code
    Claude,
    /// Codex CLI, its app and its editor extension
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Visual Studio Code
    Vscode,
    /// Zed
    Zed,
    /// Cursor
    Cursor,
    /// Qwen Code
    Qwen,
    /// Claude Desktop
    ClaudeDesktop,
    /// Goose
    Goose,
    /// Windsurf
    Windsurf,
    /// GitHub Copilot CLI
    Copilot,
}

/// Which users an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallScope {
    /// The user, everywhere.
    User,
    /// Everyone, in one project.
    Project,
}

/// What decides where a client's file is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientEnvironment<'a> {
    /// The process's environment.
    pub(crate) variables: &'a HashMap<OsString, OsString>,
    /// The current folder.
    pub(crate) folder: &'a Path,
}

/// How a client writes its list down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsSyntax {
    /// JSON, perhaps with comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// Where in a file our entry belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryLocation {
    pub(super) format: SettingsSyntax,
    /// The member of the file that holds the servers by name.
    pub(super) section: &'static str,
}

impl McpClient {
    pub(crate) const ALL: [Self; 12] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Vscode,
        Self::Zed,
        Self::Cursor,
        Self::Qwen,
        Self::ClaudeDesktop,
        Self::Goose,
        Self::Windsurf,
        Self::Copilot,
    ];

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
            Self::Zed => "Zed",
            Self::Cursor => "Cursor",
            Self::Qwen => "Qwen Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Goose => "Goose",
            Self::Windsurf => "Windsurf",
            Self::Copilot => "Copilot CLI",
        }
    }

    /// What it is called on our command line.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Vscode => "vscode",
            Self::Zed => "zed",
            Self::Cursor => "cursor",
            Self::Qwen => "qwen",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Goose => "goose",
            Self::Windsurf => "windsurf",
            Self::Copilot => "copilot",
        }
    }

    /// The programs that show it is there.
    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["claude"],
            Self::Codex => &["codex"],
            Self::Gemini => &["gemini"],
            Self::Opencode => &["opencode"],
            Self::Vscode => &["code"],
            Self::Zed => &["zed", "zeditor"],
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::Qwen => &["qwen"],
            Self::ClaudeDesktop => &["claude-desktop"],
            Self::Goose => &["goose"],
            Self::Windsurf => &["windsurf"],
            Self::Copilot => &["copilot"],
        }
    }

    /// How to see that it took the entry.
    pub(super) fn next_step(self) -> &'static str {
        match self {
            Self::Claude => "`claude mcp list` shows it; sessions that run already need a restart",
            Self::Codex => "`codex mcp list` shows it; sessions that run already need a restart",
            Self::Gemini => "`gemini mcp list` shows it, in folders that Gemini trusts",
            Self::Opencode => "`opencode mcp list` shows it; sessions that run already need a restart",
            Self::Vscode => {
                "start it by `MCP: List Servers` in the command palette; its tools are for agent mode"
            }
            Self::Zed => "Zed starts it at once; the agent panel's settings show it",
            Self::Cursor => "switch it on under MCP in Cursor's settings",
            Self::Qwen => "`qwen mcp list` shows it; sessions that run already need a restart",
            Self::ClaudeDesktop => "quit Claude Desktop and start it again; its developer settings show it",
            Self::Goose => "sessions that run already need a restart",
            Self::Windsurf => "refresh the list of servers in Windsurf's Cascade panel",
            Self::Copilot => "`/mcp show` lists it; sessions that run already need a restart",
        }
    }

    pub(crate) fn place(self) -> EntryLocation {
        let (format, section) = match self {
            Self::Claude
            | Self::Gemini
            | Self::Cursor
            | Self::Qwen
            | Self::ClaudeDesktop
            | Self::Windsurf
            | Self::Copilot => (SettingsSyntax::Json, "mcpServers"),
            Self::Goose => (SettingsSyntax::Yaml, "extensions"),
            Self::Codex => (SettingsSyntax::Toml, "mcp_servers"),
            Self::Opencode => (SettingsSyntax::Json, "mcp"),
            Self::Vscode => (SettingsSyntax::Json, "servers"),
            Self::Zed => (SettingsSyntax::Json, "context_servers"),
        };
        EntryLocation { format, section }
    }

    /// The member of its file that holds the servers by name.
    pub(crate) fn section(self) -> &'static str {
        self.place().section
    }

    /// The entry that starts `command` with the argument `mcp`.
    pub(super) fn entry(self, command: &str) -> ServerEntry {
        let arguments = ("args", json!(["mcp"]));
        match self {
            // It hides tools from its model until the model searches for them, unless an entry asks otherwise.
            Self::Claude => vec![
                ("type", "stdio".into()),
                ("command", command.into()),
                arguments,
                ("alwaysLoad", true.into()),
            ],
            Self::Vscode | Self::Cursor => {
                vec![("type", "stdio".into()), ("command", command.into()), arguments]
            }
            Self::Codex => {
                vec![("command", command.into()), arguments, ("tool_timeout_sec", WAITS.into())]
            }
            Self::Gemini | Self::Qwen | Self::ClaudeDesktop | Self::Windsurf => {
                vec![("command", command.into()), arguments]
            }
            Self::Goose => vec![
                ("type", "stdio".into()),
                ("name", NAME.into()),
                ("enabled", true.into()),
                ("cmd", command.into()),
                arguments,
                ("timeout", WAITS.into()),
            ],
            Self::Copilot => {
                vec![
                    ("type", "local".into()),
                    ("command", command.into()),
                    arguments,
                    ("tools", json!(["*"])),
                ]
            }
            Self::Opencode => vec![("type", "local".into()), ("command", json!([command, "mcp"]))],
            // Zed before 2026 skips an entry without `source`; later ones pass over it.
            Self::Zed => vec![("source", "custom".into()), ("command", command.into()), arguments],
        }
    }

    /// The file it reads: of several that it would, the one that is there. Not every client has one for projects.
    pub(crate) fn file(self, scope: InstallScope, around: ClientEnvironment<'_>) -> Option<PathBuf> {
        let files = match scope {
            InstallScope::User => self.user_files(around),
            InstallScope::Project => {
                let project = around.project();
                self.project_files().iter().map(|file| project.join(file)).collect()
            }
        };
        let there = files.iter().find(|file| file.exists());
        there.or(files.last()).cloned()
    }

    /// The user's file, if it has an entry of ours.
    pub(crate) fn file_with_our_entry(self, around: ClientEnvironment<'_>) -> Option<PathBuf> {
        let path = self.file(InstallScope::User, around)?;
        let text = settings_file::read(&path).ok()??;
        let file = self.place().read(&text).ok()?;
        file.get(self.section())?.get(NAME).is_some().then_some(path)
    }

    /// The user's file, under the names it may have; new ones get the last.
    fn user_files(self, around: ClientEnvironment<'_>) -> Vec<PathBuf> {
        let home = around.home();
        let config = around.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        match self {
            Self::Claude => match around.path("CLAUDE_CONFIG_DIR") {
                Some(folder) => vec![folder.join(".config.json"), folder.join(".claude.json")],
                None => vec![home.join(".claude/.config.json"), home.join(".claude.json")],
            },
            Self::Codex => {
                let folder = around.path("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
                vec![folder.join("config.toml")]
            }
            Self::Gemini => {
                let home = around.path("GEMINI_CLI_HOME").unwrap_or(home);
                vec![home.join(".gemini/settings.json")]
            }
            Self::Opencode => {
                ["opencode.jsonc", "opencode.json"].map(|file| config.join("opencode").join(file)).into()
            }
            Self::Vscode if cfg!(target_os = "macos") => {
                vec![home.join("Library/Application Support/Code/User/mcp.json")]
            }
            Self::Vscode => vec![config.join("Code/User/mcp.json")],
            Self::Zed if cfg!(target_os = "macos") => vec![home.join(".config/zed/settings.json")],
            Self::Zed => vec![config.join("zed/settings.json")],
            Self::Cursor => vec![home.join(".cursor/mcp.json")],
            Self::Qwen => vec![home.join(".qwen/settings.json")],
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                vec![home.join("Library/Application Support/Claude/claude_desktop_config.json")]
            }
            Self::ClaudeDesktop => vec![config.join("Claude/claude_desktop_config.json")],
            Self::Goose => vec![config.join("goose/config.yaml")],
            Self::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
            Self::Copilot => {
                let folder = around.path("COPILOT_HOME").unwrap_or_else(|| home.join(".copilot"));
                vec![folder.join("mcp-config.json")]
            }
        }
    }

    fn project_files(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[".mcp.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Gemini => &[".gemini/settings.json"],
            Self::Opencode => &["opencode.jsonc", "opencode.json"],
            Self::Vscode => &[".vscode/mcp.json"],
            Self::Zed => &[".zed/settings.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::Qwen => &[".qwen/settings.json"],
            Self::ClaudeDesktop | Self::Goose | Self::Windsurf | Self::Copilot => &[],
        }
    }
}

impl EntryLocation {
    /// The file's text with our entry; what the user added to the entry stays.
    pub(super) fn put(self, text: &str, entry: &ServerEntry) -> anyhow::Result<String> {
        let file = self.read(text)?;
        let existing = file.get(self.section).and_then(|servers| servers.get(NAME)).unwrap_or(&Value::Null);
        let entry = entry.iter().map(|(key, wanted)| (*key, merged(&existing[*key], wanted)));
        let entry = entry.filter(|(key, wanted)| existing[*key] != *wanted).collect();
        match self.format {
            SettingsSyntax::Json => jsonc::put(text, self.section, NAME, &entry),
            SettingsSyntax::Toml => toml_text::put(text, self.section, NAME, &entry),
            SettingsSyntax::Yaml => yaml_text::put(text, self.section, NAME, &entry),
        }
    }

    /// The file's text without our entry.
    pub(super) fn remove(self, text: &str) -> anyhow::Result<String> {
        match self.format {
            SettingsSyntax::Json => jsonc::remove(text, self.section, NAME),
            SettingsSyntax::Toml => toml_text::remove(text, self.section, NAME),
            SettingsSyntax::Yaml => yaml_text::remove(text, self.section, NAME),
        }
    }

    /// What the file says.
    pub(super) fn read(self, text: &str) -> anyhow::Result<Value> {
        match self.format {
            SettingsSyntax::Json => jsonc::read(text),
            SettingsSyntax::Toml => toml_text::read(text),
            SettingsSyntax::Yaml => yaml_text::read(text),
        }
    }
}

/// `wanted`, with what a user may have made of it: arguments behind ours, and numbers and switches, which are a matter of
/// taste.
fn merged(existing: &Value, wanted: &Value) -> Value {
    match (existing, wanted) {
        (Value::Number(_), Value::Number(_)) | (Value::Bool(_), Value::Bool(_)) => existing.clone(),
        (Value::Array(existing), Value::Array(wanted)) => {
            let ours = existing.get(..wanted.len()).is_some_and(|start| start.last() == wanted.last());
            let added = if ours { &existing[wanted.len()..] } else { &[] };
            wanted.iter().chain(added).cloned().collect()
        }
        _ => wanted.clone(),
    }
}

impl<'a> ClientEnvironment<'a> {
    pub(crate) fn home(self) -> PathBuf {
        home_folder(self.variables)
    }

    fn path(self, name: &str) -> Option<PathBuf> {
        absolute_path(self.variables, name)
    }

    /// The repository the folder is in, or else the folder.
    fn project(self) -> &'a Path {
        self.folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(self.folder)
    }
}
