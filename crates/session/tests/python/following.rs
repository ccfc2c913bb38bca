//! Watching what happens in a session, whoever runs it.

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::{CodeCompleteness, Question, Reply};
use cellwright_session::{FollowFrom, Force, SessionError, SessionEvent, SessionFollower};

use super::support::{Fixture, until_printed};

fn watched() -> Fixture {
    Fixture::with(|settings, _| settings.limits.journal = 1 << 20)
}

/// The event in a few words.
pub(crate) fn words(event: &SessionEvent) -> String {
    match event {
        SessionEvent::CellStarted { code, .. } => format!("cell {code}"),
        SessionEvent::Output { change: OutputChange::Added(Output::Text { text, .. }), call } => {
            format!("{}{}", if call.is_some() { "prints " } else { "later " }, text.trim_end())
        }
        SessionEvent::Output { change, .. } => format!("{change:?}"),
        SessionEvent::CellFinished { status, .. } => status.word().to_owned(),
        SessionEvent::CallFinished { succeeded, .. } => format!("call {succeeded}"),
        other => format!("{other:?}").split([' ', '(', '{']).next().unwrap_or_default().to_owned(),
    }
}

/// Reads until this is said.
pub(crate) async fn read_to(follower: &mut SessionFollower, last: &str) -> Vec<String> {
    let mut read: Vec<String> = Vec::new();
    while read.last().is_none_or(|event| event != last) {
        let event = follower.read().await.unwrap_or_else(|| panic!("it ended after {read:?}"));
        read.push(words(&event));
    }
    read
}

#[tokio::test]
async fn a_follower_sees_what_another_client_runs() {
    let fixture = watched();
    fixture.run(&["print('first')"]).await;
    let watcher = fixture.sessions.client();
    let mut all = watcher.follow(&fixture.key(), FollowFrom::Beginning).await.unwrap();
    let first = ["CallStarted", "KernelStarted", "cell print('first')", "prints first", "ok", "call true"];
    assert_eq!(read_to(&mut all, "Present").await, [&first[..], &["Present"]].concat());
    let mut new = watcher.follow(&fixture.key(), FollowFrom::Now).await.unwrap();
    fixture.run(&["x = 1", "1 / 0"]).await;
    let read = read_to(&mut new, "call false").await;
    assert_eq!(read[..5], ["Present", "CallStarted", "cell x = 1", "ok", "cell 1 / 0"]);
    assert_eq!(read[read.len() - 2..], ["error", "call false"]);
    drop(watcher);
    fixture.client.end(&fixture.key(), Force::Yes).await.unwrap();
    assert_eq!(read_to(&mut new, "Ended").await, ["Ended"]);
    assert!(new.read().await.is_none());
}

#[tokio::test]
async fn what_threads_print_between_two_calls_is_seen_at_once() {
    let fixture = watched();
    let thread = "import threading; go = threading.Event()\n\
        threading.Thread(target=lambda: (go.wait(), print('late'))).start()";
    fixture.run(&[thread]).await;
    let mut follower = fixture.client.follow(&fixture.key(), FollowFrom::Now).await.unwrap();
    fixture.run(&["threading.Timer(0.05, go.set).start()"]).await;
    let read = read_to(&mut follower, "later late").await;
    assert_eq!(read[read.len() - 2..], ["call true", "later late"]);
}

#[tokio::test]
async fn a_follower_that_never_reads_holds_up_nothing() {
    let fixture = watched();
    fixture.run(&["1"]).await;
    let mut follower = fixture.client.follow(&fixture.key(), FollowFrom::Now).await.unwrap();
    let report = fixture.run(&["for n in range(40000): print('x' * 100)"]).await;
    assert!(report.succeeded(), "{report:#?}");
    let read = read_to(&mut follower, "call true").await;
    assert!(read.contains(&"Missed".to_owned()), "{read:?}");
}

#[tokio::test]
async fn a_kernel_is_asked_between_cells_only() {
    let fixture = Fixture::new();
    let complete = || Question::Complete { code: "value.real".into(), cursor: 8 };
    let key = fixture.key();
    let asked = |question| fixture.client.ask(&key, question);
    assert!(matches!(asked(complete()).await, Err(SessionError::NoSession(_))));
    fixture.run(&["value_of_mine = 1; value = 2"]).await;
    let Reply::Completions(found) = asked(complete()).await.unwrap() else { panic!() };
    assert!(found.matches.iter().any(|name| name == "value.real"), "{found:?}");
    let whole = asked(Question::Completeness { code: "for x in y:".into() }).await.unwrap();
    assert!(matches!(whole, Reply::Completeness(CodeCompleteness::Unknown) | Reply::Pong), "{whole:?}");
    let running =
        until_printed(&fixture.client, fixture.call(&["print(1)\nimport time; time.sleep(60)"])).await;
    assert!(matches!(asked(complete()).await, Err(SessionError::Busy)));
    running.stop();
    assert!(!running.report().await.succeeded());
}
