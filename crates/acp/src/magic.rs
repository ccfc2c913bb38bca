//! Cells as the agent kernel reads them: magic lines, then a prompt.
//!
//! Pure: [`parse`] says what a cell asks for, [`complete`] and [`inspect`] answer from a snapshot of what is known. Whoever
//! runs the kernel carries it out.

mod commands;
mod completion;
mod reference;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::str::FromStr as _;

use agent_client_protocol_schema::v1::{
    EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};

pub(crate) use commands::help;
#[cfg(test)]
pub(crate) use completion::FolderListing;
pub(crate) use completion::{CompletionContext, complete, inspect};
pub(crate) use reference::{PromptReference, references};

use crate::permission;

/// What a cell asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedCell {
    /// Done first, in this order.
    pub(crate) magics: Vec<MagicCommand>,
    /// Which session the prompt goes to.
    pub(crate) target: PromptTarget,
    /// Without the empty lines around it; may be empty.
    pub(crate) prompt: String,
}

/// Where a prompt goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptTarget {
    /// A session by name; none for the current one.
    pub(crate) session: Option<String>,
    /// Whether the cell ends at once and its output follows.
    pub(crate) background: bool,
}

/// One magic line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MagicCommand {
    /// Show this text.
    Help(String),
    /// Go on with another agent, or show which there are.
    Use(Option<String>),
    /// Servers for the agent.
    Mcp(McpMagic),
    /// Who may do what.
    Permissions(PermissionsMagic),
    /// Sessions of this kernel.
    Session(SessionMagic),
    /// Another command line for the agent, or show the one in use.
    Config(Option<Vec<String>>),
    /// The agent's environment.
    Env(EnvMagic),
    /// Show the agent's slash commands.
    Commands,
    /// Another mode, or show which there are.
    Mode(Option<String>),
    /// Another model, or show which there are.
    Model(Option<String>),
    /// Set an option of the session, or show them all.
    Options(Option<(String, String)>),
    /// Show this many lines of what the agent wrote to its standard error.
    Log(usize),
    /// How turns are shown, or show how.
    Render(Option<RenderMagic>),
    /// Sign in by a method, or show which there are.
    Login(Option<String>),
}

/// `%agent mcp …`
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum McpMagic {
    /// Offer a server to the agent.
    Add(McpServer),
    /// Show them.
    List,
    /// Forget one.
    Remove(String),
    /// Forget all.
    Clear,
    /// Offer it again.
    Enable(String),
    /// Keep it, but do not offer it.
    Disable(String),
}

/// `%agent permissions …`
#[derive(Debug, Clone)]
pub(crate) enum PermissionsMagic {
    /// Show mode and rules.
    Show,
    /// Set the mode.
    Mode(permission::ApprovalMode),
    /// Show what was decided.
    List,
    /// Add a rule.
    Rule(permission::PermissionRule),
    /// Forget all rules.
    Clear,
}

impl PartialEq for PermissionsMagic {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mode(mine), Self::Mode(theirs)) => mine == theirs,
            (Self::Rule(mine), Self::Rule(theirs)) => mine.to_string() == theirs.to_string(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// `%agent session …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionMagic {
    /// Begin one and go on in it.
    New {
        /// What it is called here.
        name: Option<String>,
        /// The folder it works in.
        cwd: Option<PathBuf>,
        /// The agent it talks to.
        agent: Option<String>,
    },
    /// Show the current one.
    Info,
    /// Start the agent anew and go on in the same conversation where it can.
    Restart,
    /// Show those of this kernel and those the agent has stored.
    List,
    /// Go on in another.
    Use(String),
    /// Go on in a stored one, with its conversation played back.
    Load(String),
    /// Go on in a stored one, without playing it back.
    Resume(String),
    /// Go on in a copy of the current one.
    Fork(Option<String>),
    /// End one, or the current one.
    Close(Option<String>),
    /// Have the agent delete a stored one.
    Delete(String),
}

/// `%agent env …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnvMagic {
    /// Show what was set here.
    Show,
    /// Set a variable.
    Set(String, String),
    /// Take it away.
    Unset(String),
}

/// How turns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenderMagic {
    /// As the client can.
    Auto,
    /// Displays that are updated in place.
    Rich,
    /// Text only.
    Stream,
}

