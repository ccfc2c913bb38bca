//! The kernelspec that makes Jupyter offer the agent kernel.

use std::io;
use std::path::{Path, PathBuf};

use cellwright_jupyter::{InterruptMode, KernelJson, KernelSpec, SpecError};
use serde_json::{Map, json};

/// Why a kernelspec could not be written or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Jupyter would not find a kernel of this name.
    #[error("`{0}` is not a name for a kernel; use letters, digits, `.`, `_` and `-`")]
    Name(String),
    /// The kernelspec belongs to another program.
    #[error("the kernel `{name}` in `{}` is not one of ours and is left alone", folder.display())]
    Foreign {
        /// Its name.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// Writing or removing failed.
    #[error("could not write to `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder holds something that is not a kernelspec.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Marks our kernelspecs. No others are listed, replaced or removed.
const MARK: &str = "cellwright";

/// The kernelspec that runs `program kernel run`, for one agent or for the default one.
pub fn description(program: &Path, agent: Option<&str>, display_name: Option<&str>) -> KernelJson {
    let mut argv: Vec<String> = vec![program.to_string_lossy().into_owned()];
    argv.extend(["kernel", "run", "-f", "{connection_file}"].map(str::to_owned));
    argv.extend(agent.into_iter().flat_map(|agent| ["--agent".to_owned(), agent.to_owned()]));
    let named = || agent.map_or("Cellwright Agent".to_owned(), |agent| format!("Cellwright Agent ({agent})"));
    let mut metadata = Map::new();
    metadata.insert(MARK.to_owned(), json!({ "agent": agent }));
    KernelJson {
        argv,
        display_name: display_name.map_or_else(named, str::to_owned),
        language: "agent".to_owned(),
        // Otherwise Jupyter signals the whole process group, with agents and their commands.
        interrupt_mode: InterruptMode::Message,
        metadata,
        ..KernelJson::default()
    }
}

/// The name for the kernelspec of an agent.
pub fn default_name(agent: Option<&str>) -> String {
    agent.map_or_else(
        || "cellwright-agent".to_owned(),
        |agent| format!("cellwright-agent-{}", agent.to_lowercase()),
    )
}

/// Writes a kernelspec into a folder of kernels. Replaces an earlier one of ours. Returns its
/// folder.
pub fn install(kernels: &Path, name: &str, description: &KernelJson) -> Result<PathBuf, InstallError> {
    let spelt = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || !name.chars().all(spelt) || name.starts_with('.') {
        return Err(InstallError::Name(name.to_owned()));
    }
    let folder = kernels.join(name);
    if folder.join("kernel.json").exists() && !is_ours(&KernelSpec::load(&folder)?) {
        return Err(InstallError::Foreign { name: name.to_owned(), folder });
    }
    let written = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|source| InstallError::Write { path, source })
    };
    std::fs::create_dir_all(&folder)
        .map_err(|source| InstallError::Write { path: folder.clone(), source })?;
    let json = serde_json::to_string_pretty(description).expect("a description is plain data");
    written(folder.join("logo-svg.svg"), LOGO)?;
    written(folder.join("kernel.json"), &(json + "\n"))?;
    Ok(folder)
}

/// Whether this program made it.
pub fn is_ours(spec: &KernelSpec) -> bool {
    spec.description.metadata.contains_key(MARK)
}

/// Removes a kernelspec of ours.
pub fn remove(spec: &KernelSpec) -> Result<(), InstallError> {
    let folder = spec.resource_dir.clone();
    if !is_ours(spec) {
        return Err(InstallError::Foreign { name: spec.name.clone(), folder });
    }
    std::fs::remove_dir_all(&folder).map_err(|source| InstallError::Write { path: folder, source })
}

/// Shown by the launcher of `JupyterLab`.
const LOGO: &str = include_str!("spec/logo.svg");

#[cfg(test)]
mod tests {
    use super::*;

    /// The wheel brings the kernelspec as a file: it finds the program by its own folder, without PATH.
    #[test]
    fn the_kernelspec_in_the_wheel_is_the_one_that_install_writes() {
        let file = "../../packaging/wheel.data/data/share/jupyter/kernels/cellwright-agent/kernel.json";
        let described = description(Path::new("{resource_dir}/../../../../bin/cellwright"), None, None);
        let written = serde_json::to_string_pretty(&described).unwrap() + "\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), written);
    }

    #[test]
    fn only_our_kernelspecs_are_replaced_and_removed() {
        let kernels = tempfile::tempdir().unwrap();
        let described = description(Path::new("/bin/cellwright"), Some("claude"), None);
        let folder = install(kernels.path(), "cellwright-agent-claude", &described).unwrap();
        install(kernels.path(), "cellwright-agent-claude", &described).unwrap();
        let written = std::fs::read_to_string(folder.join("kernel.json")).unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&written).unwrap(),
            json!({
                "argv": ["/bin/cellwright", "kernel", "run", "-f", "{connection_file}", "--agent", "claude"],
                "display_name": "Cellwright Agent (claude)",
                "language": "agent",
                "interrupt_mode": "message",
                "metadata": {"cellwright": {"agent": "claude"}},
            })
        );
        let spec = KernelSpec::load(&folder).unwrap();
        assert_eq!(spec.description, described);

        let foreign = kernels.path().join("python3");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("kernel.json"), "{\"argv\": [\"python\"]}").unwrap();
        assert!(matches!(install(kernels.path(), "python3", &described), Err(InstallError::Foreign { .. })));
        assert!(matches!(remove(&KernelSpec::load(&foreign).unwrap()), Err(InstallError::Foreign { .. })));
        assert!(matches!(install(kernels.path(), "../x", &described), Err(InstallError::Name(_))));

        remove(&spec).unwrap();
        assert!(!folder.exists());
    }
}
