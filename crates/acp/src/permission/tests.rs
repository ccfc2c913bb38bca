use std::path::Path;

use agent_client_protocol_schema::v1::{
    Diff, PermissionOption, PermissionOptionKind, ToolCall, ToolCallLocation, ToolKind,
};
use serde_json::json;

use super::*;

/// The order of one real agent: always before once.
fn options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("always", "Always allow", PermissionOptionKind::AllowAlways),
        PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

fn edit(paths: &[&str]) -> ToolCall {
    let locations = paths.iter().map(ToolCallLocation::new).collect();
    ToolCall::new("1", "Edit files").kind(ToolKind::Edit).locations(locations)
}

fn run(command: &Value) -> ToolCall {
    ToolCall::new("1", "Run").kind(ToolKind::Execute).raw_input(json!({ "command": command }))
}

/// The verdict of a policy with these rules: the option's id, `ask`, or `cancelled`.
#[track_caller]
fn judged(mode: ApprovalMode, rules: &[&str], call: &ToolCall) -> String {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let policy = PermissionPolicy { mode, rules, ..PermissionPolicy::default() };
    match policy.judge(call, &options(), Path::new("/work")) {
        PolicyVerdict::Ask => "ask".to_owned(),
        PolicyVerdict::Decided(decision) => match decision.option {
            Some(option) => option.option_id.to_string(),
            None => "cancelled".to_owned(),
        },
    }
}

#[test]
fn nothing_is_allowed_by_default() {
    assert_eq!(judged(ApprovalMode::default(), &[], &edit(&["a"])), "ask");
}

#[test]
fn auto_allows_once_even_when_always_is_listed_first() {
    assert_eq!(judged(ApprovalMode::Auto, &[], &edit(&["a"])), "once");
    assert_eq!(judged(ApprovalMode::Deny, &[], &edit(&["a"])), "no");
    let only_yes = [PermissionOption::new("y", "Yes", PermissionOptionKind::AllowOnce)];
    let refused = PermissionDecision::refuse(&only_yes, DecisionSource::NobodyToAsk);
    assert_eq!((refused.allowed(), refused.option), (false, None));
}

#[test]
fn an_allow_rule_must_match_every_file_of_the_call() {
    let rules = ["allow edit src/**"];
    assert_eq!(judged(ApprovalMode::Ask, &rules, &edit(&["/work/src/a/b.rs"])), "once");
    assert_eq!(judged(ApprovalMode::Ask, &rules, &edit(&["src/a.rs", "/work/src/b.rs"])), "once");
    for outside in [
        &["/work/Cargo.toml"][..],
        &["/work/src/a.rs", "/work/Cargo.toml"],
        &["/work/src/../Cargo.toml"],
        &["src/../../etc/passwd"],
        &["/other/src/a.rs"],
        &[],
    ] {
        assert_eq!(judged(ApprovalMode::Ask, &rules, &edit(outside)), "ask", "{outside:?}");
    }
    let diff =
        ToolCall::new("1", "Edit").kind(ToolKind::Edit).content(vec![Diff::new("/etc/passwd", "x").into()]);
    assert_eq!(judged(ApprovalMode::Ask, &rules, &diff), "ask");
}

#[test]
fn a_deny_rule_beats_allow_rules_and_matches_any_file() {
    let rules = ["allow * **", "deny edit **/*.lock"];
    assert_eq!(judged(ApprovalMode::Auto, &rules, &edit(&["src/a.rs", "Cargo.lock"])), "no");
    assert_eq!(judged(ApprovalMode::Deny, &rules, &edit(&["src/a.rs"])), "once");
}

#[test]
fn an_allow_rule_does_not_cover_a_second_command() {
    let rules = ["allow execute git *"];
    let judged = |command: Value| judged(ApprovalMode::Ask, &rules, &run(&command));
    assert_eq!(judged(json!("git log --oneline")), "once");
    assert_eq!(judged(json!(["git", "status"])), "once");
    for other in
        ["git log; rm -rf .", "git log && rm x", "git log | sh", "git $(rm x)", "git log\nrm x", "gitx", "ls"]
    {
        assert_eq!(judged(json!(other)), "ask", "{other}");
    }
    assert_eq!(judged(json!(null)), "ask");
    assert_eq!(judged(json!(["sh", "-c", "git log; rm x"])), "ask");
}

#[test]
fn a_deny_rule_finds_the_command_anywhere_in_the_line() {
    let rules = ["deny execute rm*"];
    let judged = |call: &ToolCall| judged(ApprovalMode::Auto, &rules, call);
    for refused in [
        "rm -rf x",
        "rm -rf $HOME",
        "rm -rf a; echo",
        "cd a && rm -rf b",
        "true\nrm x",
        "echo $(rm x)",
        "/bin/rm x",
        "A=1 rm x",
        "sudo rm x",
        "'rm' x",
        "if true; then rm x; fi",
        "find . | xargs rm",
        "bash -lc 'cd a; rm -rf x'",
    ] {
        assert_eq!(judged(&run(&json!(refused))), "no", "{refused}");
    }
    assert_eq!(judged(&run(&json!(["bash", "-c", "rm x"]))), "no");
    assert_eq!(judged(&run(&json!("rm x")).kind(ToolKind::Other)), "no");
    let hidden = ToolCall::new("1", "Run `rm -rf x`").kind(ToolKind::Execute);
    assert_eq!(judged(&hidden), "no");
    for other in ["ls", "git rm x", "echo rm", "trm", ""] {
        assert_eq!(judged(&run(&json!(other))), "once", "{other}");
    }
    assert_eq!(judged(&edit(&["rm"])), "once");
}

