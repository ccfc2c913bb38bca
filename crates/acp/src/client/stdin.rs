//! Questions to the user through the client's input field.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cellwright_jupyter::content::{InputReply, InputRequest};
use cellwright_jupyter::{JupyterMessage, ServerSender};
use tokio::sync::{Notify, Semaphore, oneshot};

use cellwright_output::visible;

/// Questions that wait for their answers.
#[derive(Debug)]
pub(crate) struct StdinQuestions {
    /// By the session of the client. Some clients do not say which question they answer, so an
    /// answer is for the client's oldest question.
    waiting: Mutex<VecDeque<(String, oneshot::Sender<String>)>>,
    /// A client shows one field at a time.
    field: Semaphore,
    /// Notified when an answer comes.
    answers: Notify,
}

impl Default for StdinQuestions {
    fn default() -> Self {
        Self { waiting: Mutex::default(), field: Semaphore::new(1), answers: Notify::new() }
    }
}

impl StdinQuestions {
    /// Asks the user of the client that sent `request`. `None` if nobody can answer.
    pub(crate) async fn ask(
        &self,
        sender: &ServerSender,
        request: &JupyterMessage,
        prompt: String,
    ) -> Option<String> {
        // What an agent asks reaches a terminal.
        let prompt = visible(&prompt).into_owned();
        self.ask_for(sender, request, InputRequest { prompt, ..InputRequest::default() }).await
    }

    /// Asks a question as it is, which may be for a password.
    pub(crate) async fn ask_for(
        &self,
        sender: &ServerSender,
        request: &JupyterMessage,
        question: InputRequest,
    ) -> Option<String> {
        let _field = self.field.acquire().await.ok()?;
        let (answered, answer) = oneshot::channel();
        let client = request.header.session().to_owned();
        self.waiting().push_back((client, answered));
        if !sender.ask(request, &question) {
            self.waiting().pop_back();
            return None;
        }
        answer.await.ok()
    }

    /// Takes an answer. It is dropped if its question was given up.
    pub(crate) fn answered(&self, message: &JupyterMessage) {
        let Ok(reply) = message.parse::<InputReply>() else { return };
        let mut waiting = self.waiting();
        let of_client = waiting.iter().position(|(client, _)| client == message.header.session());
        if let Some((_, answered)) = of_client.and_then(|index| waiting.remove(index)) {
            drop(answered.send(reply.value)); // the question may have been given up
        }
        drop(waiting);
        self.answers.notify_waiters();
    }

    /// Waits until a client has answered the questions that were given up. Some clients run nothing
    /// else before that.
    pub(crate) async fn answered_by(&self, client: &str) {
        loop {
            let answer = self.answers.notified();
            if !self.waiting().iter().any(|(asked, answered)| asked == client && answered.is_closed()) {
                return;
            }
            answer.await;
        }
    }

    /// Forgets the questions that were given up. Clients close their input field when they
    /// interrupt.
    pub(crate) fn interrupted(&self) {
        self.waiting().retain(|(_, answered)| !answered.is_closed());
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(String, oneshot::Sender<String>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
