//! Permissions: the mode, the rules, and the decisions so far.
//!
//! Pure. `PermissionPolicy::judge` decides by mode and rules, or says that the user must be
//! asked. The caller asks, and hands each `PermissionDecision` to `PermissionPolicy::record`.

mod command;
mod history;
mod rule;
mod shell;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, ToolCall, ToolCallContent, ToolKind,
};
use serde_json::Value;

use crate::view::LineDiff;
use cellwright_output::{visible, visible_line};
pub(crate) use command::{command, command_of, essence, folder, has_environment};
pub(crate) use history::{DecisionHistory, DecisionRecord};

pub(crate) use rule::{PermissionRule, RUN, RuleEffect, RuleError, RuleSubject};

/// What happens when no rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// Ask the user. Refuse if nobody can be asked.
    #[default]
    Ask,
    /// Allow, once each time.
    Auto,
    /// Refuse.
    Deny,
}

impl ApprovalMode {
    /// All modes, by name.
    const NAMES: [(&'static str, Self); 3] = [("ask", Self::Ask), ("auto", Self::Auto), ("deny", Self::Deny)];
}

impl FromStr for ApprovalMode {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        // The older kernel's name for `ask`.
        let name = if name == "manual" { "ask" } else { name };
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode).ok_or(())
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Deny => "deny",
        })
    }
}

/// Mode, rules and history of one kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct PermissionPolicy {
    /// What happens when no rule applies.
    pub(crate) mode: ApprovalMode,
    /// In the order they were given. A `deny` beats any `allow`.
    pub(crate) rules: Vec<PermissionRule>,
    pub(crate) history: DecisionHistory,
}