#[test]
fn rules_read_back_as_they_were_written() {
    for rule in ["allow edit src/**", "deny *", "allow execute git status*"] {
        assert_eq!(rule.parse::<PermissionRule>().unwrap().to_string(), rule);
    }
    let messages = ["", "perhaps edit", "allow", "allow paint x"]
        .map(|rule| rule.parse::<PermissionRule>().unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn typed_answers_are_numbers_names_or_yes_and_no() {
    let options = options();
    let typed = |text: &str| Some(answer(&options, text)?.option?.option_id.to_string());
    assert_eq!(typed(" 1\n").as_deref(), Some("always"));
    assert_eq!(typed("y").as_deref(), Some("once"));
    assert_eq!(typed("NO").as_deref(), Some("no"));
    assert_eq!(typed("always allow").as_deref(), Some("always"));
    for nothing in ["", "0", "4", "maybe", "-1"] {
        assert_eq!(answer(&options, nothing), None);
    }
    // If no option refuses, `n` still means no. `y` never chooses an option that does not allow.
    let cancelled = answer(&options[..1], "n").unwrap();
    assert_eq!(cancelled.to_string(), "cancelled by you");
    assert_eq!(answer(&options[2..], "y"), None);
    insta::assert_snapshot!(question(&edit(&["a.py"]), &options));
}

#[test]
fn a_question_shows_all_that_would_be_done() {
    let options = &options()[1..2];
    let asked = |title: &str, command: &str| {
        let mut call = run(&json!(command));
        call.title = title.to_owned();
        question(&call, options)
    };
    insta::assert_snapshot!(
        [
            asked("echo hi\nrm -rf /", "echo hi\nrm -rf /"),
            asked("Run command", "rm -rf /\n  2) Reject"),
            asked("ls", "ls\r\u{1b}[2Krm -rf /"),
            question(&edit(&["a.py", "/etc/passwd"]), options),
        ]
        .join("\n---\n")
    );
}

#[test]
fn the_history_names_tool_paths_and_decision() {
    let mut policy = PermissionPolicy::default();
    assert_eq!(policy.history.to_string(), "no permission was asked for yet");
    let call = edit(&["/work/a.py", "/work/b.py"]);
    let chosen = answer(&options(), "y").unwrap();
    let rule = DecisionSource::Rule("deny edit **".to_owned());
    for decision in [
        chosen,
        PermissionDecision::refuse(&options(), DecisionSource::NobodyToAsk),
        PermissionDecision::refuse(&options(), rule),
        PermissionDecision::cancelled(),
    ] {
        policy.record(&call, &decision);
    }
    insta::assert_snapshot!(policy.history.to_string());
}

/// A call of the table: a command, or a kind with a file or with an input.
fn call(written: &str) -> ToolCall {
    let (kind, rest) = written.split_once(' ').unwrap_or((written, ""));
    match crate::tool_kind::kind_named(kind) {
        Some(kind) => match serde_json::from_str::<Value>(rest) {
            Ok(input) => ToolCall::new("1", "Do it").kind(kind).raw_input(input),
            Err(_) => ToolCall::new("1", "Do it").kind(kind).locations(vec![ToolCallLocation::new(rest)]),
        },
        None => run(&serde_json::from_str(written).unwrap_or_else(|_| json!(written))),
    }
}

#[test]
fn rules_mean_what_a_person_means() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in include_str!("cases.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut columns = line.splitn(3, " | ");
        let mut column = || columns.next().expect("three columns");
        let (verdict, rule, written) = (column(), column(), column());
        let decided = match rule.parse::<PermissionRule>() {
            Err(_) => "invalid",
            Ok(parsed) => {
                let mode = match parsed.effect {
                    RuleEffect::Allow => ApprovalMode::Ask,
                    RuleEffect::Refuse => ApprovalMode::Auto,
                };
                match judged(mode, &[rule], &call(written)).as_str() {
                    "once" => "allowed",
                    "no" => "refused",
                    _ => "asked",
                }
            }
        };
        cases += 1;
        if decided != verdict {
            wrong.push(format!("{decided} | {line}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases >= 173, "{cases}");
}

#[test]
fn a_test_of_a_command_names_the_rule_that_decides() {
    let rules = ["deny execute rm*", "allow execute git *"].map(|rule| rule.parse().unwrap());
    let policy = PermissionPolicy { rules: rules.into(), ..PermissionPolicy::default() };
    let explained = |command| policy.explain(command, Path::new("/work"));
    insta::assert_snapshot!(
        ["env -i rm x", "bash -lc 'git status'", r#"["bash","-lc","git status"]"#, "ls", "curl x | sh"]
            .map(explained)
            .join("\n---\n")
    );
}

#[test]
fn the_corpus_of_the_fuzzer_is_judged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/permission_rules");
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("readable");
        let (rule, command) = text.split_once('\n').expect("a rule and a command");
        if let Some((read_back, applies)) = rule_applies(rule, command) {
            assert_eq!(rule_applies(&read_back, command), Some((read_back, applies)));
        }
    }
}
