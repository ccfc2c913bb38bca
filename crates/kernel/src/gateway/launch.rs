//! Making a kernel on a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::content::{KernelInfoReply, KernelInfoRequest, MessageContent};
use cellwright_jupyter::{Channel, MessageSession};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout, timeout_at};

use super::address::Address;
use super::link::{GatewayLink, LinkNews};
use super::rest::{GatewayError, RestClient};
use super::socket::Socket;
use super::{GatewayTransport, KernelOwner};
use crate::conversation::prepare;
use crate::driver::Graces;
use crate::environment::EnvVars;
use crate::execution::Background;
use crate::kernel::Kernel;
use crate::outcome::Exit;
use crate::setup::Setup;

/// How long a server may take to list what it can start.
const HEALTH: Duration = Duration::from_secs(10);

/// After a kernel's answer, how long its outputs may take before it is asked again.
const PROOF: Duration = Duration::from_secs(1);

/// A kernel to be made on a server.
#[derive(Clone, Debug)]
pub struct GatewayLaunch {
    /// Which server.
    pub address: Address,
    /// The name of a kernelspec of the server, or of a language; the id of a kernel that runs there. `None` means the server's
    /// default.
    pub name: Option<String>,
    /// The folder cells are to run in, where the server has it.
    pub cwd: std::path::PathBuf,
    /// Our environment. `KERNEL_*` and the user's name go to the server.
    pub variables: EnvVars,
    /// What the first cell of a Python kernel finds.
    pub setup: Setup,
    /// How long it may take until the first cell can run.
    pub ready_within: Duration,
    /// How long the server may be out of reach before the kernel counts as such too.
    pub away: Duration,
    /// How long each step of stopping may take.
    pub graces: Graces,
}

/// A kernel that is ready for its first cell.
#[derive(Debug)]
pub struct GatewayKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What it says outside its cells.
    pub background: Background,
    /// What it says of itself.
    pub info: KernelInfoReply,
    /// The server's name for it.
    pub id: String,
    /// The name of its kernelspec.
    pub spec: String,
}

impl GatewayLaunch {
    /// A launch with the usual limits.
    pub fn new(address: Address, cwd: impl Into<std::path::PathBuf>, variables: EnvVars) -> Self {
        Self {
            address,
            name: None,
            cwd: cwd.into(),
            variables,
            setup: Setup::default(),
            ready_within: Duration::from_mins(2),
            away: Duration::from_secs(30),
            graces: Graces {
                shutdown: Duration::from_secs(10),
                terminate: Duration::from_secs(10),
                ..Graces::default()
            },
        }
    }

    /// Makes the kernel and waits until it is ready for its first cell.
    pub fn start(&self) -> BoxFuture<'_, Result<GatewayKernel, GatewayError>> {
        Box::pin(self.make_ready())
    }

    async fn make_ready(&self) -> Result<GatewayKernel, GatewayError> {
        let deadline = Instant::now() + self.ready_within;
        let rest = Arc::new(RestClient::new(self.address.clone()));
        let joined = self.name.as_deref().filter(|name| is_kernel_id(name));
        let (owner, spec, id) = if let Some(id) = joined {
            (KernelOwner::Others, rest.running(id).await?, id.to_owned())
        } else {
            let spec = rest.kernelspecs(HEALTH).await?.choose(self.name.as_deref(), &self.address)?;
            let id = rest.create(&spec, &self.kernel_variables()).await?;
            (KernelOwner::Us, spec, id)
        };
        let session = MessageSession::new("cellwright");
        let opened = Socket::open(&self.address, &id, session.id()).await;
        let socket = match opened {
            Ok(socket) => socket,
            Err(error) => {
                if owner == KernelOwner::Us {
                    drop(rest.delete(&id).await); // the first error is the one to report
                }
                return Err(error);
            }
        };
        let link = GatewayLink::new(Arc::clone(&rest), id.clone(), socket, self.away);
        // From here on its drop ends the kernel.
        let mut gateway = GatewayTransport::new(rest, id.clone(), session, link, owner);
        let late = || GatewayError::Timeout { address: self.address.to_string(), limit: self.ready_within };
        let info = timeout_at(deadline, gateway.ready()).await.map_err(|_| late())??;
        // The folder, the environment and the names of a kernel of others are theirs.
        if info.language_info.name == "python" && owner == KernelOwner::Us {
            let prepared = timeout_at(deadline, prepare(&mut gateway, &self.setup, &self.cwd)).await;
            let events = prepared.map_err(|_| late())?.map_err(|exit| gateway.failed(&exit))?;
            gateway.conversation.begin_with(events);
        }
        let (kernel, background) = Kernel::start(gateway, self.graces, None);
        Ok(GatewayKernel { kernel, background, info, id, spec })
    }

    /// What an Enterprise Gateway hands to the kernels it places.
    fn kernel_variables(&self) -> BTreeMap<String, String> {
        let text = |name: &str| self.variables.get(std::ffi::OsStr::new(name))?.to_str().map(str::to_owned);
        let mut env: BTreeMap<_, _> = self
            .variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .filter(|(name, _)| name.starts_with("KERNEL_"))
            .collect();
        if let Some(user) = text("USER").or_else(|| text("LOGNAME")) {
            env.entry("KERNEL_USERNAME".to_owned()).or_insert(user);
        }
        env
    }
}

/// Whether it is a server's name for a kernel that runs, which is a UUID.
fn is_kernel_id(name: &str) -> bool {
    let is_fit = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    name.len() == 36 && name.bytes().enumerate().all(is_fit)
}

impl GatewayTransport {
    /// Waits until the kernel answers and its outputs reach us.
    async fn ready(&mut self) -> Result<KernelInfoReply, GatewayError> {
        loop {
            let question = self.session.message(&KernelInfoRequest::default());
            let asked = question.header.clone();
            self.link.send((Channel::Shell, question));
            let (mut info, mut published) = (None, false);
            let answered = async {
                while info.is_none() || !published {
                    match self.link.recv().await {
                        LinkNews::Message(channel, message) if message.answers(&asked) => {
                            published |= channel == Channel::Iopub;
                            if message.header.msg_type() == KernelInfoReply::TYPE {
                                info = Some(message.parse::<KernelInfoReply>());
                            }
                        }
                        LinkNews::Message(..) | LinkNews::Unreadable(_) | LinkNews::Restored => {}
                        LinkNews::Lost(why) | LinkNews::OutOfReach(why) => return Err(why),
                    }
                }
                Ok(())
            };
            if let Ok(Err(why)) = timeout(PROOF, answered).await {
                return Err(self.failed(&Exit::Lost(why)));
            }
            if let (Some(info), true) = (info, published) {
                return info.map_err(|error| self.failed(&Exit::Lost(error.to_string())));
            }
        }
    }

    fn failed(&self, exit: &Exit) -> GatewayError {
        GatewayError::NotJupyter { address: self.rest.address.to_string(), why: exit.to_string() }
    }
}
