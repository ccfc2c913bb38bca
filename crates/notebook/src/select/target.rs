//! A path with a selector, as a caller names a file and a part of it.

use super::{Selector, SelectorError};

/// A file and the part of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The file.
    pub path: String,
    /// Which part of it.
    pub selector: Selector,
}

/// A file that exists, followed by text that is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: `{selector}` is not a selector: {reason}. {}", forms(path))]
pub struct BadSelector {
    /// The file.
    pub path: String,
    /// What follows it.
    pub selector: String,
    /// What is wrong with that.
    pub reason: SelectorError,
}

impl Target {
    /// Splits a target into path and selector.
    ///
    /// A file whose name looks like a selector is that file: of the paths that `exists` knows the longest counts
    /// that leaves a selector. If files exist but none leaves a selector, the error explains what is wrong. If no
    /// file exists, the text is split by its form alone, so that the caller can report the right path as missing.
    pub fn parse(text: &str, exists: impl Fn(&str) -> bool) -> Result<Self, BadSelector> {
        if exists(text) {
            return Ok(Self { path: text.to_owned(), selector: Selector::default() });
        }
        let mut bad = None;
        for (at, _) in text.rmatch_indices(['#', ':']).filter(|(at, _)| *at > 0) {
            let (path, selector) = text.split_at(at);
            if !exists(path) {
                continue;
            }
            match Selector::parse(selector) {
                Ok(selector) => return Ok(Self { path: path.to_owned(), selector }),
                Err(reason) => {
                    let (path, selector) = (path.to_owned(), selector.to_owned());
                    bad.get_or_insert(BadSelector { path, selector, reason });
                }
            }
        }
        if let Some(bad) = bad {
            return Err(bad);
        }
        let (path, selector) = Selector::split(text);
        Ok(Self { path: path.to_owned(), selector })
    }

    /// Whether the file's name is that of a notebook.
    pub fn names_notebook(&self) -> bool {
        names_notebook(&self.path)
    }
}

fn names_notebook(path: &str) -> bool {
    let (_, extension) = path.rsplit_once('.').unwrap_or_default();
    extension.eq_ignore_ascii_case("ipynb")
}

/// What can follow a path.
fn forms(path: &str) -> &'static str {
    if names_notebook(path) {
        "Cells are `#3`, `#3-7`, `#2,5-7`, `#5-`, `#id:abcd1234` or `#\"A heading\"`, an output `#7.0`, an attachment `#3:plot.png`; \
         then `:raw` or lines, which count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`"
    } else {
        "Lines count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`, `:5-16,90-97`"
    }
}
