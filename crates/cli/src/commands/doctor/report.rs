//! What was found, for people and for programs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoctorTopic {
    Settings,
    Folders,
    Python,
    Kernel,
    Jupyter,
    Gateway,
    Clients,
    Agents,
    Leftovers,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckStatus {
    /// As it should be.
    Good,
    /// Neither good nor bad, but worth knowing.
    Note,
    /// Something does not work that somebody meant to work.
    Warning,
    /// Cells cannot run.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct DoctorCheck {
    section: DoctorTopic,
    status: CheckStatus,
    text: String,
    /// The command, or failing that the words, that help.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The same for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    details: Value,
}

impl DoctorCheck {
    pub(super) fn good(section: DoctorTopic, text: impl Into<String>) -> Self {
        Self::new(section, CheckStatus::Good, text)
    }

    pub(super) fn note(section: DoctorTopic, text: impl Into<String>) -> Self {
        Self::new(section, CheckStatus::Note, text)
    }

    pub(super) fn warning(section: DoctorTopic, text: impl Into<String>) -> Self {
        Self::new(section, CheckStatus::Warning, text)
    }

    pub(super) fn broken(section: DoctorTopic, text: impl Into<String>) -> Self {
        Self::new(section, CheckStatus::Broken, text)
    }

    pub(super) fn new(section: DoctorTopic, status: CheckStatus, text: impl Into<String>) -> Self {
        Self { section, status, text: text.into(), fix: None, details: Value::Null }
    }

    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    pub(super) fn details(self, details: Value) -> Self {
        Self { details, ..self }
    }
}

/// Everything that was looked at, in order.
#[derive(Debug, Default)]
pub(super) struct DoctorReport {
    checks: Vec<DoctorCheck>,
}

impl Serialize for DoctorReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ReportJson<'a> {
            healthy: bool,
            checks: &'a [DoctorCheck],
        }
        ReportJson { healthy: self.healthy(), checks: &self.checks }.serialize(serializer)
    }
}

impl DoctorReport {
    pub(super) fn add(&mut self, check: DoctorCheck) {
        self.checks.push(check);
    }

    /// Cells can run.
    pub(super) fn healthy(&self) -> bool {
        self.checks.iter().all(|check| check.status != CheckStatus::Broken)
    }

    pub(super) fn text(&self) -> String {
        let signs = StatusSigns::for_stdout();
        let mut out = String::new();
        let mut section = None;
        for check in &self.checks {
            if section != Some(check.section) {
                let gap = if section.is_some() { "\n" } else { "" };
                section = Some(check.section);
                writeln!(out, "{gap}{}", title(check.section)).expect("a String takes everything");
            }
            let text = check.text.replace('\n', "\n        ");
            writeln!(out, "  {} {text}", signs.sign(check.status)).expect("a String takes everything");
            if let Some(fix) = &check.fix {
                writeln!(out, "  {} {fix}", signs.fix()).expect("a String takes everything");
            }
        }
        let count = |status| self.checks.iter().filter(|check| check.status == status).count();
        let verdict = match (count(CheckStatus::Broken), count(CheckStatus::Warning)) {
            (0, 0) => "Everything works.".to_owned(),
            (0, 1) => "Cells run; one thing is worth a look.".to_owned(),
            (0, warnings) => format!("Cells run; {warnings} things are worth a look."),
            (_, _) => "Cells cannot run until the marked problems are fixed.".to_owned(),
        };
        out + "\n" + &verdict + "\n"
    }
}

/// A path as a shell takes it.
pub(super) fn shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn title(section: DoctorTopic) -> &'static str {
    match section {
        DoctorTopic::Settings => "Settings",
        DoctorTopic::Folders => "Folders",
        DoctorTopic::Python => "Python",
        DoctorTopic::Kernel => "Kernel",
        DoctorTopic::Jupyter => "Jupyter kernels",
        DoctorTopic::Gateway => "Gateway",
        DoctorTopic::Clients => "Programs that use the tools (MCP)",
        DoctorTopic::Agents => "Agents for notebooks (ACP)",
        DoctorTopic::Leftovers => "Leftovers",
    }
}

/// How a status is marked.
#[derive(Clone, Copy)]
enum StatusSigns {
    Colours,
    Symbols,
    Words,
}

impl StatusSigns {
    fn for_stdout() -> Self {
        match (
            io::stdout().is_terminal(),
            std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        ) {
            (true, false) => Self::Colours,
            (true, true) => Self::Symbols,
            (false, _) => Self::Words,
        }
    }

    fn sign(self, status: CheckStatus) -> String {
        let (word, symbol, colour) = match status {
            CheckStatus::Good => ("ok  ", "✓", "32"),
            CheckStatus::Note => ("    ", "·", "2"),
            CheckStatus::Warning => ("warn", "!", "33"),
            CheckStatus::Broken => ("FAIL", "✗", "31"),
        };
        match self {
            Self::Colours => format!("\x1b[{colour}m{symbol}\x1b[0m"),
            Self::Symbols => symbol.to_owned(),
            Self::Words => word.to_owned(),
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::Colours | Self::Symbols => "  →",
            Self::Words => "      fix:",
        }
    }
}
