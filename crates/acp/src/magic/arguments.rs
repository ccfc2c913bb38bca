//! The arguments of magics: from words to a [`MagicCommand`].

use std::path::PathBuf;
use std::str::FromStr as _;

use agent_client_protocol_schema::v1::{
    EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};

use super::commands::{help, no_such};
use super::{
    CellMode, EnvMagic, KernelMagic, MagicCommand, McpMagic, PageMagic, PermissionsMagic, RenderMagic,
    SessionMagic,
};
use crate::conversation::SessionScope;
use crate::permission::{self, RuleError};

/// Lines of the log that are shown unless the user gives a number.
const LOG_LINES: usize = 50;

/// What is wrong with the arguments of a magic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("unexpected argument `{0}`")]
    Unexpected(String),
    #[error("unexpected argument `{0}`; quote a value that contains blanks")]
    UnquotedValue(String),
    #[error("unknown option `{0}`, or its value is missing")]
    NoSuchOption(String),
    #[error("name one session only; `{0}` is a second one")]
    SecondSession(String),
    #[error("`{magic}` has no `{word}`; it has {known}")]
    NoSuchWord { magic: &'static str, word: String, known: String },
    #[error("give a name and a value")]
    OptionWithoutValue,
    #[error("`{0}` is not NAME=VALUE")]
    NotAPair(String),
    #[error("`{0}` is not `Name: value`")]
    NotAHeader(String),
    #[error("`{0}` is not a number of lines")]
    NotALineCount(String),
    #[error("`{0}` is not a way to show turns; use auto, rich or stream")]
    NoSuchRendering(String),
    #[error("`%agent page` takes `allow` or nothing, not `{0}`")]
    NoSuchPageWord(String),
    #[error("a cell is `code` or `prompt`, not `{0}`")]
    NoSuchCells(String),
    #[error("`%context` takes `on`, `off` or nothing, not `{0}`")]
    NoSuchContext(String),
    #[error("`{0}` is not the number of a cell, as in `%keep 3` for In[3]")]
    NotACellNumber(String),
    #[error("name one session")]
    NameOneSession,
    #[error("name one server")]
    NameOneServer,
    #[error("give the server a name and a command or an address")]
    ServerWithoutName,
    #[error("give the command that starts the server, or its address")]
    ServerWithoutAddress,
    #[error("`{0}` is neither a command nor an address of http or https")]
    NeitherCommandNorAddress(String),
    #[error("give one address that begins with http:// or https://")]
    OneAddress,
    #[error("headers are for servers at an address")]
    HeaderForCommand,
    #[error("variables are for servers that a command starts")]
    VariableForAddress,
    #[error("give the command to test, as in `%permissions test git status`")]
    TestWithoutCommand,
    #[error("give the kind of tool that the rule is for, as in `%permissions allow edit src/**`")]
    RuleWithoutKind,
    #[error("a transport is stdio, http or sse")]
    NoSuchTransport,
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Parses the words after `%agent`.
pub(super) fn magic(words: &[&str]) -> Result<MagicCommand, UsageError> {
    let optional = |rest: &[&str]| match rest {
        [] => Ok(None),
        [one] => Ok(Some((*one).to_owned())),
        [_, more, ..] => Err(UsageError::Unexpected((*more).to_owned())),
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
        ["kernel", rest @ ..] => MagicCommand::Kernel(kernel(rest)?),
        ["notebook", rest @ ..] => MagicCommand::Notebook(optional(rest)?.map(PathBuf::from)),
        ["context"] => MagicCommand::Context(None),
        ["context", "on"] => MagicCommand::Context(Some(true)),
        ["context", "off"] => MagicCommand::Context(Some(false)),
        ["context", other, ..] => return Err(UsageError::NoSuchContext((*other).to_owned())),
        ["keep", rest @ ..] => MagicCommand::Keep(match optional(rest)? {
            Some(count) => {
                let number = count.trim_start_matches('#').parse();
                Some(number.map_err(|_| UsageError::NotACellNumber(count))?)
            }
            None => None,
        }),
        ["cells"] => MagicCommand::Cells(None),
        ["cells", "code"] => MagicCommand::Cells(Some(CellMode::Code)),
        ["cells", "prompt"] => MagicCommand::Cells(Some(CellMode::Prompt)),
        ["cells", other, ..] => return Err(UsageError::NoSuchCells((*other).to_owned())),
        ["commands"] => MagicCommand::Commands,
        ["page"] => MagicCommand::Page(PageMagic::Show),
        ["page", "allow"] => MagicCommand::Page(PageMagic::Allow),
        ["page", other, ..] => return Err(UsageError::NoSuchPageWord((*other).to_owned())),
        ["mode", rest @ ..] => MagicCommand::Mode(optional(rest)?),
        ["model", rest @ ..] => MagicCommand::Model(optional(rest)?),
        ["options"] => MagicCommand::Options(None),
        ["options", name, value] => MagicCommand::Options(Some(((*name).to_owned(), (*value).to_owned()))),
        ["options", pair] if pair.contains('=') => MagicCommand::Options(Some(key_value(pair)?)),
        ["options", ..] => return Err(UsageError::OptionWithoutValue),
        ["log", rest @ ..] => MagicCommand::Log(match optional(rest)? {
            Some(lines) => lines.parse().map_err(|_| UsageError::NotALineCount(lines))?,
            None => LOG_LINES,
        }),
        ["render"] => MagicCommand::Render(None),
        ["render", "auto"] => MagicCommand::Render(Some(RenderMagic::Auto)),
        ["render", "rich"] => MagicCommand::Render(Some(RenderMagic::Rich)),
        ["render", "stream"] => MagicCommand::Render(Some(RenderMagic::Stream)),
        ["render", other, ..] => {
            return Err(UsageError::NoSuchRendering((*other).to_owned()));
        }
        ["login", rest @ ..] => MagicCommand::Login(optional(rest)?),
        [other, ..] => return Err(no_such("%agent", &[], other)),
    })
}

