use serde_json::json;

use super::*;

fn prompt(text: &str) -> CellBody {
    CellBody::Prompt { target: PromptTarget::default(), text: text.to_owned() }
}

#[track_caller]
fn magic_of(line: &str) -> MagicCommand {
    let mut cell = parse(line, CellMode::Prompt).unwrap();
    assert_eq!((cell.body, cell.magics.len()), (prompt(""), 1), "{line}");
    cell.magics.remove(0)
}

#[track_caller]
fn refused(cell: &str) -> String {
    parse(cell, CellMode::Prompt).unwrap_err().to_string()
}

fn server_of(line: &str) -> serde_json::Value {
    match magic_of(line) {
        MagicCommand::Mcp(McpMagic::Add(server)) => serde_json::to_value(server).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn magic_lines_come_first_and_the_rest_is_the_prompt() {
    let cell = parse(
        "\n%agent mode plan\n\n  %permissions auto\n\n  Do it,\n%agent is no magic here.\n\n",
        CellMode::Prompt,
    )
    .unwrap();
    assert_eq!(
        cell.magics,
        [
            MagicCommand::Mode(Some("plan".into())),
            MagicCommand::Permissions(PermissionsMagic::Mode(permission::ApprovalMode::Auto))
        ]
    );
    assert_eq!(cell.body, prompt("  Do it,\n%agent is no magic here."));
}

#[test]
fn a_percent_sign_before_anything_but_a_word_is_text() {
    for text in ["% of the total?", "%3 of them", "100 % sure", "hello"] {
        assert_eq!(parse(text, CellMode::Prompt).unwrap(), ParsedCell { magics: vec![], body: prompt(text) });
    }
}

#[test]
fn a_cell_for_one_session() {
    let target = |cell: &str| {
        parse(cell, CellMode::Prompt).map(|cell| match cell.body {
            CellBody::Prompt { target, text } => (target, text),
            CellBody::Code(code) => panic!("{code:?}"),
        })
    };
    let at =
        |session: Option<&str>, background| PromptTarget { session: session.map(Into::into), background };
    assert_eq!(target("%%agent\n%agent as text"), Ok((at(None, false), "%agent as text".into())));
    assert_eq!(
        target("%%agent 'my session' --background\ngo"),
        Ok((at(Some("my session"), true), "go".into()))
    );
    assert_eq!(target("%agent mode x\n%%agent b\ngo"), Ok((at(Some("b"), false), "go".into())));
    assert!(target("%%agent a b\ngo").is_err());
    assert!(target("%%agent --loud\ngo").is_err());
}

fn code(cell: &str, mode: CellMode) -> (CodeLanguage, String) {
    match parse(cell, mode).unwrap().body {
        CellBody::Code(CodeBody { language, start, text }) => {
            assert_eq!(&cell[start..], text);
            (language, text)
        }
        CellBody::Prompt { text, .. } => panic!("a prompt: {text}"),
    }
}

#[test]
fn a_cell_of_code_says_so_on_its_first_line() {
    let named = |name: &str| CodeLanguage::Named(name.to_owned());
    for (cell, language, text) in [
        ("%%python\nx = 1\n", CodeLanguage::Python, "x = 1\n"),
        ("%kernel\n\n  %%run\n%%sql\nselect 1", CodeLanguage::Companion, "%%sql\nselect 1"),
        ("%%bash -e\nls", CodeLanguage::Python, "%%bash -e\nls"),
        ("%%time\nf()", CodeLanguage::Python, "%%time\nf()"),
        ("%%julia\nsqrt(2)", named("julia"), "sqrt(2)"),
    ] {
        assert_eq!(code(cell, CellMode::Prompt), (language, text.to_owned()), "{cell}");
    }
    assert_eq!(parse("%%python\n", CellMode::Prompt).unwrap().body, prompt(""));
    assert!(refused("%%python 3.12\nx").contains("unexpected argument `3.12`"));
}

#[test]
fn in_code_mode_only_our_magics_are_magics() {
    let companion = |text: &str| (CodeLanguage::Companion, text.to_owned());
    for cell in ["x = 1", "%matplotlib inline\nplot()", "!ls", "%%sql\nselect 1", "?", "% 2"] {
        assert_eq!(code(cell, CellMode::Code), companion(cell));
    }
    assert_eq!(code("%permissions auto\n%time f()", CellMode::Code), companion("%time f()"));
    assert_eq!(parse("%mode prompt", CellMode::Code).unwrap().body, prompt(""));
    assert_eq!(parse("%%prompt\nDraw it", CellMode::Code).unwrap().body, prompt("Draw it"));
}

#[test]
fn every_magic_is_read() {
    let text = |text: &str| Some(text.to_owned());
    for (line, magic) in [
        ("%agent use", MagicCommand::Use(None)),
        ("%agent use claude", MagicCommand::Use(text("claude"))),
        ("%kernel", MagicCommand::Kernel(KernelMagic::Show)),
        (
            "%kernel julia --session mine",
            MagicCommand::Kernel(KernelMagic::Use { kernel: text("julia"), session: text("mine") }),
        ),
        ("%kernel restart", MagicCommand::Kernel(KernelMagic::Restart)),
        ("%kernel variables", MagicCommand::Kernel(KernelMagic::Variables)),
        ("%context", MagicCommand::Context(None)),
        ("%context on", MagicCommand::Context(Some(true))),
        ("%context off", MagicCommand::Context(Some(false))),
        ("%keep", MagicCommand::Keep(None)),
        ("%keep #3", MagicCommand::Keep(Some(3))),
        ("%notebook", MagicCommand::Notebook(None)),
        ("%notebook a/b.ipynb", MagicCommand::Notebook(Some("a/b.ipynb".into()))),
        ("%mode", MagicCommand::Cells(None)),
        ("%mode code", MagicCommand::Cells(Some(CellMode::Code))),
        ("%mode prompt", MagicCommand::Cells(Some(CellMode::Prompt))),
        ("%mcp", MagicCommand::Mcp(McpMagic::List)),
        ("%agent mcp list", MagicCommand::Mcp(McpMagic::List)),
        ("%mcp_remove files", MagicCommand::Mcp(McpMagic::Remove("files".into()))),
        ("%agent mcp clear", MagicCommand::Mcp(McpMagic::Clear)),
        ("%mcp enable a", MagicCommand::Mcp(McpMagic::Enable("a".into()))),
        ("%mcp disable a", MagicCommand::Mcp(McpMagic::Disable("a".into()))),
        ("%permissions", MagicCommand::Permissions(PermissionsMagic::Show)),
        (
            "%agent permissions manual",
            MagicCommand::Permissions(PermissionsMagic::Mode(permission::ApprovalMode::Ask)),
        ),
        (
            "%agent permissions deny",
            MagicCommand::Permissions(PermissionsMagic::Mode(permission::ApprovalMode::Deny)),
        ),
        ("%permissions_list", MagicCommand::Permissions(PermissionsMagic::List)),
        ("%permissions clear", MagicCommand::Permissions(PermissionsMagic::Clear)),
        (
            "%agent permissions allow edit 'my src/**'",
            MagicCommand::Permissions(PermissionsMagic::Rule("allow edit my src/**".parse().unwrap())),
        ),
        ("%session", MagicCommand::Session(SessionMagic::Info)),
        ("%agent session restart", MagicCommand::Session(SessionMagic::Restart)),
        ("%session list", MagicCommand::Session(SessionMagic::List(SessionScope::Folder))),
        ("%session list --all", MagicCommand::Session(SessionMagic::List(SessionScope::All))),
        ("%session last", MagicCommand::Session(SessionMagic::Last)),
        ("%session use b", MagicCommand::Session(SessionMagic::Use("b".into()))),
        ("%session load 12", MagicCommand::Session(SessionMagic::Load("12".into()))),
        ("%session resume 12", MagicCommand::Session(SessionMagic::Resume(Some("12".into())))),
        ("%session resume", MagicCommand::Session(SessionMagic::Resume(None))),
        ("%session fork", MagicCommand::Session(SessionMagic::Fork(None))),
        ("%session close", MagicCommand::Session(SessionMagic::Close(None))),
        ("%session delete 12", MagicCommand::Session(SessionMagic::Delete("12".into()))),
        (
            "%agent session new",
            MagicCommand::Session(SessionMagic::New { name: None, cwd: None, agent: None }),
        ),
        (
            "%agent session new /path/to/project",
            MagicCommand::Session(SessionMagic::New {
                name: None,
                cwd: Some("/path/to/project".into()),
                agent: None,
            }),
        ),
        (
            "%session new review --cwd ../x --agent codex",
            MagicCommand::Session(SessionMagic::New {
                name: text("review"),
                cwd: Some("../x".into()),
                agent: text("codex"),
            }),
        ),
        ("%agent config", MagicCommand::Config(None)),
        (
            "%agent config codex-acp -c 'a = \"b c\"'",
            MagicCommand::Config(Some(vec!["codex-acp".into(), "-c".into(), "a = \"b c\"".into()])),
        ),
        ("%agent env", MagicCommand::Env(EnvMagic::Show)),
        ("%agent env 'KEY=a b=c'", MagicCommand::Env(EnvMagic::Set("KEY".into(), "a b=c".into()))),
        ("%agent env unset KEY", MagicCommand::Env(EnvMagic::Unset("KEY".into()))),
        ("%agent commands", MagicCommand::Commands),
        ("%agent page", MagicCommand::Page(PageMagic::Show)),
        ("%agent page allow", MagicCommand::Page(PageMagic::Allow)),
        ("%agent mode", MagicCommand::Mode(None)),
        ("%agent model opus", MagicCommand::Model(text("opus"))),
        ("%agent options", MagicCommand::Options(None)),
        ("%agent options effort high", MagicCommand::Options(Some(("effort".into(), "high".into())))),
        ("%agent options effort=high", MagicCommand::Options(Some(("effort".into(), "high".into())))),
        ("%agent log", MagicCommand::Log(50)),
        ("%agent log 7", MagicCommand::Log(7)),
        ("%agent render stream", MagicCommand::Render(Some(RenderMagic::Stream))),
        ("%agent login", MagicCommand::Login(None)),
    ] {
        assert_eq!(magic_of(line), magic, "{line}");
    }
}

#[test]
fn every_magic_is_in_the_docs() {
    let page = include_str!("../../../../docs/agent-kernel.md");
    for entry in commands::COMMANDS {
        let written = commands::written(entry.words);
        let words: Vec<&str> = written.trim_start_matches("agent ").split(' ').collect();
        let (first, last) = (words[0], words[words.len() - 1]);
        let is_named = |line: &str, word: &str| {
            line.split('`').skip(1).step_by(2).any(|code| {
                let code = code.trim_start_matches('%').trim_start_matches("agent ");
                code.split(' ').take(2).any(|known| known == word)
            })
        };
        let mut rows = page.lines().filter(|line| line.starts_with("| `%"));
        let is_listed = rows.any(|line| is_named(line, first) && is_named(line, last));
        assert!(is_listed, "the table of docs/agent-kernel.md has no `%{}`", entry.words.join(" "));
    }
}

#[test]
fn the_docs_name_no_magic_that_does_not_exist() {
    let page = include_str!("../../../../docs/agent-kernel.md");
    let is_known = |words: &[&str]| commands::COMMANDS.iter().any(|entry| entry.words.starts_with(words));
    for row in page.lines().filter(|line| line.starts_with("| `%")) {
        let column = row.split(" | ").next().unwrap();
        let mut topic = None;
        for code in column.split('`').skip(1).step_by(2) {
            let words = code.trim_start_matches('%').trim_start_matches("agent ").split(' ');
            let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
            let words: Vec<_> = words.take_while(is_word).collect();
            let topic = *topic.get_or_insert(words[0]);
            assert!(is_known(&words) || is_known(&[topic, words[0]]), "`{code}` of {row}");
        }
    }
}

#[test]
fn every_magic_of_the_table_is_read() {
    for entry in commands::COMMANDS {
        // Without its arguments a magic may be refused, but not as an unknown one.
        let read = arguments::magic(entry.words);
        assert!(!matches!(read, Err(UsageError::NoSuchWord { .. })), "{:?}: {read:?}", entry.words);
    }
}

#[test]
fn servers_have_a_command_or_an_address() {
    assert_eq!(
        server_of("%agent mcp add jupyter uvx jupyter-mcp-server@latest --flag"),
        json!({"name": "jupyter", "command": "uvx", "args": ["jupyter-mcp-server@latest", "--flag"], "env": []})
    );
    assert_eq!(
        server_of("%mcp add j -e TOKEN='a b' -- uvx mcp-server-jupyter"),
        json!({"name": "j", "command": "uvx", "args": ["mcp-server-jupyter"], "env": [{"name": "TOKEN", "value": "a b"}]})
    );
    assert_eq!(
        server_of("%mcp add docs -H 'Authorization: Bearer x:y' https://docs.example/mcp"),
        json!({"type": "http", "name": "docs", "url": "https://docs.example/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer x:y"}]})
    );
    // Options behind an address are ours, too.
    assert_eq!(
        server_of("%mcp add docs https://docs.example/mcp --header 'Authorization: Bearer x:y'"),
        json!({"type": "http", "name": "docs", "url": "https://docs.example/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer x:y"}]})
    );
    assert_eq!(
        server_of("%mcp add old --transport sse http://localhost:1/sse"),
        json!({"type": "sse", "name": "old", "url": "http://localhost:1/sse", "headers": []})
    );
}

