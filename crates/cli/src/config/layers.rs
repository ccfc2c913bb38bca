//! Laying settings over each other, remembering where each came from.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_ownership::{FolderTrust, TrustedRoots, UntrustedFolder};
use toml::{Table, Value};

use super::keys::{self, SettingScope};
use super::restriction::narrower;
use super::{DeclaredAgent, UserFolders, UserSettings, env, home_folder};

/// The settings in force, and where each came from.
#[derive(Debug, Clone)]
pub(crate) struct LoadedConfig {
    pub(crate) settings: UserSettings,
    pub(crate) places: UserFolders,
    /// The process's environment, read once.
    pub(crate) environment: HashMap<OsString, OsString>,
    origins: BTreeMap<&'static str, SettingOrigin>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File(PathBuf),
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A key, its value, and the name of the flag or variable that gave it.
pub(crate) type SettingOverride = (&'static str, Value, &'static str);

impl LoadedConfig {
    /// Reads files and environment as seen from `folder`, and lays `flags` over them.
    pub(crate) fn load(folder: &Path, flags: Vec<SettingOverride>) -> anyhow::Result<Self> {
        Self::from_environment(std::env::vars_os().collect(), folder, flags)
    }

    fn from_environment(
        environment: HashMap<OsString, OsString>,
        folder: &Path,
        flags: Vec<SettingOverride>,
    ) -> anyhow::Result<Self> {
        let mut places = UserFolders::from(&environment);
        let mut merged: BTreeMap<&'static str, (Value, SettingOrigin)> = BTreeMap::new();
        let (user, agents) = file(&places.user_settings(), SettingScope::User)?;
        merged.extend(user);
        // What a project brings counts only where the user says so, in their own settings or the environment.
        let roots = env::settings(&environment)?.into_iter().find(|(key, ..)| *key == "trust.folders");
        let roots = roots.map(|(_, value, _)| value).or_else(|| Some(merged.get("trust.folders")?.0.clone()));
        let roots = roots.map(|roots| typed([("trust.folders", &roots)])).transpose()?.unwrap_or_default();
        places.project = trust_of(&roots, &places, home_folder(&environment)).settings_of(folder);
        if let Some(project) = places.project_settings() {
            let mut found = file(&project, SettingScope::Project)?.0;
            place_python(&mut found, &places);
            lay_over(&mut merged, found);
        }
        // The older name says of itself that kernels run there.
        if let Some(name) = env::selects_gateway(&environment)
            && !merged.contains_key("kernel.default")
        // a variable or a flag for it comes later, and wins
        {
            merged.insert("kernel.default", ("gateway".into(), SettingOrigin::Variable(name)));
        }
        let variables = env::settings(&environment)?
            .into_iter()
            .map(|(key, value, name)| (key, value, SettingOrigin::Variable(name)));
        let flags = flags.into_iter().map(|(key, value, name)| (key, value, SettingOrigin::Flag(name)));
        for (key, value, origin) in variables.chain(flags) {
            typed([(key, &value)]).with_context(|| origin.to_string())?;
            merged.insert(key, (value, origin));
        }
        let mut settings = typed(merged.iter().map(|(key, (value, _))| (*key, value))).context("settings")?;
        settings.agents = agents;
        let origins = merged.into_iter().map(|(key, (_, origin))| (key, origin)).collect();
        Ok(Self { settings, places, environment, origins })
    }

    /// Settings that a client has put together, in a process that has no environment of that client.
    pub(crate) fn of_client(settings: UserSettings, places: UserFolders) -> Self {
        Self { settings, places, environment: HashMap::new(), origins: BTreeMap::new() }
    }

    /// Whose code may run.
    pub(crate) fn trust(&self) -> FolderTrust {
        trust_of(&self.settings, &self.places, home_folder(&self.environment))
    }

    /// What the project that `folder` is in brings and may not use.
    pub(crate) fn untrusted(&self, folder: &Path) -> Option<UntrustedFolder> {
        self.trust().untrusted(folder)
    }

