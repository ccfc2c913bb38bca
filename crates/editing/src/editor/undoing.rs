//! Undoing changes.

use cellwright_notebook::Note;
use cellwright_notebook::file::IfMissing;

use super::{ChangeOptions, Editor, FileName, Learnt, PlannedChange};
use crate::error::EditingError;
use crate::report::EditReport;

impl Editor<'_> {
    /// Undoes a change: the one with this number, else the latest that was not undone.
    pub fn undo(
        &self,
        file: &FileName,
        number: Option<u64>,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let failed = |error| EditingError::undo(&file.named, error);
        let history = self.history.ok_or(crate::UndoError::Nothing).map_err(failed)?;
        let key = self.document(file).key();
        let (number, change) = history.to_undo(&key, number).map_err(failed)?;
        self.change_undoing(file, IfMissing::Fail, options, Some(number), |now, _| {
            let edited = change.undone_in(now, number, options.force).map_err(failed)?;
            // What comes back may be others' text, which the caller has not seen.
            let learnt = Learnt::Cells(vec![false; edited.origins.len()]);
            Ok(PlannedChange {
                edited,
                reach: change.undo.reach(),
                notes: vec![Note::Undid { change: number }],
                learnt,
            })
        })
    }
}