#[test]
fn wrong_arguments_are_explained_with_help() {
    let messages = [
        "%agnet mode x",
        "%agent moed x",
        "%mcp add",
        "%mcp add x",
        "%mcp add x -H a:b ls",
        "%mcp add x --sse ls",
        "%mcp add x ftp://example.org",
        "%mcp add x https://example.org more",
        "%permissions allow paint x",
        "%permissions allow",
        "%session use",
        "%agent env KEY",
        "%agent config 'a",
        "%agent log many",
        "%%python 3\nls",
        "%%42",
    ]
    .map(refused);
    insta::assert_snapshot!(messages.join("\n---\n"));
}

#[test]
fn help_for_all_and_for_one() {
    let text = |line: &str| match magic_of(line) {
        MagicCommand::Help(text) => text,
        other => panic!("{other:?}"),
    };
    insta::assert_snapshot!("help_for_all", text("%agent?"));
    insta::assert_snapshot!("help_for_mcp", text("%agent mcp?"));
    assert_eq!(text("?"), text("%agent"));
    assert_eq!(text("%mcp?"), text("%agent help mcp"));
    assert!(text("%mcp add?").lines().count() >= 2);
}

fn known() -> CompletionContext<'static> {
    let pair = |name: &str| (name.to_owned(), format!("about {name}"));
    let files: &FolderListing = &|folder| match folder {
        "" => ["src/", "README.md", "my notes.md", ".git/"].map(str::to_owned).to_vec(),
        "src/" => ["main.rs".to_owned(), "magic/".to_owned()].to_vec(),
        _ => Vec::new(),
    };
    CompletionContext {
        agents: vec![pair("claude"), pair("codex")],
        sessions: vec![pair("main"), pair("review")],
        modes: vec![pair("plan"), pair("code")],
        servers: vec![pair("docs")],
        commands: vec![pair("compact"), pair("clear")],
        cells: vec![(1, "first\nsecond".to_owned()), (12, "twelfth".to_owned())],
        files: Some(files),
        ..CompletionContext::default()
    }
}

