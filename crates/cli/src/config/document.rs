//! `docs/settings.md` has tables made from the settings and variables that the program knows.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cellwright_testkit::check_document;
use serde_json::Value;

use super::UserSettings;
use super::env::{PROGRAM_VARIABLES, VARIABLES};
use super::keys::{KEYS, SettingScope};

/// Prefixes of the names of our own variables and of the older ones that still work.
const PREFIXES: [&str; 3] = ["CELLWRIGHT_", "PI_", "ACP_"];

fn tables() -> String {
    let defaults = serde_json::to_value(UserSettings::default()).unwrap();
    let mut out =
        String::from("| setting | default | set by | what it does | variables |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let (section, field) = key.name.split_once('.').unwrap();
        let default = match &defaults[section][field] {
            Value::Null => "none".to_owned(),
            value => format!("`{value}`"),
        };
        let scope = match key.scope {
            SettingScope::Project => "you or a project",
            SettingScope::Restriction => "you; a project can restrict more",
            SettingScope::User => "only you",
        };
        let variables = VARIABLES.iter().filter(|variable| variable.key == key.name);
        let variables: Vec<_> = variables.map(|variable| format!("`{}`", variable.name)).collect();
        writeln!(
            out,
            "| `{}` | {default} | {scope} | {} | {} |",
            key.name,
            key.about.replace('|', "\\|"),
            variables.join(", ")
        )
        .unwrap();
    }
    out.push_str("\nThese variables set no setting:\n\n| variable | what it does |\n|---|---|\n");
    for (name, about) in PROGRAM_VARIABLES {
        writeln!(out, "| `{name}` | {about} |").unwrap();
    }
    out
}

#[test]
fn the_page_of_settings_and_variables_is_up_to_date() {
    check_document("settings.md", "crates/cli/src/config/{keys,env}.rs", &tables());
}

/// The names in quotes that begin like one of our variables.
fn variables_in(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').filter(|text| {
        let rest = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
        rest.is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    })
}

#[test]
fn every_variable_that_the_commands_read_is_in_a_table() {
    let known: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    let known =
        |name: &str| known.contains(&name) || PROGRAM_VARIABLES.iter().any(|(other, _)| *other == name);
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            for name in variables_in(&source) {
                assert!(known(name), "{} reads {name}, which no table in config/env.rs has", path.display());
            }
        }
    }
}
