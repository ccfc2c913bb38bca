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

pub use commands::help;
pub use completion::{Candidate, Completion, Folders, Known, complete, inspect};
pub use reference::{Reference, references};

use crate::permission;

/// What a cell asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Done first, in this order.
    pub magics: Vec<Magic>,
    /// Which session the prompt goes to.
    pub target: Target,
    /// Without the empty lines around it; may be empty.
    pub prompt: String,
}

/// Where a prompt goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// A session by name; none for the current one.
    pub session: Option<String>,
    /// Whether the cell ends at once and its output follows.
    pub background: bool,
}

/// One magic line.
#[derive(Debug, Clone, PartialEq)]
pub enum Magic {
    /// Show this text.
    Help(String),
    /// Go on with another agent, or show which there are.
    Use(Option<String>),
    /// Servers for the agent.
    Mcp(Mcp),
    /// Who may do what.
    Permissions(Permissions),
    /// Sessions of this kernel.
    Session(Session),
    /// Another command line for the agent, or show the one in use.
    Config(Option<Vec<String>>),
    /// The agent's environment.
    Env(Env),
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
    Render(Option<Render>),
    /// Sign in by a method, or show which there are.
    Login(Option<String>),
}

/// `%agent mcp …`
#[derive(Debug, Clone, PartialEq)]
pub enum Mcp {
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
pub enum Permissions {
    /// Show mode and rules.
    Show,
    /// Set the mode.
    Mode(permission::Mode),
    /// Show what was decided.
    List,
    /// Add a rule.
    Rule(permission::Rule),
    /// Forget all rules.
    Clear,
}

impl PartialEq for Permissions {
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
pub enum Session {
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
pub enum Env {
    /// Show what was set here.
    Show,
    /// Set a variable.
    Set(String, String),
    /// Take it away.
    Unset(String),
}

/// How turns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Render {
    /// As the client can.
    Auto,
    /// Displays that are updated in place.
    Rich,
    /// Text only.
    Stream,
}

/// Why a cell can not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MagicError {
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
pub fn parse(cell: &str) -> Result<Cell, MagicError> {
    let (mut magics, mut target) = (Vec::new(), Target::default());
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
    Ok(Cell { magics, target, prompt: without_empty_lines(rest).to_owned() })
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
fn cell_magic(line: &str, written: &str) -> Result<Target, MagicError> {
    let words = split(line, written)?;
    if words.first().map(String::as_str) != Some("agent") {
        let name = words.into_iter().next().unwrap_or_default();
        return Err(MagicError::Unknown(format!("%%{name}")));
    }
    let mut target = Target::default();
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

fn line_magic(line: &str) -> Result<Magic, MagicError> {
    if line == "?" {
        return Ok(Magic::Help(help(&[])));
    }
    if let Some(asked) = line.strip_suffix('?') {
        let words: Vec<_> = asked.split_whitespace().collect();
        let topic = commands::full(&words).ok_or_else(|| MagicError::Unknown(asked.to_owned()))?;
        return Ok(Magic::Help(help(&topic.iter().map(String::as_str).collect::<Vec<_>>())));
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
fn magic(words: &[&str]) -> Result<Magic, String> {
    let optional = |rest: &[&str]| match rest {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        [_, more, ..] => Err(format!("`{more}` is too much")),
    };
    Ok(match words {
        [] => Magic::Help(help(&[])),
        ["help", topic @ ..] => Magic::Help(help(topic)),
        ["use", rest @ ..] => Magic::Use(optional(rest)?),
        ["mcp", rest @ ..] => Magic::Mcp(mcp(rest)?),
        ["permissions", rest @ ..] => Magic::Permissions(permissions(rest)?),
        ["session", rest @ ..] => Magic::Session(session(rest)?),
        ["config"] => Magic::Config(None),
        ["config", command @ ..] => {
            Magic::Config(Some(command.iter().map(|word| (*word).to_owned()).collect()))
        }
        ["env", rest @ ..] => Magic::Env(env(rest)?),
        ["commands"] => Magic::Commands,
        ["mode", rest @ ..] => Magic::Mode(optional(rest)?),
        ["model", rest @ ..] => Magic::Model(optional(rest)?),
        ["options"] => Magic::Options(None),
        ["options", name, value] => Magic::Options(Some(((*name).to_owned(), (*value).to_owned()))),
        ["options", pair] if pair.contains('=') => Magic::Options(Some(key_value(pair)?)),
        ["options", ..] => return Err("give a name and a value".to_owned()),
        ["log", rest @ ..] => Magic::Log(match optional(rest)? {
            Some(lines) => lines.parse().map_err(|_| format!("`{lines}` is not a number of lines"))?,
            None => LOG_LINES,
        }),
        ["render"] => Magic::Render(None),
        ["render", "auto"] => Magic::Render(Some(Render::Auto)),
        ["render", "rich"] => Magic::Render(Some(Render::Rich)),
        ["render", "stream"] => Magic::Render(Some(Render::Stream)),
        ["render", other, ..] => {
            return Err(format!("`{other}` is no way to show turns; use auto, rich or stream"));
        }
        ["login", rest @ ..] => Magic::Login(optional(rest)?),
        [other, ..] => return Err(commands::no_such("%agent", &[], other)),
    })
}

fn mcp(words: &[&str]) -> Result<Mcp, String> {
    Ok(match words {
        [] | ["list"] => Mcp::List,
        ["add", name, rest @ ..] => Mcp::Add(server(name, rest)?),
        ["add"] => return Err("give the server a name and say how to reach it".to_owned()),
        ["clear"] => Mcp::Clear,
        ["remove", name] => Mcp::Remove((*name).to_owned()),
        ["enable", name] => Mcp::Enable((*name).to_owned()),
        ["disable", name] => Mcp::Disable((*name).to_owned()),
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

fn permissions(words: &[&str]) -> Result<Permissions, String> {
    Ok(match words {
        [] | ["show"] => Permissions::Show,
        ["list" | "history"] => Permissions::List,
        ["clear"] => Permissions::Clear,
        [mode] if permission::Mode::from_str(mode).is_ok() => {
            Permissions::Mode(permission::Mode::from_str(mode).expect("just looked at"))
        }
        ["allow" | "deny" | "refuse", _, ..] => Permissions::Rule(
            words.join(" ").parse().map_err(|wrong: permission::RuleError| wrong.to_string())?,
        ),
        [other, ..] => return Err(commands::no_such("%permissions", &["permissions"], other)),
    })
}

fn session(words: &[&str]) -> Result<Session, String> {
    let one = |name: &&str| (*name).to_owned();
    Ok(match words {
        ["new", rest @ ..] => new_session(rest)?,
        [] | ["info"] => Session::Info,
        ["restart"] => Session::Restart,
        ["list"] => Session::List,
        ["use", name] => Session::Use(one(name)),
        ["load", id] => Session::Load(one(id)),
        ["resume", id] => Session::Resume(one(id)),
        ["delete", id] => Session::Delete(one(id)),
        ["fork"] => Session::Fork(None),
        ["fork", name] => Session::Fork(Some(one(name))),
        ["close"] => Session::Close(None),
        ["close", name] => Session::Close(Some(one(name))),
        ["use" | "load" | "resume" | "delete", ..] => return Err("name one session".to_owned()),
        [known @ ("info" | "restart" | "list" | "fork" | "close"), more, ..] => {
            return Err(format!("`{known}` takes no `{more}`"));
        }
        [other, ..] => return Err(commands::no_such("%session", &["session"], other)),
    })
}

/// A word that looks like a path is the folder, as in the older kernel; another is the name.
fn new_session(words: &[&str]) -> Result<Session, String> {
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
    Ok(Session::New { name, cwd, agent })
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.starts_with(['.', '~'])
}

fn env(words: &[&str]) -> Result<Env, String> {
    match words {
        [] => Ok(Env::Show),
        ["unset", name] => Ok(Env::Unset((*name).to_owned())),
        [pair] => key_value(pair).map(|(name, value)| Env::Set(name, value)),
        [_, more, ..] => Err(format!("`{more}` is too much; quote a value that has blanks")),
    }
}

fn key_value(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{pair}` is not NAME=VALUE")),
    }
}
