//! What is asked of a session while a person types on.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::{CodeCompleteness, Question, Reply};
use cellwright_output::Display;
use cellwright_session::{InterruptResult, SessionClient, SessionError, SessionKey};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// How long Enter may take because the kernel is asked whether a text is a whole.
const JUDGED_WITHIN: Duration = Duration::from_millis(500);

/// Something to ask.
pub(super) enum QuestionTask {
    /// Ways to go on at the cursor, which is counted in bytes.
    Completions {
        code: String,
        cursor: usize,
    },
    Explanation {
        code: String,
        cursor: usize,
    },
    Completeness {
        code: String,
    },
    Interrupt,
}

/// What came of it.
pub(super) enum BackgroundAnswer {
    /// Between two places in the code, in bytes.
    Completions {
        code: String,
        cursor: usize,
        start: usize,
        end: usize,
        matches: Vec<String>,
    },
    Explanation(Option<String>),
    Completeness(CodeCompleteness),
    Interrupt(Result<InterruptResult, SessionError>),
}

impl QuestionTask {
    /// Asks it. A kernel that cannot answer now has nothing to say.
    pub(super) fn run(
        self,
        client: Arc<SessionClient>,
        key: SessionKey,
    ) -> BoxFuture<'static, BackgroundAnswer> {
        async move {
            match self {
                Self::Completions { code, cursor } => {
                    let question =
                        Question::Complete { code: code.clone(), cursor: characters(&code, cursor) };
                    let reply = client.ask(&key, question).await;
                    let Ok(Reply::Completions(found)) = reply else {
                        return BackgroundAnswer::Completions {
                            code,
                            cursor,
                            start: cursor,
                            end: cursor,
                            matches: Vec::new(),
                        };
                    };
                    let (start, end) = (bytes(&code, found.start), bytes(&code, found.end));
                    BackgroundAnswer::Completions { code, cursor, start, end, matches: found.matches }
                }
                Self::Explanation { code, cursor } => {
                    let cursor = characters(&code, cursor);
                    let reply = client.ask(&key, Question::Inspect { code, cursor, detail: 0 }).await;
                    BackgroundAnswer::Explanation(match reply {
                        Ok(Reply::Inspection(Some(found))) => Display::from_bundle(&found.data).text,
                        _ => None,
                    })
                }
                Self::Completeness { code } => {
                    let asked = client.ask(&key, Question::Completeness { code });
                    let reply = tokio::time::timeout(JUDGED_WITHIN, asked).await;
                    BackgroundAnswer::Completeness(match reply {
                        Ok(Ok(Reply::Completeness(completeness))) => completeness,
                        _ => CodeCompleteness::Unknown,
                    })
                }
                Self::Interrupt => BackgroundAnswer::Interrupt(client.interrupt(&key).await),
            }
        }
        .boxed()
    }
}

/// Kernels count characters.
fn characters(code: &str, at: usize) -> usize {
    code[..at].chars().count()
}

fn bytes(code: &str, at: usize) -> usize {
    code.char_indices().nth(at).map_or(code.len(), |(at, _)| at)
}
