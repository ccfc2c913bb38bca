//! The end of a turn: nothing is lost, and nothing appears in another cell.

use super::client::TestKernel;

#[tokio::test]
async fn an_interrupt_at_any_moment_loses_nothing() {
    let mut kernel = TestKernel::start(&[]).await;
    for round in 0..100 {
        let cell = kernel.begin("farewell").await;
        let moment = round * 7 % 23;
        kernel.wait_for_output(&cell, &format!("step {moment}\n")).await;
        kernel.interrupt().await;
        let ended = kernel.end_of(cell).await;
        let text = ended.text();
        let steps = text.lines().filter(|line| line.starts_with("step ")).count();
        let expected = (0..steps).map(|number| format!("step {number}\n")).collect::<Vec<_>>().concat();
        let ending = format!("✓ Tidy up (done)\n{steps} steps, good bye\nwarning: interrupted");
        assert_eq!(text, format!("{expected}{ending}"), "round {round}");
        assert_eq!(ended.failure().ename, "Interrupted");
    }
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_fork_that_fails_leaves_you_where_you_were() {
    let mut kernel = TestKernel::start(&["--exclusive"]).await;
    kernel.run("remember the cat").await;
    let failure = kernel.run("%session fork copy").await.failure();
    assert!(failure.traceback.concat().contains("You are still in `main`."), "{failure:?}");
    assert_eq!(kernel.run("recall").await.text(), "the cat\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_console_gets_no_escape_sequences_of_an_agent() {
    let mut kernel = TestKernel::start(&[]).await;
    let hostile = r#""\u001b]52;c;eA==\u0007\u001b[2K\u202e""#;
    let text = kernel.run(&format!("%agent render stream\ninject {hostile}")).await.text();
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(text.contains("\\u{1b}]52;c;eA==\\u{7}"), "{text:?}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_conversation_that_is_played_back_late_is_not_glued_to_a_new_answer() {
    let mut kernel = TestKernel::start(&["--late-replay"]).await;
    let first = kernel.begin("say one").await;
    kernel.end_of(first.clone()).await;
    kernel.run("crash 3").await;
    let text = kernel.run("say two").await.text();
    assert_eq!(text, "the agent had ended and was started again; the conversation continues\ntwo\n");
    assert_eq!(kernel.end_of(first).await.text(), "one\n");
    kernel.shut_down().await;
}
