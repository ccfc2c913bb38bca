//! What a running call needs from its caller: answers to its questions, and patience.

use std::pin::Pin;
use std::time::Duration;

use cellwright_session::{CallEvent, InputRequest};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep, sleep};

use crate::toolbox::CallContext;

/// The question of a call that is open, if one is (a cell asks them one by one), and how long the call is followed.
///
/// Both are polled beside the call and not awaited in its place: a cell may end, by its timeout or by an interrupt, while its
/// user thinks, or has long gone home.
pub(crate) struct CallWatch<'a> {
    context: &'a CallContext,
    question: Option<BoxFuture<'a, ()>>,
    limit: Option<Duration>,
    patience: Pin<Box<Sleep>>,
}

impl<'a> CallWatch<'a> {
    /// For as long as `limit` says, or to the end.
    pub(crate) fn to(context: &'a CallContext, limit: Option<Duration>) -> Self {
        Self { context, question: None, limit, patience: Box::pin(sleep(limit.unwrap_or_default())) }
    }

    /// Asks the question of a cell, and withdraws it when the cell is over. Returns other events.
    pub(crate) fn take(&mut self, event: CallEvent) -> Option<CallEvent> {
        match event {
            CallEvent::Input { request, .. } => self.question = Some(Box::pin(answer(self.context, request))),
            event => {
                if matches!(event, CallEvent::CellFinished(_)) {
                    self.question = None;
                }
                return Some(event);
            }
        }
        None
    }

    /// Sees to questions, until the call has been followed for long enough. While a user thinks, the client is patient
    /// anyway, so the time starts again with the answer. Cancel-safe.
    pub(crate) async fn ends(&mut self) {
        loop {
            match (&mut self.question, self.limit) {
                (Some(question), limit) => {
                    question.await;
                    self.question = None;
                    self.patience.as_mut().reset(Instant::now() + limit.unwrap_or_default());
                }
                (None, Some(_)) => return self.patience.as_mut().await,
                (None, None) => return std::future::pending().await,
            }
        }
    }
}

async fn answer(context: &CallContext, request: InputRequest) {
    let Some(ask) = &context.ask else {
        return request.refuse("there is nobody to ask; pass the value in the code");
    };
    match ask.ask(request.prompt.clone(), request.password).await {
        Ok(line) => request.answer(line),
        Err(why) => request.refuse(why.to_string()),
    }
}
