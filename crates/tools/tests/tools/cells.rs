//! Running code through `eval`, and looking after its kernels.

use std::sync::{Arc, Mutex};

use cellwright_testkit::eventually;
use cellwright_tools::{
    InputPrompter, NoAnswer, ProgressSink, PythonState, ReplyPart, ReplyReader, RunMode, Workspace,
};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::support::{Fixture, PNG};

#[tokio::test]
async fn variables_stay_and_the_kernel_is_introduced_once() {
    let fixture = Fixture::new();
    let first = fixture.ok("eval", json!({ "code": "x = 20\nprint('hi')\nx + 1" })).await;
    assert!(first.starts_with("hi\n21\n") && first.contains("[kernel: cpython 3."), "{first}");
    assert_eq!(fixture.ok("eval", json!({ "code": "x * 2" })).await, "40\n");
    assert_eq!(fixture.ok("eval", json!({ "code": "y = 1" })).await, "(no output)");
}

#[tokio::test]
async fn several_cells_run_up_to_the_one_that_fails_which_is_named() {
    let fixture = Fixture::new();
    let cells = json!([{ "code": "a = 1" }, { "code": "a / 0", "title": "divide" }, { "code": "a = 2" }]);
    let reply = fixture.call("eval", json!({ "cells": cells })).await;
    let text = reply.to_text();
    assert!(reply.is_error && text.contains("[cell 2 of 3 divide: error,"), "{text}");
    assert!(text.contains("ZeroDivisionError") && text.contains("[cell 3 of 3: not run]"), "{text}");
    let structured = reply.structured.unwrap();
    let states: Vec<_> = structured["cells"].as_array().unwrap().iter().map(|cell| &cell["status"]).collect();
    assert_eq!(states, ["ok", "error", "not run"]);
    assert_eq!(structured["cells"][1]["error"]["name"], "ZeroDivisionError");
    assert_eq!(fixture.ok("eval", json!({ "code": "a" })).await, "1\n");
}

#[tokio::test]
async fn a_cell_that_takes_too_long_is_stopped_and_the_variables_are_there() {
    let fixture = Fixture::new();
    fixture.ok("eval", json!({ "code": "x = 5" })).await;
    let code = "import time\nprint('begun')\ntime.sleep(60)";
    let stopped = fixture.error("eval", json!({ "code": code, "timeout": 1 })).await;
    assert!(stopped.starts_with("begun\n"), "{stopped}");
    let told = "[the cell took longer than 1 s and was stopped; the kernel and its variables are there]";
    assert!(stopped.contains(told), "{stopped}");
    assert_eq!(fixture.ok("eval", json!({ "code": "x" })).await, "5\n");
}

#[tokio::test]
async fn a_kernel_that_died_is_reported_and_replaced() {
    let fixture = Fixture::new();
    fixture.ok("eval", json!({ "code": "x = 5" })).await;
    let died = fixture.error("eval", json!({ "code": "import os\nos._exit(7)" })).await;
    assert!(died.contains("exited with code 7") && died.contains("the variables are gone"), "{died}");
    let after = fixture.ok("eval", json!({ "code": "'x' in globals()" })).await;
    assert!(after.starts_with("False") && after.contains("fresh kernel"), "{after}");
}

#[tokio::test]
async fn a_reset_forgets_and_sessions_are_apart() {
    let fixture = Fixture::new();
    fixture.ok("eval", json!({ "code": "x = 1" })).await;
    let other = fixture.ok("eval", json!({ "code": "'x' in globals()", "session": "other" })).await;
    assert!(other.starts_with("False\n"), "{other}");
    let reset = fixture.ok("eval", json!({ "code": "'x' in globals()", "reset": true })).await;
    assert!(reset.starts_with("False\n") && reset.contains("[fresh kernel: "), "{reset}");
}

#[tokio::test]
async fn images_are_shown_and_json_is_data() {
    let fixture = Fixture::new();
    let code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()";
    let reply = fixture.call("eval", json!({ "code": code, "timeout": 120 })).await;
    let images = reply.content.iter().filter(|content| matches!(content, ReplyPart::Image(_))).count();
    assert_eq!(images, 1, "{}", reply.to_text());
    let code = "display({'application/json': {'a': [1, 2]}}, raw=True)";
    let reply = fixture.call("eval", json!({ "code": code })).await;
    assert_eq!(reply.structured.unwrap()["cells"][0]["json"], json!([{ "a": [1, 2] }]));
}

