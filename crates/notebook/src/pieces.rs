//! A text in pieces, so that an edit of a large file copies what is new and shares the rest.

use std::sync::{Arc, OnceLock};

use crate::json::TextSpan;

/// A text made of parts of others, which it shares. What was read is one piece.
#[derive(Clone)]
pub(crate) struct Pieces {
    parts: Vec<SharedPiece>,
    length: usize,
    /// All of it in one, once somebody needed that.
    whole: OnceLock<Arc<String>>,
}

#[derive(Clone)]
struct SharedPiece {
    of: Arc<String>,
    span: TextSpan,
}

impl Pieces {
    pub(crate) fn one(text: Arc<String>) -> Self {
        let piece = SharedPiece { of: Arc::clone(&text), span: 0..text.len() };
        Self { parts: vec![piece], length: text.len(), whole: OnceLock::from(text) }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|SharedPiece { of, span }| &of[span.clone()])
    }

    /// All of it in one: a copy if it is in several pieces, made once.
    pub(crate) fn whole(&self) -> &Arc<String> {
        self.whole.get_or_init(|| {
            let mut text = String::with_capacity(self.length);
            self.iter().for_each(|piece| text.push_str(piece));
            Arc::new(text)
        })
    }

    /// Whether it is a text of its own.
    pub(crate) fn is_one(&self) -> bool {
        matches!(&self.parts[..], [SharedPiece { of, span }] if span.len() == of.len())
    }
}

/// A text on its way from an old one to a new one.
pub(crate) struct Splice<'a> {
    old: &'a Arc<String>,
    made: Vec<SharedPiece>,
    length: usize,
}

impl<'a> Splice<'a> {
    pub(crate) fn of(old: &'a Arc<String>) -> Self {
        Self { old, made: Vec::new(), length: 0 }
    }

    /// How long it is so far.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Goes on with a part of the old text.
    pub(crate) fn keep(&mut self, span: TextSpan) {
        self.length += span.len();
        match self.last_kept() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => self.made.push(SharedPiece { of: Arc::clone(self.old), span }),
        }
    }

    /// Goes on with a few bytes, which may well stand in the old text where it was kept last.
    pub(crate) fn push(&mut self, text: &str) {
        let old = self.old;
        match self.last_kept() {
            Some(last) if old.as_bytes()[last.end..].starts_with(text.as_bytes()) => {
                last.end += text.len();
                self.length += text.len();
            }
            _ if text.is_empty() => {}
            _ => self.add(Arc::new(text.to_owned())),
        }
    }

    /// Goes on with another text.
    pub(crate) fn add(&mut self, text: Arc<String>) {
        self.length += text.len();
        self.made.push(SharedPiece { span: 0..text.len(), of: text });
    }

    pub(crate) fn done(self) -> Pieces {
        let made = Pieces { parts: self.made, length: self.length, whole: OnceLock::new() };
        if made.is_one() { Pieces::one(Arc::clone(&made.parts[0].of)) } else { made }
    }

    /// The last piece, if it is of the old text.
    fn last_kept(&mut self) -> Option<&mut TextSpan> {
        let SharedPiece { of, span } = self.made.last_mut()?;
        Arc::ptr_eq(of, self.old).then_some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_shared_and_what_is_new_comes_between() {
        let old = Arc::new("a, bé, c".to_owned());
        let mut splice = Splice::of(&old);
        splice.keep(0..1);
        splice.push(",");
        splice.keep(2..6);
        splice.add(Arc::new("new".to_owned()));
        splice.push("");
        assert_eq!(splice.len(), 9);
        splice.push(", ");
        splice.keep(8..9);
        let made = splice.done();
        assert_eq!(made.iter().collect::<Vec<_>>(), ["a, bé", "new", ", ", "c"]);
        assert_eq!((made.whole().as_str(), made.len(), made.is_one()), ("a, bénew, c", 12, false));
        let mut all = Splice::of(&old);
        all.keep(0..4);
        all.keep(4..old.len());
        let all = all.done();
        assert!(all.is_one() && Arc::ptr_eq(all.whole(), &old));
    }
}
