//! The end of a turn: nothing is lost, and nothing appears in another cell.

use futures_util::future::join_all;

use super::client::TestKernel;

/// Moments that look random and are the same in every run.
struct SeededMoments(u64);

impl SeededMoments {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

#[tokio::test]
async fn a_hundred_interrupts_at_random_moments_lose_nothing_and_mix_nothing() {
    // After an interrupt the kernel waits for late words. Four kernels wait beside each other.
    join_all((0..4).map(|seed| interrupts(seed, 25))).await;
}

/// Interrupts turns one after another. The agent marks each word with the turn it belongs to.
async fn interrupts(seed: u64, rounds: usize) {
    let mut kernel = TestKernel::start(&[]).await;
    let mut moments = SeededMoments(seed);
    let mut cells = Vec::new();
    for round in 0..rounds {
        let tag = format!("turn{seed}x{round}x");
        let cell = kernel.begin(&format!("ramble {tag}")).await;
        match moments.next(80) {
            // Right at the beginning, perhaps before the agent has the prompt.
            70.. => kernel.wait_until_begun(&cell).await,
            moment if moment % 5 == 4 => {
                kernel.wait_for_output(&cell, &format!("{tag} call {moment} ")).await;
            }
            moment => kernel.wait_for_output(&cell, &format!("{tag} step {moment}\n")).await,
        }
        kernel.interrupt().await;
        assert_eq!(kernel.end_of(cell.clone()).await.failure().ename, "Interrupted");
        cells.push((tag, cell));
    }
    kernel.run("say the end").await; // after the last late words
    for (tag, cell) in cells {
        let text = kernel.shown(&cell).text();
        let words = |line: &str| {
            let from = line.find(&tag).unwrap_or_else(|| panic!("not of {tag}: {line:?} in {text}"));
            line[from..].split(" (").next().unwrap_or_default().to_owned()
        };
        let shown: Vec<String> = text.lines().map(words).collect();
        let last = shown.iter().find_map(|line| line.split_once(" ends after ")?.1.parse().ok());
        let expected = |count: usize| {
            let steps = (0..count).map(|number| {
                let kind = if number % 5 == 4 { "call" } else { "step" };
                format!("{tag} {kind} {number}")
            });
            let ending = ["tidies up", &format!("ends after {count}"), "is late", "late call"];
            steps.chain(ending.map(|words| format!("{tag} {words}"))).collect::<Vec<_>>()
        };
        assert_eq!(shown, last.map(expected).unwrap_or_default());
    }
    kernel.shut_down().await;
}

#[tokio::test]
async fn what_an_agent_adds_to_an_earlier_turn_appears_there() {
    let mut kernel = TestKernel::start(&[]).await;
    let first = kernel.begin("linger one").await;
    kernel.end_of(first.clone()).await;
    assert_eq!(kernel.run("resume two\nsay three").await.text(), "three\n");
    assert_eq!(kernel.shown(&first).text(), "one begins\n✓ one call (done)\ntwo ends\n");
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
