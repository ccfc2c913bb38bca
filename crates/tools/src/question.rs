//! Questions of running cells, put to whoever can be asked.

use cellwright_session::{CallEvent, InputRequest};
use futures_util::future::BoxFuture;

use crate::toolbox::Context;

/// The question of a call that is open, if one is; a cell asks them one by one.
///
/// It is polled beside the call and not awaited in its place: a cell may end, by its timeout or by an interrupt, while its
/// user thinks, or has long gone home.
pub(crate) struct Questions<'a> {
    context: &'a Context,
    open: Option<BoxFuture<'a, ()>>,
}

impl<'a> Questions<'a> {
    pub(crate) fn of(context: &'a Context) -> Self {
        Self { context, open: None }
    }

    /// Puts the question of a cell that asks, and takes back that of one that is over. Other events are handed back.
    pub(crate) fn take(&mut self, event: CallEvent) -> Option<CallEvent> {
        match event {
            CallEvent::Input { request, .. } => self.open = Some(Box::pin(answer(self.context, request))),
            event => {
                if matches!(event, CallEvent::CellFinished(_)) {
                    self.open = None;
                }
                return Some(event);
            }
        }
        None
    }

    /// Waits until the question is answered, for ever when there is none. Cancel-safe.
    pub(crate) async fn answered(&mut self) {
        match &mut self.open {
            Some(question) => question.await,
            None => std::future::pending().await,
        }
        self.open = None;
    }
}

async fn answer(context: &Context, request: InputRequest) {
    let Some(ask) = &context.ask else {
        return request.refuse("nobody can be asked; pass the value in the code");
    };
    match ask.ask(request.prompt.clone(), request.password).await {
        Ok(line) => request.answer(line),
        Err(why) => request.refuse(why),
    }
}
