//! Questions for a permission: what is asked, and what an answer covers.

use serde_json::json;

use super::client::TestKernel;

#[tokio::test]
async fn a_question_that_the_agent_changes_is_withdrawn() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.show_widgets().await;
    let cell = kernel.begin("swap rm -rf ~ :: ls").await;
    kernel.wait_until_buttons("Allow", 1).await;
    kernel.wait_until_buttons("Allow", 0).await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("swapped: no\n"), "{text}");
    let listed = kernel.run("%permissions list").await.text();
    assert_eq!(
        listed,
        "✗ rm -rf ~: refused by default: the agent changed this call while you were asked (Reject)"
    );
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_typed_answer_to_a_question_that_changed_does_not_count() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("swap rm -rf ~ :: ls").await;
    let question = kernel.question().await;
    kernel.wait_for_output(&cell, "the agent changed this call").await;
    kernel.answer(&question, "y").await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("swapped: no\n"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn two_questions_about_one_tool_call_are_both_answered() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.show_widgets().await;
    let cell = kernel.begin("twins").await;
    kernel.wait_until_buttons("Reject", 2).await;
    kernel.click("Allow").await;
    kernel.wait_until_buttons("Reject", 1).await;
    kernel.click("Reject").await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("'once')") && text.contains("'no')"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_change_of_a_call_withdraws_its_second_question_too() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.show_widgets().await;
    let cell = kernel.begin("swaptwin").await;
    kernel.wait_until_buttons("Allow", 2).await;
    kernel.click("Allow").await;
    kernel.wait_until_buttons("Allow", 0).await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("first: once\n") && text.contains("second: no\n"), "{text}");
    assert!(text.contains("the agent changed this call while you were asked"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_call_that_the_agent_did_not_ask_about_is_named_in_its_cell() {
    let mut kernel = TestKernel::start(&["--modes", "agent,read-only,full-access"]).await;
    let text = kernel.run("%permissions deny\nunasked execute echo denied > f").await.text();
    let card = "✓ echo denied > f (execute, done)\n  the agent did not ask before this\n";
    assert!(text.contains(card), "{text}");
    let notice = "warning: the mode `deny` was not in force: the agent ran this without asking\n\
                  Run `%agent mode read-only` to make it ask from now on.";
    assert!(text.contains(notice), "{text}");
    let info = kernel.run("%session info").await.text();
    assert!(
        info.contains("deny, but not in force: 1 call without asking. Run `%agent mode read-only`"),
        "{info}"
    );
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_deny_rule_that_the_agent_did_not_respect_is_named_in_its_cell() {
    let mut kernel = TestKernel::start(&["--modes", "default,plan"]).await;
    let lock = kernel.folder().join("x.lock");
    let rules = "%permissions auto\n%permissions deny edit **/*.lock";
    let text = kernel.run(&format!("{rules}\nunasked edit {}", lock.display())).await.text();
    let notice = "the rule `deny edit **/*.lock` was not in force: the agent changed this without asking";
    assert!(text.contains(notice) && text.contains("Its mode is `default`"), "{text}");
    let text = kernel.run(&format!("unasked edit {}", kernel.folder().join("a.txt").display())).await.text();
    assert!(!text.contains("not in force"), "{text}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn what_was_asked_about_or_allowed_is_not_called_unasked() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin_with_stdin("may git status\nunasked execute git status").await;
    let question = kernel.question().await;
    kernel.answer(&question, "y").await;
    let text = kernel.end_of(cell).await.text();
    assert!(!text.contains("not in force"), "{text}");
    // A command that runs through the kernel was judged there.
    let (_, cell) = kernel.run_typing("run echo one", "y").await;
    assert!(!cell.text().contains("not in force"), "{}", cell.text());
    let text = kernel.run("%permissions allow execute ls*\nunasked execute ls -l").await.text();
    assert!(!text.contains("not in force"), "{text}");
    assert!(!kernel.run("%session info").await.text().contains("not in force"));
    kernel.shut_down().await;
}

/// oh-my-pi asks for `echo okay`, and then runs `/bin/bash -l -c 'echo okay'` through the kernel.
#[tokio::test]
async fn a_command_that_an_agent_wraps_in_a_shell_is_asked_about_once() {
    let mut kernel = TestKernel::start(&[]).await;
    let run = json!({"command": "/bin/bash", "args": ["-l", "-c", "echo okay"]});
    let (_, cell) = kernel.run_typing(&format!("may echo okay\ncreate {run}"), "y").await;
    // A login shell may have more to say before.
    assert!(cell.text().contains("okay\\n'"), "{}", cell.text());
    let cell = kernel.run(&format!("%permissions allow execute echo ok*\ncreate {run}")).await;
    assert!(cell.text().contains("okay\\n'"), "{}", cell.text());
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_allow_rule_does_not_cover_a_command_with_its_own_environment() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%permissions allow execute git status*").await;
    let planted =
        json!({"command": "git", "args": ["status"], "env": [{"name": "PATH", "value": "/ws/bin"}]});
    let (asked, cell) = kernel.run_typing(&format!("create {planted}"), "n").await;
    assert!(asked.starts_with("Permission: Run `PATH=/ws/bin git status`\n"), "{asked}");
    assert!(cell.text().contains("create error the user did not allow this"), "{}", cell.text());
    let listed = kernel.run("%permissions list").await.text();
    assert!(listed.ends_with("✗ Run `PATH=/ws/bin git status`: refused by you (Reject)"), "{listed}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_allow_rule_does_not_cover_a_command_in_another_folder() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%permissions allow execute ./build").await;
    let folder = kernel.folder().join("planted");
    std::fs::create_dir(&folder).expect("made");
    let request = json!({"command": "./build", "cwd": folder});
    let (asked, _) = kernel.run_typing(&format!("create {request}"), "n").await;
    assert!(asked.contains(&format!("in {}", folder.display())), "{asked}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_question_about_a_write_shows_the_content() {
    let mut kernel = TestKernel::start(&[]).await;
    let path = kernel.folder().join("a.txt");
    std::fs::write(&path, "old\n").expect("written");
    let (asked, cell) = kernel.run_typing(&format!("write {} rm -rf ~", path.display()), "y").await;
    assert!(asked.contains("      - old\n      + rm -rf ~\n"), "{asked}");
    assert!(cell.text().contains("written"), "{}", cell.text());
    let listed = kernel.run("%permissions list").await.text();
    assert!(listed.contains("a.txt +1 \u{2212}1"), "{listed}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_approved_change_does_not_cover_another_content() {
    let mut kernel = TestKernel::start(&[]).await;
    let path = kernel.folder().join("a.txt");
    let cell = kernel.begin_with_stdin(&format!("propose {} good\nwrite {0} bad", path.display())).await;
    let question = kernel.question().await;
    kernel.answer(&question, "y").await;
    let second = kernel.question().await;
    kernel.answer(&second, "n").await;
    let text = kernel.end_of(cell).await.text();
    assert!(text.contains("write error"), "{text}");
    assert!(!path.exists());
    kernel.shut_down().await;
}
