//! The table of settings: one row each, for checking files, for the environment, and for `cellwright config`.

/// A setting.
pub(crate) struct SettingKey {
    /// Its dotted name in a settings file.
    pub(crate) name: &'static str,
    /// What it is for, in a line.
    pub(crate) about: &'static str,
    /// Which files may set it.
    pub(crate) scope: SettingScope,
}

/// Which files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// The user's and a project's.
    Project,
    /// The same, but a project cannot permit what the user's forbids.
    Restriction,
    /// Only the user's: a cloned repository must not be able to widen what agents may reach.
    User,
}

const fn key(name: &'static str, scope: SettingScope, about: &'static str) -> SettingKey {
    SettingKey { name, about, scope }
}

use SettingScope::{Project, Restriction, User};

/// Every setting there is.
pub(crate) const KEYS: &[SettingKey] = &[
    key(
        "tools.mode",
        Restriction,
        "which tools that run code agents get: both, py-only (no bash), bash-only (no eval) or edit-only (none)",
    ),
    key("python.path", Project, "the Python that runs cells, instead of the one that is found"),
    key("python.skip_check", Project, "do not check Python before offering it"),
    key("environment.allow", User, "more environment variables that kernels may see: NAME or PREFIX*"),
    key("environment.deny", Restriction, "environment variables that kernels must not see"),
    key(
        "kernel.default",
        Project,
        "the kernel that runs cells: runner[:PYTHON], jupyter:NAME, gateway[:NAME or :ID] or existing:FILE, :ID or :newest",
    ),
    key(
        "kernel.link",
        Restriction,
        "the connection to Jupyter kernels on this machine: ipc (Unix sockets), tcp (loopback) or auto (ipc, or tcp for kernels that need it)",
    ),
    key("kernel.mode", Project, "session (calls share a kernel) or per-call (each call gets its own)"),
    key("kernel.timeout", Project, "seconds that a cell of a tool call may take; 0 for no limit"),
    key("kernel.retry", Project, "whether to run a cell again whose kernel died: never or once"),
    key("kernel.trace", Project, "log every message between Cellwright and the kernel"),
    key("session.limit", Project, "how many kernels may run at once"),
    key("session.idle", Project, "seconds after which an unused session ends that nobody named"),
    key("session.named_idle", Project, "seconds after which an unused session ends that --session named"),
    key("session.shared", Project, "keep sessions in the session daemon, so that they outlive the call"),
    key("session.memory", Project, "megabytes of memory above which a session is reported; 0 for never"),
    key(
        "session.reset",
        Project,
        "what to do with a reset while another one of the session is in progress: refuse or join",
    ),
    key("session.linger", User, "seconds after which the idle session daemon exits"),
    key("output.budget", Project, "bytes of text in a reply; the rest is stored as an artifact"),
    key("output.columns", Project, "bytes of a line in a reply"),
    key(
        "output.artifacts",
        User,
        "the folder for artifacts: outputs that are too long for a reply or a notebook",
    ),
    key(
        "output.background_after",
        Project,
        "seconds after which a running tool call returns a handle and continues in the background; 0 for never",
    ),
    key("files.roots", User, "folders that file tools may use, instead of the folder they start in"),
    key("files.allow_outside", User, "let file tools use every path"),
    key("trust.folders", User, "folders whose projects may bring settings, modules and Python environments"),
    key("gateway.url", User, "the Jupyter gateway or server that runs kernels"),
    key("gateway.token", User, "the token of that gateway or server"),
    key("agent.default", Project, "the name of the agent that the agent kernel starts"),
    key("agent.command", User, "the program of an agent to start instead of the declared and known ones"),
    key("agent.args", User, "the arguments of that program"),
    key(
        "agent.permissions",
        User,
        "what to do when an agent asks for permission: ask you, auto (allow) or deny",
    ),
    key("agent.files", User, "let agents read and write files through the kernel"),
    key(
        "agent.tools",
        User,
        "the tools that agents get: notebook (run code in its kernel, change its cells) or none",
    ),
    key("agent.log", Project, "what the agent kernel logs: error, warn, info or debug"),
    key("agent.debug_updates", Project, "names of the agents' updates to log, or all"),
];

/// The key of that name.
pub(crate) fn find(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// The known key nearest to a misspelt one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    // A section instead of one of its settings: `kernel = "gateway"` chooses a kernel.
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
