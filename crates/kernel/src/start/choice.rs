//! Which kernel is wanted, and how that is written.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which kernel is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KernelChoice {
    /// Our runner on a Python: the one named, or the first that works in the folder.
    Python {
        /// A program, or the folder of a virtual environment.
        named: Option<PathBuf>,
    },
    /// An installed Jupyter kernel.
    Jupyter {
        /// The name of its kernelspec, or its language.
        name: Box<str>,
    },
    /// A kernel on a Jupyter server.
    Gateway {
        /// The name of a kernelspec there, or a language, or the id of a kernel that runs. `None` means the server's default.
        name: Option<Box<str>>,
    },
    /// A kernel that runs already.
    Existing {
        /// Its connection file, its id, or `newest`.
        file: Box<Path>,
    },
}

/// The text does not choose a kernel.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not choose a kernel; use runner, runner:PYTHON, jupyter:NAME, gateway, gateway:NAME, existing:FILE, existing:ID, existing:newest or a language"
)]
pub struct InvalidKernelChoice(String);

impl FromStr for KernelChoice {
    type Err = InvalidKernelChoice;

    fn from_str(text: &str) -> Result<Self, InvalidKernelChoice> {
        let invalid = || InvalidKernelChoice(text.to_owned());
        let (kind, name) = match text.split_once(':') {
            Some((_, "")) => return Err(invalid()),
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        match (kind, name) {
            ("runner" | "python" | "py", None) => Ok(Self::default()),
            ("runner" | "python", Some(python)) => Ok(Self::Python { named: Some(python.into()) }),
            ("jupyter", Some(name)) => Ok(Self::Jupyter { name: name.into() }),
            ("gateway", name) => Ok(Self::Gateway { name: name.map(Into::into) }),
            ("existing", Some(file)) => Ok(Self::Existing { file: Path::new(file).into() }),
            ("jupyter" | "existing" | "", None) | (_, Some(_)) => Err(invalid()),
            (language, None) if language.contains(char::is_whitespace) => Err(invalid()),
            (language, None) => Ok(Self::Jupyter { name: language.into() }),
        }
    }
}

impl Default for KernelChoice {
    fn default() -> Self {
        Self::Python { named: None }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python { named: None } => f.write_str("python"),
            Self::Python { named: Some(python) } => write!(f, "python:{}", python.display()),
            Self::Jupyter { name } => write!(f, "jupyter:{name}"),
            Self::Gateway { name: None } => f.write_str("gateway"),
            Self::Gateway { name: Some(name) } => write!(f, "gateway:{name}"),
            Self::Existing { file } => write!(f, "existing:{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_is_written() {
        let named = Box::<str>::from;
        for (text, choice) in [
            ("python", KernelChoice::default()),
            ("python:/opt/venv", KernelChoice::Python { named: Some("/opt/venv".into()) }),
            ("jupyter:ir", KernelChoice::Jupyter { name: named("ir") }),
            ("gateway", KernelChoice::Gateway { name: None }),
            ("gateway:python3", KernelChoice::Gateway { name: Some(named("python3")) }),
            (
                "existing:/run/kernel-1.json",
                KernelChoice::Existing { file: Path::new("/run/kernel-1.json").into() },
            ),
        ] {
            assert_eq!(text.parse(), Ok(choice.clone()));
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("runner".parse(), Ok(KernelChoice::default()));
        assert_eq!("bash".parse(), Ok(KernelChoice::Jupyter { name: named("bash") }));
        for text in ["", "jupyter", "jupyter:", "existing", "existing:", "gatway:x", "two words"] {
            let refused = text.parse::<KernelChoice>();
            assert_eq!(refused, Err(InvalidKernelChoice(text.to_owned())));
            assert!(refused.unwrap_err().to_string().contains("runner:PYTHON"));
        }
    }
}
