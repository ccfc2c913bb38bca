//! Servers in YAML, by lines: a block of ours goes in and comes out, and no other line is touched.

use anyhow::{bail, ensure};
use serde_json::Value;

use super::client::ServerEntry;
use crate::commands::run::yaml_mapping;

/// The value of a file. A member without a value is the same as none.
pub(super) fn read(text: &str) -> anyhow::Result<Value> {
    let mut members = yaml_mapping(text)?;
    members.retain(|_, value| !value.is_null());
    Ok(Value::Object(members))
}

/// `text` with `section.name` holding at least `entry`.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &ServerEntry) -> anyhow::Result<String> {
    if entry.is_empty() {
        return Ok(text.to_owned());
    }
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push_str(line_end);
    }
    let Some(head) = section_line(&lines, section)? else {
        lines.push(format!("{section}:{line_end}"));
        lines.extend(block("  ", name, entry, line_end));
        return Ok(lines.concat());
    };
    if let Some(found) = Block::of(&lines, head, name) {
        for (key, value) in entry {
            found.set(&mut lines, key, value, line_end)?;
        }
    } else {
        let indent = child_indent(&lines, head).unwrap_or("  ").to_owned();
        let after = lines.split_off(head + 1);
        lines.extend(block(&indent, name, entry, line_end));
        lines.extend(after);
    }
    Ok(lines.concat())
}

/// `text` without `section.name`.
pub(super) fn remove(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let Some(head) = section_line(&lines, section)? else { return Ok(text.to_owned()) };
    if let Some(found) = Block::of(&lines, head, name) {
        lines.drain(found.first..found.end);
    }
    Ok(lines.concat())
}

/// The line that begins a section, which must be written as a block.
fn section_line(lines: &[String], section: &str) -> anyhow::Result<Option<usize>> {
    let is_head = |line: &&String| line.strip_prefix(section).is_some_and(|rest| rest.starts_with(':'));
    let mut heads = lines.iter().enumerate().filter(|(_, line)| is_head(line));
    let Some((head, line)) = heads.next() else { return Ok(None) };
    ensure!(heads.next().is_none(), "it has `{section}` twice");
    let rest = line[section.len() + 1..].trim();
    ensure!(rest.is_empty() || rest.starts_with('#'), "its `{section}` is not written as a block");
    Ok(Some(head))
}

/// How far the members of a section are indented, if it has any.
fn child_indent(lines: &[String], head: usize) -> Option<&str> {
    let first = lines[head + 1..].iter().find(|line| is_content(line))?;
    let indent = &first[..first.len() - first.trim_start().len()];
    (!indent.is_empty()).then_some(indent)
}

fn is_content(line: &str) -> bool {
    let text = line.trim_start();
    !text.trim().is_empty() && !text.starts_with('#')
}

fn block(indent: &str, name: &str, entry: &ServerEntry, line_end: &str) -> Vec<String> {
    let members = entry.iter().map(|(key, value)| format!("{indent}  {key}: {value}{line_end}"));
    std::iter::once(format!("{indent}{name}:{line_end}")).chain(members).collect()
}

/// The lines of one member of a section.
struct Block {
    first: usize,
    end: usize,
}

impl Block {
    fn of(lines: &[String], head: usize, name: &str) -> Option<Self> {
        let indent = child_indent(lines, head)?;
        let width = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let mut first = None;
        let mut end = 0;
        for (at, line) in lines.iter().enumerate().skip(head + 1).filter(|(_, line)| is_content(line)) {
            if width(line) < indent.len() {
                break;
            }
            if width(line) == indent.len() {
                if first.is_some() {
                    break;
                }
                let key = line.trim().strip_suffix(':').map(|key| key.trim_matches(['"', '\'']));
                if key == Some(name) {
                    (first, end) = (Some(at), at + 1);
                }
            } else if first.is_some() {
                end = at + 1;
            }
        }
        first.map(|first| Self { first, end })
    }

    /// Gives a member another value.
    fn set(&self, lines: &mut Vec<String>, key: &str, value: &Value, line_end: &str) -> anyhow::Result<()> {
        let inner = &lines[self.first..self.end];
        let Some(at) = inner.iter().position(|line| line.trim_start().starts_with(&format!("{key}:"))) else {
            let indent = inner.get(1).map_or("    ", |line| &line[..line.len() - line.trim_start().len()]);
            let added = format!("{indent}{key}: {value}{line_end}");
            lines.insert(self.first + 1, added);
            return Ok(());
        };
        let line = &mut lines[self.first + at];
        let (start, old) = line.split_once(':').expect("it begins with a key");
        if value.is_array() || old.trim().is_empty() || old.contains(" #") {
            bail!("its `{key}` is written in a way that an edit could break");
        }
        *line = format!("{start}: {value}{line_end}");
        Ok(())
    }
}
