//! The cells that ran, for clients that page through them.

use std::collections::VecDeque;

use cellwright_jupyter::content::{HistoryReply, HistoryRequest};
use serde_json::{Value, json};

use crate::cell_record::SharedRecord;
use crate::kernel_state::lock;

/// The most cells that are kept.
const MOST: usize = 10_000;

/// The most bytes of outputs that are kept.
const MOST_SHOWN: usize = 32 << 20;

/// The cells of this kernel, oldest first.
#[derive(Debug, Default)]
pub(crate) struct CellHistory {
    cells: Vec<(u32, String)>,
    /// What the last cells have shown.
    shown: VecDeque<(u32, SharedRecord)>,
}

impl CellHistory {
    pub(crate) fn add(&mut self, count: u32, code: &str) {
        if self.cells.len() == MOST {
            self.cells.remove(0);
        }
        self.cells.push((count, code.to_owned()));
    }

    pub(crate) fn source(&self, count: u32) -> Option<&str> {
        self.cells.iter().rev().find(|(known, _)| *known == count).map(|(_, code)| code.as_str())
    }

    /// Keeps what a cell shows. The oldest ones are dropped if all of them are too large.
    pub(crate) fn keep(&mut self, count: u32, record: SharedRecord) {
        let mut size: usize = self.shown.iter().map(|(_, record)| lock(record).size()).sum();
        while (size > MOST_SHOWN || self.shown.len() >= MOST)
            && let Some((_, oldest)) = self.shown.pop_front()
        {
            size = size.saturating_sub(lock(&oldest).size());
        }
        self.shown.push_back((count, record));
    }

    /// What a cell has shown, if it is still kept.
    pub(crate) fn shown(&self, count: u32) -> Option<&SharedRecord> {
        self.shown.iter().rev().find(|(known, _)| *known == count).map(|(_, record)| record)
    }

    /// All cells, with their sources.
    pub(crate) fn cells(&self) -> &[(u32, String)] {
        &self.cells
    }

    /// Answers a client. There is one session, number 1. Outputs are not kept.
    pub(crate) fn reply(&self, request: &HistoryRequest) -> HistoryReply {
        let most = request.n.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let found: Vec<&(u32, String)> = match request.hist_access_type.as_str() {
            "range" if matches!(request.session, None | Some(0 | 1)) => {
                let from = request.start.unwrap_or(0);
                let to = request.stop.unwrap_or(i64::MAX);
                self.cells.iter().filter(|(count, _)| (from..to).contains(&i64::from(*count))).collect()
            }
            "tail" => self.cells.iter().collect(),
            "search" => self.search(request.pattern.as_deref().unwrap_or("*"), request.unique),
            _ => Vec::new(),
        };
        let skip = if request.hist_access_type == "range" { 0 } else { found.len().saturating_sub(most) };
        let entry = |(count, code): &(u32, String)| -> Value {
            if request.output { json!([1, count, [code, null]]) } else { json!([1, count, code]) }
        };
        HistoryReply { history: found.into_iter().skip(skip).map(entry).collect(), ..HistoryReply::default() }
    }

    /// The cells that match. If they must be unique, the last of equal ones.
    fn search(&self, pattern: &str, unique: bool) -> Vec<&(u32, String)> {
        let mut found: Vec<&(u32, String)> =
            self.cells.iter().filter(|(_, code)| matches(pattern.as_bytes(), code.as_bytes())).collect();
        if unique {
            let mut seen = std::collections::HashSet::new();
            found.reverse();
            found.retain(|(_, code)| seen.insert(code));
            found.reverse();
        }
        found
    }
}

/// Whether a glob of `*` and `?` matches all of a text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star = None;
    while at < text.len() {
        match pattern.get(from) {
            Some(b'*') => {
                star = Some((from, at));
                from += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[at] => {
                at += 1;
                from += 1;
            }
            _ => match &mut star {
                Some((after, start)) => {
                    *start += 1;
                    (from, at) = (*after + 1, *start);
                }
                None => return false,
            },
        }
    }
    pattern[from..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*b", "a--b", true),
            ("a*b", "a--bc", false),
            ("*lo*", "hello world", true),
            ("?i", "hi", true),
            ("?i", "i", false),
            ("a*a*a", "aa", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn ranges_tails_and_searches_find_their_cells() {
        let mut history = CellHistory::default();
        for (count, code) in [(1, "one"), (2, "two"), (3, "one")] {
            history.add(count, code);
        }
        let ask = |access: &str| HistoryRequest { hist_access_type: access.to_owned(), ..Default::default() };
        let cells = |request: HistoryRequest| Value::from(history.reply(&request).history);
        let range = HistoryRequest { start: Some(1), stop: Some(3), ..ask("range") };
        assert_eq!(cells(range), json!([[1, 1, "one"], [1, 2, "two"]]));
        assert_eq!(
            cells(HistoryRequest { n: Some(1), output: true, ..ask("tail") }),
            json!([[1, 3, ["one", null]]])
        );
        let search = HistoryRequest { pattern: Some("o*".to_owned()), unique: true, ..ask("search") };
        assert_eq!(cells(search), json!([[1, 3, "one"]]));
    }
}
