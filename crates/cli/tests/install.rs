//! `cellwright mcp install` on the files of real clients, read back by other people's parsers.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// Every client with the user's file it reads, below the home folder.
const CLIENTS: [(&str, &str); 12] = [
    ("claude", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("zed", ".config/zed/settings.json"),
    ("cursor", ".cursor/mcp.json"),
    ("qwen", ".qwen/settings.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("goose", ".config/goose/config.yaml"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("copilot", ".copilot/mcp-config.json"),
];

/// A home folder with a repository `work` in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("work/.git")).unwrap();
        fs::create_dir_all(home.path().join("work/deep/er")).unwrap();
        Self(home)
    }

    fn with(file: &str, text: &str) -> Self {
        let home = Self::new();
        let path = home.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        home
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["mcp", "install"]).args(arguments).current_dir(self.path("work/deep/er"));
        command.env_clear().env("HOME", self.0.path()).stdin(Stdio::null());
        command
    }

    /// Exit code, stdout and stderr, without the places of this run.
    fn told(&self, command: &mut Command) -> (i32, String, String) {
        let output = command.output().unwrap();
        let text = |bytes| self.placeless(&String::from_utf8(bytes).unwrap());
        (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.told(&mut self.command(arguments))
    }

    fn placeless(&self, text: &str) -> String {
        let home = self.0.path().canonicalize().unwrap();
        text.replace(BINARY, "/bin/cellwright")
            .replace(home.to_str().unwrap(), "~")
            .replace(self.0.path().to_str().unwrap(), "~")
    }

    /// Runs it, which must succeed, and returns the file.
    #[track_caller]
    fn changed(&self, arguments: &[&str], file: &str) -> String {
        let (code, _, stderr) = self.run(arguments);
        assert_eq!((code, stderr.as_str()), (0, ""));
        self.placeless(&self.read(file))
    }
}