#[tokio::test]
async fn images_past_those_a_reply_shows_can_be_read() {
    let fixture = Fixture::new();
    fixture.put_bytes("dot.png", PNG);
    let code = "import base64\npng = base64.b64encode(open('dot.png', 'rb').read()).decode()\nfor _ in range(9): display({'image/png': png}, raw=True)";
    let reply = fixture.call("eval", json!({ "code": code })).await;
    let images = reply.content.iter().filter(|content| matches!(content, ReplyPart::Image(_))).count();
    let text = reply.to_text();
    assert_eq!((images, text.matches("one more than is shown").count()), (8, 1), "{text}");
    let at = text.find("artifact://").unwrap();
    let last = fixture.call("read", json!({ "path": text[at..].split(']').next().unwrap() })).await;
    assert!(matches!(last.content[..], [ReplyPart::Image(_)]), "{}", last.to_text());
}

#[tokio::test]
async fn a_long_output_is_cut_and_read_in_parts() {
    let fixture = Fixture::new();
    let reply = fixture.call("eval", json!({ "code": "for i in range(100_000): print('line', i)" })).await;
    let text = reply.to_text();
    assert!(text.len() < 60_000, "{} bytes", text.len());
    let structured = reply.structured.unwrap();
    assert!(structured.to_string().len() < 1_000, "{structured}");
    let artifact = structured["cells"][0]["truncated"]["artifact"].as_str().unwrap().to_owned();
    let part = fixture.ok("read", json!({ "path": format!("{artifact}:50001-50002") })).await;
    assert_eq!(part, "line 50000\nline 50001\n");
    let found = fixture.ok("read", json!({ "path": artifact, "search": "line 7777$" })).await;
    assert_eq!(found, "7778: line 7777\n");
    let last = fixture.ok("read", json!({ "path": format!("{artifact}:-2") })).await;
    assert_eq!(last, "line 99998\nline 99999\n");
}

#[tokio::test]
async fn many_long_cells_share_what_one_reply_shows() {
    let fixture = Fixture::new();
    let cell = |number: usize| json!({ "code": format!("for i in range(4_000): print({number}, i)") });
    let mut cells: Vec<_> = (0..60).map(cell).collect();
    cells.push(json!({ "code": "'short'" }));
    let reply = fixture.call("eval", json!({ "cells": cells })).await;
    let text = reply.to_text();
    assert!(!reply.is_error && text.len() < 80_000, "{} bytes", text.len());
    assert!(text.contains("'short'\n"), "a short one is whole");
    let structured = reply.structured.unwrap();
    for number in [0, 59] {
        let truncated = &structured["cells"][number]["truncated"];
        assert_eq!(truncated["lines"], 4_000);
        let artifact = truncated["artifact"].as_str().unwrap();
        assert!(text.contains(artifact));
        let part = fixture.ok("read", json!({ "path": format!("{artifact}:2001-2002") })).await;
        assert_eq!(part, format!("{number} 2000\n{number} 2001\n"));
    }
    // What is too long even for a reply of its own is cut once, by the numbers of all of it.
    let cells =
        json!([{ "code": "for i in range(100_000): print(i)" }, { "code": "print('y\\n' * 20_000)" }]);
    let reply = fixture.call("eval", json!({ "cells": cells })).await;
    let text = reply.to_text();
    assert!(text.len() < 60_000 && text.contains(" of 100,000 lines omitted: "), "{}", text.len());
}

#[tokio::test]
async fn a_program_gets_everything_a_model_is_spared() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    context.reader = ReplyReader::Program;
    let reply = fixture.call_in("eval", json!({ "code": "print('x' * 200_000)" }), &context).await;
    assert!(reply.to_text().contains(&"x".repeat(200_000)), "{}", reply.to_text().len());
    let reply = fixture.call_in("bash", json!({ "command": "seq 100000" }), &context).await;
    assert_eq!(reply.to_text().lines().count(), 100_000);
}

#[tokio::test]
async fn cells_call_tools_and_get_whole_values() {
    let fixture = Fixture::new();
    fixture.put("big.txt", &"y".repeat(300_000));
    let code = "r = tool.read(path='big.txt')\nlen(r['text']), r['bytes']";
    let told = fixture.ok("eval", json!({ "code": code })).await;
    assert!(told.starts_with("(300000, 300000)\n"), "{told}");
    for (call, told) in [
        ("tool.eval(code='1')", "would wait for itself"),
        ("tool.read(path='/etc/passwd')", "outside the workspace"),
        ("print(tool.read('big.txt')['bytes'])", "300000"),
        ("tool.read('big.txt', 1)", "read() takes its arguments by name, all but path"),
        ("tool.red()", "did you mean `read`?"),
    ] {
        let code = format!("try:\n    {call}\nexcept Exception as e:\n    print(e)");
        let said = fixture.ok("eval", json!({ "code": code })).await;
        assert!(said.contains(told), "{said}");
    }
}

