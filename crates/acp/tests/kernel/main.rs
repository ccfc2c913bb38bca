//! The agent kernel as a Jupyter client sees it, with `testkit`'s agent that errs on request.

mod client;
mod code_cells;
mod context;
mod conversations;
mod endings;
mod keep;
mod looks;
mod questions;
mod references;
mod widgets;

use cellwright_jupyter::Channel;
use cellwright_jupyter::content::{
    CompleteReply, CompleteRequest, HistoryReply, HistoryRequest, InspectReply, InspectRequest,
    IsCompleteReply, IsCompleteRequest,
};
use serde_json::json;

use self::client::TestKernel;

#[tokio::test]
async fn a_prompt_is_answered_in_its_cell() {
    let mut kernel = TestKernel::start(&[]).await;
    assert_eq!(kernel.run("say hello").await.text(), "hello\n");
    assert_eq!(kernel.run("think hard\nsay again").await.text(), "(thought) hard\nagain\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_tool_call_is_one_display_that_changes() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.run("%permissions auto\nrun echo one").await;
    assert_eq!(cell.outputs.len(), 3, "{:?}", cell.outputs);
    assert_eq!(cell.outputs[1], "✓ echo one (execute, done)\n  one");
    assert_eq!(cell.outputs[2], "ran 0 'one\\n'\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_keeps_the_agent() {
    let mut kernel = TestKernel::start(&[]).await;
    let agent = kernel.run("pid").await.text();
    let cell = kernel.begin("say waiting\nwait").await;
    kernel.wait_for_output(&cell, "waiting").await;
    kernel.interrupt().await;
    let ended = kernel.end_of(cell).await;
    assert_eq!(ended.failure().ename, "Interrupted");
    assert_eq!(ended.text(), "waiting\n");
    assert_eq!(kernel.run("pid").await.text(), agent);
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_second_interrupt_ends_an_agent_that_hangs() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin("hang hanging").await;
    kernel.wait_for_output(&cell, "hanging").await;
    kernel.interrupt().await;
    kernel.interrupt().await;
    let ended = kernel.end_of(cell).await;
    assert_eq!(ended.failure().ename, "Interrupted");
    assert!(ended.text().contains("the agent did not stop and was ended"), "{}", ended.text());
    assert!(kernel.run("say fine").await.text().ends_with("fine\n"));
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_is_reported_and_started_again() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.run("say before\ncrash 3").await;
    assert_eq!(cell.text(), "before\n");
    let failure = cell.failure();
    assert_eq!(
        (failure.ename.as_str(), failure.evalue.as_str()),
        ("AgentEnded", "the agent exited with code 3")
    );
    assert!(failure.traceback.concat().ends_with("about to crash"), "{:?}", failure.traceback);
    let next = kernel.run("say after").await.text();
    assert_eq!(next, "the agent had ended and was started again; the conversation continues\nafter\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_permission_is_asked_and_answered_by_typing() {
    let mut kernel = TestKernel::start(&[]).await;
    let (asked, cell) = kernel.run_typing("permission edit /tmp/x", "y").await;
    assert_eq!(
        asked,
        "Permission: Touch /tmp/x\n  1) Always allow\n  2) Allow\n  3) Reject\nNumber, y or n: "
    );
    assert!(cell.text().contains("permission: once"), "{}", cell.text());
    let listed = kernel.run("%permissions list").await.text();
    assert_eq!(listed, "✓ Touch /tmp/x: allowed by you (Allow)\n    /tmp/x");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_permission_that_nobody_can_answer_is_refused() {
    let mut kernel = TestKernel::start(&[]).await;
    assert!(kernel.run("permission").await.text().ends_with("permission: no\n"));
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_interrupt_cancels_the_permission_that_waits() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("permission edit /tmp/x").await;
    kernel.question().await;
    kernel.interrupt().await;
    assert_eq!(kernel.end_of(cell).await.failure().ename, "Interrupted");
    let listed = kernel.run("%permissions list").await.text();
    assert_eq!(listed, "✗ Touch /tmp/x: cancelled by the interrupt\n    /tmp/x");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_background_turn_continues_after_its_cell_has_ended() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin("%%agent --background\nsay first\nwait").await;
    let header = cell.clone();
    assert!(kernel.end_of(cell).await.text().contains("continues in the background"));
    kernel.wait_for_output(&header, "first").await;
    assert_eq!(kernel.run("%permissions").await.text(), "ask");
    kernel.interrupt().await; // nothing runs in the foreground
    kernel.wait_for_output(&header, "warning: interrupted").await;
    kernel.shut_down().await;
}

#[tokio::test]
async fn magics_change_the_session_and_report_what_they_do_not_know() {
    let mut kernel = TestKernel::start(&[]).await;
    assert_eq!(kernel.run("%agent mode").await.text(), "* plan  Plan\n  act   Act");
    assert_eq!(kernel.run("%agent mode act").await.text(), "mode: Act");
    assert!(kernel.run("%session").await.text().contains("mode         act\n"));
    for (magic, ename) in [
        ("%agnet mode", "MagicError"),
        ("%agent mode nonsense", "NoSuchMode"),
        ("%agent use nobody", "NoSuchAgent"),
        ("%session use nowhere", "NoSuchSession"),
        ("%mcp remove nothing", "NoSuchServer"),
        ("%session load missing", "AgentError"),
    ] {
        assert_eq!(kernel.run(magic).await.failure().ename, ename, "{magic}");
    }
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_wants_a_sign_in_says_how() {
    let mut kernel = TestKernel::start(&["--auth"]).await;
    let failure = kernel.run("say hello").await.failure();
    assert_eq!(failure.ename, "AuthRequired");
    assert!(failure.traceback.concat().contains("run in a cell: %agent login login"), "{failure:?}");
    assert_eq!(kernel.run("%agent login login").await.text(), "signed in by Log in");
    assert_eq!(kernel.run("say hello").await.text(), "hello\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn clients_get_history_completions_and_help() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("say one").await;
    kernel.run("%agent mode").await;
    let tail =
        HistoryRequest { hist_access_type: "tail".to_owned(), n: Some(2), ..HistoryRequest::default() };
    let history: HistoryReply = kernel.ask(Channel::Shell, &tail).await;
    assert_eq!(history.history, [json!([1, 1, "say one"]), json!([1, 2, "%agent mode"])]);

    let code =
        CompleteRequest { code: "%agent mode a".to_owned(), cursor_pos: 13, ..CompleteRequest::default() };
    let completed: CompleteReply = kernel.ask(Channel::Shell, &code).await;
    assert_eq!((completed.matches, completed.cursor_start), (vec!["act".to_owned()], 12));

    let word = InspectRequest { code: "/web cats".to_owned(), cursor_pos: 2, ..InspectRequest::default() };
    let inspected: InspectReply = kernel.ask(Channel::Shell, &word).await;
    assert_eq!(inspected.data.text("text/plain").as_deref(), Some("web: Search the web"));

    let open = IsCompleteRequest { code: "%%agent other".to_owned(), ..IsCompleteRequest::default() };
    let complete: IsCompleteReply = kernel.ask(Channel::Shell, &open).await;
    assert_eq!(complete.status, "incomplete");
    kernel.shut_down().await;
}
