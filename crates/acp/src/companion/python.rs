//! What can be said about Python without running it.

use cellwright_kernel::KernelChoice;

/// Whether a kernel speaks Python, as far as its name tells.
pub(crate) fn is_python(kernel: &KernelChoice) -> bool {
    match kernel {
        KernelChoice::Python { .. }
        | KernelChoice::Gateway { name: None }
        | KernelChoice::Existing { .. } => true,
        KernelChoice::Jupyter { name } | KernelChoice::Gateway { name: Some(name) } => {
            let name = name.to_lowercase();
            name.starts_with("py") || name.starts_with("ipy") || name.contains("python")
        }
    }
}

/// Whether a text has one of these names as a word.
pub(crate) fn mentions<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    names.into_iter().any(|name| words.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_as_whole_words() {
        assert!(mentions("df.head()", ["df"]) && mentions("f(x_1)", ["x_1"]));
        assert!(!mentions("pdf", ["df"]) && !mentions("", ["df"]));
    }

    #[test]
    fn kernels_of_python_are_known_by_their_names() {
        for (kernel, expected) in
            [("python", true), ("jupyter:python3", true), ("julia", false), ("ir", false)]
        {
            assert_eq!(is_python(&kernel.parse().unwrap()), expected, "{kernel}");
        }
    }
}