#[tokio::test]
async fn a_client_that_moves_learns_where_its_variables_are() {
    let fixture = Fixture::new();
    fixture.ok("eval", json!({ "code": "x = 5" })).await;
    let sub = fixture.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    fixture.context().client.move_to(Workspace::new(&sub).unwrap());
    let moved = fixture.ok("eval", json!({ "code": "'x' in globals()" })).await;
    let before = std::fs::canonicalize(fixture.path()).unwrap();
    let told =
        format!("the variables from before are in the one of {0}, by \"cwd\": \"{0}\"]", before.display());
    assert!(moved.starts_with("False\n") && moved.contains(&told), "{moved}");
    assert_eq!(fixture.ok("eval", json!({ "code": "x", "cwd": before })).await, "5\n");
    assert_eq!(fixture.ok("eval", json!({ "code": "1" })).await, "1\n");
}

struct Gathered(Mutex<String>);

impl ProgressSink for Gathered {
    fn text(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

struct Answers(&'static str);

impl InputPrompter for Answers {
    fn ask(&self, prompt: String, _password: bool) -> BoxFuture<'_, Result<String, NoAnswer>> {
        Box::pin(async move { Ok(format!("{}{prompt}", self.0)) })
    }
}

#[tokio::test]
async fn output_is_handed_on_while_the_cell_runs_and_questions_are_asked() {
    let fixture = Fixture::new();
    let gathered = Arc::new(Gathered(Mutex::default()));
    let mut context = fixture.context();
    context.progress = Some(Arc::clone(&gathered) as _);
    context.ask = Some(Arc::new(Answers("answer to ")));
    let code = "print('one')\nprint(input('name? '))";
    let reply = fixture.call_in("eval", json!({ "code": code }), &context).await;
    assert!(reply.to_text().contains("answer to name? "), "{}", reply.to_text());
    assert!(gathered.0.lock().unwrap().starts_with("one\n"));
    let refused = fixture.error("eval", json!({ "code": "input()" })).await;
    assert!(refused.contains("input() has nobody to answer it"), "{refused}");
}

/// Someone who has gone home.
struct Silent;

impl InputPrompter for Silent {
    fn ask(&self, _prompt: String, _password: bool) -> BoxFuture<'_, Result<String, NoAnswer>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_question_nobody_answers_ends_when_its_call_is_cancelled() {
    let fixture = Fixture::new();
    let code = "print('begun', flush=True)\nx = input('who? ')";
    fixture.ok("write", json!({ "path": "a.ipynb", "content": format!("# %% [code]\n{code}\n") })).await;
    for (tool, arguments) in [
        ("eval", json!({ "code": code, "timeout": 1 })),
        ("notebook", json!({ "action": "run", "path": "a.ipynb", "timeout": 1 })),
    ] {
        let gathered = Arc::new(Gathered(Mutex::default()));
        let mut context = fixture.context();
        context.progress = Some(Arc::clone(&gathered) as _);
        context.ask = Some(Arc::new(Silent));
        let call = fixture.call_in(tool, arguments, &context);
        let cancel = async {
            eventually("the first text", async || !gathered.0.lock().unwrap().is_empty()).await;
            context.stop.cancel();
        };
        let (reply, ()) = tokio::join!(call, cancel);
        assert!(reply.to_text().contains("was cancelled"), "{}", reply.to_text());
    }
}

#[tokio::test]
async fn an_interrupt_frees_a_call_whose_question_nobody_answers() {
    let fixture = Fixture::new();
    let gathered = Arc::new(Gathered(Mutex::default()));
    let mut context = fixture.context();
    context.progress = Some(Arc::clone(&gathered) as _);
    context.ask = Some(Arc::new(Silent));
    let code = "print('begun', flush=True)\nx = input('who? ')";
    let call = fixture.call_in("eval", json!({ "code": code, "timeout": 600 }), &context);
    let interrupt = async {
        eventually("the first text", async || !gathered.0.lock().unwrap().is_empty()).await;
        fixture.ok("kernel", json!({ "action": "interrupt" })).await
    };
    let (reply, told) = tokio::join!(call, interrupt);
    assert!(reply.is_error && told.contains("interrupted the cell"), "{told}: {}", reply.to_text());
}

#[tokio::test]
async fn a_cancelled_call_stops_its_cell() {
    let fixture = Fixture::new();
    let gathered = Arc::new(Gathered(Mutex::default()));
    let mut context = fixture.context();
    context.progress = Some(Arc::clone(&gathered) as _);
    let stop = context.stop.clone();
    let code = "import time\nprint('begun', flush=True)\ntime.sleep(60)";
    let call = fixture.call_in("eval", json!({ "code": code }), &context);
    let begun = async {
        eventually("the first text", async || !gathered.0.lock().unwrap().is_empty()).await;
        stop.cancel();
    };
    let (reply, ()) = tokio::join!(call, begun);
    let told = reply.to_text();
    assert!(
        reply.is_error && told.contains("[the cell was cancelled; the kernel and its variables"),
        "{told}"
    );
}

#[tokio::test]
async fn status_lists_variables_and_kernels_are_found() {
    let fixture = Fixture::new();
    let code = "import numpy as np\na = np.zeros((3, 4))\nname = 'x'";
    fixture.ok("eval", json!({ "code": code, "timeout": 120 })).await;
    let status = fixture.ok("kernel", json!({ "action": "status" })).await;
    assert!(status.contains("session default in ") && status.contains(" MB, up "), "{status}");
    assert!(status.contains("a: numpy.ndarray [3, 4]") && status.contains("name: str"), "{status}");
    let kernels = fixture.ok("kernel", json!({ "action": "kernels" })).await;
    assert!(kernels.starts_with("py, used by eval: cpython 3."), "{kernels}");
    assert!(kernels.contains("jupyter:python3: "), "{kernels}");
    assert!(fixture.ok("kernel", json!({ "action": "restart" })).await.contains("fresh kernel"));
    let after = fixture.ok("eval", json!({ "code": "'a' in globals()" })).await;
    assert!(after.starts_with("False\n"), "{after}");
    fixture.ok("kernel", json!({ "action": "shutdown" })).await;
    let list = fixture.ok("kernel", json!({ "action": "list" })).await;
    assert_eq!(list, "no sessions and no background work");
    let missing = fixture.error("kernel", json!({ "action": "status", "session": "none" })).await;
    assert_eq!(missing, "there is no session `none`; eval starts one");
}

#[tokio::test]
async fn without_python_the_list_and_the_reply_say_why() {
    let fixture = Fixture::changed(|settings| {
        settings.mode = RunMode::PythonOnly;
        settings.launch.search.explicit = Some("/nowhere/python".into());
    });
    let names = || fixture.specs().iter().map(|spec| spec.name).collect::<Vec<_>>();
    assert!(!names().contains(&"bash"));
    fixture.toolbox().warm_up(&fixture.context().client).await;
    assert!(matches!(&*fixture.toolbox().python().borrow(), PythonState::Fails(_)));
    let eval = fixture.specs().into_iter().find(|spec| spec.name == "eval").unwrap();
    let why = "Does not work at the moment: `/nowhere/python`";
    assert!(eval.description.starts_with(why), "{}", eval.description);
    assert!(names().contains(&"bash"));
    let told = fixture.error("eval", json!({ "code": "1" })).await;
    assert!(told.contains("/nowhere/python"), "{told}");
    assert_eq!(fixture.text("bash", json!({ "command": "echo works" })).await, "works\n");
}

#[tokio::test]
async fn a_mode_leaves_tools_out() {
    let fixture = Fixture::changed(|settings| settings.mode = RunMode::BashOnly);
    assert!(fixture.specs().iter().all(|spec| spec.name != "eval"));
    let refused = fixture.error("eval", json!({ "code": "1" })).await;
    assert_eq!(refused, "eval is not offered: the tool mode is bash-only");
}

#[tokio::test]
async fn wrong_calls_are_refused_with_what_helps() {
    let fixture = Fixture::new();
    for (arguments, message) in [
        (json!({}), "missing parameter `code`"),
        (json!({ "code": "1", "cells": [] }), "give `code` for one cell or `cells` for several, not both"),
        (json!({ "code": "1", "timeout": 0 }), "`timeout` must be 1 to 600 seconds, not 0; for longer work"),
        (json!({ "code": "1", "language": "two words" }), "`two words` does not choose a kernel"),
        (
            json!({ "language": "py", "cells": [{ "code": "1" }, { "code": "1", "language": "r" }] }),
            "share a language",
        ),
        (json!({ "cells": [{ "code": "1", "titel": "x" }] }), "unknown parameter `titel`, expected"),
        (json!({ "code": "1", "cwd": "none" }), "is not a folder to run in"),
        (json!({ "code": "1", "session": "" }), "`` cannot name a session"),
    ] {
        let told = fixture.error("eval", arguments).await;
        assert!(told.contains(message), "{told}");
    }
}
