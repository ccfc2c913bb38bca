//! Cells of code, which run in the kernel of the notebook.

use cellwright_jupyter::Channel;
use cellwright_jupyter::content::{
    CommInfoReply, CommInfoRequest, CompleteReply, CompleteRequest, InputRequest, InspectReply,
    InspectRequest, IsCompleteReply, IsCompleteRequest,
};
use serde_json::json;

use super::client::TestKernel;

#[tokio::test]
async fn code_shows_what_it_prints_displays_and_returns() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.run("%%python\nx = 41\nprint('one')\ndisplay('two')\nx + 1").await;
    assert_eq!(cell.outputs, ["one\n", "'two'", "42"]);
    assert_eq!(kernel.run("%%run\nx").await.text(), "41");
    let failed = kernel.run("%%python\nprint('before')\n1 / 0").await;
    assert_eq!((failed.text(), failed.raised.as_deref()), ("before\n".to_owned(), Some("ZeroDivisionError")));
    let failure = failed.failure();
    assert_eq!((&*failure.ename, &*failure.evalue), ("ZeroDivisionError", "division by zero"));
    assert!(failure.traceback.concat().contains("1 / 0"), "{failure:?}");
    assert_eq!(kernel.run("%%bash\necho shell").await.text(), "shell\n");
    assert!(kernel.run("say hello").await.text().ends_with("hello\n"));
    kernel.shut_down().await;
}

#[tokio::test]
async fn code_that_clears_its_output_shows_the_rest() {
    let mut kernel = TestKernel::start(&[]).await;
    let code =
        "%%python\nfrom IPython.display import clear_output\nprint('old')\nclear_output()\nprint('new')";
    assert_eq!(kernel.run(code).await.outputs, ["new\n"]);
    kernel.shut_down().await;
}

#[tokio::test]
async fn code_asks_the_person_for_input() {
    let mut kernel = TestKernel::start(&[]).await;
    let (asked, cell) = kernel.run_typing("%%python\nname = input('Name: ')\nprint('Hi', name)", "Ada").await;
    assert_eq!((&*asked, &*cell.text()), ("Name: ", "Hi Ada\n"));
    let secret = kernel.begin_with_stdin("%%python\nimport getpass\nlen(getpass.getpass('Word: '))").await;
    let question = kernel.question().await;
    assert!(question.parse::<InputRequest>().unwrap().password);
    kernel.answer(&question, "hidden").await;
    assert_eq!(kernel.end_of(secret).await.text(), "6");
    let nobody = kernel.run("%%python\ninput()").await;
    assert_eq!(nobody.failure().ename, "EOFError");
    kernel.shut_down().await;
}

#[tokio::test]
async fn an_interrupt_stops_code_and_keeps_its_variables() {
    let mut kernel = TestKernel::start(&[]).await;
    let cell = kernel.begin("%%python\nimport time\nx = 7\nprint('begun')\ntime.sleep(600)").await;
    kernel.wait_for_output(&cell, "begun").await;
    let waiting = kernel.begin("%%python\nprint('not this')").await;
    kernel.interrupt().await;
    let stopped = kernel.end_of(cell).await;
    assert_eq!(stopped.failure().ename, stopped.raised.unwrap());
    assert_eq!(kernel.end_of(waiting).await.text(), "");
    assert_eq!(kernel.run("%%python\nx").await.text(), "7");
    kernel.shut_down().await;
}

#[tokio::test]
async fn completion_and_inspection_know_the_variables() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%%python\nlong_name = 'text'").await;
    let code = "%%python\n'é' + long_na".to_owned();
    let at = code.chars().count();
    let asked = CompleteRequest { code, cursor_pos: at, ..CompleteRequest::default() };
    let completed: CompleteReply = kernel.ask(Channel::Shell, &asked).await;
    assert_eq!(completed.matches, ["long_name"]);
    assert_eq!((completed.cursor_start, completed.cursor_end), (at - "long_na".len(), at));
    let asked = InspectRequest {
        code: "%%python\nlong_name".to_owned(),
        cursor_pos: 12,
        ..InspectRequest::default()
    };
    let inspected: InspectReply = kernel.ask(Channel::Shell, &asked).await;
    assert!(inspected.found && inspected.data.text("text/plain").unwrap().contains("text"), "{inspected:?}");
    let typed = |code: &str| IsCompleteRequest { code: code.to_owned(), ..IsCompleteRequest::default() };
    let complete: IsCompleteReply = kernel.ask(Channel::Shell, &typed("%%python")).await;
    assert_eq!(complete.status, "incomplete");
    kernel.shut_down().await;
}