fn kernel(words: &[&str]) -> Result<KernelMagic, UsageError> {
    match words {
        [] => return Ok(KernelMagic::Show),
        ["restart"] => return Ok(KernelMagic::Restart),
        ["variables"] => return Ok(KernelMagic::Variables),
        _ => {}
    }
    let (mut kernel, mut session) = (None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--session" if session.is_none() => {
                session = Some(rest.next().ok_or(UsageError::NameOneSession)?.to_string());
            }
            option if option.starts_with('-') => return Err(UsageError::NoSuchOption(option.to_owned())),
            name if kernel.is_none() => kernel = Some(name.to_owned()),
            more => return Err(UsageError::Unexpected(more.to_owned())),
        }
    }
    Ok(KernelMagic::Use { kernel, session })
}

fn mcp(words: &[&str]) -> Result<McpMagic, UsageError> {
    Ok(match words {
        [] | ["list"] => McpMagic::List,
        ["add", name, rest @ ..] => McpMagic::Add(server(name, rest)?),
        ["add"] => return Err(UsageError::ServerWithoutName),
        ["clear"] => McpMagic::Clear,
        ["remove", name] => McpMagic::Remove((*name).to_owned()),
        ["enable", name] => McpMagic::Enable((*name).to_owned()),
        ["disable", name] => McpMagic::Disable((*name).to_owned()),
        ["remove" | "enable" | "disable", ..] => return Err(UsageError::NameOneServer),
        [other, ..] => return Err(no_such("%mcp", &["mcp"], other)),
    })
}

/// `[--env K=V]… [--] COMMAND [ARGS…]`, or `[--transport http|sse] [--header 'K: V']… URL`. Our
/// options come before the command. Everything after it belongs to the command.
fn server(name: &str, words: &[&str]) -> Result<McpServer, UsageError> {
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
                    header.split_once(':').ok_or_else(|| UsageError::NotAHeader((*header).to_owned()))?;
                headers.push(HttpHeader::new(name.trim(), value.trim()));
                later
            }
            ["--transport" | "-t", kind @ ("stdio" | "http" | "sse"), later @ ..] => {
                transport = Some(*kind);
                later
            }
            ["--transport" | "-t", ..] => return Err(UsageError::NoSuchTransport),
            ["--http", later @ ..] => {
                transport = Some("http");
                later
            }
            ["--sse", later @ ..] => {
                transport = Some("sse");
                later
            }
            [option, ..] if option.starts_with('-') => {
                return Err(UsageError::NoSuchOption((*option).to_owned()));
            }
            _ => break,
        };
    }
    let is_address = |word: &str| word.starts_with("http://") || word.starts_with("https://");
    // Behind an address there can be nothing but our options.
    if let [address, options @ ..] = rest
        && is_address(address)
        && options.first().is_some_and(|option| option.starts_with('-'))
        && !words.contains(&"--")
    {
        let reordered: Vec<&str> = options.iter().chain([address]).copied().collect();
        let before = &words[..words.len() - rest.len()];
        return server(name, &[before, &reordered].concat());
    }
    let transport = transport.unwrap_or(match rest {
        [one] if is_address(one) => "http",
        _ => "stdio",
    });
    Ok(match (transport, rest) {
        ("stdio", [address]) if address.contains("://") => {
            return Err(UsageError::NeitherCommandNorAddress((*address).to_owned()));
        }
        ("stdio", [address, ..]) if is_address(address) => return Err(UsageError::OneAddress),
        ("stdio", [command, args @ ..]) if headers.is_empty() => {
            let args = args.iter().map(|word| (*word).to_owned()).collect();
            McpServer::Stdio(McpServerStdio::new(name, *command).args(args).env(env))
        }
        ("stdio", []) => {
            return Err(UsageError::ServerWithoutAddress);
        }
        ("stdio", _) => return Err(UsageError::HeaderForCommand),
        (_, [address]) if is_address(address) && env.is_empty() => match transport {
            "sse" => McpServer::Sse(McpServerSse::new(name, *address).headers(headers)),
            _ => McpServer::Http(McpServerHttp::new(name, *address).headers(headers)),
        },
        (_, [address]) if is_address(address) => {
            return Err(UsageError::VariableForAddress);
        }
        _ => return Err(UsageError::OneAddress),
    })
}

