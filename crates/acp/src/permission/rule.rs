//! Rules: `allow edit src/**`, `refuse execute`, `allow execute git status*`.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use agent_client_protocol_schema::v1::{ToolCall, ToolKind};
use regex::Regex;

use super::command::{command, commands_in};
use super::paths;
use crate::tool_kind::{TOOL_KINDS, kind_named, name_of_kind};

/// Allows or refuses calls of one kind.
#[derive(Debug, Clone)]
pub(crate) struct PermissionRule {
    /// What it does.
    pub(crate) effect: RuleEffect,
    kind: RuleScope,
    pattern: Option<(String, Regex)>,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleEffect {
    /// The call may go on.
    Allow,
    /// It may not.
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleScope {
    Any,
    Of(ToolKind),
}

/// Why a rule is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    /// It does not begin right.
    #[error("a rule begins with `allow` or `deny`, for example `allow edit src/**`")]
    NoEffect,
    /// The kind is missing or none.
    #[error("`{0}` is no kind of tool; use {kinds} or `*`", kinds = kinds())]
    Kind(String),
}

fn kinds() -> String {
    TOOL_KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl FromStr for PermissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.splitn(3, char::is_whitespace).map(str::trim);
        let effect = match words.next() {
            Some("allow") => RuleEffect::Allow,
            Some("deny" | "refuse") => RuleEffect::Refuse,
            _ => return Err(RuleError::NoEffect),
        };
        let kind = words.next().unwrap_or_default();
        let kind = match kind_named(kind) {
            Some(known) => RuleScope::Of(known),
            None if kind == "*" => RuleScope::Any,
            None => return Err(RuleError::Kind(kind.to_owned())),
        };
        let pattern = words.next().filter(|pattern| !pattern.is_empty());
        let fits = match (&kind, effect) {
            (RuleScope::Of(ToolKind::Execute), RuleEffect::Allow) => PatternSyntax::Arguments,
            (RuleScope::Of(ToolKind::Execute), RuleEffect::Refuse) => PatternSyntax::Anything,
            (RuleScope::Any | RuleScope::Of(_), _) => PatternSyntax::Paths,
        };
        let pattern = pattern.map(|pattern| (pattern.to_owned(), glob(pattern, fits)));
        Ok(Self { effect, kind, pattern })
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            RuleEffect::Allow => "allow",
            RuleEffect::Refuse => "deny",
        };
        let kind = match &self.kind {
            RuleScope::Any => "*",
            RuleScope::Of(kind) => name_of_kind(*kind).unwrap_or("*"),
        };
        write!(f, "{effect} {kind}")?;
        self.pattern.iter().try_for_each(|(pattern, _)| write!(f, " {pattern}"))
    }
}

/// What a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSubject {
    kind: ToolKind,
    /// Seen from the workspace; those outside of it are absolute.
    paths: Vec<String>,
    command: Option<String>,
    /// What stands for the command where the agent does not tell it.
    title: String,
}

impl RuleSubject {
    /// What the call says about itself.
    pub(crate) fn of(call: &ToolCall, workspace: &Path) -> Self {
        let paths = paths(call).iter().map(|path| seen_from(workspace, path)).collect();
        Self { kind: call.kind, paths, command: command(call), title: call.title.clone() }
    }
}

impl PermissionRule {
    /// A pattern of an `allow` must fit every file of the call, and the call must name one; that of a `deny`, any file. For
    /// commands likewise: an `allow` fits the one command that the line is, a `deny` any that is in it.
    pub(crate) fn applies_to(&self, subject: &RuleSubject) -> bool {
        if !self.concerns(subject) {
            return false;
        }
        let Some((_, pattern)) = &self.pattern else { return true };
        let execute = self.kind == RuleScope::Of(ToolKind::Execute);
        let mut fits = subject.paths.iter().map(|path| pattern.is_match(path));
        match (self.effect, &subject.command) {
            (RuleEffect::Allow, command) if execute => {
                command.as_ref().is_some_and(|command| pattern.is_match(command.trim()))
            }
            (RuleEffect::Refuse, command) if execute => {
                let line = command.as_ref().unwrap_or(&subject.title);
                commands_in(line).iter().any(|command| pattern.is_match(command))
            }
            (RuleEffect::Allow, _) => !subject.paths.is_empty() && fits.all(|fits| fits),
            (RuleEffect::Refuse, _) => fits.any(|fits| fits),
        }
    }

    /// Whether it is about calls of this kind. One that has a command and does not say its kind runs it, for a `deny`.
    fn concerns(&self, subject: &RuleSubject) -> bool {
        let runs = subject.kind == ToolKind::Other && subject.command.is_some();
        match &self.kind {
            RuleScope::Any => true,
            RuleScope::Of(ToolKind::Execute) if runs && self.effect == RuleEffect::Refuse => true,
            RuleScope::Of(kind) => *kind == subject.kind,
        }
    }
}

/// `path` without `.` and `..`, relative when it is in the workspace. A path that climbs out is absolute, so a pattern
/// for the workspace does not fit it.
fn seen_from(workspace: &Path, path: &Path) -> String {
    let mut clean = PathBuf::new();
    for component in workspace.join(path).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean.strip_prefix(workspace).unwrap_or(&clean).to_string_lossy().into_owned()
}

/// What the wildcards of a pattern stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternSyntax {
    /// Names of files: `*` and `?` stay within a folder, `**` does not.
    Paths,
    /// Arguments of the command, never what would start another one: `git *` does not fit `git log; rm -rf .`.
    Arguments,
    /// Whatever there is.
    Anything,
}

fn glob(pattern: &str, fits: PatternSyntax) -> Regex {
    let (any, all) = match fits {
        PatternSyntax::Paths => ("[^/]", EVERYTHING),
        PatternSyntax::Arguments => (HARMLESS, HARMLESS),
        PatternSyntax::Anything => (EVERYTHING, EVERYTHING),
    };
    let mut out = String::from(r"\A");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '*' if rest.starts_with("**/") && fits == PatternSyntax::Paths => {
                out.push_str("(?:(?s:.)*/)?");
                &rest[3..]
            }
            '*' if rest.starts_with("**") => {
                out.extend([all, "*"]);
                &rest[2..]
            }
            '*' => {
                out.extend([any, "*"]);
                &rest[1..]
            }
            '?' => {
                out.push_str(any);
                &rest[1..]
            }
            literal => {
                out.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
                &rest[literal.len_utf8()..]
            }
        };
    }
    Regex::new(&(out + r"\z")).expect("escaped text and fixed pieces")
}

const EVERYTHING: &str = "(?s:.)";
const HARMLESS: &str = r"[^;&|<>$`(){}\n\r\\]";
