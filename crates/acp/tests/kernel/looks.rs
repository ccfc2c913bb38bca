//! What a cell shows of a turn, in notebooks and in consoles.

use super::client::TestKernel;

#[tokio::test]
async fn a_new_title_and_a_changed_option_are_shown_once() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.run("rename Cats\nsay done").await;
    assert_eq!(cell.text(), "session title: Cats\nModel: Large\ndone\n");
    kernel.shut_down().await;
}

/// qtconsole and other clients name no cell, so they are taken for consoles.
#[tokio::test]
async fn a_console_gets_the_pictures_of_a_turn() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.run("%agent render stream\nsay before\nimage\nscreenshot\nsay after").await;
    assert_eq!(cell.mimes.iter().filter(|mime| *mime == "image/png").count(), 2, "{:?}", cell.mimes);
    let text = cell.text();
    let expected = "before\n[picture]\n✓ Look (read, done)\n  [picture]\n[picture]\nafter\n";
    assert_eq!(text, expected);
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_error_of_an_agent_is_shown_in_words_and_not_as_json() {
    let mut kernel = TestKernel::start(&[]).await;
    for (data, words) in [
        (r#"{"details": "no credits left"}"#, " (no credits left)"),
        (r#"{"error": {"type": "overloaded", "message": "try later"}}"#, " (try later)"),
        (r#"{"retry": 3, "model": "big"}"#, " (retry: 3, model: big)"),
        (r#""Internal error""#, ""),
        ("{}", ""),
    ] {
        let failure = kernel.run(&format!("fail Internal error :: {data}")).await.failure();
        assert_eq!(failure.evalue, format!("the agent answered with an error: Internal error{words}"));
    }
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_refused_permission_of_a_background_turn_names_the_reason() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("%%agent --background\npermission").await;
    kernel.wait_for_output(&cell, "permission: no").await;
    let listed = kernel.run("%permissions list").await.text();
    assert!(listed.contains("a turn in the background cannot ask by typing"), "{listed}");
    kernel.shut_down().await;
}
