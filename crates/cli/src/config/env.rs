//! Settings from the environment: the only place that knows our variables' names.

use std::collections::HashMap;
use std::ffi::OsString;

use anyhow::{Context as _, anyhow, bail};
use cellwright_tools::RunMode;
use toml::Value;

use super::layers::SettingOverride;

/// Names the caller of a command.
pub(crate) const CALLER: &str = "CELLWRIGHT_CALLER";

/// Names a file for shells to read instead of login files.
pub(crate) const SHELL_SNAPSHOT: [&str; 2] = ["CELLWRIGHT_SHELL_SNAPSHOT", "PI_SHELL_SNAPSHOT"];

/// Variables that the program reads and that set no key, each with what it does.
#[cfg(test)]
pub(super) const PROGRAM_VARIABLES: &[(&str, &str)] = &[
    (CALLER, "names the caller of a command, so that several commands share what they have read"),
    (SHELL_SNAPSHOT[0], "a file that shells read instead of your login files"),
    (SHELL_SNAPSHOT[1], "the same, by its older name"),
    ("CELLWRIGHT_DEBUG_STARTUP", "1: the stages of starting a kernel, with their times, on stderr"),
    ("PI_DEBUG_STARTUP", "the same, by its older name"),
    ("NO_COLOR", "no colours, if it is set"),
    ("CLICOLOR_FORCE", "1: colours in a pipe too"),
    ("CLICOLOR", "0: no colours"),
    ("COLORFGBG", "the terminal's colours; on a light background, darker ones are used"),
    ("COLUMNS", "the width of `cellwright show` without a terminal"),
    ("XDG_CONFIG_HOME", "where the settings folder is (`~/.config`)"),
    ("XDG_DATA_HOME", "where the managed Python environment is (`~/.local/share`)"),
    ("XDG_CACHE_HOME", "where the unpacked Python runner is (`~/.cache`)"),
    ("XDG_STATE_HOME", "where artifacts, undo and journals are (`~/.local/state`)"),
    ("XDG_RUNTIME_DIR", "where sockets and tokens are (a private folder in `XDG_STATE_HOME`)"),
];

/// A variable that sets a key. If several are set, the first in the table wins.
pub(super) struct SettingVariable {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    read: fn(&str) -> anyhow::Result<Value>,
}

const fn variable(
    name: &'static str,
    key: &'static str,
    read: fn(&str) -> anyhow::Result<Value>,
) -> SettingVariable {
    SettingVariable { name, key, read }
}

/// Whether to show the stages of the start. It is read before all settings, so it is not one.
pub(crate) fn asks_for_startup_times() -> bool {
    ["CELLWRIGHT_DEBUG_STARTUP", "PI_DEBUG_STARTUP"]
        .iter()
        .any(|name| std::env::var(name).is_ok_and(|value| matches!(switch(&value), Ok(Value::Boolean(true)))))
}

/// Ours before the older names they replace. Those stay: the founding documents promise `PI_` and `ACP_` names.
pub(super) const VARIABLES: &[SettingVariable] = &[
    variable("CELLWRIGHT_TOOLS", "tools.mode", tool_mode),
    variable("PI_PY", "tools.mode", tool_mode),
    variable("CELLWRIGHT_PYTHON", "python.path", text),
    variable("CELLWRIGHT_SKIP_CHECK", "python.skip_check", switch),
    variable("PI_PYTHON_SKIP_CHECK", "python.skip_check", switch),
    variable("CELLWRIGHT_KERNEL", "kernel.default", text),
    variable("CELLWRIGHT_KERNEL_LINK", "kernel.link", text),
    variable("CELLWRIGHT_TIMEOUT", "kernel.timeout", number),
    variable("CELLWRIGHT_IPC_TRACE", "kernel.trace", switch),
    variable("PI_PYTHON_IPC_TRACE", "kernel.trace", switch),
    variable("CELLWRIGHT_ARTIFACTS_DIR", "output.artifacts", text),
    variable("PI_ARTIFACTS_DIR", "output.artifacts", text),
    variable("CELLWRIGHT_TRUSTED_FOLDERS", "trust.folders", folders),
    variable("CELLWRIGHT_GATEWAY_URL", "gateway.url", text),
    variable("PI_PYTHON_GATEWAY_URL", "gateway.url", text),
    variable("CELLWRIGHT_GATEWAY_TOKEN", "gateway.token", text),
    variable("PI_PYTHON_GATEWAY_TOKEN", "gateway.token", text),
    variable("CELLWRIGHT_AGENT", "agent.default", text),
    variable("CELLWRIGHT_AGENT_COMMAND", "agent.command", text),
    variable("ACP_AGENT_COMMAND", "agent.command", text),
    variable("CELLWRIGHT_AGENT_ARGS", "agent.args", words),
    variable("ACP_AGENT_ARGS", "agent.args", words),
    variable("CELLWRIGHT_PERMISSIONS", "agent.permissions", text),
    variable("CELLWRIGHT_AGENT_TOOLS", "agent.tools", text),
    variable("CELLWRIGHT_AGENT_LOG", "agent.log", log_level),
    variable("ACP_LOG_LEVEL", "agent.log", log_level),
    variable("CELLWRIGHT_DEBUG_UPDATES", "agent.debug_updates", list),
    variable("ACP_DEBUG_UPDATES", "agent.debug_updates", list),
];

