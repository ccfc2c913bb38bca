//! Carrying out magics.

use agent_client_protocol_schema::v1::{
    McpServer, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
};
use serde_json::{Value, json};

use super::cell_run::CellRun;
use super::sessions::{MAIN, McpEntry};
use cellwright_kernel::environment::looks_secret;
use cellwright_kernel::gateway::without_secrets;

use crate::agent::AgentLaunch;
use crate::conversation::{AgentChoice, AgentCommand, SessionFacts, SessionScope, bypass, select_values};
use crate::failure::{CellFailure, FailureKind};
use crate::kernel_state::lock;
use crate::magic::{EnvMagic, MagicCommand, McpMagic, PermissionsMagic, RenderMagic, SessionMagic};
use crate::turn::TurnPlace;
use crate::view::ViewStyle;

impl CellRun<'_> {
    /// Carries out a magic. The text of the last magic is the cell's result.
    pub(crate) async fn magic(&self, magic: MagicCommand, last: bool) -> Result<Option<Value>, CellFailure> {
        if self.stop.is_asked() {
            return Err(CellFailure::interrupted());
        }
        let text = match magic {
            // Clients that take no input, such as nbclient, show no pages.
            MagicCommand::Help(text) if !self.cell.allow_stdin => text,
            MagicCommand::Help(text) => {
                return Ok(Some(json!({"source": "page", "data": {"text/plain": text}, "start": 0})));
            }
            MagicCommand::Use(None) => self.agents(),
            MagicCommand::Use(Some(name)) => {
                let choice = self.kernel.sessions.agent(&name)?;
                self.kernel.sessions.prefer(choice.clone());
                self.perform(AgentCommand::Use(choice)).await?
            }
            MagicCommand::Mcp(mcp) => self.mcp(mcp).await?,
            MagicCommand::Permissions(permissions) => self.permissions(permissions),
            MagicCommand::Session(session) => self.session(session).await?,
            MagicCommand::Config(None) => match self.choice() {
                Ok(choice) => command_line(&choice.launch),
                Err(_) => self.kernel.setup.guidance.clone(),
            },
            MagicCommand::Config(Some(words)) => self.configure(words).await?,
            MagicCommand::Env(env) => self.env(env).await?,
            MagicCommand::Kernel(kernel) => self.kernel_magic(kernel).await?,
            MagicCommand::Keep(count) => {
                let (text, payload) = self.keep(count).await?;
                self.result(text, last).await;
                return Ok(payload);
            }
            MagicCommand::Cells(mode) => self.cells(mode),
            MagicCommand::Notebook(path) => self.notebook(path),
            MagicCommand::Context(setting) => self.context(setting).await,
            MagicCommand::Commands => {
                self.perform(AgentCommand::Ready).await?;
                let commands = self.facts().commands;
                rows(
                    commands
                        .iter()
                        .map(|command| (format!("/{}", command.name), command.description.clone())),
                )
                .unwrap_or_else(|| "the agent has no commands".to_owned())
            }
            MagicCommand::Mode(None) => {
                self.perform(AgentCommand::Ready).await?;
                modes(&self.facts()).unwrap_or_else(|| "the agent has no modes".to_owned())
            }
            MagicCommand::Mode(Some(mode)) => self.perform(AgentCommand::Mode(mode)).await?,
            MagicCommand::Model(None) => {
                self.perform(AgentCommand::Ready).await?;
                let facts = self.facts();
                let model = model(&facts).map(values).and_then(rows);
                model.unwrap_or_else(|| "the agent offers no choice of models".to_owned())
            }
            MagicCommand::Model(Some(value)) => {
                self.perform(AgentCommand::Ready).await?;
                let Some(option) = model(&self.facts()).map(|option| option.id.to_string()) else {
                    return Err(CellFailure::new(
                        FailureKind::NotSupported,
                        "the agent offers no choice of models",
                    ));
                };
                self.perform(AgentCommand::Configure { option, value }).await?
            }
            MagicCommand::Options(None) => {
                self.perform(AgentCommand::Ready).await?;
                if self.show_menu().await {
                    return Ok(None);
                }
                options(&self.facts()).unwrap_or_else(|| "the session has no options".to_owned())
            }
            MagicCommand::Options(Some((option, value))) => {
                self.perform(AgentCommand::Configure { option, value }).await?
            }
            MagicCommand::Page(page) => self.page(page).await,
            MagicCommand::Log(lines) => self.log(lines),
            MagicCommand::Render(None) => match *lock(&self.kernel.style) {
                None => "auto".to_owned(),
                Some(ViewStyle::Rich) => "rich".to_owned(),
                Some(ViewStyle::Stream) => "stream".to_owned(),
            },
            MagicCommand::Render(Some(render)) => {
                *lock(&self.kernel.style) = match render {
                    RenderMagic::Auto => None,
                    RenderMagic::Rich => Some(ViewStyle::Rich),
                    RenderMagic::Stream => Some(ViewStyle::Stream),
                };
                String::new()
            }
            MagicCommand::Login(None) => self.perform(AgentCommand::SignInMethods).await?,
            MagicCommand::Login(method) => self.perform(AgentCommand::SignIn(method)).await?,
        };
        if !text.is_empty() {
            self.result(text, last).await;
        }
        Ok(None)
    }

    async fn perform(&self, command: AgentCommand) -> Result<String, CellFailure> {
        self.kernel.sessions.current().1.perform(command, self.turn(TurnPlace::Foreground)).await
    }

    fn facts(&self) -> SessionFacts {
        self.kernel.sessions.current().1.facts()
    }

    fn choice(&self) -> Result<AgentChoice, CellFailure> {
        self.facts().choice.ok_or_else(|| self.kernel.state.no_agent.clone())
    }

    fn agents(&self) -> String {
        let current = self.facts().choice.map(|choice| choice.name);
        let agents = self.kernel.setup.agents.iter().map(|(name, launch)| {
            (format!("{} {name}", mark(current.as_ref() == Some(name))), command_line(launch))
        });
        rows(agents).unwrap_or_else(|| self.kernel.setup.guidance.clone())
    }

    async fn configure(&self, words: Vec<String>) -> Result<String, CellFailure> {
        let mut words = words.into_iter();
        let program = words.next().expect("a magic of words has one");
        let launch = match self.facts().choice {
            Some(choice) => choice.launch,
            None => self.kernel.setup.blank_launch(),
        };
        let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
        let launch = AgentLaunch { program: program.into(), args: words.map(Into::into).collect(), ..launch };
        let choice = AgentChoice { name, launch };
        self.kernel.sessions.prefer(choice.clone());
        self.perform(AgentCommand::Use(choice)).await
    }

    async fn env(&self, env: EnvMagic) -> Result<String, CellFailure> {
        let mut choice = self.choice()?;
        let ours = &self.kernel.setup.environment;
        let environment = &mut choice.launch.environment;
        let text = match env {
            EnvMagic::Show => {
                let set = environment.iter().filter(|pair| !ours.contains(pair));
                let set = set.map(|(name, value)| {
                    // Cells and their outputs are saved and shared, and values may be keys.
                    (name.to_string_lossy().into_owned(), format!("set, {} characters", value.len()))
                });
                return Ok(rows(set).unwrap_or_else(|| "nothing was set for this agent".to_owned()));
            }
            EnvMagic::Set(name, value) => {
                environment.retain(|(known, _)| *known != *name);
                let text = format!("`{name}` is set");
                environment.push((name.into(), value.into()));
                text
            }
            EnvMagic::Unset(name) => {
                environment.retain(|(known, _)| *known != *name);
                format!("`{name}` is no longer set")
            }
        };
        self.kernel.sessions.prefer(choice.clone());
        self.perform(AgentCommand::Relaunch(choice)).await?;
        Ok(format!("{text}; the next prompt starts the agent again"))
    }

    fn permissions(&self, permissions: PermissionsMagic) -> String {
        let mut policy = lock(&self.kernel.state.policy);
        match permissions {
            PermissionsMagic::Show => {
                let rules = policy.rules.iter().map(ToString::to_string);
                std::iter::once(policy.mode.to_string()).chain(rules).collect::<Vec<_>>().join("\n")
            }
            PermissionsMagic::Mode(mode) => {
                policy.mode = mode;
                mode.to_string()
            }
            PermissionsMagic::List => policy.history.to_string(),
            PermissionsMagic::Rule(rule) => {
                let text = rule.to_string();
                policy.rules.push(rule);
                text
            }
            PermissionsMagic::Test(command) => policy.explain(&command, &self.kernel.state.workspace),
            PermissionsMagic::Clear => {
                policy.rules.clear();
                "all rules were removed".to_owned()
            }
        }
    }

    async fn session(&self, session: SessionMagic) -> Result<String, CellFailure> {
        let sessions = &self.kernel.sessions;
        match session {
            SessionMagic::New { name: None, cwd: None, agent: None } => {
                self.perform(AgentCommand::Renew).await
            }
            SessionMagic::New { name, cwd, agent } => {
                let name = name.unwrap_or_else(|| sessions.free_name());
                sessions.begin(&name, agent.as_deref(), cwd)?;
                Ok(format!("the session `{name}` was started"))
            }
            SessionMagic::Info => Ok(self.info()),
            SessionMagic::Restart => self.perform(AgentCommand::Restart).await,
            SessionMagic::List(scope) => {
                let here = self.sessions();
                let which = match scope {
                    SessionScope::Folder => "stored by the agent for this folder (`--all` shows all)",
                    SessionScope::All => "stored by the agent",
                };
                // Not every agent stores sessions. The kernel's own sessions are shown anyway.
                Ok(match self.perform(AgentCommand::List(scope)).await {
                    Ok(stored) => format!("{here}\n\n{which}:\n{stored}"),
                    Err(failure) if failure.kind == FailureKind::NotSupported => here,
                    Err(failure) if self.stop.is_asked() => return Err(failure),
                    Err(failure) => {
                        format!("{here}\n\nthe agent could not list its stored sessions: {}", failure.message)
                    }
                })
            }
            SessionMagic::Use(name) => {
                sessions.switch(&name)?;
                Ok(format!("the session is now `{name}`"))
            }
            SessionMagic::Load(id) => self.perform(AgentCommand::Load(id)).await,
            SessionMagic::Resume(Some(id)) => self.perform(AgentCommand::Resume(id)).await,
            SessionMagic::Resume(None) => self.perform(AgentCommand::ResumeLast).await,
            SessionMagic::Last => self.show_last().await,
            SessionMagic::Fork(None) => self.perform(AgentCommand::Fork).await,
            SessionMagic::Fork(Some(name)) => {
                let choice = self.choice()?;
                let before = sessions.current().0;
                let copy = self.perform(AgentCommand::Copy).await?;
                let handle = sessions.begin(&name, None, None)?;
                for command in [AgentCommand::Use(choice), AgentCommand::Resume(copy)] {
                    if let Err(failure) = handle.perform(command, self.turn(TurnPlace::Foreground)).await {
                        sessions.switch(&before)?;
                        sessions.remove(&name)?;
                        handle.end().await;
                        return Err(failure.with(format!("You are still in `{before}`.")));
                    }
                }
                Ok(format!("the conversation continues in a copy, `{name}`"))
            }
            SessionMagic::Close(name) => {
                let name = name.unwrap_or_else(|| sessions.current().0);
                match sessions.remove(&name)? {
                    Some(handle) => {
                        handle.end().await;
                        Ok(format!("the session `{name}` was ended"))
                    }
                    None => {
                        sessions
                            .get(MAIN)?
                            .perform(AgentCommand::Close, self.turn(TurnPlace::Foreground))
                            .await
                    }
                }
            }
            SessionMagic::Delete(id) => self.perform(AgentCommand::Delete(id)).await,
        }
    }

    /// Shows again what the last turn of the session has shown.
    async fn show_last(&self) -> Result<String, CellFailure> {
        let Some(last) = self.facts().last_turn else {
            return Ok("this session has had no turn yet".to_owned());
        };
        let last = lock(&last).clone();
        self.cell.show_again(&last, &self.stop).await;
        Ok(if last.is_cut() { "the rest of that turn was not kept".to_owned() } else { String::new() })
    }

    fn sessions(&self) -> String {
        let (current, all) = self.kernel.sessions.all();
        let described = all.iter().map(|(name, handle)| {
            let facts = handle.facts();
            let agent = facts.choice.map(|choice| choice.name).unwrap_or_default();
            let id = facts.session.map(|id| format!("  {id}")).unwrap_or_default();
            let title = facts.title.map(|title| format!("  {title}")).unwrap_or_default();
            (format!("{} {name}", mark(*name == current)), format!("{agent}{id}{title}"))
        });
        rows(described).unwrap_or_default()
    }

    fn info(&self) -> String {
        let (name, handle) = self.kernel.sessions.current();
        let facts = handle.facts();
        let choice = facts.choice.as_ref();
        let folder = choice.map_or(&self.kernel.state.workspace, |choice| &choice.launch.cwd);
        let servers = self.kernel.sessions.servers();
        let servers: Vec<&str> = servers.iter().filter(|server| server.offered).map(McpEntry::name).collect();
        let mode = facts.modes.as_ref().map(|modes| modes.current_mode_id.to_string());
        let usage = facts.usage.as_ref().map(|usage| format!("{} of {} tokens", usage.used, usage.size));
        let approval = lock(&self.kernel.state.policy).mode;
        let permissions = match facts.bypassed {
            0 => approval.to_string(),
            calls => {
                let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
                format!("{approval}, but not in force: {calls} without asking. {}", bypass::advice(&facts))
            }
        };
        let all = [
            ("session", Some(name)),
            ("agent", choice.map(|choice| command_line(&choice.launch))),
            ("version", facts.version.clone()),
            ("id", facts.session.as_ref().map(ToString::to_string)),
            ("title", facts.title.clone()),
            ("folder", Some(folder.display().to_string())),
            ("mode", mode),
            ("context", usage),
            ("servers", (!servers.is_empty()).then(|| servers.join(", "))),
            ("permissions", Some(permissions)),
        ];
        rows(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))).unwrap_or_default()
    }

    async fn mcp(&self, mcp: McpMagic) -> Result<String, CellFailure> {
        let mut servers = self.kernel.sessions.servers();
        let text = match mcp {
            McpMagic::List => {
                let state = |on: bool| if on { "" } else { " (disabled)" };
                let listed = servers.iter().map(|server| {
                    (format!("{}{}", server.name(), state(server.offered)), address(&server.server))
                });
                let own = self.facts().choice.map(|choice| self.kernel.setup.own_servers.of(&choice.launch));
                let own = own.iter().flatten().map(|server| {
                    let from = format!("{}  (from {})", server.address, server.from.display());
                    (format!("{}{}", server.name, state(server.enabled)), from)
                });
                return Ok(rows(listed.chain(own)).unwrap_or_else(|| "there are no servers".to_owned()));
            }
            McpMagic::Add(server) => {
                let server = McpEntry { server, offered: true };
                let before = servers.len();
                servers.retain(|known| known.name() != server.name());
                let done = if servers.len() < before { "replaced" } else { "added" };
                let text = format!("the server `{}` was {done}", server.name());
                servers.push(server);
                text
            }
            McpMagic::Remove(name) => {
                let before = servers.len();
                servers.retain(|known| known.name() != name);
                if servers.len() == before {
                    return Err(no_such_server(&name));
                }
                format!("the server `{name}` was removed")
            }
            McpMagic::Clear => {
                servers.clear();
                "all servers were removed".to_owned()
            }
            McpMagic::Enable(name) => {
                find(&mut servers, &name)?.offered = true;
                format!("the server `{name}` is offered")
            }
            McpMagic::Disable(name) => {
                find(&mut servers, &name)?.offered = false;
                format!("the server `{name}` is no longer offered")
            }
        };
        self.kernel.sessions.set_servers(servers);
        let done = self.perform(AgentCommand::Servers).await?;
        Ok(if done.is_empty() { text } else { format!("{text}; {done}") })
    }

    fn log(&self, lines: usize) -> String {
        let Some(log) = self.facts().log else { return "the agent has not been started yet".to_owned() };
        let text = log.text();
        let all: Vec<&str> = text.lines().collect();
        if all.is_empty() {
            return "the agent has written nothing to its log".to_owned();
        }
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

fn find<'a>(servers: &'a mut [McpEntry], name: &str) -> Result<&'a mut McpEntry, CellFailure> {
    servers.iter_mut().find(|known| known.name() == name).ok_or_else(|| no_such_server(name))
}

