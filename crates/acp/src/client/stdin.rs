//! Questions to the user through the client's input field.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cellwright_jupyter::content::{InputReply, InputRequest};
use cellwright_jupyter::{Message, ServerSender};
use tokio::sync::{Notify, Semaphore, oneshot};

/// Questions that wait for their answers.
#[derive(Debug)]
pub(crate) struct StdinQuestions {
    /// By the session of the client that was asked. Answers of some clients do not say what they answer, so the oldest
    /// question of a client is the one that is answered.
    waiting: Mutex<VecDeque<(String, oneshot::Sender<String>)>>,
    /// A client shows one field at a time.
    field: Semaphore,
    /// Told when an answer has come.
    answers: Notify,
}

impl Default for StdinQuestions {
    fn default() -> Self {
        Self { waiting: Mutex::default(), field: Semaphore::new(1), answers: Notify::new() }
    }
}

impl StdinQuestions {
    /// Asks the user of the client that sent `request`. `None` when there is nobody to answer.
    pub(crate) async fn ask(
        &self,
        sender: &ServerSender,
        request: &Message,
        prompt: String,
    ) -> Option<String> {
        let _field = self.field.acquire().await.ok()?;
        let (answered, answer) = oneshot::channel();
        let client = request.header.session().to_owned();
        self.waiting().push_back((client, answered));
        let question = InputRequest { prompt, ..InputRequest::default() };
        if !sender.ask(request, &question) {
            self.waiting().pop_back();
            return None;
        }
        answer.await.ok()
    }

    /// An answer has come. One to a question that was given up is dropped.
    pub(crate) fn answered(&self, message: &Message) {
        let Ok(reply) = message.parse::<InputReply>() else { return };
        let mut waiting = self.waiting();
        let of_client = waiting.iter().position(|(client, _)| client == message.header.session());
        if let Some((_, answered)) = of_client.and_then(|index| waiting.remove(index)) {
            drop(answered.send(reply.value)); // it may have been given up
        }
        drop(waiting);
        self.answers.notify_waiters();
    }

    /// Waits until a client has answered what nobody wants to know any more: some clients run nothing else before that.
    pub(crate) async fn answered_by(&self, client: &str) {
        loop {
            let answer = self.answers.notified();
            if !self.waiting().iter().any(|(asked, answered)| asked == client && answered.is_closed()) {
                return;
            }
            answer.await;
        }
    }

    /// Forgets what nobody wants to know any more: clients close their field when they interrupt.
    pub(crate) fn interrupted(&self) {
        self.waiting().retain(|(_, answered)| !answered.is_closed());
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(String, oneshot::Sender<String>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
