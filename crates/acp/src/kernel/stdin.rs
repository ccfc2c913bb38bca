//! Questions to the user through the client's input field.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cellwright_jupyter::content::{InputReply, InputRequest};
use cellwright_jupyter::{Message, ServerSender};
use tokio::sync::{Semaphore, oneshot};

/// Questions that wait for their answers.
#[derive(Debug)]
pub(super) struct Stdin {
    /// By the session of the client that was asked. Answers of some clients do not say what they answer, so the oldest
    /// question of a client is the one that is answered.
    waiting: Mutex<VecDeque<(String, oneshot::Sender<String>)>>,
    /// A client shows one field at a time.
    field: Semaphore,
}

impl Default for Stdin {
    fn default() -> Self {
        Self { waiting: Mutex::default(), field: Semaphore::new(1) }
    }
}

impl Stdin {
    /// Asks the user of the client that sent `request`. `None` when there is nobody to answer.
    pub(super) async fn ask(
        &self,
        sender: &ServerSender,
        request: &Message,
        prompt: String,
    ) -> Option<String> {
        let _field = self.field.acquire().await.ok()?;
        let (answered, answer) = oneshot::channel();
        let client = request.header.session().to_owned();
        {
            let mut waiting = self.waiting();
            waiting.retain(|(_, answered)| !answered.is_closed()); // given up by an interrupt
            waiting.push_back((client, answered));
        }
        let question = InputRequest { prompt, ..InputRequest::default() };
        if !sender.ask(request, &question) {
            self.waiting().pop_back();
            return None;
        }
        answer.await.ok()
    }

    /// An answer has come. One to a question that was given up is dropped.
    pub(super) fn answered(&self, message: &Message) {
        let Ok(reply) = message.parse::<InputReply>() else { return };
        let mut waiting = self.waiting();
        let of_client = waiting.iter().position(|(client, _)| client == message.header.session());
        if let Some((_, answered)) = of_client.and_then(|index| waiting.remove(index)) {
            drop(answered.send(reply.value)); // it may have been given up
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(String, oneshot::Sender<String>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
