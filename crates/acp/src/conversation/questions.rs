//! Questions of an agent to its user: permissions. For forms see `elicitation.rs`.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, Diff, PermissionOption, PermissionOptionKind, ToolCall, ToolCallContent,
    ToolKind,
};

use cellwright_jupyter::content::InputRequest as InputContent;
use cellwright_session::InputRequest;

use crate::agent::{OpenElicitation, PermissionQuestion};
use crate::kernel_state::{KernelState, lock};
use crate::notebook_calls;
use crate::permission::{self, DecisionSource, PermissionDecision, PolicyVerdict};
use crate::tool_calls::PermissionAsker;
use crate::turn::{AgentTurn, TurnPlace};
use crate::view::{FormPiece, ViewStyle};
use cellwright_output::visible_line;

/// A question that waits for the user's answer.
pub(crate) type PendingQuestion<'a> = Pin<Box<dyn Future<Output = AnsweredQuestion> + Send + 'a>>;

/// A question with its answer.
pub(crate) enum AnsweredQuestion {
    Permission {
        question: Box<PermissionQuestion>,
        call: Box<ToolCall>,
        decision: PermissionDecision,
    },
    Elicitation {
        question: Box<OpenElicitation>,
        response: CreateElicitationResponse,
        /// The form in the cell, and what became of it.
        shown: Option<(FormPiece, String)>,
    },
    /// The agent's code has its line.
    Input,
}

impl AnsweredQuestion {
    /// The kind of calls that the user allows for good by this answer.
    pub(crate) fn always_allows(&self) -> Option<ToolKind> {
        match self {
            Self::Permission { call, decision, .. } => {
                let always = PermissionOptionKind::AllowAlways;
                decision.option.as_ref().filter(|option| option.kind == always).map(|_| call.kind)
            }
            Self::Elicitation { .. } | Self::Input => None,
        }
    }
}

/// What was asked and allowed in a turn. If the agent asked first and then acts through us, the
/// user is not asked a second time.
#[derive(Debug, Default)]
pub(crate) struct TurnGrants {
    allowed: Vec<PermissionGrant>,
    /// All that was judged, however it was decided.
    asked: Vec<PermissionGrant>,
}

#[derive(Debug)]
struct PermissionGrant {
    title: String,
    kind: ToolKind,
    paths: Vec<PathBuf>,
    command: Option<String>,
    /// `None` is the workspace.
    folder: Option<PathBuf>,
    has_environment: bool,
    /// The changes that were shown.
    changes: Vec<Diff>,
}

impl PermissionGrant {
    fn of(call: &ToolCall, workspace: &Path) -> Self {
        let changes = call.content.iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff.clone()),
            _ => None,
        });
        Self {
            title: call.title.lines().next().unwrap_or_default().to_owned(),
            kind: call.kind,
            paths: permission::paths(call),
            // An agent asks for a command and then runs it in a shell.
            command: permission::command(call).map(|line| permission::essence(&line)),
            folder: permission::folder(call).map(|at| workspace.join(at)).filter(|at| at != workspace),
            has_environment: permission::has_environment(call),
            changes: changes.collect(),
        }
    }

    fn covers(&self, asked: &Self) -> bool {
        let same = match asked.kind {
            // An approval that did not show a command does not cover it.
            ToolKind::Execute => {
                asked.command.is_some()
                    && self.command == asked.command
                    && self.folder == asked.folder
                    && self.has_environment == asked.has_environment
            }
            _ => !asked.paths.is_empty() && asked.changes.iter().all(|change| self.shows(change)),
        };
        same && self.kind == asked.kind && asked.paths.iter().all(|path| self.paths.contains(path))
    }

    /// Whether this was asked about the deed of a call, which the agent may report in other words.
    fn is_about(&self, done: &Self) -> bool {
        match done.kind {
            ToolKind::Execute => match &done.command {
                Some(command) => self.command.as_ref() == Some(command),
                None => self.kind == done.kind && self.title == done.title,
            },
            _ => !done.paths.is_empty() && done.paths.iter().all(|path| self.paths.contains(path)),
        }
    }

    /// Whether the user has seen this change. A permission without any change in it was given for
    /// the file as a whole.
    fn shows(&self, asked: &Diff) -> bool {
        let mut of_file = self.changes.iter().filter(|shown| shown.path == asked.path).peekable();
        let old = asked.old_text.as_deref().unwrap_or_default();
        of_file.peek().is_none()
            || of_file.any(|shown| {
                let part = shown.old_text.as_deref().unwrap_or_default();
                shown.new_text == asked.new_text
                    || !part.is_empty()
                        && [1, usize::MAX]
                            .iter()
                            .any(|count| old.replacen(part, &shown.new_text, *count) == asked.new_text)
            })
    }
}

