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
    pub(crate) effect: RuleEffect,
    kind: RuleScope,
    pattern: Option<(String, Regex)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleEffect {
    Allow,
    Refuse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleScope {
    Any,
    Of(ToolKind),
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    /// It does not begin with an effect.
    #[error("a rule begins with `allow` or `deny`, for example `allow edit src/**`")]
    NoEffect,
    /// The kind is missing or unknown.
    #[error("`{0}` is not a kind of tool; use {kinds} or `*`", kinds = kinds())]
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

/// The facts that a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSubject {
    kind: ToolKind,
    /// Relative to the workspace. Paths outside of it are absolute.
    paths: Vec<String>,
    command: Option<String>,
    /// Stands in for the command if the agent does not name it.
    title: String,
}

impl RuleSubject {
    /// The facts of a call.
    pub(crate) fn of(call: &ToolCall, workspace: &Path) -> Self {
        let paths = paths(call).iter().map(|path| seen_from(workspace, path)).collect();
        Self { kind: call.kind, paths, command: command(call), title: call.title.clone() }
    }
}

impl PermissionRule {
    /// The pattern of an `allow` must match every file of the call, and there must be one. That of
    /// a `deny` must match any file. Commands likewise: an `allow` must match the whole line, a
    /// `deny` any command in it.
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

    /// Whether the rule is about calls of this kind. To a `deny`, a call with a command and no kind
    /// runs the command.
    fn concerns(&self, subject: &RuleSubject) -> bool {
        let runs = subject.kind == ToolKind::Other && subject.command.is_some();
        match &self.kind {
            RuleScope::Any => true,
            RuleScope::Of(ToolKind::Execute) if runs && self.effect == RuleEffect::Refuse => true,
            RuleScope::Of(kind) => *kind == subject.kind,
        }
    }
}

/// `path` without `.` and `..`, and relative if it is in the workspace. A path that leaves the
/// workspace is absolute, so a pattern for the workspace does not match it.
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

/// What the wildcards of a pattern match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternSyntax {
    /// Names of files: `*` and `?` stay within a folder, `**` does not.
    Paths,
    /// Arguments, but nothing that starts another command: `git *` does not match `git log; rm -rf
    /// .`.
    Arguments,
    /// Everything.
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
