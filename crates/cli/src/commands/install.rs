//! `cellwright mcp install`

mod client;
mod jsonc;
mod settings_file;
mod toml_text;
mod yaml_text;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_notebook::line_runs;
use serde_json::Value;

pub(crate) use client::{ClientEnvironment, InstallScope, McpClient, NAME};

use crate::config::LoadedConfig;
use crate::{print, trusting};

/// Lines longer than this are not shown: they are files without line ends.
const LONG: usize = 300;

/// Add Cellwright to a program that uses MCP servers
///
/// Writes one entry into the program's settings file and changes no other byte of it. Running the command again
/// changes nothing.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[command(after_help = "\
Examples:
  cellwright mcp install claude --dry-run
  cellwright mcp install claude
  cellwright mcp install codex --print
  cellwright mcp install vscode --project
  cellwright mcp install zed --remove")]
pub(crate) struct InstallCommand {
    /// Which program
    #[arg(value_enum)]
    client: McpClient,
    /// Write the project's settings file instead of your own: in the root of the repository, or in this folder
    #[arg(long)]
    project: bool,
    /// Only print the entry, so that you can add it by hand
    #[arg(long, conflicts_with = "remove")]
    print: bool,
    /// Show which lines would change, and write nothing
    #[arg(long, conflicts_with_all = ["print", "trust"])]
    dry_run: bool,
    /// Remove the entry
    #[arg(long)]
    remove: bool,
    /// Trust the project in the current folder, so that its settings, modules and Python may be used
    #[arg(long, conflicts_with_all = ["remove", "print"])]
    trust: bool,
}

impl InstallCommand {
    /// The command that removes the entry from the user's file of a client.
    pub(crate) fn removal(client: McpClient) -> Self {
        Self { client, project: false, print: false, dry_run: false, remove: true, trust: false }
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let variables: HashMap<OsString, OsString> = std::env::vars_os().collect();
        let folder = std::env::current_dir().context("the current folder is gone")?;
        if self.trust {
            trusting::trust(&folder)?;
        } else if !self.remove
            && !self.print
            && !self.dry_run
            // The entry does not depend on settings, so neither does adding it.
            && let Ok(config) = LoadedConfig::load(&folder, Vec::new())
        {
            trusting::settled(config, &folder)?;
        }
        let around = ClientEnvironment { variables: &variables, folder: &folder };
        let scope = if self.project { InstallScope::Project } else { InstallScope::User };
        let Some(path) = self.client.file(scope, around) else {
            anyhow::bail!("{} has no settings file for projects; leave out --project", self.client.title());
        };
        let place = self.client.place();
        let entry = self.client.entry(&command(&variables)?);
        if self.print {
            return print::plain(&place.put("", &entry)?);
        }
        let before = settings_file::read(&path)?;
        let text = before.as_deref().unwrap_or_default();
        let after = if self.remove { place.remove(text) } else { place.put(text, &entry) };
        let after = after.map_err(|why| self.by_hand(&path, &why))?;
        if after == text {
            return print::plain(&self.nothing_to_do(&path, text));
        }
        self.changes_nothing_else(text, &after).map_err(|why| self.by_hand(&path, &why))?;
        if self.dry_run {
            let lines = changed_lines(text, &after);
            return print::plain(&format!("would change {}\n{lines}", path.display()));
        }
        settings_file::replace(&path, before.as_deref(), &after, scope)?;
        print::plain(&self.done(&path, text, &after))
    }

    /// The last guard of a file that is not ours: apart from our entry it must say what it said.
    fn changes_nothing_else(&self, before: &str, after: &str) -> anyhow::Result<()> {
        let place = self.client.place();
        let others = |text: &str| {
            let mut value = place.read(text)?;
            if let Some(servers) = value.get_mut(place.section).and_then(Value::as_object_mut) {
                servers.remove(NAME);
            }
            // A section that only ever held our entry is the same as none.
            if value.get(place.section).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
                value.as_object_mut().map(|file| file.remove(place.section));
            }
            anyhow::Ok(value)
        };
        anyhow::ensure!(others(before)? == others(after)?, "more than our entry would change");
        Ok(())
    }

    fn by_hand(&self, path: &Path, why: &anyhow::Error) -> anyhow::Error {
        let client = self.client.argument();
        anyhow::anyhow!(
            "{why}; nothing was written, `cellwright mcp install {client} --print` shows what to add by hand"
        )
        .context(path.display().to_string())
    }

    /// What to say of an entry that the user switched off: it stays off.
    fn switched_off(&self, text: &str) -> &'static str {
        let file = self.client.place().read(text).unwrap_or_default();
        match file.get(self.client.section()).and_then(|servers| servers.get(NAME)) {
            Some(entry) if is_off(entry) => "but it is switched off there: switch it on to use it\n",
            _ => "",
        }
    }

    fn nothing_to_do(&self, path: &Path, before: &str) -> String {
        let (title, path) = (self.client.title(), path.display());
        if self.remove {
            format!("{title} has no entry `{NAME}` in {path}\n")
        } else {
            format!("{title} has it already: `{NAME}` in {path}\n{}", self.switched_off(before))
        }
    }

    fn done(&self, path: &Path, before: &str, after: &str) -> String {
        let (title, path) = (self.client.title(), path.display());
        let mut message = if self.remove {
            format!("took `{NAME}` out of {path}\n")
        } else if self.switched_off(after).is_empty() {
            format!("{title} can use it now: `{NAME}` in {path}\n")
        } else {
            format!("{title} has it: `{NAME}` in {path}\n{}", self.switched_off(after))
        };
        message.push_str(&changed_lines(before, after));
        if self.remove {
            return message;
        }
        message.extend([self.client.next_step(), "\n"]);
        if self.project {
            let note = "may ask each person before it trusts this project; the path is that of this machine";
            message.extend([title, " ", note, "\n"]);
        }
        message
    }
}

