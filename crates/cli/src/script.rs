//! Python scripts as cells: a line `# %%` starts one, as in many editors.

use cellwright_session::CellRequest;

/// The cells of a script. Text that is no code (`# %% [markdown]`) and cells without code are left out.
pub(crate) fn cells(text: &str) -> Vec<CellRequest> {
    let mut cells: Vec<(Option<String>, String)> = vec![(None, String::new())];
    for line in text.split_inclusive('\n') {
        match separator(line) {
            Some(title) => cells.push((Some(title.to_owned()), String::new())),
            None => cells.last_mut().expect("there is a first cell").1.push_str(line),
        }
    }
    let runs = |(title, code): &(Option<String>, String)| {
        let is_prose = title
            .as_deref()
            .is_some_and(|title| title.starts_with("[markdown]") || title.starts_with("[raw]"));
        !is_prose && !code.trim().is_empty()
    };
    cells
        .into_iter()
        .filter(runs)
        .map(|(title, code)| {
            let mut cell = CellRequest::new(code);
            cell.title = title.filter(|title| !title.is_empty());
            cell
        })
        .collect()
}

/// What follows `# %%`, when the line is a separator.
fn separator(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# %%").or_else(|| line.strip_prefix("#%%"))?;
    // `# %%time` is a commented magic.
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_cut_at_its_separators() {
        let text =
            "import os\n# %% first\nx = 1\n\n# %% [markdown]\n# prose\n# %%\n# %%time\ny\n# %% empty\n\n";
        let found: Vec<_> = cells(text).into_iter().map(|cell| (cell.title, cell.code)).collect();
        let cell = |title: Option<&str>, code: &str| (title.map(str::to_owned), code.to_owned());
        assert_eq!(
            found,
            [cell(None, "import os\n"), cell(Some("first"), "x = 1\n\n"), cell(None, "# %%time\ny\n")]
        );
    }
}