impl TurnGrants {
    /// The earlier permission that covers this call. Permission for a file stays valid. Permission
    /// for a command covers one run.
    fn covering(&mut self, call: &ToolCall, workspace: &Path) -> Option<DecisionSource> {
        let asked = PermissionGrant::of(call, workspace);
        let at = self.allowed.iter().position(|grant| grant.covers(&asked))?;
        let title = self.allowed[at].title.clone();
        if asked.kind == ToolKind::Execute {
            self.allowed.remove(at);
        }
        Some(DecisionSource::Earlier(title))
    }

    /// Whether anything of this turn was asked about the deed of a call.
    pub(crate) fn include(&self, call: &ToolCall, workspace: &Path) -> bool {
        let done = PermissionGrant::of(call, workspace);
        self.asked.iter().any(|asked| asked.is_about(&done))
    }
}

/// Decides on a permission by policy, or asks the user.
pub(crate) fn permission<'a>(
    state: &'a KernelState,
    turn: &mut AgentTurn,
    grants: &mut TurnGrants,
    workspace: &Path,
    question: Box<PermissionQuestion>,
) -> Option<PendingQuestion<'a>> {
    let options = question.request.options.clone();
    let update = question.request.tool_call.clone();
    if !question.is_ours() && notebook_calls::is_ours(&update) {
        // We ask when the call comes: then all of its code is known. Never for good, which would be beyond our rules.
        let once: Vec<_> =
            options.iter().filter(|it| it.kind == PermissionOptionKind::AllowOnce).cloned().collect();
        if !once.is_empty() {
            answer(question, PermissionDecision::allow(&once, DecisionSource::AskedLater));
            return None;
        }
    }
    if question.is_ours() {
        // The agent reports its work by tool calls of its own. Our side of it gets a card only if
        // someone has to decide.
        let call = described(&question);
        grants.asked.push(PermissionGrant::of(&call, workspace));
        let decision = match judge(state, &question, &call, workspace) {
            PolicyVerdict::Decided(decision) if decision.allowed() => Some(decision),
            PolicyVerdict::Decided(_) => None,
            PolicyVerdict::Ask => {
                grants.covering(&call, workspace).map(|by| PermissionDecision::allow(&options, by))
            }
        };
        if let Some(decision) = decision {
            lock(&state.policy).record(&call, &decision);
            answer(question, decision);
            return None;
        }
    }
    // The card of code that runs goes on after the answer.
    let only_asks = question.is_ours() && !question.is_run();
    let asker = if only_asks { PermissionAsker::Kernel } else { PermissionAsker::Agent };
    let call = Box::new(turn.ask_permission(update, asker).clone());
    if !question.is_ours() {
        grants.asked.push(PermissionGrant::of(&call, workspace));
    }
    let decision = match judge(state, &question, &call, workspace) {
        PolicyVerdict::Decided(decision) => decision,
        PolicyVerdict::Ask if options.is_empty() => {
            PermissionDecision { option: None, by: DecisionSource::NothingToChoose }
        }
        PolicyVerdict::Ask => match means(state, turn) {
            QuestionMeans::Buttons => return Some(by_buttons(state, turn, question, call)),
            QuestionMeans::Stdin => return Some(by_stdin(state, turn, question, call)),
            QuestionMeans::Nobody => {
                let by = match turn.place {
                    TurnPlace::Background if turn.cell.allow_stdin => DecisionSource::InBackground,
                    TurnPlace::Background | TurnPlace::Foreground => DecisionSource::NobodyToAsk,
                };
                PermissionDecision::refuse(&options, by)
            }
        },
    };
    settle(state, turn, grants, workspace, AnsweredQuestion::Permission { question, call, decision });
    None
}

/// Decides on a permission between turns, when nobody can be asked.
pub(crate) fn permission_between_turns(
    state: &KernelState,
    workspace: &Path,
    question: Box<PermissionQuestion>,
) {
    let call = described(&question);
    let decision = match judge(state, &question, &call, workspace) {
        PolicyVerdict::Decided(decision) => decision,
        PolicyVerdict::Ask => {
            PermissionDecision::refuse(&question.request.options, DecisionSource::NobodyToAsk)
        }
    };
    lock(&state.policy).record(&call, &decision);
    answer(question, decision);
}

fn judge(
    state: &KernelState,
    question: &PermissionQuestion,
    call: &ToolCall,
    workspace: &Path,
) -> PolicyVerdict {
    let options = &question.request.options;
    if question.is_run() {
        return lock(&state.policy).judge_run(options);
    }
    match lock(&state.policy).judge(call, options, workspace) {
        PolicyVerdict::Ask if question.is_usual() => {
            PolicyVerdict::Decided(PermissionDecision::allow(options, DecisionSource::Workspace))
        }
        verdict => verdict,
    }
}

fn answer(question: Box<PermissionQuestion>, decision: PermissionDecision) {
    match decision.option {
        Some(option) => question.choose(option.option_id),
        None => question.cancel(),
    }
}

