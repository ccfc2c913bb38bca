//! Installed Jupyter kernels, as seen from a folder.

use std::ffi::{OsStr, OsString};

use cellwright_jupyter::{JupyterEnvironment, KernelSpec, PythonPrefix, SpecError};

use crate::environment::EnvVars;
use crate::interpreter::{Candidate, PythonOrigin, PythonSearch};

/// Where kernels are looked for.
pub(crate) struct KernelspecPlaces {
    variables: EnvVars,
    prefixes: Vec<PythonPrefix>,
}

impl KernelspecPlaces {
    /// Those of the Pythons that would be used in a folder, best first, then the user's and the system's.
    pub(crate) async fn around(search: &PythonSearch) -> Self {
        let mut prefixes: Vec<PythonPrefix> = Vec::new();
        for lead in search.leads() {
            if let Some(Ok(candidate)) = lead.candidate(search).await {
                prefixes.extend(candidate.prefixes());
            }
        }
        Self { variables: search.variables.clone(), prefixes }
    }

    /// The kernel of that name, or else the best one for a language of that name.
    pub(crate) fn find(&self, wanted: &str) -> Result<KernelSpec, SpecError> {
        let variable = |name: &str| self.variables.get(OsStr::new(name)).cloned();
        let kernel_path = self.surroundings(&variable).kernel_path();
        let not_found = match KernelSpec::find(&kernel_path, wanted) {
            Err(error @ SpecError::NotFound { .. }) => error,
            decided => return decided,
        };
        let usable = KernelSpec::all(&kernel_path).into_values().filter_map(Result::ok);
        let specs: Vec<_> = usable.map(|spec| (spec.description.language.clone(), spec)).collect();
        best(specs, wanted, |spec| &spec.name).ok_or(not_found)
    }

    /// What starts a kernel, and what its process sees of `variables`.
    pub(crate) fn command(
        &self,
        spec: &KernelSpec,
        connection_file: &std::path::Path,
        variables: EnvVars,
    ) -> (Vec<String>, EnvVars) {
        let variable = |name: &str| self.variables.get(OsStr::new(name)).cloned();
        let prefix = self.surroundings(&variable);
        let command = spec.command(connection_file, prefix.prefix_of(&spec.resource_dir));
        let mut variables = match command.first() {
            // A Python of a virtual environment finds the tools of that environment, as it would from our runner.
            Some(program) if is_language(&spec.description.language, "python") && program.contains('/') => {
                Candidate { python: program.into(), origin: PythonOrigin::Explicit }.environment(variables)
            }
            Some(_) | None => variables,
        };
        let current =
            |name: &str| variables.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned());
        let added = spec.environment(current);
        variables
            .extend(added.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
        (command, variables)
    }

    fn surroundings<'a>(&self, variable: &'a dyn Fn(&str) -> Option<OsString>) -> JupyterEnvironment<'a> {
        JupyterEnvironment::new(variable, self.prefixes.clone())
    }
}

/// The kernel to use for a language: the one with the shortest name, such as `ir` before `ir-with-packages`.
pub(crate) fn best<T>(specs: Vec<(String, T)>, wanted: &str, name: impl Fn(&T) -> &str) -> Option<T> {
    let of_language = specs.into_iter().filter(|(language, _)| is_language(language, wanted));
    of_language.map(|(_, spec)| spec).min_by_key(|spec| (name(spec).len(), name(spec).to_owned()))
}

/// Whether two names mean the same language.
fn is_language(one: &str, other: &str) -> bool {
    canonical(one) == canonical(other)
}

fn canonical(language: &str) -> String {
    let lower = language.to_lowercase();
    match lower.as_str() {
        "py" | "python3" | "ipython" => "python".to_owned(),
        "js" | "node" | "nodejs" => "javascript".to_owned(),
        "ts" => "typescript".to_owned(),
        "sh" | "shell" => "bash".to_owned(),
        "rs" => "rust".to_owned(),
        "jl" => "julia".to_owned(),
        "rb" => "ruby".to_owned(),
        "golang" => "go".to_owned(),
        "cpp" | "c++17" | "c++20" | "c++23" => "c++".to_owned(),
        _ => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_its_short_names_and_gets_the_plainest_kernel() {
        let installed = [("R", "ir"), ("python", "python3"), ("python", "python3-gpu"), ("bash", "bash")];
        let specs = || installed.map(|(language, name)| (language.to_owned(), name)).into();
        for (wanted, found) in [
            ("r", Some("ir")),
            ("py", Some("python3")),
            ("Python", Some("python3")),
            ("sh", Some("bash")),
            ("js", None),
        ] {
            assert_eq!(best(specs(), wanted, |name| name), found, "{wanted}");
        }
    }
}
