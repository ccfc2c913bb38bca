//! What a caller decides about its sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::{Launcher, Prelude};
use cellwright_output::{Artifacts, Colours};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bridge::ToolHost;

/// How sessions behave. [`SessionSettings::new`] has the usual values.
#[derive(Clone)]
pub struct SessionSettings {
    /// How kernels are started.
    pub launcher: Arc<dyn Launcher>,
    /// How much of everything.
    pub limits: SessionLimits,
    /// The time a cell has that says nothing of it.
    pub timeout: Duration,
    /// What happens to a cell whose kernel died under it.
    pub retry: Retry,
    /// What happens to a reset while another one is in progress.
    pub resets: ResetPolicy,
    /// What reports hold.
    pub output: OutputSettings,
    /// Variables that kernels find set, or unset.
    pub env: BTreeMap<String, Option<String>>,
    /// Folders in front of `sys.path`, after the working folder.
    pub path: Vec<PathBuf>,
    /// What every kernel finds predefined.
    pub prelude: Prelude,
    /// Folders of extension modules. If modules have the same name, the one in the last folder wins. A relative folder is
    /// below the working folder of the session.
    pub modules: Vec<PathBuf>,
    /// Where the caller keeps its conversation, for cells that want to know.
    pub session_file: Option<PathBuf>,
    /// The file that cells come from.
    pub script: Option<ScriptFile>,
    /// The file where it is remembered, beyond this process, which sessions ended and why.
    pub ledger: Option<PathBuf>,
    /// The tools that cells may call; without one there is no bridge.
    pub tools: Option<Arc<dyn ToolHost>>,
}

/// A file of Python whose cells are run as Python would run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// Where it is: `__file__` and `sys.argv[0]`.
    pub path: PathBuf,
    /// The rest of `sys.argv`.
    pub arguments: Vec<String>,
}

/// The settings of a client on their way to the daemon, in the form that the two ends of the program agree on. A daemon
/// turns them into [`SessionSettings`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallSettings(Arc<serde_json::Value>);

impl CallSettings {
    /// Packs what the client's program calls its settings.
    pub fn pack(settings: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_value(settings).map(|value| Self(Arc::new(value)))
    }

    /// Unpacks them on the other side.
    pub fn unpack<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        T::deserialize(&*self.0)
    }
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Most sessions at once; for one more the oldest idle one goes.
    pub sessions: usize,
    /// Most sessions that one client alone holds; for one more its own oldest idle one goes.
    pub per_client: usize,
    /// How long a session that nobody holds stays without a call.
    pub idle: Duration,
    /// Most calls that wait for one session.
    pub queue: usize,
    /// How often the kernel of a session may die within `crash_window` before calls are refused.
    pub crashes: usize,
    /// See `crashes`.
    pub crash_window: Duration,
    /// From this much resident memory on, every report mentions it.
    pub memory: Option<u64>,
    /// Most finished background calls whose reports are kept.
    pub jobs: usize,
    /// Most bytes that are kept of what happens in a session, for those who watch it. 0 keeps nothing, and nobody can.
    pub journal: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions: 4,
            per_client: usize::MAX,
            idle: Duration::from_mins(5),
            queue: 64,
            crashes: 3,
            crash_window: Duration::from_mins(10),
            memory: Some(4 << 30),
            jobs: 32,
            journal: 0,
        }
    }
}

/// What happens to a cell whose kernel died under it. One that had not started is run on a fresh kernel in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// It is not run again: it may have had effects.
    #[default]
    Never,
    /// It is run once more, from its beginning, on a fresh kernel.
    Once,
}

/// What happens to a reset that was asked for while another call's reset of the session was in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetPolicy {
    /// It is refused, and the call with it: its cells would run among the other call's variables.
    #[default]
    Refuse,
    /// It shares the other one, which the report says.
    Join,
}

/// What reports hold of outputs.
#[derive(Clone, Debug)]
pub struct OutputSettings {
    /// How much text.
    pub limits: cellwright_output::OutputLimits,
    /// Whether it keeps its colours.
    pub colours: Colours,
    /// Where everything is stored that does not fit.
    pub artifacts: Option<Artifacts>,
    /// What goes there.
    pub stored: StoredOutputs,
    /// How images are counted, so that no two of a call have the same number.
    pub images: ImageCount,
    /// Most bytes of images and JSON a cell's report holds; what is beyond goes to the artifacts.
    pub shown: usize,
}

/// How the images of a call are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageCount {
    /// From cell to cell, after this many of earlier cells.
    After(usize),
    /// Each cell's from 1: cells of a notebook, whose indices in the order of the call these are.
    OfCells(Arc<[usize]>),
}

/// What the images of one cell are called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ImageNames {
    /// By numbers after this one.
    After(usize),
    /// By a number and the cell with this index.
    OfCell(usize),
}

impl ImageCount {
    /// The names in the cell at this place in the call.
    pub(crate) fn of(&self, cell: usize) -> ImageNames {
        match self {
            Self::After(before) => ImageNames::After(*before),
            Self::OfCells(indices) => {
                indices.get(cell).map_or(ImageNames::After(0), |index| ImageNames::OfCell(*index))
            }
        }
    }
}

/// What of cells' outputs goes to the artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredOutputs {
    /// What reports leave out.
    #[default]
    LeftOut,
    /// Nothing: the caller takes everything as it comes. Cells can still read what there is.
    Nothing,
}

impl OutputSettings {
    /// Where what does not fit is stored, if it is.
    pub(crate) fn store(&self) -> Option<&Artifacts> {
        self.artifacts.as_ref().filter(|_| self.stored == StoredOutputs::LeftOut)
    }
}

impl Default for OutputSettings {
    fn default() -> Self {
        Self {
            limits: cellwright_output::OutputLimits::default(),
            colours: Colours::Dropped,
            artifacts: None,
            stored: StoredOutputs::default(),
            images: ImageCount::After(0),
            shown: 16 << 20,
        }
    }
}

impl SessionSettings {
    /// The usual settings around a way to start kernels.
    pub fn new(launcher: impl Launcher) -> Self {
        Self {
            launcher: Arc::new(launcher),
            limits: SessionLimits::default(),
            timeout: Duration::from_secs(30),
            retry: Retry::default(),
            resets: ResetPolicy::default(),
            output: OutputSettings::default(),
            env: BTreeMap::new(),
            path: Vec::new(),
            prelude: Prelude::Standard,
            modules: Vec::new(),
            session_file: None,
            script: None,
            ledger: None,
            tools: None,
        }
    }
}
