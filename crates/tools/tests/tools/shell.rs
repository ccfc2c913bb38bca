//! Shell commands.

use std::fs;

use cellwright_testkit::{alive, end_of, eventually};
use serde_json::json;

use crate::support::Fixture;

#[tokio::test]
async fn folder_variables_functions_and_aliases_pass_to_the_next_command() {
    let fixture = Fixture::new();
    let bash = async |command: &str| fixture.text("bash", json!({ "command": command })).await;
    bash("mkdir deep; cd deep; export GREETING='it'\"'\"'s me'; own=1").await;
    bash("twice() { echo $1 $1; }\nalias hey='echo hey'").await;
    let after =
        bash("pwd; echo $GREETING; twice a\nhey; echo \"[$own]\"; compgen -v | grep -c __cellwright").await;
    let folder = fs::canonicalize(fixture.path()).unwrap().join("deep");
    assert_eq!(after, format!("{}\nit's me\na a\nhey\n[]\n0\n", folder.display()));
    bash("export LATER=1; cd ..; exit 3").await;
    let last = bash("echo $LATER; pwd").await;
    assert_eq!(last, format!("1\n{}\n", folder.parent().unwrap().display()));
}

#[tokio::test]
async fn another_folder_is_for_one_command() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path().join("sub")).unwrap();
    let there = fixture.text("bash", json!({ "command": "pwd; export A=1", "cwd": "sub" })).await;
    assert!(there.trim_end().ends_with("/sub"), "{there}");
    let here = fixture.text("bash", json!({ "command": "echo $A; pwd" })).await;
    assert!(here.starts_with("1\n") && !here.trim_end().ends_with("/sub"), "{here}");
    let nowhere = fixture.error("bash", json!({ "command": "pwd", "cwd": "none" })).await;
    assert!(nowhere.ends_with("/none is not a folder"), "{nowhere}");
}

#[tokio::test]
async fn both_streams_come_in_order_with_the_exit_code() {
    let fixture = Fixture::new();
    let reply = fixture.call("bash", json!({ "command": "echo a; echo b >&2; echo c; exit 4" })).await;
    assert_eq!((reply.to_text().as_str(), reply.is_error), ("a\nb\nc\n\n[exit code 4]", true));
    assert_eq!(reply.structured.unwrap()["exit_code"], 4);
    assert_eq!(fixture.ok("bash", json!({ "command": "true" })).await, "(no output)");
    let quotes = fixture.text("bash", json!({ "command": "cat <<'E'\n$HOME \"x\" 'y' \\\nE" })).await;
    assert_eq!(quotes, "$HOME \"x\" 'y' \\\n");
    assert_eq!(fixture.text("bash", json!({ "command": "echo \"$#|$0|$1|\"" })).await, "0|bash||\n");
}

#[tokio::test]
async fn lines_are_counted_from_the_first_of_the_command() {
    let fixture = Fixture::new();
    let told = fixture.text("bash", json!({ "command": "no-such-1\necho $LINENO\nno-such-3" })).await;
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(
        lines,
        ["bash: line 1: no-such-1: command not found", "2", "bash: line 3: no-such-3: command not found"]
    );
}

#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_its_children() {
    let fixture = Fixture::new();
    let command = "sh -c 'echo $$ > pid; exec sleep 300' & sleep 300 | cat";
    let stopped = fixture.error("bash", json!({ "command": command, "timeout": 1 })).await;
    assert!(stopped.contains("[took longer than 1 s and was stopped with all it had started]"), "{stopped}");
    end_of(fixture.get("pid").trim().parse().unwrap()).await;
}

#[tokio::test]
async fn a_flood_of_output_is_stopped_in_time() {
    let fixture = Fixture::new();
    let stopped = fixture.error("bash", json!({ "command": "yes", "timeout": 1 })).await;
    assert!(stopped.len() < 60_000 && stopped.contains("omitted"), "{}", stopped.len());
    assert!(stopped.contains("took longer than 1 s"), "{}", stopped.len());
}

#[tokio::test]
async fn what_a_command_leaves_running_is_kept_reported_and_ended_on_request() {
    let fixture = Fixture::new();
    let command = "(while [ ! -e go ]; do sleep 0.05; done; echo late; touch done; exec sleep 300) &
        echo $! > pid; echo now";
    let reply = fixture.call("bash", json!({ "command": command })).await;
    assert!(reply.to_text().starts_with("now\n") && !reply.is_error, "{}", reply.to_text());
    let handle = reply.structured.unwrap()["handle"].as_str().unwrap().to_owned();
    assert!(alive(fixture.get("pid").trim().parse().unwrap()));
    let command = "touch go; while [ ! -e done ]; do sleep 0.05; done";
    let later = fixture.ok("bash", json!({ "command": command })).await;
    assert!(later.contains("printed meanwhile]\nlate\n"), "{later}");
    assert!(fixture.ok("kernel", json!({ "action": "list" })).await.contains("has left processes running"));
    fixture.ok("kernel", json!({ "action": "interrupt", "handle": handle })).await;
    fixture.call("kernel", json!({ "action": "wait", "handle": handle })).await;
    end_of(fixture.get("pid").trim().parse().unwrap()).await;
}