/// The verdict of a policy on a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PolicyVerdict {
    Decided(PermissionDecision),
    Ask,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PermissionDecision {
    /// The chosen option. `None` if the request is cancelled.
    pub(crate) option: Option<PermissionOption>,
    pub(crate) by: DecisionSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecisionSource {
    /// The user, by a button or by typing.
    User,
    /// A rule, as it was written.
    Rule(String),
    Mode(ApprovalMode),
    /// An earlier permission of the turn, for a call of this title.
    Earlier(String),
    /// Nobody: reading a file of the workspace is allowed.
    Workspace,
    /// Nobody: the kernel asks when the call comes.
    AskedLater,
    /// Nobody: the client accepts no input.
    NobodyToAsk,
    /// Nobody: the turn is in the background, and the client shows no buttons.
    InBackground,
    /// Nobody: the agent gave no options.
    NothingToChoose,
    /// Nobody: the agent changed the call while the user was asked about it.
    Withdrawn,
    Interrupt,
}

impl PermissionPolicy {
    /// Judges a call that asks for one of `options`. Paths are relative to `workspace`.
    pub(crate) fn judge(
        &self,
        call: &ToolCall,
        options: &[PermissionOption],
        workspace: &Path,
    ) -> PolicyVerdict {
        let subject = RuleSubject::of(call, workspace);
        let matching =
            |effect| self.rules.iter().find(|rule| rule.effect == effect && rule.applies_to(&subject));
        if let Some(rule) = matching(RuleEffect::Refuse) {
            return PolicyVerdict::Decided(PermissionDecision::refuse(
                options,
                DecisionSource::Rule(rule.to_string()),
            ));
        }
        if let Some(rule) = matching(RuleEffect::Allow) {
            return PolicyVerdict::Decided(PermissionDecision::allow(
                options,
                DecisionSource::Rule(rule.to_string()),
            ));
        }
        self.by_mode(options)
    }

    fn by_mode(&self, options: &[PermissionOption]) -> PolicyVerdict {
        match self.mode {
            ApprovalMode::Ask => PolicyVerdict::Ask,
            ApprovalMode::Auto => PolicyVerdict::Decided(PermissionDecision::allow(
                options,
                DecisionSource::Mode(ApprovalMode::Auto),
            )),
            ApprovalMode::Deny => PolicyVerdict::Decided(PermissionDecision::refuse(
                options,
                DecisionSource::Mode(ApprovalMode::Deny),
            )),
        }
    }

    /// Judges code that would run in the kernel of the notebook.
    pub(crate) fn judge_run(&self, options: &[PermissionOption]) -> PolicyVerdict {
        let rule = |effect| self.rules.iter().find(|rule| rule.effect == effect && rule.is_about_run());
        if let Some(rule) = rule(RuleEffect::Refuse) {
            let by = DecisionSource::Rule(rule.to_string());
            return PolicyVerdict::Decided(PermissionDecision::refuse(options, by));
        }
        if let Some(rule) = rule(RuleEffect::Allow) {
            let by = DecisionSource::Rule(rule.to_string());
            return PolicyVerdict::Decided(PermissionDecision::allow(options, by));
        }
        self.by_mode(options)
    }

    /// What would happen to a command, and why. Helps users to write rules.
    pub(crate) fn explain(&self, command: &str, workspace: &Path) -> String {
        // Some agents send a command as a list of words.
        let words: Option<Vec<String>> = serde_json::from_str(command).ok();
        let input = words.map_or_else(|| command.into(), Value::from);
        let input = serde_json::json!({ "command": input });
        let call = ToolCall::new("test", command).kind(ToolKind::Execute).raw_input(input);
        let verdict = match self.judge(&call, &yes_or_no(), workspace) {
            PolicyVerdict::Decided(decision) if decision.allowed() => format!("allowed by {}", decision.by),
            PolicyVerdict::Decided(decision) => format!("refused by {}", decision.by),
            PolicyVerdict::Ask => "asked about: no rule applies, and the mode is `ask`".to_owned(),
        };
        let note = RuleSubject::of(&call, workspace).is_unclear().then_some(
            "\nit runs something that cannot be seen from here, so every deny rule for commands applies",
        );
        format!("{verdict}{}", note.unwrap_or_default())
    }

    /// What a call that nobody was asked about went against. `None` if it is allowed.
    pub(crate) fn bypassed_by(&self, call: &ToolCall, workspace: &Path) -> Option<DecisionSource> {
        match self.judge(call, &yes_or_no(), workspace) {
            PolicyVerdict::Ask => Some(DecisionSource::Mode(ApprovalMode::Ask)),
            PolicyVerdict::Decided(decision) => Some(decision).filter(|it| !it.allowed()).map(|it| it.by),
        }
    }

    pub(crate) fn record(&mut self, call: &ToolCall, decision: &PermissionDecision) {
        self.history.push(DecisionRecord::of(call, decision));
    }
}

impl PermissionDecision {
    /// Allows, by the kind of the option and never by its position: once before always. Cancels if
    /// no option allows.
    pub(crate) fn allow(options: &[PermissionOption], by: DecisionSource) -> Self {
        Self::first_of(options, [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways], by)
    }

    /// Refuses: once before always. Cancels if no option refuses.
    pub(crate) fn refuse(options: &[PermissionOption], by: DecisionSource) -> Self {
        Self::first_of(options, [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways], by)
    }

    /// The turn was interrupted before the user answered.
    pub(crate) fn cancelled() -> Self {
        Self { option: None, by: DecisionSource::Interrupt }
    }

    fn first_of(options: &[PermissionOption], kinds: [PermissionOptionKind; 2], by: DecisionSource) -> Self {
        let of_kind = |kind| options.iter().find(|option| option.kind == kind).cloned();
        Self { option: kinds.into_iter().find_map(of_kind), by }
    }

    /// Whether the agent may continue.
    pub(crate) fn allowed(&self) -> bool {
        let allows = |option: &PermissionOption| {
            matches!(option.kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
        };
        self.option.as_ref().is_some_and(allows)
    }
}

impl fmt::Display for PermissionDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.option {
            Some(option) => {
                let verb = if self.allowed() { "allowed" } else { "refused" };
                write!(f, "{verb} by {} ({})", self.by, option.name)
            }
            None => write!(f, "cancelled by {}", self.by),
        }
    }
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("you"),
            Self::Rule(rule) => write!(f, "the rule `{rule}`"),
            Self::Mode(mode) => write!(f, "the mode `{mode}`"),
            Self::Earlier(title) => write!(f, "the permission for \"{title}\""),
            Self::Workspace => f.write_str("default: it is in the workspace"),
            Self::AskedLater => f.write_str("default: you are asked before it runs"),
            Self::NobodyToAsk => {
                f.write_str("default: this client accepts no input, so nobody could be asked")
            }
            Self::InBackground => f.write_str("default: a turn in the background cannot ask by typing"),
            Self::NothingToChoose => f.write_str("default: the agent gave no options"),
            Self::Withdrawn => f.write_str("default: the agent changed this call while you were asked"),
            Self::Interrupt => f.write_str("the interrupt"),
        }
    }
}