fn no_such_server(name: &str) -> CellFailure {
    CellFailure::new(FailureKind::NoSuchServer, format!("there is no server `{name}`"))
}

fn mark(current: bool) -> char {
    if current { '*' } else { ' ' }
}

pub(crate) fn command_line(launch: &AgentLaunch) -> String {
    let words = [&launch.program].into_iter().chain(&launch.args).map(|word| word.to_string_lossy());
    shell_words::join(words)
}

fn address(server: &McpServer) -> String {
    match server {
        McpServer::Http(server) => without_secrets(&server.url),
        McpServer::Sse(server) => format!("{} (sse)", without_secrets(&server.url)),
        McpServer::Stdio(server) => {
            let program = server.command.to_string_lossy().into_owned();
            shell_words::join(std::iter::once(program).chain(without_values(&server.args)))
        }
        _ => String::new(),
    }
}

/// Arguments as an output may hold them, which is saved and shared: keys and tokens are left out.
fn without_values(arguments: &[String]) -> Vec<String> {
    let mut after_secret = false;
    let shown = arguments.iter().map(|argument| {
        let (name, value) =
            argument.split_once('=').map_or((&**argument, None), |(name, value)| (name, Some(value)));
        let names_secret = looks_secret(&name.trim_start_matches('-').replace('-', "_"));
        let is_value =
            std::mem::replace(&mut after_secret, names_secret && value.is_none() && name.starts_with('-'));
        match value {
            Some(_) if names_secret => format!("{name}=…"),
            None if is_value => "…".to_owned(),
            Some(_) | None if argument.contains("://") => without_secrets(argument),
            Some(_) | None => argument.clone(),
        }
    });
    shown.collect()
}