fn permissions(words: &[&str]) -> Result<PermissionsMagic, UsageError> {
    Ok(match words {
        [] | ["show"] => PermissionsMagic::Show,
        ["list" | "history"] => PermissionsMagic::List,
        ["clear"] => PermissionsMagic::Clear,
        [mode] if permission::ApprovalMode::from_str(mode).is_ok() => {
            PermissionsMagic::Mode(permission::ApprovalMode::from_str(mode).expect("just looked at"))
        }
        ["allow" | "deny" | "refuse", _, ..] => PermissionsMagic::Rule(words.join(" ").parse()?),
        ["test"] => return Err(UsageError::TestWithoutCommand),
        ["allow" | "refuse"] => return Err(UsageError::RuleWithoutKind),
        [other, ..] => return Err(no_such("%permissions", &["permissions"], other)),
    })
}

fn session(words: &[&str]) -> Result<SessionMagic, UsageError> {
    let one = |name: &&str| (*name).to_owned();
    Ok(match words {
        ["new", rest @ ..] => new_session(rest)?,
        [] | ["info"] => SessionMagic::Info,
        ["restart"] => SessionMagic::Restart,
        ["list"] => SessionMagic::List(SessionScope::Folder),
        ["list", "--all"] => SessionMagic::List(SessionScope::All),
        ["last"] => SessionMagic::Last,
        ["use", name] => SessionMagic::Use(one(name)),
        ["load", id] => SessionMagic::Load(one(id)),
        ["resume"] => SessionMagic::Resume(None),
        ["resume", id] => SessionMagic::Resume(Some(one(id))),
        ["delete", id] => SessionMagic::Delete(one(id)),
        ["fork"] => SessionMagic::Fork(None),
        ["fork", name] => SessionMagic::Fork(Some(one(name))),
        ["close"] => SessionMagic::Close(None),
        ["close", name] => SessionMagic::Close(Some(one(name))),
        ["use" | "load" | "resume" | "delete", ..] => return Err(UsageError::NameOneSession),
        ["info" | "restart" | "list" | "last" | "fork" | "close", more, ..] => {
            return Err(UsageError::Unexpected((*more).to_owned()));
        }
        [other, ..] => return Err(no_such("%session", &["session"], other)),
    })
}

/// A word that looks like a path is the folder, as in the older kernel. Any other word is the name.
fn new_session(words: &[&str]) -> Result<SessionMagic, UsageError> {
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
                return Err(UsageError::NoSuchOption(option.to_owned()));
            }
            (folder, later) if cwd.is_none() && is_path(folder) => {
                cwd = Some(PathBuf::from(folder));
                later
            }
            (given, later) if name.is_none() => {
                name = Some(given.to_owned());
                later
            }
            (more, _) => return Err(UsageError::Unexpected(more.to_owned())),
        };
    }
    Ok(SessionMagic::New { name, cwd, agent })
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.starts_with(['.', '~'])
}

fn env(words: &[&str]) -> Result<EnvMagic, UsageError> {
    match words {
        [] => Ok(EnvMagic::Show),
        ["unset", name] => Ok(EnvMagic::Unset((*name).to_owned())),
        [pair] => key_value(pair).map(|(name, value)| EnvMagic::Set(name, value)),
        [_, more, ..] => Err(UsageError::UnquotedValue((*more).to_owned())),
    }
}

fn key_value(pair: &str) -> Result<(String, String), UsageError> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(UsageError::NotAPair(pair.to_owned())),
    }
}