/// Completes at `|`: what is replaced, then the candidates.
fn completed(code: &str) -> String {
    let cursor = code.chars().position(|c| c == '|').unwrap();
    let code = code.replace('|', "");
    let completion = complete(&code, cursor, &known());
    let word: String = code.chars().skip(completion.start).take(completion.end - completion.start).collect();
    let candidates: Vec<_> = completion.candidates.into_iter().map(|candidate| candidate.text).collect();
    format!("{word} -> {}", candidates.join(" "))
}

#[test]
fn completion_knows_magics_arguments_commands_files_and_cells() {
    let codes = [
        "|",
        "%|",
        "%a|",
        "%agent se|",
        "%agent |",
        "%session us|",
        "%session use re|",
        "%agent mcp remove |",
        "%agent mode p|",
        "%agent use c|",
        "%permissions allow e|",
        "%agent render |",
        "%agent mode plan\n%mc|",
        "%%agent r|",
        "/c|",
        "%agent mode plan\n/co|mpact",
        "say /c|",
        "é look at @s| please",
        "@src/ma|",
        "@my|",
        "@.|",
        "as in #1|",
        "prompt\n%ag|",
        "plain|",
    ];
    insta::assert_snapshot!(codes.map(|code| format!("{code:?}: {}", completed(code))).join("\n"));
}

