//! What surrounds a running call: progress to the client, questions to its user.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellwright_tools::{InputPrompter, NoAnswer, ProgressSink};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, ProgressNotificationParam, ProgressToken, RequestId, ServerRequest,
};
use rmcp::service::{ElicitationMode, Peer, PeerRequestOptions, RoleServer, ServiceError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// When a call is old enough to be worth a word. Most are over by then.
const FIRST: Duration = Duration::from_millis(500);

/// The least time between two reports.
const APART: Duration = Duration::from_secs(1);

/// A call that is silent for so long is reported as alive. Clients count the time since the last sign of life.
const SILENT: Duration = Duration::from_secs(10);

/// The least time between a report and the reply. Clients have forgotten the call's token when both arrive in one read,
/// and some end the connection then.
const BEFORE_REPLY: Duration = Duration::from_millis(100);

/// Most bytes of output sent at once: a life sign, not the output, which the reply has.
const SENT: usize = 4 * 1024;

/// Reports to the client while a call runs: what was printed, or that it runs.
pub(crate) struct ProgressReporter {
    began: Instant,
    gathered: Mutex<PendingProgress>,
    printed: Notify,
}

#[derive(Default)]
struct PendingProgress {
    /// The last of what was printed and not sent.
    text: String,
    /// When the client was last sent something.
    sent: Option<Instant>,
}

impl ProgressSink for ProgressReporter {
    fn text(&self, text: &str) {
        let mut gathered = self.gathered();
        gathered.text.push_str(text);
        let surplus = gathered.text.len().saturating_sub(SENT);
        if surplus > 0 {
            let from = gathered.text.ceil_char_boundary(surplus);
            gathered.text.drain(..from);
        }
        drop(gathered);
        self.printed.notify_one();
    }
}

impl ProgressReporter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), gathered: Mutex::default(), printed: Notify::new() })
    }

    /// Reports to `peer` for as long as it is polled.
    pub(crate) async fn report(&self, peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Infallible {
        let Some(token) = token else { return std::future::pending().await };
        sleep_until(self.began + FIRST).await;
        loop {
            drop(timeout(SILENT, self.printed.notified()).await); // printed or not, it is time for a word
            let seconds = self.began.elapsed();
            let text = {
                let mut gathered = self.gathered();
                gathered.sent = Some(Instant::now());
                match std::mem::take(&mut gathered.text) {
                    text if text.is_empty() => format!("running for {} s", seconds.as_secs()),
                    text => text,
                }
            };
            // The time only grows, as progress has to.
            let progress =
                ProgressNotificationParam::new(token.clone(), seconds.as_secs_f64()).with_message(text);
            if peer.notify_progress(progress).await.is_err() {
                std::future::pending::<Infallible>().await; // nobody is left to report to
            }
            self.gathered().sent = Some(Instant::now());
            sleep(APART).await;
        }
    }

    /// Waits until a reply cannot arrive together with the last report.
    pub(crate) async fn before_reply(&self) {
        let sent = self.gathered().sent;
        if let Some(sent) = sent {
            sleep_until(sent + BEFORE_REPLY).await;
        }
    }

    fn gathered(&self) -> MutexGuard<'_, PendingProgress> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts questions to the client's user.
pub(crate) struct UserQuestions(Peer<RoleServer>);

impl UserQuestions {
    /// `None` when the client cannot ask its user.
    pub(crate) fn of(peer: &Peer<RoleServer>) -> Option<Self> {
        peer.supported_elicitation_modes().contains(&ElicitationMode::Form).then(|| Self(peer.clone()))
    }

    async fn answer(&self, question: ElicitRequestParams) -> Result<ElicitResult, ServiceError> {
        let question = ServerRequest::ElicitRequest(ElicitRequest::new(question));
        let asked = self.0.send_cancellable_request(question, PeerRequestOptions::no_options()).await?;
        let mut open = OpenQuestion { peer: &self.0, id: Some(asked.id.clone()) };
        let answer = asked.await_response().await;
        open.id = None;
        match answer? {
            ClientResult::ElicitResult(answer) => Ok(answer),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

/// A question that waits for its answer. Dropping it cancels the question, so that the client stops asking its user.
struct OpenQuestion<'a> {
    peer: &'a Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        // Ends by itself, once the client knows or has left.
        drop(tokio::spawn(
            async move {
                let over = CancelledNotificationParam::new(Some(id), Some("the cell is over".to_owned()));
                drop(peer.notify_cancelled(over).await); // the client may have left
            }
            .boxed(),
        ));
    }
}

impl InputPrompter for UserQuestions {
    fn ask(&self, prompt: String, password: bool) -> BoxFuture<'_, Result<String, NoAnswer>> {
        Box::pin(async move {
            if password {
                // MCP: servers must not ask for secrets by a form.
                return Err(NoAnswer::Secret);
            }
            let schema = ElicitationSchema::builder().required_string("answer").build();
            let schema = schema.map_err(|error| NoAnswer::Failed(error.into()))?;
            let message =
                if prompt.trim().is_empty() { "The running cell asks for input".to_owned() } else { prompt };
            let question =
                ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema };
            let result = self.answer(question).await.map_err(|error| NoAnswer::Failed(error.into()))?;
            match result.action {
                ElicitationAction::Accept => {
                    let answer = result.content.as_ref().and_then(|content| content["answer"].as_str());
                    answer.map(str::to_owned).ok_or(NoAnswer::NoText)
                }
                ElicitationAction::Decline => Err(NoAnswer::Declined),
                // Cancelled, or an action of a later version.
                _ => Err(NoAnswer::Dismissed),
            }
        })
    }
}