/// Two columns, or `None` without rows.
pub(super) fn rows(pairs: impl IntoIterator<Item = (String, String)>) -> Option<String> {
    columns(&pairs.into_iter().collect::<Vec<_>>())
}

fn columns(pairs: &[(String, String)]) -> Option<String> {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max()?;
    let lines = pairs.iter().map(|(name, about)| format!("{name:width$}  {about}").trim_end().to_owned());
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn of_category<'a>(
    facts: &'a SessionFacts,
    category: &SessionConfigOptionCategory,
) -> Option<&'a SessionConfigOption> {
    facts.options.iter().find(|option| option.category.as_ref() == Some(category))
}

/// The option that chooses the model.
pub(crate) fn model(facts: &SessionFacts) -> Option<&SessionConfigOption> {
    of_category(facts, &SessionConfigOptionCategory::Model)
}

/// The option that chooses the mode, if the agent has one.
pub(crate) fn mode(facts: &SessionFacts) -> Option<&SessionConfigOption> {
    of_category(facts, &SessionConfigOptionCategory::Mode)
}

fn modes(facts: &SessionFacts) -> Option<String> {
    if let Some(option) = mode(facts) {
        return rows(values(option));
    }
    let modes = facts.modes.as_ref()?;
    rows(modes.available_modes.iter().map(|mode| {
        let about = mode.description.clone().unwrap_or_else(|| mode.name.clone());
        (format!("{} {}", mark(mode.id == modes.current_mode_id), mode.id), about)
    }))
}

