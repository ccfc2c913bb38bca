//! Servers in TOML, whose comments and layout stay as they are.

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

use super::client::ServerEntry;

/// The value of a file.
pub(super) fn read(text: &str) -> anyhow::Result<Value> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow!("line {line}: {}", error.message().replace('\n', ", "))
    })?;
    Ok(serde_json::to_value(table)?)
}

/// `text` with `section.name` holding at least `entry`.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &ServerEntry) -> anyhow::Result<String> {
    edited(text, |document| {
        let servers = document.entry(section).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true); // `[mcp_servers]` alone is a line nobody needs
            table.into()
        });
        let inline = servers.is_inline_table();
        let servers =
            servers.as_table_like_mut().with_context(|| format!("its `{section}` is not a table"))?;
        if !servers.contains_key(name) {
            servers.insert(name, if inline { InlineTable::new().into() } else { Table::new().into() });
        }
        let existing = servers.get_mut(name).and_then(Item::as_table_like_mut);
        let existing = existing.with_context(|| format!("its `{section}.{name}` is not a table"))?;
        for (key, wanted) in entry {
            set(existing, key, wanted);
        }
        Ok(())
    })
}

/// `text` without `section.name`.
pub(super) fn remove(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    edited(text, |document| {
        if let Some(servers) = document.get_mut(section).and_then(Item::as_table_like_mut) {
            servers.remove(name);
        }
        Ok(())
    })
}

fn edited(text: &str, edit: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>) -> anyhow::Result<String> {
    // The library writes `\n` alone, and has no rule for a file that mixes line ends.
    let windows = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let unix = if windows { text.replace("\r\n", "\n") } else { text.to_owned() };
    read(text)?; // says where it is wrong
    let mut document: DocumentMut = unix.parse()?;
    anyhow::ensure!(document.to_string() == unix, "it is written in a way that an edit would change");
    edit(&mut document)?;
    let edited = document.to_string();
    Ok(if windows { edited.replace('\n', "\r\n") } else { edited })
}

/// Changes a value. What surrounds it stays.
fn set(table: &mut dyn TableLike, key: &str, wanted: &Value) {
    let mut wanted = toml_value(wanted);
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(found) => {
            *wanted.decor_mut() = found.decor().clone();
            *found = wanted;
        }
        None => drop(table.insert(key, wanted.into())),
    }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => number.as_i64().expect("entries hold whole numbers").into(),
        Value::Array(items) => items.iter().map(toml_value).collect(),
        Value::Null | Value::Bool(_) | Value::Object(_) => unreachable!("no entry holds one"),
    }
}
