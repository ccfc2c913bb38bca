//! The full text on its way to an artifact.

use std::{io::Write as _, mem};

use crate::{
    artifacts::{ArtifactDraft, ArtifactId, ArtifactKind, Artifacts},
    truncation::FullText,
};
use cellwright_cell::with_causes;

/// Bytes held in memory until a file is worth its while, and between two writes to it.
pub(crate) const BUFFER: usize = 64 * 1024;

/// Takes every byte of an output. It never fails: [`Spill::full_text`] reports what went wrong.
#[derive(Debug)]
pub(crate) struct Spill {
    store: Option<Artifacts>,
    kind: ArtifactKind,
    buffer: Vec<u8>,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// Everything so far is in the buffer.
    Buffered,
    Open(ArtifactDraft),
    Failed {
        beginning: Option<(ArtifactId, u64)>,
        reason: String,
    },
}

impl Spill {
    pub(crate) fn new(store: Option<Artifacts>, kind: ArtifactKind) -> Self {
        Self { store, kind, buffer: Vec::new(), state: SpillState::Buffered }
    }

    #[cfg(test)]
    pub(crate) fn with_draft(draft: ArtifactDraft) -> Self {
        Self { store: None, kind: ArtifactKind::Log, buffer: Vec::new(), state: SpillState::Open(draft) }
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let idle = matches!(self.state, SpillState::Buffered) && self.store.is_none();
        if idle || matches!(self.state, SpillState::Failed { .. }) {
            return;
        }
        if self.buffer.len() + bytes.len() <= BUFFER {
            return self.buffer.extend_from_slice(bytes);
        }
        self.flush();
        if bytes.len() <= BUFFER {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.put(bytes);
        }
    }

    /// Forgets all that was written.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        if let SpillState::Open(draft) = mem::replace(&mut self.state, SpillState::Buffered) {
            draft.discard();
        }
    }

    /// Writes out what is buffered and says where the full text is.
    pub(crate) fn full_text(&mut self) -> FullText {
        if self.store.is_some() || matches!(self.state, SpillState::Open(_)) {
            self.flush();
        }
        match &self.state {
            SpillState::Buffered => FullText::NotKept,
            SpillState::Open(draft) => FullText::Artifact(draft.id().clone()),
            SpillState::Failed { beginning: Some((id, bytes)), reason } => {
                FullText::Partial { id: id.clone(), bytes: *bytes, reason: reason.clone() }
            }
            SpillState::Failed { beginning: None, reason } => FullText::Lost { reason: reason.clone() },
        }
    }

    fn flush(&mut self) {
        let buffer = mem::take(&mut self.buffer);
        self.put(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
    }

    fn put(&mut self, bytes: &[u8]) {
        if let (SpillState::Buffered, Some(store)) = (&self.state, &self.store) {
            self.state = match store.create(self.kind) {
                Ok(draft) => SpillState::Open(draft),
                Err(error) => SpillState::Failed { beginning: None, reason: with_causes(&error) },
            };
        }
        if let SpillState::Open(draft) = &mut self.state
            && let Err(error) = draft.file().write_all(bytes)
        {
            let kept = draft.file().metadata().map_or(0, |file| file.len());
            let SpillState::Open(draft) = mem::replace(&mut self.state, SpillState::Buffered) else {
                unreachable!("it was open a line above")
            };
            let beginning = if kept > 0 {
                Some((draft.keep(), kept))
            } else {
                draft.discard();
                None
            };
            self.state = SpillState::Failed { beginning, reason: error.to_string() };
        }
    }
}

/// A run that is abandoned may have named its artifact in a snapshot: that one has all that came.
impl Drop for Spill {
    fn drop(&mut self) {
        if matches!(self.state, SpillState::Open(_)) {
            self.flush();
        }
    }
}
