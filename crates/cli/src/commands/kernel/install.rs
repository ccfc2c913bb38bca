//! `cellwright kernel install`, `list` and `remove`

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_acp::spec;
use cellwright_jupyter::{JupyterEnvironment, KernelSpec, PythonPrefix};
use serde_json::json;

use crate::agents;
use crate::config::LoadedConfig;
use crate::print::{self, OutputFormat};

/// Install the agent kernel in Jupyter
#[derive(Debug, clap::Args)]
pub(super) struct KernelInstall {
    /// Install it for you, in every environment (the default)
    #[arg(long, group = "place")]
    user: bool,
    /// Install it in the active Python environment: `VIRTUAL_ENV`, `CONDA_PREFIX`, or that of the python3 on PATH
    #[arg(long, group = "place")]
    sys_prefix: bool,
    /// Install it in the Python environment in this folder
    #[arg(long, group = "place", value_name = "FOLDER")]
    prefix: Option<PathBuf>,
    /// The kernel's name for Jupyter [default: cellwright-agent, with --agent: cellwright-agent-AGENT]
    #[arg(long)]
    name: Option<String>,
    /// The agent to start, as `list` names it [default: the first that is available when the kernel starts]
    #[arg(long)]
    agent: Option<String>,
    /// The name that Jupyter clients show
    #[arg(long)]
    display_name: Option<String>,
    /// Take a name that another kernel has: Jupyter then starts the agent kernel in place of it
    #[arg(long)]
    force: bool,
}

impl KernelInstall {
    pub(super) fn run(&self, config: &LoadedConfig) -> anyhow::Result<()> {
        if let Some(agent) = &self.agent {
            agents::find(config, agent)?;
        }
        let kernels = match &self.prefix {
            Some(prefix) => std::path::absolute(prefix)?.join("share/jupyter/kernels"),
            None if self.sys_prefix => {
                let prefix = python_prefix(config).context(
                    "there is no Python environment in use: VIRTUAL_ENV and CONDA_PREFIX are not set and PATH has no python3",
                )?;
                prefix.path.join("share/jupyter/kernels")
            }
            None => surroundings(config, &|name| variable(config, name)).data_dir().join("kernels"),
        };
        let program = std::env::current_exe().context("could not find this program")?;
        let agent = self.agent.as_deref();
        let name = self.name.clone().unwrap_or_else(|| spec::default_name(agent));
        if !self.force {
            refuse_to_hide_another(config, &name)?;
        }
        let description = spec::description(&program, agent, self.display_name.as_deref());
        let folder = spec::install(&kernels, &name, &description)?;
        let mut message =
            format!("installed {name} ({}) in {}\n", description.display_name, folder.display());
        if agents::all(config).is_empty() {
            message = format!("{message}\n{}", cellwright_acp::catalog::guidance());
        }
        print::plain(&message)
    }
}

/// Refuses the name of another kernel, which Jupyter would no longer find.
fn refuse_to_hide_another(config: &LoadedConfig, name: &str) -> anyhow::Result<()> {
    let other = KernelSpec::find(&kernel_path(config), name).ok().filter(|spec| !spec::is_ours(spec));
    // ipykernel's own kernel needs no kernelspec.
    let is_python = name.eq_ignore_ascii_case("python3");
    let place = match other {
        Some(other) => format!(" in `{}`", other.resource_dir.display()),
        None if is_python => String::new(),
        None => return Ok(()),
    };
    anyhow::bail!(
        "`{name}` is the name of another kernel{place}, which Jupyter would no longer start; choose another \
         `--name`, or give `--force`"
    )
}

/// The agent kernels that Jupyter finds.
pub(crate) fn installed(config: &LoadedConfig) -> Vec<KernelSpec> {
    let specs = KernelSpec::all(&kernel_path(config)).into_values();
    specs.filter_map(Result::ok).filter(spec::is_ours).collect()
}

pub(super) fn list(config: &LoadedConfig, format: OutputFormat) -> anyhow::Result<()> {
    let specs = installed(config);
    let agents = agents::all(config);
    if format.json {
        let kernels = specs.iter().map(|spec| {
            json!({"name": spec.name, "display_name": spec.description.display_name, "folder": spec.resource_dir,
                "agent": spec.description.metadata["cellwright"]["agent"]})
        });
        let agents = agents.iter().map(|agent| {
            json!({"name": agent.name, "command": agent.command, "args": agent.args, "from": agent.from})
        });
        return print::json(
            &json!({"kernels": kernels.collect::<Vec<_>>(), "agents": agents.collect::<Vec<_>>()}),
        );
    }
    let mut out = String::new();
    for spec in &specs {
        out.extend([
            &spec.name,
            "  ",
            &spec.description.display_name,
            "  ",
            &spec.resource_dir.display().to_string(),
            "\n",
        ]);
    }
    if specs.is_empty() {
        out.push_str("no agent kernel is installed; `cellwright kernel install` does it\n");
    }
    out.push('\n');
    for agent in &agents {
        out.extend([&format!("agent {}: ", agent.name), &agent.command_line(), "  (", &agent.from, ")\n"]);
    }
    if agents.is_empty() {
        out.push_str(&cellwright_acp::catalog::guidance());
    }
    print::plain(&out)
}

pub(super) fn remove(config: &LoadedConfig, names: &[String]) -> anyhow::Result<()> {
    for name in names {
        let spec = KernelSpec::find(&kernel_path(config), name)?;
        spec::remove(&spec)?;
        print::plain(&format!("removed {}\n", spec.resource_dir.display()))?;
    }
    Ok(())
}

fn kernel_path(config: &LoadedConfig) -> Vec<PathBuf> {
    surroundings(config, &|name| variable(config, name)).kernel_path()
}

pub(in crate::commands) fn surroundings<'a>(
    config: &LoadedConfig,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
) -> JupyterEnvironment<'a> {
    JupyterEnvironment::new(variable, python_prefix(config).into_iter().collect())
}

/// The environment whose Jupyter would be started here.
pub(in crate::commands) fn python_prefix(config: &LoadedConfig) -> Option<PythonPrefix> {
    let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().find_map(|name| variable(config, name));
    if let Some(path) = environment {
        return Some(PythonPrefix { path: path.into(), is_environment: true });
    }
    let python = agents::in_path(config, "python3")?;
    let path = python.parent().and_then(Path::parent)?.to_owned();
    Some(PythonPrefix { path, is_environment: false })
}

pub(in crate::commands) fn variable(config: &LoadedConfig, name: &str) -> Option<OsString> {
    config.environment.get(&OsString::from(name)).filter(|value| !value.is_empty()).cloned()
}