/// What a change removes and adds, line by line.
fn changed_lines(before: &str, after: &str) -> String {
    let mut shown = String::new();
    // Only what changed: what is around it, on the same line too, may be other servers' secrets.
    let before: Vec<_> = before.split_inclusive('\n').collect();
    let after: Vec<_> = after.split_inclusive('\n').collect();
    for run in line_runs(&before, &after).into_iter().filter(|run| !run.is_kept) {
        let (old, new) = (before[run.old].concat(), after[run.new].concat());
        let (old, new) = differing(&old, &new);
        for (sign, text) in [('-', old), ('+', new)] {
            for line in text.lines() {
                let line = match line.trim_end() {
                    line if line.len() > LONG => format!("(a line of {} bytes)", line.len()),
                    line => line.to_owned(),
                };
                shown.push_str(format!("  {sign} {line}").trim_end());
                shown.push('\n');
            }
        }
    }
    shown
}

/// What is left of two texts without what they begin and end with in common. With nothing in common they are whole.
fn differing<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let common = |pairs: &mut dyn Iterator<Item = (char, char)>| {
        pairs.take_while(|(old, new)| old == new).map(|(same, _)| same.len_utf8()).sum::<usize>()
    };
    let head = common(&mut old.chars().zip(new.chars()));
    let (old, new) = (&old[head..], &new[head..]);
    let tail = common(&mut old.chars().rev().zip(new.chars().rev()));
    (&old[..old.len() - tail], &new[..new.len() - tail])
}

/// The command that starts this program, for a file that may outlive this version of it: the name on `PATH`
/// when that leads here, which package managers keep when they replace what is behind it.
pub(crate) fn command(variables: &HashMap<OsString, OsString>) -> anyhow::Result<String> {
    let here = std::env::current_exe().context("could not find out where this program is")?;
    let stable =
        on_path(variables, NAME).filter(|found| found.canonicalize().ok() == here.canonicalize().ok());
    let command = stable.unwrap_or(here);
    let text = command.to_str().with_context(|| format!("{} is not UTF-8", command.display()))?;
    Ok(text.to_owned())
}

/// The first program of that name on `PATH`.
pub(crate) fn on_path(variables: &HashMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let path = variables.get(OsStr::new("PATH"))?;
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file())
}

fn is_off(entry: &Value) -> bool {
    entry.get("enabled") == Some(&Value::Bool(false)) || entry.get("disabled") == Some(&Value::Bool(true))
}

/// What a client's file says of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstallState {
    /// Nothing.
    Absent,
    /// It starts this program.
    Ours,
    /// It starts another one.
    Another(String),
    /// It has us, but switched off.
    Off,
}

/// All that a client's file says; nothing when there is no file. Errors when it cannot be read.
pub(crate) fn settings_of(client: McpClient, path: &Path) -> anyhow::Result<Option<Value>> {
    let Some(text) = settings_file::read(path)? else { return Ok(None) };
    let read = client.place().read(&text);
    read.map(Some).with_context(|| path.display().to_string())
}

impl InstallState {
    /// What the file of `client` says. Errors when it cannot be read.
    pub(crate) fn of(client: McpClient, path: &Path) -> anyhow::Result<Self> {
        let Some(file) = settings_of(client, path)? else { return Ok(Self::Absent) };
        let place = client.place();
        let Some(entry) = file.get(place.section).and_then(|servers| servers.get(NAME)) else {
            return Ok(Self::Absent);
        };
        if is_off(entry) {
            return Ok(Self::Off);
        }
        let command = match entry.get("command").or(entry.get("cmd")).unwrap_or(&Value::Null) {
            Value::Array(words) => words.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let command = command.unwrap_or_default();
        let here = std::env::current_exe().and_then(|here| here.canonicalize()).ok();
        if here.is_some() && Path::new(command).canonicalize().ok() == here {
            return Ok(Self::Ours);
        }
        Ok(Self::Another(command.to_owned()))
    }
}
