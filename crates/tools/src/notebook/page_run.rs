//! Running cells of a notebook that is open in a page: the page runs them, as if the person did.

use std::sync::Arc;

use cellwright_editing::{LiveHome, LivePage, PageCell, PageError};
use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{CellKind, Notebook};
use cellwright_run::CodeSelection;

use super::run::{CellChoice, NotebookRunOptions};
use crate::read::{self, ReadArguments};
use crate::reply::{ToolFailure, ToolReply};
use crate::toolbox::{CallContext, ToolboxState, blocking};
use crate::workspace::ResolvedPath;

/// The page to run cells in; none if they run without one.
pub(super) async fn page(
    shared: &Arc<ToolboxState>,
    place: &ResolvedPath,
) -> Result<Option<Arc<dyn LivePage>>, ToolFailure> {
    let Some(live) = shared.settings.live.clone() else { return Ok(None) };
    let path = place.path.clone();
    match blocking(move || Ok(live.find(&path))).await? {
        LiveHome::File => Ok(None),
        LiveHome::Page(page) => Ok(Some(page)),
        LiveHome::OutOfReach(why) => Err(refused(place, &why)),
    }
}

/// Runs cells in a page and shows what they have then.
pub(super) async fn run(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    place: &ResolvedPath,
    page: Arc<dyn LivePage>,
    wanted: CellChoice,
    how: NotebookRunOptions,
) -> Result<ToolReply, ToolFailure> {
    if how.reset || how.background {
        return Err(ToolFailure::new(
            "the notebook is open in a page, which runs its cells: `reset` and `background` do not work there",
        ));
    }
    let (shared, caller, place) = (Arc::clone(shared), context.clone(), place.clone());
    let work = blocking(move || {
        let (editor, file) = (shared.settings.editor(&caller), place.file_name());
        let (notebook, _) = editor.open(&file, ReadNeed::Sources)?;
        let named = match &wanted {
            CellChoice::Some(CodeSelection::Cells(cells)) => cells.clone(),
            CellChoice::Some(CodeSelection::From(cell)) => CellSelection::one(cell.clone()),
            CellChoice::Some(CodeSelection::All) | CellChoice::Stale => CellSelection::default(),
        };
        editor.check_run(&file, &notebook, &named, &how.options)?;
        let cells = cells(&notebook, &wanted)?;
        if cells.is_empty() {
            return Ok(ToolReply::text("there is no code to run in those cells"));
        }
        page.run(&cells).map_err(|error| refused(&place, &error))?;
        let ids = cells.iter().map(|cell| format!("id:{}", cell.id)).collect::<Vec<_>>().join(",");
        let shown = ReadArguments::with_outputs(format!("{}#{ids}", place.named));
        let mut reply = read::read(&shared.settings, &caller, &shown)?;
        reply.note("[the page ran these cells; what they have now is above]");
        Ok(reply)
    });
    tokio::select! {
        reply = work => reply,
        () = context.stop.cancelled() => Err(ToolFailure::new(
            "stopped; the page goes on running the cells until the person or the kernel interrupts them",
        )),
    }
}

fn cells(notebook: &Notebook, wanted: &CellChoice) -> Result<Vec<PageCell>, ToolFailure> {
    let chosen: Vec<usize> = match wanted {
        CellChoice::Some(CodeSelection::All) => (0..notebook.len()).collect(),
        CellChoice::Some(CodeSelection::Cells(cells)) => cells.resolve(notebook)?,
        CellChoice::Some(CodeSelection::From(cell)) => (notebook.locate(cell)?..notebook.len()).collect(),
        CellChoice::Stale => {
            return Err(ToolFailure::new(
                "which cells are out of date is not known of a notebook that is open in a page; name them",
            ));
        }
    };
    let code =
        chosen.into_iter().map(|index| notebook.cell(index)).filter(|cell| cell.kind() == CellKind::Code);
    Ok(code
        .filter(|cell| !cell.source().trim().is_empty())
        .filter_map(|cell| Some(PageCell { id: cell.id()?.into_owned(), source: cell.source().into_owned() }))
        .collect())
}

fn refused(place: &ResolvedPath, error: &PageError) -> ToolFailure {
    ToolFailure::new(error.to_string()).about(&place.named)
}
