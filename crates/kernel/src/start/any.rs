//! Whichever kernel a session asks for.

use std::path::PathBuf;

use cellwright_cell::with_causes;
use futures_util::future::BoxFuture;

use super::existing;
use super::{AboutKernel, KernelChoice, KernelStart, Launcher, StartError, StartRunner, StartedKernel};
use crate::execution::Background;
use crate::gateway::{self, Address, SharedGateway};
use crate::interpreter::PythonSearch;
use crate::kernel::Kernel;
use crate::zmq::{self, ZmqLink};

/// Starts our runner, installed Jupyter kernels, kernels on servers, and joins kernels that run already.
#[derive(Clone, Debug)]
pub struct StartAny {
    /// The runner; the others take from its template where Python is looked for and what kernels may see.
    pub runner: StartRunner,
    /// The folder for connection files and sockets.
    pub runtime: PathBuf,
    /// How to talk to Jupyter kernels on this machine.
    pub link: ZmqLink,
    /// Where `gateway` kernels run.
    pub gateways: Gateways,
}

/// Where `gateway` kernels run.
#[derive(Clone, Debug)]
pub enum Gateways {
    /// On this server.
    At(Address),
    /// On one that the user's processes share, in this folder.
    Shared(PathBuf),
    /// Nowhere, for this reason: kernels of other kinds do not care.
    Invalid(String),
}

impl Launcher for StartAny {
    fn start(&self, start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>> {
        match start.kernel.clone() {
            KernelChoice::Python { .. } => self.runner.start(start),
            KernelChoice::Jupyter { name } => Box::pin(self.start_jupyter(name.into(), start)),
            KernelChoice::Gateway { name } => Box::pin(self.start_gateway(name.map(Into::into), start)),
            KernelChoice::Existing { file } => Box::pin(self.attach(file.into(), start)),
        }
    }
}

impl StartAny {
    async fn start_jupyter(&self, name: String, start: KernelStart) -> Result<StartedKernel, StartError> {
        let mut launch = zmq::ZmqLaunch::new(name, self.search(&start), &self.runtime);
        launch.rules = self.runner.template.rules.clone();
        launch.setup = start.setup;
        launch.link = self.link;
        let launched = launch.start().await.map_err(|error| failed(&error))?;
        let spec = launched.spec.as_ref();
        let about = AboutKernel {
            program: spec.map(|spec| spec.resource_dir.clone()),
            origin: spec.map(|spec| format!("Jupyter kernel `{}`", spec.name)),
            pid: launched.pid,
            ..about(&launched.info.language_info.name, &launched.info.language_info.version)
        };
        Ok(started(launched.kernel, launched.background, about))
    }

    async fn start_gateway(
        &self,
        name: Option<String>,
        start: KernelStart,
    ) -> Result<StartedKernel, StartError> {
        let search = self.search(&start);
        let shared = match &self.gateways {
            Gateways::At(address) => return on_server(address.clone(), name, start, search).await,
            Gateways::Invalid(why) => return Err(StartError::Other(why.clone())),
            Gateways::Shared(folder) => {
                let rules = self.runner.template.rules.clone();
                SharedGateway { folder: folder.clone(), search: search.clone(), rules }
            }
        };
        let address = shared.address().await.map_err(|error| failed(&error))?;
        let logged = shared.logged();
        let exhausted = match on_server(address, name.clone(), start.clone(), search.clone()).await {
            Err(error) if shared.ran_out_of_files_since(logged) => error,
            decided => return decided,
        };
        // It would never start a kernel again.
        shared.stop().await.map_err(|error| failed(&error))?;
        let address = shared.address().await.map_err(|error| failed(&error))?;
        let mut started = on_server(address, name, start, search).await?;
        started.warnings.push(format!(
            "the shared gateway had run out of files and was restarted; its other kernels have ended ({exhausted})"
        ));
        Ok(started)
    }

    /// Joins the kernel that a connection file, the id in the name of one, or `newest` means.
    async fn attach(&self, named: PathBuf, start: KernelStart) -> Result<StartedKernel, StartError> {
        let file = start.cwd.join(&named);
        if file.exists() || named.components().count() > 1 || named.extension().is_some() {
            return join(file).await;
        }
        let search = self.search(&start);
        let folder = existing::runtime_folder(&search.variables);
        let name = named.to_string_lossy();
        let (looked_in, wanted) = (folder.clone(), name.to_string());
        let running = tokio::task::spawn_blocking(move || existing::running(&looked_in, &wanted)).await;
        match running.unwrap_or_default().as_slice() {
            [] => Err(StartError::Other(format!(
                "`existing:{name}` is neither a file nor a kernel that runs and has its connection file in `{}`",
                folder.display()
            ))),
            [newest, ..] if name == existing::NEWEST => join(newest.clone()).await,
            [file] => join(file.clone()).await,
            several => Err(StartError::Other(format!("`existing:{name}` means {} kernels", several.len()))),
        }
    }

    fn search(&self, start: &KernelStart) -> PythonSearch {
        let mut search = self.runner.template.search.clone();
        search.cwd.clone_from(&start.cwd);
        if let Some(variables) = &start.variables {
            search.variables.clone_from(variables);
        }
        search
    }
}

async fn on_server(
    address: Address,
    name: Option<String>,
    start: KernelStart,
    search: PythonSearch,
) -> Result<StartedKernel, StartError> {
    let mut launch = gateway::GatewayLaunch::new(address.clone(), start.cwd, search.variables);
    launch.name = name;
    launch.setup = start.setup;
    let launched = launch.start().await.map_err(|error| failed(&error))?;
    let about = AboutKernel {
        origin: Some(format!("kernel `{}` on {address}", launched.spec)),
        ..about(&launched.info.language_info.name, &launched.info.language_info.version)
    };
    Ok(started(launched.kernel, launched.background, about))
}

async fn join(file: PathBuf) -> Result<StartedKernel, StartError> {
    let launched = zmq::ZmqAttach::new(&file).start().await.map_err(|error| failed(&error))?;
    let about = AboutKernel {
        program: Some(file),
        origin: Some("it ran already".to_owned()),
        ..about(&launched.info.language_info.name, &launched.info.language_info.version)
    };
    Ok(started(launched.kernel, launched.background, about))
}

fn about(language: &str, version: &str) -> AboutKernel {
    AboutKernel { language: format!("{language} {version}").trim().to_owned(), ..AboutKernel::default() }
}

fn started(kernel: Kernel, background: Background, about: AboutKernel) -> StartedKernel {
    StartedKernel { kernel, background, about, warnings: Vec::new() }
}

/// An error with its causes, as the text that the session reports.
fn failed(error: &dyn std::error::Error) -> StartError {
    let text = with_causes(error);
    if is_exhaustion(&text) {
        StartError::Exhausted(Box::new(StartError::Other(text)))
    } else {
        StartError::Other(text)
    }
}

/// Whether a message, perhaps of another program, means that descriptors or processes ran out: EAGAIN of `fork`, ENFILE,
/// EMFILE.
fn is_exhaustion(message: &str) -> bool {
    ["(os error 11)", "(os error 23)", "(os error 24)"].iter().any(|code| message.contains(code))
}
