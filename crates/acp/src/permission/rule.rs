//! Rules: `allow edit src/**`, `refuse execute`, `allow execute git status*`.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use agent_client_protocol_schema::v1::{ToolCall, ToolKind};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;

use super::command::{command, essence, folder, has_environment};
use super::paths;
use super::shell::{SHELLS, SeenCommands};
use crate::agent::leads_to;
use crate::tool_kind::{TOOL_KINDS, kind_named, name_of_kind};

/// The kind of code that runs in the kernel of the notebook.
pub(crate) const RUN: &str = "run";

/// Allows or refuses calls of one kind.
#[derive(Debug, Clone)]
pub(crate) struct PermissionRule {
    pub(crate) effect: RuleEffect,
    kind: RuleScope,
    pattern: Option<RulePattern>,
}

/// What a rule matches, and how it was written.
#[derive(Debug, Clone)]
struct RulePattern {
    written: String,
    matcher: PatternMatcher,
}

#[derive(Debug, Clone)]
enum PatternMatcher {
    Command(Regex),
    Paths { set: GlobSet, reach: PathReach },
}

/// Which paths a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathReach {
    /// Those of the workspace, relative to it.
    Workspace,
    /// All of them, whole.
    Absolute,
    /// Both: a `deny` that begins with `**` reaches out of the workspace.
    Anywhere,
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
    /// Code in the kernel of the notebook.
    Run,
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
    /// The pattern is malformed.
    #[error("`{pattern}` is not a pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    /// The pattern can never match.
    #[error("`{pattern}` would never match: {reason}")]
    Never { pattern: String, reason: &'static str },
}

fn kinds() -> String {
    TOOL_KINDS.iter().map(|(name, _)| *name).chain([RUN]).collect::<Vec<_>>().join(", ")
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
            None if kind == RUN => RuleScope::Run,
            None => return Err(RuleError::Kind(kind.to_owned())),
        };
        let pattern = words.next().filter(|pattern| !pattern.is_empty());
        let pattern = pattern.map(|written| RulePattern::new(written, &kind, effect)).transpose()?;
        Ok(Self { effect, kind, pattern })
    }
}

impl RulePattern {
    fn new(written: &str, kind: &RuleScope, effect: RuleEffect) -> Result<Self, RuleError> {
        let matcher = match (kind, effect) {
            (RuleScope::Of(ToolKind::Execute), RuleEffect::Allow) if begins_with_shell(written) => {
                let reason = "a shell around a command is left out; write the command itself";
                return Err(RuleError::Never { pattern: written.to_owned(), reason });
            }
            (RuleScope::Of(ToolKind::Execute), RuleEffect::Allow) => {
                PatternMatcher::Command(command_glob(written, HARMLESS))
            }
            (RuleScope::Of(ToolKind::Execute), RuleEffect::Refuse) => {
                PatternMatcher::Command(command_glob(written, EVERYTHING))
            }
            (RuleScope::Of(ToolKind::Think | ToolKind::SwitchMode | ToolKind::Fetch) | RuleScope::Run, _) => {
                let reason = "calls of this kind name no files; leave the pattern out";
                return Err(RuleError::Never { pattern: written.to_owned(), reason });
            }
            (RuleScope::Any | RuleScope::Of(_), _) => paths_glob(written, effect)?,
        };
        Ok(Self { written: written.to_owned(), matcher })
    }

    fn fits_command(&self, command: &str) -> bool {
        match &self.matcher {
            PatternMatcher::Command(pattern) => pattern.is_match(command),
            PatternMatcher::Paths { .. } => false,
        }
    }

    fn fits_path(&self, path: &SubjectPath) -> bool {
        let PatternMatcher::Paths { set, reach } = &self.matcher else { return false };
        let inside = path.inside.as_ref().is_some_and(|inside| set.is_match(inside));
        match reach {
            PathReach::Workspace => inside,
            PathReach::Absolute => set.is_match(&path.whole),
            PathReach::Anywhere => inside || set.is_match(&path.whole),
        }
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
            RuleScope::Run => RUN,
        };
        write!(f, "{effect} {kind}")?;
        self.pattern.iter().try_for_each(|pattern| write!(f, " {}", pattern.written))
    }
}

/// The facts that a rule looks at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RuleSubject {
    kind: ToolKind,
    paths: Vec<SubjectPath>,
    command: Option<String>,
    /// What a `deny` looks at: the commands in the line, or in the title if there is no line.
    seen: SeenCommands,
    /// Whether the agent changes where or with which variables the command runs. A pattern that
    /// was allowed says nothing about that.
    special: CommandSetting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandSetting {
    Usual,
    OtherFolder,
    OwnEnvironment,
}

/// A path of a call, without `.` and `..`.
#[derive(Debug, PartialEq, Eq)]
struct SubjectPath {
    whole: PathBuf,
    /// Relative to the workspace, if it is in there.
    inside: Option<PathBuf>,
}

impl RuleSubject {
    /// The facts of a call. Links are followed, as far as they exist.
    pub(crate) fn of(call: &ToolCall, workspace: &Path) -> Self {
        let mut paths: Vec<PathBuf> = paths(call).iter().map(|path| clean(&workspace.join(path))).collect();
        let targets = paths.iter().filter_map(|path| leads_to(path, workspace)).map(|path| clean(&path));
        let targets: Vec<_> = targets.filter(|target| !paths.contains(target)).collect();
        paths.extend(targets);
        let inside = |whole: &Path| whole.strip_prefix(workspace).ok().map(Path::to_owned);
        let paths = paths.into_iter().map(|whole| SubjectPath { inside: inside(&whole), whole }).collect();
        let written = command(call);
        let command = written.as_deref().map(essence);
        // A `deny` also sees the shell that is left out of the command.
        let seen = SeenCommands::of(written.as_ref().unwrap_or(&call.title));
        let seen = if written == command { seen } else { seen.and(command.as_deref().unwrap_or_default()) };
        let special = if has_environment(call) {
            CommandSetting::OwnEnvironment
        } else if folder(call).is_some_and(|folder| clean(&workspace.join(folder)) != clean(workspace)) {
            CommandSetting::OtherFolder
        } else {
            CommandSetting::Usual
        };
        Self { kind: call.kind, paths, seen, command, special }
    }