    /// Where the value of `key` came from.
    pub(crate) fn origin(&self, key: &str) -> &SettingOrigin {
        self.origins.get(key).unwrap_or(&SettingOrigin::Default)
    }
}

fn trust_of(settings: &UserSettings, places: &UserFolders, home: PathBuf) -> FolderTrust {
    let expanded =
        |root: &PathBuf| root.strip_prefix("~").map_or_else(|_| root.clone(), |root| home.join(root));
    let roots = settings.trust.folders.iter().map(expanded).filter(|root| root.is_absolute()).collect();
    FolderTrust::Recorded(TrustedRoots { roots, records: places.trust_records(), home })
}

/// The keys of a file and the agents it declares. Empty if the file does not exist.
type SettingsLayer = (BTreeMap<&'static str, (Value, SettingOrigin)>, BTreeMap<String, DeclaredAgent>);

/// Lays a project's settings over the user's, without undoing what the user restricts.
fn lay_over(
    merged: &mut BTreeMap<&'static str, (Value, SettingOrigin)>,
    project: BTreeMap<&'static str, (Value, SettingOrigin)>,
) {
    for (key, (mut value, origin)) in project {
        if let Some((user, _)) = merged.get(key)
            && keys::find(key).is_some_and(|key| key.scope == SettingScope::Restriction)
        {
            value = narrower(key, user, value);
            if value == *user {
                continue;
            }
        }
        merged.insert(key, (value, origin));
    }
}

/// Whether the file is missing. A home folder that is missing, or belongs to another user, counts as well.
fn is_absent(path: &Path, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        io::ErrorKind::PermissionDenied => path.symlink_metadata().is_err(),
        _ => false,
    }
}

fn file(path: &Path, scope: SettingScope) -> anyhow::Result<SettingsLayer> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if is_absent(path, &error) => return Ok(SettingsLayer::default()),
        Err(error) => return Err(error).with_context(|| format!("could not read {}", path.display())),
    };
    let read = || {
        let table: Table = toml::from_str(&text).map_err(|error| located(&text, &error))?;
        let (mut found, mut agents) = SettingsLayer::default();
        for (section, values) in table {
            let Value::Table(values) = values else {
                return Err(unknown(&section));
            };
            for (field, value) in values {
                let name = format!("{section}.{field}");
                if section == "agents" {
                    // It names a program to run, so it is as much the user's as the widest of the keys.
                    users_own(scope, &name)?;
                    let agent = value
                        .try_into()
                        .map_err(|error: toml::de::Error| anyhow::anyhow!("`{name}`: {}", error.message()))?;
                    agents.insert(field, agent);
                    continue;
                }
                let key = keys::find(&name).ok_or_else(|| unknown(&name))?;
                if key.scope == SettingScope::User {
                    users_own(scope, &name)?;
                }
                typed([(key.name, &value)])?;
                found.insert(key.name, (value, SettingOrigin::File(path.to_owned())));
            }
        }
        Ok((found, agents))
    };
    read().with_context(|| path.display().to_string())
}

/// A Python that a project names by a path lies in the project, from wherever below it is used. Another name is looked for
/// on `PATH`.
fn place_python(found: &mut BTreeMap<&'static str, (Value, SettingOrigin)>, places: &UserFolders) {
    if let Some((Value::String(python), _)) = found.get_mut("python.path")
        && let Some(root) = places.project.as_deref().and_then(Path::parent)
        && let Some(placed) = root.join(&*python).to_str()
        && Path::new(placed).exists()
    {
        placed.clone_into(python);
    }
}

/// Settings with these values and defaults for the rest.
fn typed<'a>(values: impl IntoIterator<Item = (&'static str, &'a Value)>) -> anyhow::Result<UserSettings> {
    let mut table = Table::new();
    let mut names = Vec::new();
    for (key, value) in values {
        let (section, field) = key.split_once('.').expect("keys have a section");
        let section = table.entry(section).or_insert_with(|| Table::new().into());
        section.as_table_mut().expect("sections are tables").insert(field.to_owned(), value.clone());
        names.push(key);
    }
    table.try_into().map_err(|error: toml::de::Error| {
        // Users do not know Rust's names of types.
        let why = ["u64", "usize"].iter().fold(error.message().to_owned(), |why, name| {
            why.replace(&format!("expected {name}"), "expected a whole number")
        });
        match names[..] {
            [name] => anyhow::anyhow!("`{name}`: {why}"),
            _ => anyhow::anyhow!("{why}"),
        }
    })
}

