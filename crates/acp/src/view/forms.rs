//! Forms in a turn, which are widgets until they are answered.

use serde_json::json;

use super::content::bundle;
use super::words::dim;
use super::{OutputData, TurnView, ViewPiece};

/// A form that is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormPiece(usize);

impl TurnView {
    /// Shows a form: the widget with this model id. [`TurnView::form_answered`] removes it.
    pub(crate) fn form(&mut self, model_id: &str) -> FormPiece {
        self.close();
        let at = self.add(ViewPiece::Fixed(widget_view(model_id, "[a form to fill in]")));
        self.forms.push(FormPiece(at));
        FormPiece(at)
    }

    /// Shows what became of a form.
    pub(crate) fn form_answered(&mut self, form: FormPiece, summary: &str) {
        self.forms.retain(|open| *open != form);
        self.retire(form.0, summary);
    }

    /// Removes the forms that nobody answered.
    pub(super) fn retire_forms(&mut self) {
        for FormPiece(at) in std::mem::take(&mut self.forms) {
            self.retire(at, "not answered");
        }
    }

    /// Replaces widgets by what became of them.
    pub(super) fn retire(&mut self, at: usize, summary: &str) {
        self.pieces[at] = ViewPiece::Fixed(dim(summary).bundle());
        self.displays.touch(at);
    }
}

/// The display of the widget with this model id.
pub(crate) fn widget_view(model_id: &str, plain: &str) -> OutputData {
    let mut data = bundle([("text/plain", plain.to_owned())]);
    let widget = json!({"model_id": model_id, "version_major": 2, "version_minor": 0});
    data.insert("application/vnd.jupyter.widget-view+json".to_owned(), widget);
    data
}
