//! What a kernel may see of our environment.
//!
//! An allowlist, because code an agent wrote runs there: what a program needs to find its files, its
//! language, its certificates and its devices passes; what looks like a secret does not.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

/// The variables of a process.
pub type EnvVars = HashMap<OsString, OsString>;

/// Names that pass. A trailing `*` matches any ending.
const ALLOWED: &[&str] = &[
    // User and place.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "HOSTNAME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_*",
    // Language and time.
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TZDIR",
    // Terminal and screen.
    "TERM",
    "TERM_PROGRAM*",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR*",
    "COLUMNS",
    "LINES",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "BROWSER",
    "EDITOR",
    "PAGER",
    // Network: proxies and certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "FTP_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "ftp_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    // Python and its packages. Not PYTHONHOME or PYTHONSTARTUP: they belong to another Python than ours.
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "PYTHONWARNINGS",
    "PYTHONUTF8",
    "PYTHONIOENCODING",
    "PYTHONOPTIMIZE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONBREAKPOINT",
    "PYTHONDEVMODE",
    "PYTHONFAULTHANDLER",
    "PYTHONTRACEMALLOC",
    "PYTHONASYNCIODEBUG",
    "PYTHONNOUSERSITE",
    "PYTHONUSERBASE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PIP_*",
    "UV_*",
    "POETRY_*",
    "JUPYTER_*",
    "IPYTHONDIR",
    "MPLBACKEND",
    "MPLCONFIGDIR",
    "PLOTLY_RENDERER",
    // Native code, numbers and devices.
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CUDA_*",
    "CUDNN_*",
    "NVIDIA_*",
    "ROCR_*",
    "HIP_*",
    "ROCM_*",
    "HSA_*",
    "XLA_*",
    "JAX_*",
    "TORCH_*",
    "TF_*",
    "OMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "NUMEXPR_*",
    "VECLIB_*",
    "POLARS_*",
    "ARROW_*",
    "RAY_*",
    "DASK_*",
    "JAVA_HOME",
    "SPARK_HOME",
    "HADOOP_HOME",
    "HF_HOME",
    "HF_HUB_*",
    "TRANSFORMERS_*",
    // Ours, and the names the same things had before.
    "CELLWRIGHT_*",
    "PI_*",
];

/// Words in a name that make it look like a secret.
const SECRET_WORDS: &[&str] = &[
    "AUTH",
    "COOKIE",
    "CRED",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PRIVATE",
    "PWD",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "TOKENS",
];

/// Variables whose values hold tokens, or whole commands that do.
const SECRET_NAMES: &[&str] =
    &["CELLWRIGHT_AGENT_ARGS", "JUPYTER_GATEWAY_HEADERS", "JUPYTER_GATEWAY_HTTP_PWD"];

/// Names that look like a secret but are not.
const HARMLESS: &[&str] = &["PWD", "SSH_AUTH_SOCK", "XAUTHORITY"];

/// Which variables pass, beyond those that always do.
#[derive(Clone, Debug, Default)]
pub struct VariableRules {
    /// More names. A trailing `*` matches any ending. A whole name passes even if it looks like
    /// a secret: a full name is deliberate.
    pub allow: Vec<String>,
    /// Names that do not pass after all.
    pub deny: Vec<String>,
}

impl VariableRules {
    /// What passes of `variables`.
    pub fn pass(&self, variables: &EnvVars) -> EnvVars {
        variables
            .iter()
            .filter(|(name, value)| {
                let passes = |name| self.passes(name) && !(has_secret(value) && self.is_for_servers(name));
                name.to_str().is_some_and(passes)
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Whether a variable names a server of ours or of Jupyter's, which cells need not know: proxies and package indexes
    /// are for their programs. A whole name that the user allows is deliberate.
    fn is_for_servers(&self, name: &str) -> bool {
        let is_ours = ["CELLWRIGHT_", "PI_", "JUPYTER_"].iter().any(|prefix| name.starts_with(prefix));
        is_ours && !self.allow.iter().any(|allowed| allowed == name)
    }

    /// Whether a variable of this name passes.
    pub fn passes(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|pattern| matches(pattern, name));
        if listed(&self.deny) {
            return false;
        }
        if self.allow.iter().any(|allowed| allowed == name) {
            return true;
        }
        (ALLOWED.iter().any(|pattern| matches(pattern, name)) || listed(&self.allow)) && !looks_secret(name)
    }
}

/// Whether a value is a URL with a password or a token in it.
fn has_secret(value: &OsStr) -> bool {
    let Some((_, rest)) = value.to_str().and_then(|value| value.split_once("://")) else { return false };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split('/').next().unwrap_or_default();
    let names = query.split(['&', '#', ';']).filter_map(|pair| Some(pair.split_once('=')?.0));
    host.contains('@') || names.into_iter().any(looks_secret)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Whether what has this name is a secret, by the words in it.
pub fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    !HARMLESS.contains(&name)
        && (SECRET_NAMES.contains(&name)
            || upper.split('_').any(|word| SECRET_WORDS.contains(&word))
            || ["APIKEY", "PASSWORD", "SECRET", "TOKEN", "CREDENTIAL"]
                .iter()
                .any(|word| upper.contains(word)))
}

/// Puts a folder in front of `PATH`.
pub(crate) fn prepend_to_path(variables: &mut EnvVars, folder: &OsStr) {
    let path = variables.entry("PATH".into()).or_default();
    let mut longer = folder.to_os_string();
    if !path.is_empty() {
        longer.push(":");
        longer.push(&*path);
    }
    *path = longer;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &VariableRules, passing: &[&str], held_back: &[&str]) {
        for name in passing {
            assert!(rules.passes(name), "{name} should pass");
        }
        for name in held_back {
            assert!(!rules.passes(name), "{name} should not pass");
        }
    }

    #[test]
    fn what_programs_need_passes_and_secrets_do_not() {
        check(
            &VariableRules::default(),
            &[
                "PATH",
                "HOME",
                "LC_ALL",
                "TZ",
                "SSL_CERT_FILE",
                "HTTPS_PROXY",
                "no_proxy",
                "CUDA_VISIBLE_DEVICES",
                "SSH_AUTH_SOCK",
                "PWD",
                "UV_CACHE_DIR",
                "PIP_INDEX_URL",
                "DISPLAY",
                "XDG_CACHE_HOME",
                "REQUESTS_CA_BUNDLE",
                "PYTHONPATH",
                "LD_LIBRARY_PATH",
            ],
            &[
                "OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "AWS_SECRET_ACCESS_KEY",
                "UV_PUBLISH_TOKEN",
                "PIP_PASSWORD",
                "CELLWRIGHT_TOKEN",
                "HF_HUB_TOKEN",
                "GITHUB_TOKEN",
                "PYTHONHOME",
                "PYTHONSTARTUP",
                "ANYTHING_ELSE",
                "JUPYTER_TOKEN",
                "PI_MYAPIKEY",
                "LD_PRELOAD",
            ],
        );
    }

    #[test]
    fn the_list_can_be_extended_and_cut() {
        let rules = VariableRules {
            allow: vec!["MY_*".into(), "DATABASE_PASSWORD".into()],
            deny: vec!["PIP_*".into(), "MY_OWN".into()],
        };
        check(&rules, &["MY_DATA", "DATABASE_PASSWORD", "HOME"], &["MY_TOKEN", "PIP_INDEX_URL", "MY_OWN"]);
    }
}