fn users_own(scope: SettingScope, name: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        scope == SettingScope::User,
        "`{name}` is the user's to set, not a project's; put it into your own settings file"
    );
    Ok(())
}

fn unknown(name: &str) -> anyhow::Error {
    match keys::nearest(name) {
        Some(nearest) => anyhow::anyhow!("there is no setting `{name}`; did you mean `{nearest}`?"),
        None => anyhow::anyhow!("there is no setting `{name}`; `cellwright config` lists them"),
    }
}

fn located(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    anyhow::anyhow!("line {line}: {}", error.message().replace('\n', ", "))
}

#[cfg(test)]
mod tests {
    use cellwright_tools::RunMode;

    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn with(user: &str, project: &str) -> Self {
            let home = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = home.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            write(".config/cellwright/config.toml", user);
            write("work/.cellwright/config.toml", project);
            write("work/.git/HEAD", "");
            Self(home)
        }

        fn load(
            &self,
            variables: &[(&str, &str)],
            flags: Vec<SettingOverride>,
        ) -> Result<LoadedConfig, String> {
            let home = self.0.path().to_str().unwrap();
            let always = [("HOME", home), ("CELLWRIGHT_TRUSTED_FOLDERS", home)];
            let environment =
                variables.iter().chain(&always).map(|(name, value)| (name.into(), value.into())).collect();
            LoadedConfig::from_environment(environment, &self.0.path().join("work"), flags).map_err(|error| {
                crate::exit::one_line(error.as_ref()).replace(self.0.path().to_str().unwrap(), "~")
            })
        }
    }

    #[test]
    fn later_layers_win_and_say_so() {
        let home = Home::with(
            "[kernel]\ntimeout = 60\nretry = \"once\"\n[session]\nlimit = 8\n",
            "[kernel]\ntimeout = 90\n[python]\npath = \"py\"\n",
        );
        let config = home
            .load(
                &[("PI_PY", "bash"), ("CELLWRIGHT_PYTHON", "mine")],
                vec![("session.limit", 2.into(), "--limit")],
            )
            .unwrap();
        let UserSettings { kernel, session, tools, python, .. } = &config.settings;
        assert_eq!(
            (kernel.timeout, kernel.retry, session.limit, session.idle),
            (90, crate::config::RetryMode::Once, 2, 300)
        );
        assert_eq!((tools.mode, python.path.as_deref()), (RunMode::BashOnly, Some(Path::new("mine"))));
        let origins =
            ["kernel.timeout", "kernel.retry", "tools.mode", "python.path", "session.limit", "session.idle"]
                .map(|key| config.origin(key).to_string().replace(home.0.path().to_str().unwrap(), "~"));
        assert_eq!(
            origins,
            [
                "~/work/.cellwright/config.toml",
                "~/.config/cellwright/config.toml",
                "PI_PY",
                "CELLWRIGHT_PYTHON",
                "--limit",
                "default"
            ]
        );
    }

    #[test]
    fn a_project_cannot_undo_what_the_user_restricts() {
        let home = Home::with(
            "[tools]\nmode = \"edit-only\"\n[environment]\ndeny = [\"MINE\"]\n[kernel]\nlink = \"ipc\"\n",
            "[tools]\nmode = \"both\"\n[environment]\ndeny = [\"THEIRS\"]\n[kernel]\nlink = \"tcp\"\n",
        );
        let config = home.load(&[], Vec::new()).unwrap();
        let UserSettings { tools, environment, kernel, .. } = &config.settings;
        assert_eq!((tools.mode, kernel.link), (RunMode::EditOnly, crate::config::KernelLink::Ipc));
        assert_eq!(environment.deny, ["MINE", "THEIRS"]);
        let origin = config.origin("tools.mode").to_string();
        assert!(origin.ends_with(".config/cellwright/config.toml"), "{origin}");
        // The user's own variable may.
        let config = home.load(&[("CELLWRIGHT_TOOLS", "both")], Vec::new()).unwrap();
        assert_eq!(config.settings.tools.mode, RunMode::Both);
    }

    #[test]
    fn ours_beats_the_older_name_and_an_empty_variable_is_none() {
        let home = Home::with("", "");
        let config = home
            .load(&[("PI_PY", "0"), ("CELLWRIGHT_TOOLS", "py"), ("CELLWRIGHT_TIMEOUT", "")], Vec::new())
            .unwrap();
        assert_eq!(config.settings.tools.mode, RunMode::PythonOnly);
        assert_eq!(config.settings.kernel.timeout, 30);
    }

    #[test]
    fn the_older_name_of_the_gateway_alone_selects_it() {
        let url = ("PI_PYTHON_GATEWAY_URL", "http://h:1");
        let chosen = |user: &str, variables: &[(&str, &str)]| {
            let config = Home::with(user, "").load(variables, Vec::new()).unwrap();
            (config.settings.kernel.default.clone(), config.origin("kernel.default").to_string())
        };
        assert_eq!(chosen("", &[url]), ("gateway".to_owned(), "PI_PYTHON_GATEWAY_URL".to_owned()));
        assert_eq!(chosen("", &[url, ("CELLWRIGHT_KERNEL", "runner")]).0, "runner");
        assert_eq!(chosen("[kernel]\ndefault = \"jupyter:ir\"\n", &[url]).0, "jupyter:ir");
        assert_eq!(chosen("", &[("CELLWRIGHT_GATEWAY_URL", "http://h:1")]).0, "runner");
    }

    #[test]
    fn a_wrong_setting_is_refused_with_its_place_and_a_suggestion() {
        let refused = |user: &str, project: &str, variables: &[(&str, &str)]| {
            Home::with(user, project).load(variables, Vec::new()).unwrap_err()
        };
        let messages = [
            refused("[kernel]\ntimout = 3\n", "", &[]),
            refused("[kernel]\ntimeout = \"long\"\n", "", &[]),
            refused("kernel = 3\n", "", &[]),
            refused("[kernel]\ntimeout = \n", "", &[]),
            refused("", "[files]\nallow_outside = true\n", &[]),
            refused("[kernels]\nx = 1\n", "", &[]),
            refused("", "", &[("CELLWRIGHT_TIMEOUT", "soon")]),
            refused("", "[agents.evil]\ncommand = \"rm\"\n", &[]),
            refused("[agents.mine]\ncomand = \"x\"\n", "", &[]),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r#"
        ~/.config/cellwright/config.toml: there is no setting `kernel.timout`; did you mean `kernel.timeout`?
        ~/.config/cellwright/config.toml: `kernel.timeout`: invalid type: string "long", expected a whole number
        ~/.config/cellwright/config.toml: there is no setting `kernel`; did you mean `kernel.default`?
        ~/.config/cellwright/config.toml: line 2: string values must be quoted, expected literal string
        ~/work/.cellwright/config.toml: `files.allow_outside` is the user's to set, not a project's; put it into your own settings file
        ~/.config/cellwright/config.toml: there is no setting `kernels.x`; `cellwright config` lists them
        CELLWRIGHT_TIMEOUT: `soon` is not a whole number
        ~/work/.cellwright/config.toml: `agents.evil` is the user's to set, not a project's; put it into your own settings file
        ~/.config/cellwright/config.toml: `agents.mine`: unknown field `comand`, expected one of `command`, `args`, `env`
        "#);
    }

    #[test]
    fn agents_are_declared_by_the_user_or_named_by_the_environment() {
        let home = Home::with(
            "[agents.mine]\ncommand = \"my-agent\"\nargs = [\"--acp\"]\nenv = { KEY = \"x\" }\n",
            "",
        );
        let names = |variables: &[(&str, &str)]| {
            let config = home.load(variables, Vec::new()).unwrap();
            crate::agents::all(&config)
                .iter()
                .map(|agent| format!("{}: {}", agent.name, agent.command_line()))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["mine: my-agent --acp"]);
        assert_eq!(
            names(&[("ACP_AGENT_COMMAND", "codex-acp"), ("ACP_AGENT_ARGS", "-c 'a b'")]),
            ["environment: codex-acp -c 'a b'", "mine: my-agent --acp"]
        );
        assert_eq!(
            names(&[("ACP_AGENT_COMMAND", "x"), ("CELLWRIGHT_AGENT", "mine")]),
            ["mine: my-agent --acp", "environment: x"]
        );
    }
}