/// Answers the agent and shows the decision.
pub(crate) fn settle(
    state: &KernelState,
    turn: &mut AgentTurn,
    grants: &mut TurnGrants,
    workspace: &Path,
    answered: AnsweredQuestion,
) {
    match answered {
        AnsweredQuestion::Permission { question, call, decision } => {
            lock(&state.policy).record(&call, &decision);
            turn.decide_permission(&call.tool_call_id, &decision);
            if decision.allowed() {
                grants.allowed.push(PermissionGrant::of(&call, workspace));
            }
            answer(question, decision);
        }
        AnsweredQuestion::Elicitation { question, response, shown } => {
            if let Some((form, summary)) = shown {
                turn.view.form_answered(form, &summary);
            }
            question.answer(response);
        }
        AnsweredQuestion::Input => {}
    }
}

/// Asks the person what the agent's code wants to know.
pub(crate) fn code_input<'a>(
    state: &'a KernelState,
    turn: &AgentTurn,
    request: InputRequest,
) -> Option<PendingQuestion<'a>> {
    if !turn.cell.allow_stdin || turn.place == TurnPlace::Background {
        request.refuse("nobody can answer here; pass the value in the code");
        return None;
    }
    let cell = Arc::clone(&turn.cell);
    Some(Box::pin(async move {
        let (prompt, password) = (request.prompt.clone(), request.password);
        let question = InputContent { prompt, password, ..InputContent::default() };
        match state.stdin.ask_for(cell.sender(), cell.request(), question).await {
            Some(line) => request.answer(line),
            None => request.refuse("nobody can answer here"),
        }
        AnsweredQuestion::Input
    }))
}

/// How the user can be asked.
pub(crate) enum QuestionMeans {
    Buttons,
    Stdin,
    Nobody,
}

// Buttons or stdin, never both. If a question on stdin is answered elsewhere, it stays open in some
// clients, which run nothing else until it is answered.
pub(crate) fn means(state: &KernelState, turn: &AgentTurn) -> QuestionMeans {
    if turn.style == ViewStyle::Rich && state.comms.can_show_widgets() {
        QuestionMeans::Buttons
    } else if turn.cell.allow_stdin && turn.place == TurnPlace::Foreground {
        QuestionMeans::Stdin
    } else {
        QuestionMeans::Nobody
    }
}

fn by_buttons<'a>(
    state: &'a KernelState,
    turn: &mut AgentTurn,
    question: Box<PermissionQuestion>,
    call: Box<ToolCall>,
) -> PendingQuestion<'a> {
    let options = &question.request.options;
    let mut labels: Vec<(String, &str)> = options.iter().map(label).collect();
    if PermissionDecision::refuse(options, DecisionSource::User).option.is_none() {
        labels.push(("Cancel".to_owned(), "danger")); // its number is that of no option, which cancels
    }
    let mut buttons = state.comms.buttons(&labels, turn.cell.sender().clone(), turn.cell.header());
    turn.view.buttons(&call.tool_call_id, buttons.root());
    let withdrawn = turn.withdrawal(&call.tool_call_id);
    Box::pin(async move {
        let options = &question.request.options;
        let decision = tokio::select! {
            biased; // a click on a question that has changed does not count
            () = withdrawn.cancelled() => PermissionDecision::refuse(options, DecisionSource::Withdrawn),
            clicked = buttons.action() => match clicked {
                Some(button) => {
                    let option = buttons.position(&button).and_then(|number| options.get(number)).cloned();
                    PermissionDecision { option, by: DecisionSource::User }
                }
                None => PermissionDecision::refuse(options, DecisionSource::NobodyToAsk),
            },
        };
        AnsweredQuestion::Permission { question, call, decision }
    })
}

fn label(option: &PermissionOption) -> (String, &'static str) {
    let style = match option.kind {
        PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways => "success",
        PermissionOptionKind::RejectOnce | PermissionOptionKind::RejectAlways => "danger",
        _ => "",
    };
    (visible_line(&option.name), style)
}

fn by_stdin<'a>(
    state: &'a KernelState,
    turn: &mut AgentTurn,
    question: Box<PermissionQuestion>,
    call: Box<ToolCall>,
) -> PendingQuestion<'a> {
    let asking = Arc::clone(&turn.cell);
    let withdrawn = turn.withdrawal(&call.tool_call_id);
    Box::pin(async move {
        let options = question.request.options.clone();
        let text = permission::question(&call, &options);
        let decision = loop {
            // An input field cannot be taken back. Its answer comes, and then does not count.
            let typed = state.stdin.ask(asking.sender(), asking.request(), text.clone()).await;
            if withdrawn.is_cancelled() {
                break PermissionDecision::refuse(&options, DecisionSource::Withdrawn);
            }
            match typed.map(|typed| permission::answer(&options, &typed)) {
                Some(Some(decision)) => break decision,
                Some(None) => {}
                None => break PermissionDecision::refuse(&options, DecisionSource::NobodyToAsk),
            }
        };
        AnsweredQuestion::Permission { question, call, decision }
    })
}

/// The call as the question describes it.
fn described(question: &PermissionQuestion) -> ToolCall {
    let update = question.request.tool_call.clone();
    let title = update.fields.title.clone().unwrap_or_default();
    let mut call = ToolCall::new(update.tool_call_id.clone(), title);
    call.update(update.fields);
    call
}