/// The options of a question that the kernel asks itself.
fn yes_or_no() -> [PermissionOption; 2] {
    [
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

/// Reads a rule, and returns how it reads back and whether it applies to a command. `None` if the
/// text is not a rule. Only the fuzzer and the tests of its corpus call it.
pub fn rule_applies(rule: &str, command: &str) -> Option<(String, bool)> {
    let rule: PermissionRule = rule.parse().ok()?;
    let input = serde_json::json!({ "command": command });
    let call = ToolCall::new("call", command).kind(ToolKind::Execute).raw_input(input);
    let applies = rule.applies_to(&RuleSubject::of(&call, Path::new("/workspace")));
    Some((rule.to_string(), applies))
}

/// The question for the user to answer by typing. It shows everything that the call would do.
pub(crate) fn question(call: &ToolCall, options: &[PermissionOption]) -> String {
    let title = call.title.trim();
    let paths = paths(call).into_iter().map(|path| path.display().to_string());
    let has_diff = |path: &str| changes(call).any(|change| change.path() == path);
    let hidden = paths.filter(|path| !title.ends_with(&format!(" {path}")) && !has_diff(path));
    let command = hidden_command(call, title).or_else(|| hidden_code(call));
    let folder = hidden_folder(call, title).map(|folder| format!("in {}", folder.display()));
    let changes = changes(call).map(|change| change.plain());
    let shown = std::iter::once(title.to_owned()).chain(command).chain(folder).chain(hidden).chain(changes);
    // Indented, so that no line of it looks like one of the options below.
    let shown: Vec<String> = shown.map(|text| visible(text.trim()).replace('\n', "\n      ")).collect();
    let options = options
        .iter()
        .enumerate()
        .map(|(n, option)| format!("  {}) {}\n", n + 1, visible_line(&option.name)));
    format!("Permission: {}\n{}Number, y or n: ", shown.join("\n      "), options.collect::<String>())
}

/// The command of a call, if the title does not show all of it.
fn hidden_command(call: &ToolCall, title: &str) -> Option<String> {
    command(call).filter(|command| title != command.trim() && !title.contains(&format!("`{command}`")))
}

/// The code of a call of our tools.
fn hidden_code(call: &ToolCall) -> Option<String> {
    call.raw_input.as_ref().and_then(Value::as_str).map(str::to_owned)
}

/// The folder of a command, if the title does not show it.
fn hidden_folder(call: &ToolCall, title: &str) -> Option<PathBuf> {
    folder(call).filter(|folder| !title.ends_with(&format!(" in {}", folder.display())))
}

/// What a call would change in files.
fn changes(call: &ToolCall) -> impl Iterator<Item = LineDiff> {
    call.content.iter().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(LineDiff::of(diff)),
        _ => None,
    })
}

/// The decision that the user typed: an option's number or name, `y` for once, or `n` for no, which
/// cancels if no option refuses. `None` for anything else.
pub(crate) fn answer(options: &[PermissionOption], typed: &str) -> Option<PermissionDecision> {
    let typed = typed.trim().to_lowercase();
    match typed.as_str() {
        "" => None,
        "y" | "yes" => {
            Some(PermissionDecision::allow(options, DecisionSource::User)).filter(PermissionDecision::allowed)
        }
        "n" | "no" => Some(PermissionDecision::refuse(options, DecisionSource::User)),
        other => {
            let numbered = other.parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?));
            let named = || options.iter().find(|option| option.name.to_lowercase() == other);
            let option = numbered.or_else(named)?.clone();
            Some(PermissionDecision { option: Some(option), by: DecisionSource::User })
        }
    }
}

/// The fields of a call's input in which agents name files.
const PATH_FIELDS: [&str; 18] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "absolute_path",
    "abs_path",
    "notebook_path",
    "target_file",
    "source",
    "destination",
    "old_path",
    "new_path",
    "from",
    "to",
    "paths",
    "files",
];

/// The files that a call names: its locations, its diffs, and those in its input.
pub(crate) fn paths(call: &ToolCall) -> Vec<PathBuf> {
    let located = call.locations.iter().map(|location| location.path.clone());
    let changed = call.content.iter().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path.clone()),
        _ => None,
    });
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in located.chain(changed).chain(named_in_input(call)) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn named_in_input(call: &ToolCall) -> Vec<PathBuf> {
    let about_files = matches!(
        call.kind,
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Search
    );
    let Some(input) = call.raw_input.as_ref().filter(|_| about_files) else { return Vec::new() };
    let named = PATH_FIELDS.iter().filter_map(|field| input.get(field));
    let texts = named.flat_map(|value| match value {
        Value::String(text) => vec![text.as_str()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    });
    let paths = texts.map(|text| PathBuf::from(text.strip_prefix("file://").unwrap_or(text)));
    // Relative names of files that the call has whole already say nothing new.
    let known: Vec<_> = call.locations.iter().map(|location| &location.path).collect();
    paths.filter(|path| path.is_absolute() || !known.iter().any(|known| known.ends_with(path))).collect()
}
