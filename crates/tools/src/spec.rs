//! The tools, as clients see them.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::arguments::schema;
use crate::bash::BashArguments;
use crate::edit::{EditArguments, WriteArguments};
use crate::eval::EvalArguments;
use crate::kernel::KernelArguments;
use crate::notebook::NotebookArguments;
use crate::read::ReadArguments;

/// A tool as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: &'static str,
    /// What people are shown.
    pub title: &'static str,
    /// What it does, for a model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Map<String, Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// It may remove or overwrite something.
    pub destructive: bool,
}

/// The tools there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    Eval,
    Read,
    Edit,
    Write,
    Notebook,
    Kernel,
    Bash,
}

impl ToolName {
    pub(crate) const ALL: [Self; 7] =
        [Self::Eval, Self::Read, Self::Edit, Self::Write, Self::Notebook, Self::Kernel, Self::Bash];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    pub(crate) fn spec(self) -> &'static ToolSpec {
        static SPECS: LazyLock<Vec<ToolSpec>> =
            LazyLock::new(|| ToolName::ALL.into_iter().map(ToolName::describe).collect());
        let place = Self::ALL.iter().position(|tool| *tool == self).expect("ALL has every tool");
        &SPECS[place]
    }

    fn describe(self) -> ToolSpec {
        let (name, title, description, schema) = match self {
            Self::Eval => ("eval", "Run code", EVAL, schema::<EvalArguments>()),
            Self::Read => ("read", "Read a file", READ, schema::<ReadArguments>()),
            Self::Edit => ("edit", "Edit a file", EDIT, schema::<EditArguments>()),
            Self::Write => ("write", "Write a file", WRITE, schema::<WriteArguments>()),
            Self::Notebook => {
                ("notebook", "Edit and run notebook cells", NOTEBOOK, schema::<NotebookArguments>())
            }
            Self::Kernel => ("kernel", "Look after kernels", KERNEL, schema::<KernelArguments>()),
            Self::Bash => ("bash", "Run a shell command", BASH, schema::<BashArguments>()),
        };
        ToolSpec {
            name,
            title,
            description: description.to_owned(),
            schema,
            read_only: matches!(self, Self::Read),
            destructive: !matches!(self, Self::Read),
        }
    }
}

const EVAL: &str = "\
Run Python in a live kernel; variables, imports and the working folder stay for the next call. The last expression's value is \
shown, images too; top-level await, %magics and !commands work. Code that outlives its timeout is interrupted, and \
the reply says whether the variables survived. Example: {\"code\": \"import pandas as pd\\ndf = pd.read_csv('a.csv')\\ndf.describe()\"}";

const READ: &str = "\
Read a text file, an image, a Jupyter notebook or a stored output. Notebooks (.ipynb) are shown as text: each cell \
starts with a line like `# %% [code] cell:3`, followed by its source. \
Example: {\"path\": \"analysis.ipynb#3-7\", \"outputs\": \"text\"}";

const EDIT: &str = "\
Replace an exact string in a text file or in a notebook's cell-marked text. Nothing else in the file changes, not a byte. \
Refused if the file changed since you read it. Example: {\"path\": \"analysis.ipynb\", \"old\": \"n = 10\", \"new\": \"n = 1000\"}";

const WRITE: &str = "\
Create or replace a file. For a notebook give its whole cell-marked text as `read` shows it; cells you do not change keep \
outputs and metadata. Example: {\"path\": \"new.ipynb\", \"content\": \"# %% [markdown]\\n# Title\\n# %% [code]\\nprint(1)\\n\"}";

const NOTEBOOK: &str = "\
Change a notebook cell by cell: edit, insert, delete, move, retype, clear (remove outputs), undo (a change that history lists); or run \
cells (all, or those in `cell`) in the notebook's own kernel: outputs are shown and written into it. \
Example: {\"action\": \"insert\", \"path\": \"analysis.ipynb\", \"at\": 2, \"source\": \"df.head()\", \"run\": true}";

const KERNEL: &str = "\
See and control kernels and background work: list; status (memory, uptime, variables with type and size); interrupt; restart; \
shutdown; wait for a background handle, or see its output; kernels (those available). \
Example: {\"action\": \"wait\", \"handle\": \"py-3\", \"timeout\": 60}";

const BASH: &str = "\
Run a shell command. The folder and exported variables stay for the next call; processes it leaves running get a handle. \
Example: {\"command\": \"pip install polars\", \"timeout\": 120}";
