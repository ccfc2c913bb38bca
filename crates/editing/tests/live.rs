//! Notebooks that are open in a page: the same rules as for files, and the file is left alone.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cellwright_editing::{
    ChangeOptions, EditingError, FileEditor, FileName, HistoryStore, LiveHome, LiveNotebooks, LivePage,
    PageCell, PageContent, PageError, PageStep, ProcessMemory,
};
use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::{Action, CellKind, CellRef, ChangeNote, NewCell};
use serde_json::{Value, json};

/// A page that does what it is asked, and what a person does in it meanwhile.
#[derive(Debug, Default)]
struct TestPage {
    cells: Mutex<Vec<(String, String)>>,
    /// Edits of the person that come between a read and a change.
    edits: Mutex<Vec<(String, String)>>,
    /// How often it refuses because the person types.
    typing: Mutex<usize>,
}

impl LivePage for TestPage {
    fn read(&self) -> Result<PageContent, PageError> {
        let cells: Vec<Value> = self.cells.lock().unwrap().iter().map(|(id, source)| {
            json!({"cell_type": "code", "id": id, "source": source, "metadata": {}, "outputs": [], "execution_count": null})
        }).collect();
        let json = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        Ok(PageContent { json, read_at: 1.0 })
    }

    fn change(&self, _read_at: f64, steps: &[PageStep]) -> Result<(), PageError> {
        let mut cells = self.cells.lock().unwrap();
        if let Some((id, source)) = self.edits.lock().unwrap().pop() {
            cells.iter_mut().find(|cell| cell.0 == id).unwrap().1 = source;
        }
        let mut typing = self.typing.lock().unwrap();
        if *typing > 0 {
            *typing -= 1;
            return Err(PageError::Typing { id: "a".into() });
        }
        let is = |id: &str, expect: &str, cells: &[(String, String)]| {
            cells.iter().any(|cell| cell.0 == id && cell.1 == expect)
        };
        for step in steps {
            if let PageStep::Edit { id, expect, .. } | PageStep::Remove { id, expect } = step
                && !is(id, expect, &cells)
            {
                return Err(PageError::Stale { id: id.clone() });
            }
        }
        for step in steps {
            let at =
                |id: &str, cells: &[(String, String)]| cells.iter().position(|cell| cell.0 == id).unwrap();
            let after = |after: &Option<String>, cells: &[(String, String)]| {
                after.as_ref().map_or(0, |after| at(after, cells) + 1)
            };
            match step {
                PageStep::Remove { id, .. } => {
                    let place = at(id, &cells);
                    cells.remove(place);
                }
                PageStep::Insert { after: last, cell } => {
                    let place = after(last, &cells);
                    let text = |name: &str| cell[name].as_str().unwrap().to_owned();
                    cells.insert(place, (text("id"), text("source")));
                }
                PageStep::Edit { id, expect, edits } => {
                    let mut units: Vec<u16> = expect.encode_utf16().collect();
                    for (start, end, text) in edits.iter().rev() {
                        units.splice(*start..*end, text.encode_utf16());
                    }
                    let place = at(id, &cells);
                    cells[place].1 = String::from_utf16(&units).unwrap();
                }
                step => panic!("not used here: {step:?}"),
            }
        }
        Ok(())
    }

    fn run(&self, _cells: &[PageCell]) -> Result<(), PageError> {
        Err(PageError::ReadOnly)
    }
}

#[derive(Debug)]
struct TestPages(LiveHome);

impl LiveNotebooks for TestPages {
    fn find(&self, _path: &Path) -> LiveHome {
        self.0.clone()
    }
}

struct World {
    folder: tempfile::TempDir,
    memory: ProcessMemory,
    history: HistoryStore,
    page: Arc<TestPage>,
}

impl World {
    fn new(cells: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let page = Arc::new(TestPage::default());
        *page.cells.lock().unwrap() =
            cells.iter().map(|(id, source)| ((*id).into(), (*source).into())).collect();
        std::fs::write(folder.path().join("n.ipynb"), "the file is not even a notebook").unwrap();
        let history = HistoryStore::new(folder.path().join("history"));
        Self { folder, memory: ProcessMemory::default(), history, page }
    }

    fn with<T>(&self, work: impl FnOnce(&FileEditor<'_>, &FileName) -> T) -> T {
        let pages = TestPages(LiveHome::Page(Arc::clone(&self.page) as Arc<dyn LivePage>));
        let editor = FileEditor::new(&self.memory, Some(&self.history)).with_live(Some(&pages));
        work(&editor, &FileName::of(&self.folder.path().join("n.ipynb")))
    }

    fn act(&self, action: &Action) -> Result<Vec<ChangeNote>, EditingError> {
        self.with(|editor, file| Ok(editor.act(file, action, &ChangeOptions::default())?.report.notes))
    }

    fn cells(&self) -> Vec<String> {
        self.page.cells.lock().unwrap().iter().map(|cell| cell.1.clone()).collect()
    }
}

fn edit(id: &str, source: &str) -> Action {
    Action::Edit { cell: CellRef::Id(id.into()), source: source.into() }
}

#[test]
fn a_notebook_in_a_page_is_changed_there_and_its_file_is_left_alone() {
    let world = World::new(&[("a", "1\n🎉\n2"), ("b", "3")]);
    assert_eq!(world.act(&edit("a", "1\n🎉\n22\n4")).unwrap(), [ChangeNote::InPage]);
    let insert = Action::Insert { at: Some(1), cells: vec![NewCell::new(CellKind::Code, "new")] };
    world.act(&insert).unwrap();
    world.act(&Action::Delete { cells: vec![CellRef::Id("b".into())] }).unwrap();
    assert_eq!(world.cells(), ["1\n🎉\n22\n4", "new"]);
    world.with(|editor, file| editor.undo(file, None, &ChangeOptions::default())).unwrap();
    assert_eq!(world.cells(), ["1\n🎉\n22\n4", "new", "3"]);
    let file = std::fs::read_to_string(world.folder.path().join("n.ipynb")).unwrap();
    assert_eq!(file, "the file is not even a notebook");
}

#[test]
fn a_change_waits_while_the_person_types_and_goes_beside_what_they_typed_elsewhere() {
    let world = World::new(&[("a", "1"), ("b", "2")]);
    *world.page.typing.lock().unwrap() = 2;
    world.page.edits.lock().unwrap().push(("b".into(), "2, typed".into()));
    world.act(&edit("a", "changed")).unwrap();
    assert_eq!(world.cells(), ["changed", "2, typed"]);
}

#[test]
fn what_the_person_typed_after_the_agent_read_it_is_not_overwritten() {
    let world = World::new(&[("a", "1")]);
    world.act(&edit("a", "agent")).unwrap();
    world.page.edits.lock().unwrap().push(("a".into(), "person".into()));
    let refused = world.act(&edit("a", "agent again")).unwrap_err();
    assert!(refused.is_change(), "{refused}");
    assert_eq!(world.cells(), ["person"]);
}

#[test]
fn nothing_is_written_while_the_page_is_out_of_reach() {
    let world = World::new(&[]);
    let path = world.folder.path().join("n.ipynb");
    let notebook = r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
    std::fs::write(&path, notebook).unwrap();
    let pages = TestPages(LiveHome::OutOfReach(PageError::NoBridge));
    let editor = FileEditor::new(&world.memory, Some(&world.history)).with_live(Some(&pages));
    let file = FileName::of(&path);
    let insert = Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Code, "new")] };
    let refused = editor.act(&file, &insert, &ChangeOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("nothing was written"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), notebook);
    assert!(editor.open(&file, ReadNeed::All).is_ok());
}
