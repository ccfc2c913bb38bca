//! Questions of an agent that are no permissions: a form to fill in, or a page to open.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction, ElicitationMode, NoticeSeverity,
};

use super::form::{self, FilledForm, FormWidgets};
use super::questions::{AnsweredQuestion, PendingQuestion, QuestionMeans, means};
use crate::agent::OpenElicitation;
use crate::client::widgets::WidgetSet;
use crate::kernel_state::KernelState;
use crate::turn::{AgentTurn, CellChannel, TurnPlace};
use crate::view::FormPiece;

/// Asks the user what the agent wants to know. If nobody can answer, the cell says so.
pub(crate) fn elicitation<'a>(
    state: &'a KernelState,
    turn: &mut AgentTurn,
    question: Box<OpenElicitation>,
) -> Option<PendingQuestion<'a>> {
    let message = question.request.message.clone();
    match &question.request.mode {
        ElicitationMode::Url(url) => turn.view.link(&message, &url.url),
        _ => turn.view.notice(&NoticeSeverity::Info, &message, None),
    }
    match means(state, turn) {
        QuestionMeans::Buttons => {
            let widgets = state.comms.widgets(turn.cell.sender().clone(), turn.cell.header());
            Some(by_widgets(turn, question, widgets))
        }
        QuestionMeans::Stdin => {
            let cell = Arc::clone(&turn.cell);
            Some(Box::pin(async move {
                let filled = typed(state, &cell, &question.request.mode).await;
                answered(question, None, filled)
            }))
        }
        QuestionMeans::Nobody => {
            let reason = match turn.place {
                TurnPlace::Foreground => "this client accepts no input, so the question was cancelled",
                TurnPlace::Background => {
                    "a turn in the background cannot ask by typing, so the question was cancelled"
                }
            };
            turn.view.notice(&NoticeSeverity::Warning, reason, None);
            None // a dropped question is cancelled
        }
    }
}

fn by_widgets<'a>(
    turn: &mut AgentTurn,
    question: Box<OpenElicitation>,
    mut widgets: WidgetSet,
) -> PendingQuestion<'a> {
    match &question.request.mode {
        ElicitationMode::Form(form) => {
            let form = FormWidgets::new(widgets, form::fields(form));
            let piece = turn.view.form(form.root());
            Box::pin(async move { answered(question, Some(piece), form.filled().await) })
        }
        ElicitationMode::Url(_) => {
            let done = widgets.button("Done", "success");
            let decline = widgets.button("Decline", "");
            widgets.arrange("HBox", &[done.clone(), decline]);
            widgets.complete();
            let piece = turn.view.form(widgets.root());
            Box::pin(async move {
                let filled = match widgets.action().await {
                    Some(clicked) if clicked == done => opened(),
                    Some(_) => FilledForm::declined(),
                    None => FilledForm::not_answered(),
                };
                answered(question, Some(piece), filled)
            })
        }
        _ => Box::pin(async move { answered(question, None, FilledForm::declined()) }),
    }
}

async fn typed(state: &KernelState, cell: &CellChannel, mode: &ElicitationMode) -> FilledForm {
    match mode {
        ElicitationMode::Form(form) => form::fill_typed(state, cell, &form::fields(form)).await,
        ElicitationMode::Url(_) => {
            let prompt = "Open the link. Done? [y/n]: ".to_owned();
            let done = state.stdin.ask(cell.sender(), cell.request(), prompt).await;
            match done.as_deref().map(str::trim) {
                Some("y" | "yes") => opened(),
                Some(_) => FilledForm::declined(),
                None => FilledForm::not_answered(),
            }
        }
        _ => FilledForm::declined(),
    }
}

/// The user has opened the page.
fn opened() -> FilledForm {
    let action = ElicitationAction::Accept(ElicitationAcceptAction::new());
    FilledForm { action, summary: "done".to_owned() }
}

fn answered(
    question: Box<OpenElicitation>,
    piece: Option<FormPiece>,
    filled: FilledForm,
) -> AnsweredQuestion {
    let FilledForm { action, summary } = filled;
    let response = CreateElicitationResponse::new(action);
    AnsweredQuestion::Elicitation { question, response, shown: piece.map(|piece| (piece, summary)) }
}