/// The options with their values. The mode is one of them.
pub(crate) fn options(facts: &SessionFacts) -> Option<String> {
    let modes = facts.modes.as_ref().filter(|_| mode(facts).is_none());
    let mode = modes.map(|modes| ("mode".to_owned(), format!("{}  Mode", modes.current_mode_id)));
    let options = facts.options.iter().map(|option| {
        let current =
            values(option).into_iter().find_map(|(name, _)| Some(name.strip_prefix("* ")?.to_owned()));
        let about = option.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
        (option.id.to_string(), format!("{}  {}{about}", current.unwrap_or_default(), option.name))
    });
    rows(mode.into_iter().chain(options))
}

/// The values of an option. The current one is marked.
pub(crate) fn values(option: &SessionConfigOption) -> Vec<(String, String)> {
    match &option.kind {
        SessionConfigKind::Boolean(flag) => [("on", true), ("off", false)]
            .map(|(name, value)| (format!("{} {name}", mark(flag.current_value == value)), String::new()))
            .to_vec(),
        SessionConfigKind::Select(select) => {
            let described = select_values(select).into_iter().map(|value| {
                (format!("{} {}", mark(value.value == select.current_value), value.value), value.name.clone())
            });
            described.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tokens_among_arguments_are_not_shown() {
        let arguments =
            ["-v", "--api-key", "s3cret", "--token=s3cret", "KEY=s3cret", "https://h/x?token=s3cret", "path"];
        let shown = without_values(&arguments.map(str::to_owned));
        assert_eq!(shown, ["-v", "--api-key", "…", "--token=…", "KEY=…", "https://h/x?token=…", "path"]);
    }
}
