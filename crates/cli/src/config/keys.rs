//! The table of settings: one row each, for checking files, for the environment, and for `cellwright config`.

/// A setting.
pub(crate) struct SettingKey {
    /// Its dotted name in a settings file.
    pub(crate) name: &'static str,
    /// What it is for, in a line.
    pub(crate) about: &'static str,
    /// Who may set it.
    pub(crate) scope: SettingScope,
}

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// Anyone.
    Project,
    /// Only the user: a cloned repository must not be able to widen what agents may reach.
    User,
}

const fn key(name: &'static str, scope: SettingScope, about: &'static str) -> SettingKey {
    SettingKey { name, about, scope }
}

use SettingScope::{Project, User};

/// Every setting there is.
pub(crate) const KEYS: &[SettingKey] = &[
    key("tools.mode", Project, "what agents are offered: both, py-only or bash-only"),
    key("python.path", Project, "the interpreter to run cells with, instead of the one found"),
    key("python.skip_check", Project, "do not try Python before offering it"),
    key("environment.allow", User, "variables kernels may see beyond the usual ones; NAME or PREFIX*"),
    key("environment.deny", Project, "variables kernels must not see"),
    key("kernel.default", Project, "runner[:PYTHON], jupyter:NAME, gateway[:NAME] or existing:FILE"),
    key("kernel.link", Project, "how to talk to Jupyter kernels here: ipc (Unix sockets) or tcp (loopback)"),
    key("kernel.mode", Project, "session: calls share a kernel; per-call: each has its own"),
    key("kernel.timeout", Project, "seconds a cell may take; 0 for no limit"),
    key("kernel.retry", Project, "once: run a cell again when the kernel died half-way; never"),
    key("kernel.trace", Project, "log every message between host and kernel"),
    key("session.limit", Project, "how many kernels may live at once"),
    key("session.idle", Project, "seconds after which a session nobody holds is ended"),
    key("session.shared", Project, "keep sessions in the per-user daemon"),
    key("session.memory", Project, "megabytes from which a session's memory is reported; 0: never"),
    key("session.linger", User, "seconds the session daemon stays with nothing to do"),
    key("output.budget", Project, "bytes of text a reply shows; the rest goes to an artifact"),
    key("output.columns", Project, "bytes of a line a reply shows"),
    key("output.artifacts", User, "the folder for whole outputs"),
    key(
        "output.background_after",
        Project,
        "seconds after which a tool call that still runs returns a handle and goes on in the background; 0: never",
    ),
    key("files.roots", User, "folders file tools may touch, instead of the start folder"),
    key("files.allow_outside", User, "let file tools touch every path"),
    key("gateway.url", User, "a Jupyter gateway or server to run kernels on"),
    key("gateway.token", User, "its token"),
    key("agent.default", Project, "the agent that cells of the agent kernel go to, by name"),
    key("agent.command", User, "an agent to start instead of those declared and found"),
    key("agent.args", User, "its arguments"),
    key("agent.permissions", User, "when an agent asks: ask you, auto (allow), or deny"),
    key("agent.files", User, "offer agents to read and write files through the kernel"),
    key("agent.log", Project, "what the agent kernel logs: error, warn, info or debug"),
    key("agent.debug_updates", Project, "updates of agents to log by name, or all"),
];

/// The key of that name.
pub(crate) fn find(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// The known key nearest to a misspelt one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    // A section in place of one of its settings: `kernel = "gateway"` chooses a kernel.
    if name == "kernel" {
        return Some("kernel.default");
    }
    let distance = |key: &&SettingKey| strsim::damerau_levenshtein(key.name, name);
    let best = KEYS.iter().min_by_key(distance)?;
    let same_last_word = best.name.rsplit('.').next() == name.rsplit('.').next();
    (distance(&best) <= 3 || same_last_word).then_some(best.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UserSettings;

    #[test]
    fn every_setting_has_a_row_and_every_row_a_setting() {
        let json = serde_json::to_value(UserSettings::default()).unwrap();
        let mut fields = Vec::new();
        // `agents` has a table for each agent instead of keys we know.
        for (section, values) in json.as_object().unwrap().iter().filter(|(name, _)| *name != "agents") {
            fields.extend(values.as_object().unwrap().keys().map(|field| format!("{section}.{field}")));
        }
        let mut rows: Vec<_> = KEYS.iter().map(|key| key.name.to_owned()).collect();
        fields.sort();
        rows.sort();
        assert_eq!(fields, rows);
    }
}
