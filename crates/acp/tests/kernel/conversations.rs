//! Conversations last: beyond the kernel, a failed change of the session, and a page reload.

use std::path::Path;

use super::client::TestKernel;

const CONTINUES: &str = "the conversation of this notebook continues; `%session new` begins another\n";

async fn notebook(home: &Path) -> TestKernel {
    let store = home.join("store.json").display().to_string();
    TestKernel::start_for_notebook(home, &["--store", &store]).await
}

#[tokio::test]
async fn a_restarted_kernel_continues_the_conversation_of_its_notebook() {
    let home = tempfile::tempdir().expect("a folder");
    let mut kernel = notebook(home.path()).await;
    assert_eq!(kernel.run("remember the cat\nsay yes").await.text(), "yes\n");
    kernel.shut_down().await;
    let mut kernel = notebook(home.path()).await;
    assert_eq!(kernel.run("recall").await.text(), format!("{CONTINUES}the cat\n"));
    assert_eq!(kernel.run("recall").await.text(), "the cat\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_kernel_that_was_killed_in_a_turn_has_not_forgotten_its_conversation() {
    let home = tempfile::tempdir().expect("a folder");
    let mut kernel = notebook(home.path()).await;
    let cell = kernel.begin("remember the cat\nsay waiting\nwait").await;
    kernel.wait_for_output(&cell, "waiting").await;
    drop(kernel);
    let mut kernel = notebook(home.path()).await;
    assert_eq!(kernel.run("recall").await.text(), format!("{CONTINUES}the cat\n"));
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_cannot_continue_reports_that_it_starts_afresh() {
    let home = tempfile::tempdir().expect("a folder");
    for round in 0..2 {
        let mut kernel = TestKernel::start_for_notebook(home.path(), &["--forgetful"]).await;
        let text = kernel.run("say hello").await.text();
        let afresh = "warning: the agent starts afresh and does not know the conversation of this notebook: \
                      it cannot continue an old session\n";
        let expected = if round == 0 { String::new() } else { afresh.to_owned() };
        assert_eq!(text, format!("{expected}hello\n"));
        kernel.shut_down().await;
    }
}

#[tokio::test]
async fn a_new_session_is_not_replaced_by_the_old_one_at_the_next_start() {
    let home = tempfile::tempdir().expect("a folder");
    let mut kernel = notebook(home.path()).await;
    kernel.run("remember the cat").await;
    kernel.run("%session new").await;
    kernel.shut_down().await;
    let mut kernel = notebook(home.path()).await;
    assert_eq!(kernel.run("recall").await.text(), "None\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_load_or_resume_that_fails_leaves_you_where_you_were() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("remember the cat").await;
    for magic in ["%session load missing", "%session resume missing", "%session resume"] {
        assert!(!kernel.run(magic).await.failure().evalue.is_empty());
        assert_eq!(kernel.run("recall").await.text(), "the cat\n", "{magic}");
    }
    kernel.shut_down().await;
}

#[tokio::test]
async fn resume_without_an_id_continues_the_last_session_of_the_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let mut kernel = notebook(home.path()).await;
    for word in ["first", "second"] {
        kernel.run(&format!("remember {word}")).await;
        kernel.run("%session new").await;
    }
    let other = home.path().join("other");
    std::fs::create_dir(&other).expect("made");
    kernel.run(&format!("%session new elsewhere --cwd {}\nremember elsewhere", other.display())).await;
    kernel.run("%session use main").await;
    let resumed = kernel.run("%session resume").await.text();
    assert!(resumed.starts_with("the session `session-") && resumed.ends_with("` continues"), "{resumed}");
    assert_eq!(kernel.run("recall").await.text(), "second\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn stored_sessions_are_those_of_this_folder_unless_all_are_asked_for() {
    let home = tempfile::tempdir().expect("a folder");
    let mut kernel = notebook(home.path()).await;
    kernel.run("remember here").await;
    let other = home.path().join("other");
    std::fs::create_dir(&other).expect("made");
    kernel.run(&format!("%session new elsewhere --cwd {}\nremember there", other.display())).await;
    let stored = |text: String| text.split_once("\n\nstored by the agent").expect("a list").1.to_owned();
    let here = stored(kernel.run("%session use main\n%session list").await.text());
    let all = stored(kernel.run("%session list --all").await.text());
    assert_eq!((here.matches("session-").count(), all.matches("session-").count()), (1, 2), "{here}{all}");
    assert!(all.contains(&other.display().to_string()), "{all}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn the_last_turn_is_shown_again_after_a_page_reload() {
    let mut kernel = TestKernel::start(&[]).await;
    assert_eq!(kernel.run("%session last").await.text(), "this session has had no turn yet");
    let first = kernel.run("say hello\ntool /tmp/x\nthink hard\nsay bye").await;
    kernel.run("%permissions").await;
    let again = kernel.run("%session last").await;
    assert_eq!(again.outputs, first.outputs);
    kernel.shut_down().await;
}