#[tokio::test]
async fn in_code_mode_cells_are_code_until_they_say_otherwise() {
    let mut kernel = TestKernel::start(&[]).await;
    let said = kernel.run("%mode code").await.text();
    assert_eq!(said, "a cell is code; `%%prompt` on its first line makes it a prompt");
    assert_eq!(kernel.run("x = 6\nx * 7").await.text(), "42");
    assert_eq!(kernel.run("!echo shell").await.text(), "shell\n");
    assert!(kernel.run("%%prompt\nsay hello").await.text().ends_with("hello\n"));
    assert_eq!(kernel.run("%mode prompt\nsay again").await.outputs.last().unwrap(), "again\n");
    kernel.shut_down().await;
}

#[tokio::test]
async fn the_metadata_of_a_notebook_say_whether_its_cells_are_code() {
    let home = tempfile::tempdir().unwrap();
    let notebook = json!({"cells": [], "metadata": {"cellwright": {"mode": "code"}}, "nbformat": 4, "nbformat_minor": 5});
    std::fs::write(home.path().join("nb.ipynb"), notebook.to_string()).unwrap();
    let mut kernel = TestKernel::start_for_notebook(home.path(), &[]).await;
    assert_eq!(kernel.run("6 * 7").await.text(), "42");
    kernel.shut_down().await;
}

#[tokio::test]
async fn a_prompt_that_looks_like_code_gets_a_hint() {
    let mut kernel = TestKernel::start(&[]).await;
    let hint = "this looks like code";
    kernel.run("%%python\nsay = 1; hello = 2").await;
    assert!(!kernel.run("say hello").await.text().contains(hint));
    let hinted = kernel.run("say").await.text();
    assert!(hinted.starts_with(hint), "{hinted}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn another_kernel_runs_code_and_the_first_keeps_its_variables() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%%python\nx = 1").await;
    assert_eq!(
        kernel.run("%kernel jupyter:python3").await.text(),
        "code runs in jupyter:python3 from now on"
    );
    assert_eq!(kernel.run("%%run\nx").await.failure().ename, "NameError");
    let shown = kernel.run("%kernel").await.text();
    assert!(shown.contains("* jupyter:python3  ") && shown.contains("  python  "), "{shown}");
    assert_eq!(kernel.run("%kernel python\n%%run\nx").await.outputs.last().unwrap(), "1");
    assert!(kernel.run("%kernel variables").await.text().contains("x  int  1"));
    kernel.run("%kernel restart").await;
    assert_eq!(kernel.run("%%run\nx").await.failure().ename, "NameError");
    let unknown = kernel.run("%%nosuch\nx").await.failure();
    assert!(unknown.traceback.concat().contains("`%%nosuch` is neither a magic nor"), "{unknown:?}");
    kernel.shut_down().await;
}

#[tokio::test]
async fn widgets_of_code_speak_with_the_page_in_both_directions() {
    let mut kernel = TestKernel::start(&[]).await;
    kernel.run("%kernel jupyter:python3").await;
    let code = "%%run\nimport comm\n\
                def double(message):\n    \
                    c.send({'method': 'update', 'state': {'value': 2 * message['content']['data']['state']['value']}})\n\
                state = {'_model_name': 'EchoModel', 'value': 1}\n\
                c = comm.create_comm(target_name='jupyter.widget', data={'state': state})\n\
                c.on_msg(double)\nprint('shown')";
    assert_eq!(kernel.run(code).await.text(), "shown\n");
    kernel.change("Echo", 0, json!({"value": 21})).await;
    kernel.wait_for_widget_value("Echo", &json!(42)).await;
    let asked = CommInfoRequest::default();
    let open: CommInfoReply = kernel.ask(Channel::Shell, &asked).await;
    assert_eq!(open.comms.len(), 1);
    kernel.run("%%run\nc.close()").await;
    let open: CommInfoReply = kernel.ask(Channel::Shell, &asked).await;
    assert_eq!(open.comms.len(), 0);
    kernel.shut_down().await;
}

#[tokio::test]
async fn what_a_thread_prints_later_appears_in_the_cell_that_ran_last() {
    let mut kernel = TestKernel::start(&[]).await;
    let code = "%%python\nimport threading\ngo = threading.Event()\n\
                threading.Thread(target=lambda: (go.wait(), print('late'))).start()\nprint('begun')";
    let first = kernel.run(code).await;
    assert_eq!(first.text(), "begun\n");
    let last = kernel.begin("%%python\nthreading.Timer(0.2, go.set).start()").await;
    kernel.end_of(last.clone()).await;
    kernel.wait_for_output(&last, "late\n").await;
    kernel.shut_down().await;
}