    /// Whether its command runs something that cannot be seen.
    pub(crate) fn is_unclear(&self) -> bool {
        self.seen.unclear
    }
}

impl PermissionRule {
    /// The pattern of an `allow` must match every file of the call, and there must be one. That of
    /// a `deny` must match any file. Commands likewise: an `allow` must match the whole line, a
    /// `deny` any command in it. A line that cannot be seen through matches every `deny`.
    pub(crate) fn applies_to(&self, subject: &RuleSubject) -> bool {
        if !self.concerns(subject) || self.effect == RuleEffect::Allow && self.overlooks(subject) {
            return false;
        }
        let Some(pattern) = &self.pattern else { return true };
        let mut fits = subject.paths.iter().map(|path| pattern.fits_path(path));
        match (self.effect, &pattern.matcher) {
            (RuleEffect::Allow, PatternMatcher::Command(_)) => {
                let fits = |command: &String| pattern.fits_command(command);
                !subject.seen.unclear && subject.command.as_ref().is_some_and(fits)
            }
            (RuleEffect::Refuse, PatternMatcher::Command(_)) => {
                let mut seen = subject.seen.commands.iter();
                subject.seen.unclear || seen.any(|command| pattern.fits_command(command))
            }
            (RuleEffect::Allow, PatternMatcher::Paths { .. }) => {
                !subject.paths.is_empty() && fits.all(|fits| fits)
            }
            (RuleEffect::Refuse, PatternMatcher::Paths { .. }) => fits.any(|fits| fits),
        }
    }

    /// Whether an `allow` says nothing about how the command would run.
    fn overlooks(&self, subject: &RuleSubject) -> bool {
        match subject.special {
            CommandSetting::Usual => false,
            CommandSetting::OtherFolder => self.pattern.is_some(),
            CommandSetting::OwnEnvironment => true,
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
            RuleScope::Run => false,
        }
    }

    /// Whether the rule is about code in the kernel of the notebook.
    pub(crate) fn is_about_run(&self) -> bool {
        match self.kind {
            RuleScope::Run => true,
            RuleScope::Any => self.pattern.is_none(),
            RuleScope::Of(_) => false,
        }
    }
}

/// Whether a pattern is for the script of a shell, as in `bash -lc git*`.
fn begins_with_shell(pattern: &str) -> bool {
    let mut words = pattern.split_whitespace();
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    SHELLS.contains(&program) && words.any(is_short)
}

/// `path` without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// A pattern for files: `*` and `?` stay within a folder, `**` does not. A folder stands for all that
/// is in it.
fn paths_glob(written: &str, effect: RuleEffect) -> Result<PatternMatcher, RuleError> {
    let never = |reason| RuleError::Never { pattern: written.to_owned(), reason };
    let malformed = |error: globset::Error| RuleError::Pattern {
        pattern: written.to_owned(),
        reason: error.kind().to_string(),
    };
    if written.starts_with('~') {
        return Err(never("`~` is not replaced by a folder; write the whole path"));
    }
    if written.starts_with('$') {
        return Err(never("variables are not replaced; write the whole path"));
    }
    if written.contains("://") {
        return Err(never("files have no addresses; write the path"));
    }
    let is_absolute = written.starts_with('/');
    if written.split('/').any(|part| part == "..") {
        return Err(never("paths are compared without `..`; write a path in the workspace or a whole path"));
    }
    // `.` is the workspace itself.
    let parts: Vec<_> = written.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let joined = if parts.is_empty() { "**".to_owned() } else { parts.join("/") };
    let pattern = if is_absolute { format!("/{joined}") } else { joined };
    let mut set = GlobSetBuilder::new();
    for pattern in [pattern.clone(), format!("{pattern}/**")] {
        let glob = GlobBuilder::new(&pattern).literal_separator(true).empty_alternates(true).build();
        set.add(glob.map_err(malformed)?);
    }
    let reach = match effect {
        _ if is_absolute => PathReach::Absolute,
        RuleEffect::Refuse if pattern.starts_with("**") => PathReach::Anywhere,
        RuleEffect::Refuse | RuleEffect::Allow => PathReach::Workspace,
    };
    Ok(PatternMatcher::Paths { set: set.build().map_err(malformed)?, reach })
}

/// A pattern for commands, whose wildcards match these characters.
fn command_glob(pattern: &str, any: &str) -> Regex {
    let mut out = String::from(r"\A");
    for piece in pattern.split_inclusive(['*', '?']) {
        let (literal, wildcard) = match piece.strip_suffix(['*', '?']) {
            Some(literal) => (literal, &piece[literal.len()..]),
            None => (piece, ""),
        };
        out.push_str(&regex::escape(literal));
        match wildcard {
            "*" => out.extend([any, "*"]),
            "?" => out.push_str(any),
            _ => {}
        }
    }
    Regex::new(&(out + r"\z")).expect("escaped text and fixed pieces")
}

const EVERYTHING: &str = "(?s:.)";
/// Arguments, but nothing that starts another command: `git *` does not match `git log; rm -rf .`.
const HARMLESS: &str = r"[^;&|<>$`(){}\n\r\\]";