/// What a parser that is not ours reads: Python's `tomllib`, or `json5`, which takes comments and trailing commas.
fn parsed(parser: &str, texts: &[&str]) -> Vec<Value> {
    let code = format!(
        "import sys, json, {parser}\n\
         load = getattr({parser}, 'loads', None) or {parser}.safe_load\n\
         read = lambda text: load(text.lstrip('\\ufeff'))\n\
         print(json.dumps([read(text) for text in json.load(sys.stdin)], default=str))"
    );
    let mut child = Command::new(cellwright_testkit::python())
        .args(["-c", &code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json!(texts).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{parser} does not take one of {texts:#?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_client_gets_the_entry_its_own_parser_expects() {
    let mut shown = String::new();
    for (client, file) in CLIENTS {
        let home = Home::new();
        let (code, stdout, stderr) = home.run(&[client]);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let text = home.placeless(&home.read(file));
        let (printed, says) = (home.run(&[client, "--print"]).1, stdout.lines().next().unwrap());
        assert_eq!(printed, text, "a new file is what --print shows");
        let parser = match file.rsplit('.').next() {
            Some("toml") => "tomllib",
            Some("yaml") => "yaml",
            _ => "json5",
        };
        shown.extend([says, "\n", &text, &parsed(parser, &[&text])[0].to_string(), "\n"]);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn an_install_shows_the_changed_lines() {
    let home = Home::with(".codex/config.toml", "model = \"x\"\n");
    let mut told = home.run(&["codex"]).1;
    told += &home.run(&["codex"]).1;
    told += &home.run(&["codex", "--remove"]).1;
    told += &home.run(&["codex", "--remove"]).1;
    told += &home.run(&["vscode", "--project"]).1;
    insta::assert_snapshot!(told);
    assert_eq!(home.read(".codex/config.toml"), "model = \"x\"\n");
}

#[test]
fn a_dry_run_shows_the_change_and_writes_nothing() {
    let text = "{\n  \"theme\": \"dark\"\n}\n";
    let home = Home::with(".claude.json", text);
    let output = home.command(&["claude", "--dry-run"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    assert!(shown.starts_with("would change "), "{shown}");
    assert!(shown.contains("  +   \"mcpServers\": {\n"), "{shown}");
    assert_eq!(home.read(".claude.json"), text);
    // What was shown is what is then done.
    let output = home.command(&["claude"]).output().unwrap();
    let done = String::from_utf8(output.stdout).unwrap();
    let lines = |text: &str| {
        text.lines().filter(|line| line.starts_with("  ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&shown), lines(&done));
}

#[test]
fn an_install_shows_nothing_of_other_servers() {
    for others in [
        r#"{"mcpServers": {"other": {"command": "x", "env": {"KEY": "secret"}}}}"#,
        "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\", \"env\": {\"KEY\": \"secret\"}}\n  }\n}\n",
    ] {
        let home = Home::with(".cursor/mcp.json", others);
        for arguments in [&["cursor"][..], &["cursor", "--remove"]] {
            let told = home.run(arguments).1;
            assert!(told.contains("cellwright") && !told.contains("secret"), "{told}");
        }
        assert!(home.read(".cursor/mcp.json").contains("secret"));
    }
}

const COMMENTED: &str = r#"// My settings
{
	"theme": "One Dark", // mine
	/* fonts */
	"size": 1.50,
	"big": 12345678901234567890123,
	"context_servers": {
		// for the database
		"other": { "command": "x", "args": [], }, // last
	},
}
"#;

#[test]
fn comments_commas_tabs_and_odd_numbers_stay() {
    let home = Home::with(".config/zed/settings.json", COMMENTED);
    insta::assert_snapshot!(home.changed(&["zed"], ".config/zed/settings.json"), @r#"
    // My settings
    {
    	"theme": "One Dark", // mine
    	/* fonts */
    	"size": 1.50,
    	"big": 12345678901234567890123,
    	"context_servers": {
    		// for the database
    		"other": { "command": "x", "args": [], }, // last
    		"cellwright": {
    			"source": "custom",
    			"command": "/bin/cellwright",
    			"args": ["mcp"]
    		},
    	},
    }
    "#);
}

const CODEX: &str = r#"# My Codex
model = "gpt"   # the good one

[mcp_servers.docs]
command = 'npx'
args = [ "-y",  "docs" ]

[mcp_servers.docs.env]
TOKEN = "secret"

# where I work
[projects."/home/me/x"]
trust_level = "trusted"
"#;

#[test]
fn toml_keeps_comments_quotes_and_order() {
    let home = Home::with(".codex/config.toml", CODEX);
    insta::assert_snapshot!(home.changed(&["codex"], ".codex/config.toml"));
    assert!(!home.run(&["codex", "--remove"]).1.contains("secret"));
    assert_eq!(home.read(".codex/config.toml"), CODEX);
}

/// Files with a list of servers, as people and programs write them.
fn files_with_servers(section: &str) -> Vec<String> {
    [
        "{\n  \"SECTION\": {}\n}\n",
        "{\"SECTION\":{}}",
        "{ \"SECTION\": { } }\n",
        "{\"a\":1,\"SECTION\":{\"x\":{\"command\":\"y\"}},\"b\":[1,2]}",
        "{\n    \"SECTION\": {\n        \"x\": {\n            \"command\": \"y\"\n        }\n    },\n    \"z\": null\n}",
        "{\r\n\t\"SECTION\": {\r\n\t\t\"x\": {}\r\n\t}\r\n}\r\n",
        "\u{feff}{\n  \"SECTION\": {\n  }\n}\n",
        "{\n  \"SECTION\": { // none yet\n  }\n}\n",
        "{\n  \"SECTION\": {\n    \"x\": {} // about x\n    // and a last word\n  } /* after */\n}\n// end\n",
        "{ \"SECTION\": { \"x\": 1 // one\n} }",
        "{\n\n  \"é\\u00e9\": \"\\/ {x} // /* no comment */\",\n\n  \"SECTION\": {\n\n    \"x\": { \"n\": 1.0E5 },\n\n  },\n}",
    ]
    .map(|text| text.replace("SECTION", section))
    .into()
}

#[test]
fn installing_and_removing_leaves_every_byte_as_it_was() {
    let mut pairs = Vec::new();
    for (client, file, section) in [
        ("claude", ".claude.json", "mcpServers"),
        ("qwen", ".qwen/settings.json", "mcpServers"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        ("copilot", ".copilot/mcp-config.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("opencode", ".config/opencode/opencode.json", "mcp"),
    ] {
        for before in files_with_servers(section) {
            let home = Home::with(file, &before);
            let after = home.changed(&[client], file);
            let (code, again, _) = home.run(&[client]);
            assert_eq!((code, again.contains("has it already")), (0, true), "{again}");
            // An empty list has no white space afterwards.
            let expected = before.replace("{ }", "{}").replace("{\n  }", "{}");
            assert_eq!(home.changed(&[client, "--remove"], file), expected);
            pairs.push((section, before, after));
        }
    }
    let texts: Vec<_> =
        pairs.iter().flat_map(|(_, before, after)| [before.as_str(), after.as_str()]).collect();
    let values = parsed("json5", &texts);
    for ((section, before, after), values) in pairs.iter().zip(values.chunks(2)) {
        let entry = &values[1][section]["cellwright"];
        let command = entry["command"].as_str().or(entry["command"][0].as_str());
        assert_eq!(command, Some("/bin/cellwright"), "{after}");
        let mut expected = values[0].clone();
        expected[section]["cellwright"] = entry.clone();
        assert_eq!(values[1], expected, "{before} became {after}");
    }
}

#[test]
fn toml_of_every_shape_is_edited_and_restored() {
    for before in [
        "",
        "model = \"x\"\r\n\r\n[tui]\r\nnotifications = true\r\n",
        "[mcp_servers]\n[mcp_servers.a]\ncommand = \"b\"\n\n[z]\ny = 1\n",
        "mcp_servers = { a = { command = \"b\" } } # inline\n",
        "mcp_servers.a.command = \"b\"\nz = 1979-05-27T07:32:00Z\n",
    ] {
        let home = Home::with(".codex/config.toml", before);
        let after = home.changed(&["codex"], ".codex/config.toml");
        let values = parsed("tomllib", &[before, &after]);
        let mut expected = values[0].clone();
        expected["mcp_servers"]["cellwright"] =
            json!({ "command": "/bin/cellwright", "args": ["mcp"], "tool_timeout_sec": 660 });
        assert_eq!(values[1], expected, "{after}");
        assert_eq!(home.changed(&["codex", "--remove"], ".codex/config.toml"), before);
    }
}

#[test]
fn yaml_of_every_shape_is_edited_and_restored() {
    let file = ".config/goose/config.yaml";
    for before in [
        "GOOSE_MODEL: gpt # mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nz: 1\n",
        "# none yet\nextensions:\n",
        "extensions: # mine\n\n    # the first\n    other:\n        cmd: x\n        args:\n        - y\n\n# end\nlast: [1, 2]\n",
        "extensions:\r\n  other:\r\n    cmd: x\r\n",
    ] {
        let home = Home::with(file, before);
        let after = home.changed(&["goose"], file);
        let values = parsed("yaml", &[before, &after]);
        let mut expected = values[0].clone();
        expected["extensions"]["cellwright"] = json!({
            "type": "stdio", "name": "cellwright", "enabled": true, "cmd": "/bin/cellwright", "args": ["mcp"],
            "timeout": 660,
        });
        assert_eq!(values[1], expected, "{after}");
        let (code, again, _) = home.run(&["goose"]);
        assert_eq!((code, again.contains("has it already")), (0, true), "{again}");
        assert_eq!(home.changed(&["goose", "--remove"], file), before);
    }
    // What the user changed stays; an entry of another program is brought here.
    let before = "extensions:\n  cellwright:\n    enabled: false\n    type: stdio\n    name: cellwright\n    cmd: /old\n    args: [\"mcp\"]\n    timeout: 30\n";
    let home = Home::with(file, before);
    let told = home.run(&["goose"]).1;
    assert!(told.contains("it is switched off there"), "{told}");
    let expected = before.replace("/old", "\"/bin/cellwright\"");
    assert_eq!(home.placeless(&home.read(file)), expected);
    for odd in
        ["extensions: {}\n", "extensions: {a: {cmd: x}}\n", "extensions:\n  a: 1\nextensions:\n  b: 2\n"]
    {
        let home = Home::with(file, odd);
        assert_eq!((home.run(&["goose"]).0, home.read(file).as_str()), (1, odd));
    }
}

#[test]
fn a_client_without_files_for_projects_says_so() {
    let home = Home::new();
    for client in ["claude-desktop", "goose", "windsurf", "copilot"] {
        let (code, _, stderr) = home.run(&[client, "--project"]);
        assert!(code == 1 && stderr.contains("has no settings file for projects"), "{stderr}");
    }
}

#[test]
fn an_entry_that_is_switched_off_is_reported_as_such() {
    let off = "[mcp_servers.cellwright]\ncommand = '/old'\nenabled = false\nargs = ['mcp']\n";
    let home = Home::with(".codex/config.toml", off);
    for _ in 0..2 {
        let told = home.run(&["codex"]).1;
        assert!(told.contains("it is switched off there") && !told.contains("can use it now"), "{told}");
    }
}

#[test]
fn an_entry_of_another_program_is_brought_here_and_keeps_what_the_user_added() {
    let mut shown = String::new();
    for (client, file, before) in [
        (
            "claude",
            ".claude.json",
            r#"{ "mcpServers": { "cellwright": {
  "args": ["mcp", "--root", "/x"], "env": { "A": "b" }, // mine
  "command": "/old", "type": "stdio" } } }
"#,
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            r#"{ "mcp": { "cellwright": { "command": ["/old", "mcp", "--session", "s"], "enabled": false } } }
"#,
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.cellwright]\ncommand = '/old' # where it was\nenabled = false\ntool_timeout_sec = 30.5\nargs = ['other']\n",
        ),
    ] {
        shown += &Home::with(file, before).changed(&[client], file);
    }
    insta::assert_snapshot!(shown, @r#"
    { "mcpServers": { "cellwright": {
      "args": ["mcp", "--root", "/x"], "env": { "A": "b" }, // mine
      "command": "/bin/cellwright", "type": "stdio",
      "alwaysLoad": true } } }
    { "mcp": { "cellwright": { "command": ["/bin/cellwright", "mcp", "--session", "s"], "enabled": false, "type": "local" } } }
    [mcp_servers.cellwright]
    command = "/bin/cellwright" # where it was
    enabled = false
    tool_timeout_sec = 30.5
    args = ["mcp"]
    "#);
}

#[test]
fn a_file_that_cannot_be_edited_safely_is_left_alone() {
    let mut told = String::new();
    for (client, file, text) in [
        ("claude", ".claude.json", "{ \"mcpServers\": "),
        ("claude", ".claude.json", "[]"),
        ("claude", ".claude.json", "{ \"mcpServers\": [] }"),
        ("claude", ".claude.json", "{ \"mcpServers\": { \"cellwright\": 3 } }"),
        ("claude", ".claude.json", "{ \"mcpServers\": {}, \"mcpServers\": {} }"),
        ("claude", ".claude.json", "{ 'a': 1 }"),
        ("codex", ".codex/config.toml", "model = \n"),
        ("codex", ".codex/config.toml", "mcp_servers = 3\n"),
    ] {
        let home = Home::with(file, text);
        let (code, stdout, stderr) = home.run(&[client]);
        assert_eq!((code, stdout.as_str(), home.read(file).as_str()), (1, "", text), "{stderr}");
        told.push_str(&stderr);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    let home = Home::with("dotfiles/claude.json", "{}\n");
    let (link, target) = (home.path(".claude.json"), home.path("dotfiles/claude.json"));
    symlink(&target, &link).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    home.changed(&["claude"], ".claude.json");
    assert_eq!(fs::read_link(&link).unwrap(), target);
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
    let names: Vec<_> =
        fs::read_dir(home.path("dotfiles")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["claude.json"]);
}

#[test]
fn new_files_of_the_user_are_private_and_those_of_a_project_are_not() {
    let home = Home::new();
    let mode = |file: &str| fs::metadata(home.path(file)).unwrap().mode() & 0o777;
    home.changed(&["claude"], ".claude.json");
    home.changed(&["claude", "--project"], "work/.mcp.json");
    assert_eq!((mode(".claude.json"), mode("work/.mcp.json") & 0o600), (0o600, 0o600));
    let plain = home.path("work/plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode("work/.mcp.json"), mode("work/plain"), "as any new file");
}

#[test]
fn clients_are_followed_where_they_were_moved_to() {
    let home = Home::new();
    let moved = home.path("moved");
    for (client, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "moved/.claude.json"),
        ("codex", "CODEX_HOME", "moved/config.toml"),
        ("gemini", "GEMINI_CLI_HOME", "moved/.gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "moved/opencode/opencode.json"),
        ("vscode", "XDG_CONFIG_HOME", "moved/Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "moved/zed/settings.json"),
    ] {
        let (code, ..) = home.told(home.command(&[client]).env(variable, &moved));
        assert!(code == 0 && home.path(file).is_file(), "{client}: no {file}");
    }
    // Names that win when they are there.
    let home = Home::with(".config/opencode/opencode.jsonc", "{}");
    assert!(home.changed(&["opencode"], ".config/opencode/opencode.jsonc").contains("cellwright"));
    let home = Home::with(".claude/.config.json", "{}");
    assert!(home.changed(&["claude"], ".claude/.config.json").contains("cellwright"));
}

#[test]
fn a_project_has_a_file_in_the_root_of_its_repository() {
    let home = Home::new();
    for (client, file) in [
        ("claude", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
        ("vscode", ".vscode/mcp.json"),
        ("zed", ".zed/settings.json"),
        ("cursor", ".cursor/mcp.json"),
        ("qwen", ".qwen/settings.json"),
    ] {
        assert!(home.changed(&[client, "--project"], &format!("work/{file}")).contains("cellwright"));
    }
}

#[test]
fn the_name_on_path_is_kept_because_an_update_replaces_what_is_behind_it() {
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    symlink(BINARY, home.path("bin/cellwright")).unwrap();
    home.told(home.command(&["cursor"]).env("PATH", home.path("bin")));
    let file: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let expected = home.path("bin/cellwright");
    assert_eq!(file["mcpServers"]["cellwright"]["command"], expected.to_str().unwrap());
}