#[test]
fn inspection_describes_the_thing_at_the_cursor() {
    let inspected = |code: &str| {
        let cursor = code.chars().position(|c| c == '|').unwrap();
        inspect(&code.replace('|', ""), cursor, &known())
    };
    assert_eq!(inspected("%agent mc|p add x"), Some(help(&["mcp"])));
    assert_eq!(inspected("%mcp ad|d x"), Some(help(&["mcp", "add"])));
    assert_eq!(inspected("/comp|act now"), Some("compact: about compact".into()));
    assert_eq!(inspected("like #1|2"), Some("twelfth".into()));
    assert_eq!(inspected("pla|in"), None);
    assert_eq!(inspected("é|"), None);
}

#[test]
fn a_prompt_names_files_cells_and_variables() {
    let prompt = "Compare @src/a.rs, @\"my notes.md\" (@b.py), $df and #12; not me@x.example, page#2, #x, $5, $(x), $HOME/a or @ alone.";
    let named: Vec<_> = references(prompt)
        .into_iter()
        .map(|reference| match reference {
            PromptReference::File { path, at } => format!("{path} = {}", &prompt[at]),
            PromptReference::Cell { count, at } => format!("{count} = {}", &prompt[at]),
            PromptReference::Variable { name, at } => format!("{name} = {}", &prompt[at]),
        })
        .collect();
    assert_eq!(
        named,
        ["src/a.rs = @src/a.rs", "my notes.md = @\"my notes.md\"", "b.py = @b.py", "df = $df", "12 = #12"]
    );
}