/// Why a cell can not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MagicError {
    /// There is no such magic.
    #[error(
        "there is no magic `{0}`; `%agent?` lists them, and a cell that begins with `%%agent` is sent as it is"
    )]
    Unknown(String),
    /// There is no such subcommand.
    #[error("`{line}`: {reason}\n{help}")]
    Usage {
        /// As it was written.
        line: String,
        /// What is wrong with it.
        reason: String,
        /// How it is used.
        help: String,
    },
}

/// Lines of the log that are shown unless told otherwise.
const LOG_LINES: usize = 50;

/// What a cell asks for.
pub(crate) fn parse(cell: &str) -> Result<ParsedCell, MagicError> {
    let (mut magics, mut target) = (Vec::new(), PromptTarget::default());
    let mut rest = cell;
    while !rest.is_empty() {
        let (line, later) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim();
        if let Some(written) = line.strip_prefix("%%") {
            target = cell_magic(line, written)?;
            rest = later;
            break;
        }
        if !line.is_empty() && !is_magic(line) {
            break;
        }
        if !line.is_empty() {
            magics.push(line_magic(line)?);
        }
        rest = later;
    }
    Ok(ParsedCell { magics, target, prompt: without_empty_lines(rest).to_owned() })
}

/// `%word` and `?`. A percent sign before anything else is text.
fn is_magic(line: &str) -> bool {
    line == "?"
        || line.strip_prefix('%').is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn without_empty_lines(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.find(|c: char| !c.is_whitespace()).unwrap_or(0);
    // The indent of the first line is part of the prompt.
    &text[text[..first].rfind('\n').map_or(0, |at| at + 1)..]
}

/// `%%agent [NAME] [--background]`
fn cell_magic(line: &str, written: &str) -> Result<PromptTarget, MagicError> {
    let words = split(line, written)?;
    if words.first().map(String::as_str) != Some("agent") {
        let name = words.into_iter().next().unwrap_or_default();
        return Err(MagicError::Unknown(format!("%%{name}")));
    }
    let mut target = PromptTarget::default();
    for word in &words[1..] {
        match word.as_str() {
            "--background" | "-b" => target.background = true,
            option if option.starts_with('-') => {
                return Err(usage(line, &["%agent"], &format!("no option `{option}`")));
            }
            name if target.session.is_none() => target.session = Some(name.to_owned()),
            more => {
                return Err(usage(
                    line,
                    &["%agent"],
                    &format!("one session at a time; `{more}` is a second"),
                ));
            }
        }
    }
    Ok(target)
}

fn line_magic(line: &str) -> Result<MagicCommand, MagicError> {
    if line == "?" {
        return Ok(MagicCommand::Help(help(&[])));
    }
    if let Some(asked) = line.strip_suffix('?') {
        let words: Vec<_> = asked.split_whitespace().collect();
        let topic = commands::full(&words).ok_or_else(|| MagicError::Unknown(asked.to_owned()))?;
        return Ok(MagicCommand::Help(help(&topic.iter().map(String::as_str).collect::<Vec<_>>())));
    }
    let written = split(line, line)?;
    let words: Vec<_> = written.iter().map(String::as_str).collect();
    let words = commands::full(&words).ok_or_else(|| MagicError::Unknown(written[0].clone()))?;
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    magic(&words).map_err(|wrong| usage(line, &words, &wrong))
}

fn split(line: &str, written: &str) -> Result<Vec<String>, MagicError> {
    shell_words::split(written).map_err(|_| usage(line, &[], "a quote is not closed"))
}

fn usage(line: &str, words: &[&str], reason: &str) -> MagicError {
    MagicError::Usage { line: line.to_owned(), reason: reason.to_owned(), help: help(words) }
}

/// The magic of these words, which follow `%agent`.
fn magic(words: &[&str]) -> Result<MagicCommand, String> {
    let optional = |rest: &[&str]| match rest {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        [_, more, ..] => Err(format!("`{more}` is too much")),
    };
    Ok(match words {
        [] => MagicCommand::Help(help(&[])),
        ["help", topic @ ..] => MagicCommand::Help(help(topic)),
        ["use", rest @ ..] => MagicCommand::Use(optional(rest)?),
        ["mcp", rest @ ..] => MagicCommand::Mcp(mcp(rest)?),
        ["permissions", rest @ ..] => MagicCommand::Permissions(permissions(rest)?),
        ["session", rest @ ..] => MagicCommand::Session(session(rest)?),
        ["config"] => MagicCommand::Config(None),
        ["config", command @ ..] => {
            MagicCommand::Config(Some(command.iter().map(|word| (*word).to_owned()).collect()))
        }
        ["env", rest @ ..] => MagicCommand::Env(env(rest)?),
        ["commands"] => MagicCommand::Commands,
        ["mode", rest @ ..] => MagicCommand::Mode(optional(rest)?),
        ["model", rest @ ..] => MagicCommand::Model(optional(rest)?),
        ["options"] => MagicCommand::Options(None),
        ["options", name, value] => MagicCommand::Options(Some(((*name).to_owned(), (*value).to_owned()))),
        ["options", pair] if pair.contains('=') => MagicCommand::Options(Some(key_value(pair)?)),
        ["options", ..] => return Err("give a name and a value".to_owned()),
        ["log", rest @ ..] => MagicCommand::Log(match optional(rest)? {
            Some(lines) => lines.parse().map_err(|_| format!("`{lines}` is not a number of lines"))?,
            None => LOG_LINES,
        }),
        ["render"] => MagicCommand::Render(None),
        ["render", "auto"] => MagicCommand::Render(Some(RenderMagic::Auto)),
        ["render", "rich"] => MagicCommand::Render(Some(RenderMagic::Rich)),
        ["render", "stream"] => MagicCommand::Render(Some(RenderMagic::Stream)),
        ["render", other, ..] => {
            return Err(format!("`{other}` is no way to show turns; use auto, rich or stream"));
        }
        ["login", rest @ ..] => MagicCommand::Login(optional(rest)?),
        [other, ..] => return Err(commands::no_such("%agent", &[], other)),
    })
}

fn mcp(words: &[&str]) -> Result<McpMagic, String> {
    Ok(match words {
        [] | ["list"] => McpMagic::List,
        ["add", name, rest @ ..] => McpMagic::Add(server(name, rest)?),
        ["add"] => return Err("give the server a name and say how to reach it".to_owned()),
        ["clear"] => McpMagic::Clear,
        ["remove", name] => McpMagic::Remove((*name).to_owned()),
        ["enable", name] => McpMagic::Enable((*name).to_owned()),
        ["disable", name] => McpMagic::Disable((*name).to_owned()),
        ["remove" | "enable" | "disable", ..] => return Err("name one server".to_owned()),
        [other, ..] => return Err(commands::no_such("%mcp", &["mcp"], other)),
    })
}

/// `[--env K=V]… [--] COMMAND [ARGS…]`, or `[--transport http|sse] [--header 'K: V']… URL`. Options of ours stand before
/// the command: what follows it is the command's own.
fn server(name: &str, words: &[&str]) -> Result<McpServer, String> {
    let (mut env, mut headers, mut transport) = (Vec::new(), Vec::new(), None);
    let mut rest = words;
    loop {
        rest = match rest {
            ["--", command @ ..] => break rest = command,
            ["--env" | "-e", pair, later @ ..] => {
                let (name, value) = key_value(pair)?;
                env.push(EnvVariable::new(name, value));
                later
            }
            ["--header" | "-H", header, later @ ..] => {
                let (name, value) =
                    header.split_once(':').ok_or(format!("`{header}` is not `Name: value`"))?;
                headers.push(HttpHeader::new(name.trim(), value.trim()));
                later
            }
            ["--transport" | "-t", kind @ ("stdio" | "http" | "sse"), later @ ..] => {
                transport = Some(*kind);
                later
            }
            ["--transport" | "-t", ..] => return Err("a transport is stdio, http or sse".to_owned()),
            ["--http", later @ ..] => {
                transport = Some("http");
                later
            }
            ["--sse", later @ ..] => {
                transport = Some("sse");
                later
            }
            [option, ..] if option.starts_with('-') => return Err(format!("no option `{option}`")),
            _ => break,
        };
    }
    let is_address = |word: &str| word.starts_with("http://") || word.starts_with("https://");
    let transport = transport.unwrap_or(match rest {
        [one] if is_address(one) => "http",
        _ => "stdio",
    });
    Ok(match (transport, rest) {
        ("stdio", [address]) if address.contains("://") => {
            return Err(format!("`{address}` is neither a command nor an address of http or https"));
        }
        ("stdio", [command, args @ ..]) if headers.is_empty() => {
            let args = args.iter().map(|word| (*word).to_owned()).collect();
            McpServer::Stdio(McpServerStdio::new(name, *command).args(args).env(env))
        }
        ("stdio", []) => {
            return Err("say which command starts the server, or at which address it is".to_owned());
        }
        ("stdio", _) => return Err("headers are for servers at an address".to_owned()),
        (_, [address]) if is_address(address) && env.is_empty() => match transport {
            "sse" => McpServer::Sse(McpServerSse::new(name, *address).headers(headers)),
            _ => McpServer::Http(McpServerHttp::new(name, *address).headers(headers)),
        },
        (_, [address]) if is_address(address) => {
            return Err("variables are for servers that are started here".to_owned());
        }
        _ => return Err("give one address that begins with http:// or https://".to_owned()),
    })
}

fn permissions(words: &[&str]) -> Result<PermissionsMagic, String> {
    Ok(match words {
        [] | ["show"] => PermissionsMagic::Show,
        ["list" | "history"] => PermissionsMagic::List,
        ["clear"] => PermissionsMagic::Clear,
        [mode] if permission::ApprovalMode::from_str(mode).is_ok() => {
            PermissionsMagic::Mode(permission::ApprovalMode::from_str(mode).expect("just looked at"))
        }
        ["allow" | "deny" | "refuse", _, ..] => PermissionsMagic::Rule(
            words.join(" ").parse().map_err(|wrong: permission::RuleError| wrong.to_string())?,
        ),
        [other, ..] => return Err(commands::no_such("%permissions", &["permissions"], other)),
    })
}

fn session(words: &[&str]) -> Result<SessionMagic, String> {
    let one = |name: &&str| (*name).to_owned();
    Ok(match words {
        ["new", rest @ ..] => new_session(rest)?,
        [] | ["info"] => SessionMagic::Info,
        ["restart"] => SessionMagic::Restart,
        ["list"] => SessionMagic::List,
        ["use", name] => SessionMagic::Use(one(name)),
        ["load", id] => SessionMagic::Load(one(id)),
        ["resume", id] => SessionMagic::Resume(one(id)),
        ["delete", id] => SessionMagic::Delete(one(id)),
        ["fork"] => SessionMagic::Fork(None),
        ["fork", name] => SessionMagic::Fork(Some(one(name))),
        ["close"] => SessionMagic::Close(None),
        ["close", name] => SessionMagic::Close(Some(one(name))),
        ["use" | "load" | "resume" | "delete", ..] => return Err("name one session".to_owned()),
        [known @ ("info" | "restart" | "list" | "fork" | "close"), more, ..] => {
            return Err(format!("`{known}` takes no `{more}`"));
        }
        [other, ..] => return Err(commands::no_such("%session", &["session"], other)),
    })
}

/// A word that looks like a path is the folder, as in the older kernel; another is the name.
fn new_session(words: &[&str]) -> Result<SessionMagic, String> {
    let (mut name, mut cwd, mut agent) = (None, None, None);
    let mut rest = words;
    while let [word, later @ ..] = rest {
        rest = match (*word, later) {
            ("--cwd", [folder, later @ ..]) => {
                cwd = Some(PathBuf::from(folder));
                later
            }
            ("--agent", [given, later @ ..]) => {
                agent = Some((*given).to_owned());
                later
            }
            (option, _) if option.starts_with('-') => {
                return Err(format!("no option `{option}`, or no value for it"));
            }
            (folder, later) if cwd.is_none() && is_path(folder) => {
                cwd = Some(PathBuf::from(folder));
                later
            }
            (given, later) if name.is_none() => {
                name = Some(given.to_owned());
                later
            }
            (more, _) => return Err(format!("`{more}` is too much")),
        };
    }
    Ok(SessionMagic::New { name, cwd, agent })
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.starts_with(['.', '~'])
}

fn env(words: &[&str]) -> Result<EnvMagic, String> {
    match words {
        [] => Ok(EnvMagic::Show),
        ["unset", name] => Ok(EnvMagic::Unset((*name).to_owned())),
        [pair] => key_value(pair).map(|(name, value)| EnvMagic::Set(name, value)),
        [_, more, ..] => Err(format!("`{more}` is too much; quote a value that has blanks")),
    }
}

fn key_value(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{pair}` is not NAME=VALUE")),
    }
}
