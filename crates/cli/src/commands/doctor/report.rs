//! What was found, for people and for programs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Section {
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
pub(super) enum Status {
    /// As it should be.
    Good,
    /// Neither good nor bad, but worth knowing.
    Note,
    /// Something does not work that somebody meant to work.
    Warning,
    /// Cells can not run.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    section: Section,
    status: Status,
    text: String,
    /// The command, or failing that the words, that help.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The same for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    details: Value,
}

impl Check {
    pub(super) fn good(section: Section, text: impl Into<String>) -> Self {
        Self::new(section, Status::Good, text)
    }

    pub(super) fn note(section: Section, text: impl Into<String>) -> Self {
        Self::new(section, Status::Note, text)
    }

    pub(super) fn warning(section: Section, text: impl Into<String>) -> Self {
        Self::new(section, Status::Warning, text)
    }

    pub(super) fn broken(section: Section, text: impl Into<String>) -> Self {
        Self::new(section, Status::Broken, text)
    }

    pub(super) fn new(section: Section, status: Status, text: impl Into<String>) -> Self {
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
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shape<'a> {
            healthy: bool,
            checks: &'a [Check],
        }
        Shape { healthy: self.healthy(), checks: &self.checks }.serialize(serializer)
    }
}

impl Report {
    pub(super) fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Cells can run.
    pub(super) fn healthy(&self) -> bool {
        self.checks.iter().all(|check| check.status != Status::Broken)
    }

    pub(super) fn text(&self) -> String {
        let signs = Signs::for_stdout();
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
        let verdict = match (count(Status::Broken), count(Status::Warning)) {
            (0, 0) => "Everything works.".to_owned(),
            (0, 1) => "Cells run; one thing is worth a look.".to_owned(),
            (0, warnings) => format!("Cells run; {warnings} things are worth a look."),
            (_, _) => "Cells can not run before what is marked is put right.".to_owned(),
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

fn title(section: Section) -> &'static str {
    match section {
        Section::Settings => "Settings",
        Section::Folders => "Folders",
        Section::Python => "Python",
        Section::Kernel => "Kernel",
        Section::Jupyter => "Jupyter kernels",
        Section::Gateway => "Gateway",
        Section::Clients => "Programs that use the tools (MCP)",
        Section::Agents => "Agents for notebooks (ACP)",
        Section::Leftovers => "Leftovers",
    }
}

/// How a status is marked.
#[derive(Clone, Copy)]
enum Signs {
    Colours,
    Symbols,
    Words,
}

impl Signs {
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

    fn sign(self, status: Status) -> String {
        let (word, symbol, colour) = match status {
            Status::Good => ("ok  ", "✓", "32"),
            Status::Note => ("    ", "·", "2"),
            Status::Warning => ("warn", "!", "33"),
            Status::Broken => ("FAIL", "✗", "31"),
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
