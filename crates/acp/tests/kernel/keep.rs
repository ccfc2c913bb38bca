//! `%keep`: the code that an agent ran becomes code cells.

use super::client::TestKernel;

#[tokio::test]
async fn the_code_that_an_agent_ran_becomes_the_next_cell() {
    let mut kernel = TestKernel::start_with_tools(&[]).await;
    kernel.run("%%python\nx = 41").await;
    let none = kernel.run("%keep").await.failure();
    assert_eq!(none.ename, "NothingToKeep");
    let code = "eval y = x + 1\\nprint(y)\nsay It is so.\neval 1 / 0\neval z = 7";
    let cell = kernel.run(&format!("%permissions auto\n{code}")).await;
    assert!(cell.text().contains("42\n") && cell.text().contains("eval failed: True"), "{}", cell.text());

    // A client that takes no proposals gets the code as text.
    let kept = "%%python\ny = x + 1\nprint(y)\n\n%%python\nz = 7";
    assert_eq!(kernel.run("%keep").await.text(), kept);
    let typed = kernel.begin_with_stdin("%keep 3").await;
    let typed = kernel.end_of(typed).await;
    let proposal = &typed.reply().payload[0];
    assert_eq!((&proposal["source"], &proposal["text"]), (&"set_next_input".into(), &kept.into()));
    assert!(typed.text().contains("the code is in the next cell"), "{}", typed.text());
    assert_eq!(kernel.run("%keep #1").await.failure().ename, "NothingToKeep");
    kernel.shut_down().await;
}