/// The variable that has kernels run on a gateway, unless another kernel is chosen.
pub(super) fn selects_gateway(environment: &HashMap<OsString, OsString>) -> Option<&'static str> {
    const NAME: &str = "PI_PYTHON_GATEWAY_URL";
    environment.get(&OsString::from(NAME)).is_some_and(|url| !url.is_empty()).then_some(NAME)
}

/// The keys the environment sets, each with the variable that set it. Empty variables count as not set.
pub(super) fn settings(environment: &HashMap<OsString, OsString>) -> anyhow::Result<Vec<SettingOverride>> {
    let mut found: Vec<SettingOverride> = Vec::new();
    for variable in VARIABLES {
        let Some(value) = environment.get(&OsString::from(variable.name)).and_then(|value| value.to_str())
        else {
            continue;
        };
        if value.is_empty() || found.iter().any(|(key, ..)| *key == variable.key) {
            continue;
        }
        let value = (variable.read)(value).context(variable.name)?;
        found.push((variable.key, value, variable.name));
    }
    Ok(found)
}

#[expect(clippy::unnecessary_wraps, reason = "a reader like the others, which can fail")]
fn text(value: &str) -> anyhow::Result<Value> {
    Ok(value.into())
}

fn number(value: &str) -> anyhow::Result<Value> {
    value.parse::<i64>().map(Value::from).map_err(|_| anyhow!("`{value}` is not a whole number"))
}

fn switch(value: &str) -> anyhow::Result<Value> {
    match value {
        "1" | "true" | "yes" | "on" => Ok(true.into()),
        "0" | "false" | "no" | "off" => Ok(false.into()),
        other => bail!("`{other}` is neither 1 nor 0"),
    }
}

/// As a shell splits them.
fn words(value: &str) -> anyhow::Result<Value> {
    shell_words::split(value)
        .map(Value::from)
        .map_err(|_| anyhow!("`{value}` has a quote that is not closed"))
}

#[expect(clippy::unnecessary_wraps, reason = "a reader like the others, which can fail")]
fn list(value: &str) -> anyhow::Result<Value> {
    Ok(value
        .split(',')
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect::<Vec<_>>()
        .into())
}

/// As `PATH` separates them.
#[expect(clippy::unnecessary_wraps, reason = "a reader like the others, which can fail")]
fn folders(value: &str) -> anyhow::Result<Value> {
    let folders = value.split(':').filter(|folder| !folder.is_empty());
    Ok(folders.map(ToOwned::to_owned).collect::<Vec<_>>().into())
}

fn log_level(value: &str) -> anyhow::Result<Value> {
    match value.to_lowercase().as_str() {
        "error" | "critical" => Ok("error".into()),
        "warn" | "warning" => Ok("warn".into()),
        "info" => Ok("info".into()),
        "debug" | "trace" => Ok("debug".into()),
        _ => bail!("`{value}` is not a log level; use error, warn, info or debug"),
    }
}

fn tool_mode(value: &str) -> anyhow::Result<Value> {
    Ok(value.parse::<RunMode>()?.to_string().into())
}