#[tokio::test]
async fn what_a_leftover_printed_last_is_shown_with_the_next_command() {
    let fixture = Fixture::new();
    let command = "(while [ ! -e go ]; do sleep 0.05; done; echo LATE) & echo now";
    assert!(fixture.ok("bash", json!({ "command": command })).await.starts_with("now\n"));
    fixture.put("go", "");
    let list = async || fixture.ok("kernel", json!({ "action": "list" })).await;
    eventually("the end of what was left", async || list().await.contains("sh-1: finished")).await;
    let next = fixture.ok("bash", json!({ "command": "echo next" })).await;
    assert!(next.starts_with("next\n") && next.contains("printed meanwhile]\nLATE\n"), "{next}");
    assert_eq!(fixture.ok("bash", json!({ "command": "echo again" })).await, "again\n");
    assert_eq!(list().await, "no sessions and no background work");
}

#[tokio::test]
async fn a_client_that_goes_takes_everything_with_it() {
    let fixture = Fixture::new();
    fixture.ok("bash", json!({ "command": "sleep 300 > /dev/null 2>&1 & echo $! > pid" })).await;
    let pid = fixture.get("pid").trim().parse().unwrap();
    assert!(alive(pid));
    let folder = fixture.leave();
    end_of(pid).await;
    drop(folder);
}

#[tokio::test]
async fn a_snapshot_takes_the_place_of_login_files() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("snapshot.sh");
    fs::write(&snapshot, "export FROM=snapshot\n").unwrap();
    let fixture = Fixture::changed(|settings| settings.shell_snapshot = Some(snapshot.clone()));
    fixture.put(".bash_profile", "export FROM=profile\n");
    assert_eq!(fixture.text("bash", json!({ "command": "echo $FROM" })).await, "snapshot\n");
}

#[tokio::test]
async fn login_files_are_read_once_for_all_clients() {
    let fixture = Fixture::new();
    fixture.put(
        ".bash_profile",
        "echo x >> ~/times; echo noise; export FROM=profile; greet() { echo hello; }\n",
    );
    assert_eq!(fixture.text("bash", json!({ "command": "echo $FROM; greet" })).await, "profile\nhello\n");
    assert_eq!(fixture.another().text("bash", json!({ "command": "greet" })).await, "hello\n");
    assert_eq!(fixture.text("bash", json!({ "command": "cat ~/times" })).await, "x\n");
}

#[tokio::test]
async fn bash_in_a_cell_starts_from_the_snapshot_that_commands_start_from() {
    let fixture = Fixture::new();
    fixture.put(
        ".bash_profile",
        "echo x >> ~/times; export FROM=profile; greet() { echo hello; }\nexport QUOTED=\"it's\nhere\"\n",
    );
    // A client that starts a server has its kernel and the snapshot prepared.
    fixture.toolbox().warm_up(&fixture.context().client).await;
    let code = "r = bash('echo $FROM \"$QUOTED\"; greet; cat ~/times'); \
                import os; print(os.environ['PI_SHELL_SNAPSHOT'] == os.environ['CELLWRIGHT_SHELL_SNAPSHOT'])";
    let first = fixture.text("eval", json!({ "code": code })).await;
    assert!(first.starts_with("profile it's\nhere\nhello\nx\nTrue\n"), "{first}");
    assert_eq!(fixture.text("bash", json!({ "command": "echo $FROM; cat ~/times" })).await, "profile\nx\n");
    // Variables are those of the cell: the snapshot has only what login files set.
    let code = "os.environ['FROM'] = 'cell'; r = bash('echo $FROM; greet')";
    assert_eq!(fixture.text("eval", json!({ "code": code })).await, "cell\nhello\n");
}

#[tokio::test]
async fn a_shell_sees_no_secrets() {
    let fixture = Fixture::changed(|settings| {
        let mut all = settings.launch.search.variables.clone();
        all.insert("MY_API_KEY".into(), "secret".into());
        settings.environment = settings.launch.rules.pass(&all);
    });
    assert_eq!(fixture.text("bash", json!({ "command": "echo [$MY_API_KEY]" })).await, "[]\n");
}

#[tokio::test]
async fn commands_that_cannot_be_started_report_why() {
    let fixture = Fixture::new();
    for (command, told) in [
        (" ".to_owned(), "the command is empty"),
        ("a\0b".to_owned(), "the command holds a NUL character"),
        ("x".repeat(200_000), "the command has 200000 bytes, too many to start"),
    ] {
        assert!(fixture.error("bash", json!({ "command": command })).await.starts_with(told));
    }
}
