//! `%agent page`: the way to the notebook in the person's page.

use std::sync::Arc;

use cellwright_jupyter::content::{ClearOutput, DisplayData};
use serde_json::json;

use super::cell_run::CellRun;
use crate::lab_extension;
use crate::magic::PageMagic;

impl CellRun<'_> {
    /// Carries out `%agent page`.
    pub(super) async fn page(&self, page: PageMagic) -> String {
        match page {
            PageMagic::Show => self.pages().await,
            PageMagic::Allow => self.allow().await,
        }
    }

    async fn pages(&self) -> String {
        let page = self.kernel.state.page.clone();
        // It waits for answers.
        tokio::task::spawn_blocking(move || page.summary()).await.unwrap_or_default()
    }

    /// Puts the bridge into the page that shows this cell, if it has none. The script is always the same one, and it is
    /// taken out of the cell's output again.
    async fn allow(&self) -> String {
        let page = Arc::new(self.kernel.state.page.clone());
        let greeted = {
            let page = Arc::clone(&page);
            tokio::task::spawn_blocking(move || page.is_bridged()).await.unwrap_or_default()
        };
        if !greeted {
            let data = json!({"application/javascript": lab_extension::injected()});
            let display = DisplayData {
                data: data.as_object().cloned().unwrap_or_default().into(),
                ..DisplayData::default()
            };
            self.cell.publish(&display, &self.stop).await;
            let page = Arc::clone(&page);
            // The script has run when the page answers; a page that runs no scripts never does.
            drop(tokio::task::spawn_blocking(move || page.is_bridged()).await);
            self.cell.publish(&ClearOutput::default(), &self.stop).await;
        }
        self.pages().await
    }
}
