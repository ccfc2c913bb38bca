//! The address of a Jupyter server, and how we authenticate there.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use percent_encoding::percent_decode_str;
use url::{ParseError, Url};

use super::listener::ListeningProcess;
use super::rest::{GatewayError, RestClient};

/// A Jupyter Kernel Gateway, Jupyter Server or Enterprise Gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    token: Option<String>,
    /// The process that has to listen there, if we know it.
    process: Option<ListeningProcess>,
}

/// The text is not the address of a server.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAddress {
    /// It is no URL of the web.
    #[error("`{0}` is not the address of a Jupyter server, such as http://127.0.0.1:8888")]
    NotWeb(String),
    /// Its host name is international, which takes tables that we leave out, or wrong.
    #[error(
        "the host name in `{0}` cannot be read; one that is not ASCII has to be written in its ASCII form, `xn--…`"
    )]
    HostName(String),
}

impl Address {
    /// A server by its URL, which may have a path and, as Jupyter prints it, the name of a page and a `token` in its query.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress::NotWeb(without_secrets(url));
        let mut parsed = Url::parse(url).map_err(|error| match error {
            ParseError::IdnaError => InvalidAddress::HostName(without_secrets(url)),
            _ => invalid(),
        })?;
        if !["http", "https"].contains(&parsed.scheme()) || parsed.host().is_none() {
            return Err(invalid());
        }
        let in_query =
            parsed.query_pairs().find(|(name, _)| name == "token").map(|(_, token)| token.into_owned());
        parsed.set_query(None);
        parsed.set_fragment(None);
        let mut path = without_page(parsed.path()).to_owned();
        if !path.ends_with('/') {
            path.push('/');
        }
        parsed.set_path(&path);
        Ok(Self { url: parsed, token: token.or(in_query).filter(|token| !token.is_empty()), process: None })
    }

    /// The same address, for connections to this process alone.
    pub(super) fn of_process(self, process: ListeningProcess) -> Self {
        Self { process: Some(process), ..self }
    }

    /// Whether what listens there now is the process that should, as far as it is known.
    pub(super) fn is_its_process(&self) -> bool {
        let port = self.url.port_or_known_default().unwrap_or_default();
        self.process.is_none_or(|process| process.listens_at(port))
    }

    /// Where it is.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The kernels it can start. This also shows whether it works and accepts us. Starts nothing.
    pub fn kernels(&self, within: Duration) -> BoxFuture<'static, Result<Vec<String>, GatewayError>> {
        let rest = RestClient::new(self.clone());
        Box::pin(async move { Ok(rest.kernelspecs(within).await?.names()) })
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// What authorises each request: the token, or else the URL's name and password.
    pub(super) fn authorization(&self) -> Option<Result<HeaderValue, InvalidHeaderValue>> {
        let text = if let Some(token) = &self.token {
            format!("token {token}") // kernel gateways know no `Bearer`
        } else if !self.url.username().is_empty() || self.url.password().is_some() {
            let (name, password) = (self.url.username(), self.url.password().unwrap_or_default());
            let pair = percent_decode_str(name).chain(*b":").chain(percent_decode_str(password));
            format!("Basic {}", BASE64_STANDARD.encode(pair.collect::<Vec<u8>>()))
        } else {
            return None;
        };
        Some(HeaderValue::try_from(text).map(|mut value| {
            value.set_sensitive(true);
            value
        }))
    }

    pub(super) fn at(&self, path: &str) -> Url {
        self.url.join(path).expect("our paths are plain")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_secrets(self.url.as_str()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})") // secrets do not go to logs
    }
}

/// The path of a server, without the page that Jupyter's programs print or browsers show: `/lab`, `/tree/folder`,
/// `/lab/tree/a.ipynb`.
fn without_page(path: &str) -> &str {
    let mut before = "";
    let mut at = 0;
    for segment in path.split('/') {
        let rest = path.get(at + segment.len()..).unwrap_or_default();
        let below = rest.strip_prefix('/').unwrap_or_default().split('/').next().unwrap_or_default();
        let is_page = match segment {
            // A base path ends with a slash; a page does not, or is one of the pages below it.
            "lab" => rest.is_empty() || ["tree", "workspaces"].contains(&below),
            "tree" | "notebooks" | "nbclassic" | "edit" | "doc" | "consoles" | "terminals" => {
                rest.is_empty() || !below.is_empty()
            }
            "login" => rest.is_empty(),
            _ => false,
        };
        // A user of a hub may be called like a page.
        if is_page && before != "user" {
            return &path[..at];
        }
        before = segment;
        at += segment.len() + 1;
    }
    path
}

/// A server's URL as it may be shown, be it right or wrong: without name, password and query.
pub fn without_secrets(url: &str) -> String {
    if let Ok(mut parsed) = Url::parse(url)
        && parsed.has_host()
    {
        parsed.set_query(None);
        parsed.set_fragment(None);
        let hidden = parsed.set_username("").and_then(|()| parsed.set_password(None));
        hidden.expect("a URL with a host may have a name and a password");
        return parsed.into();
    }
    // Where they are in one that cannot be read is a guess: rather too much is left out.
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    plain.rsplit_once('@').map_or_else(|| plain.to_owned(), |(_, host)| format!("…@{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::rest::refusal;

    #[test]
    fn an_address_is_read_as_people_paste_it() {
        for (text, url, token) in [
            ("http://127.0.0.1:8888", "http://127.0.0.1:8888/", None),
            ("https://hub.example/user/ada?token=s3", "https://hub.example/user/ada/", Some("s3")),
            ("http://localhost:8888/lab/?token=", "http://localhost:8888/lab/", None),
            // As Jupyter prints them, and browsers show them.
            ("http://localhost:8888/lab?token=s3", "http://localhost:8888/", Some("s3")),
            ("http://127.0.0.1:8888/tree?token=s3", "http://127.0.0.1:8888/", Some("s3")),
            ("http://h/user/ada/lab/tree/a/b.ipynb", "http://h/user/ada/", None),
            ("http://h/lab/workspaces/auto-x", "http://h/", None),
            ("http://h/base/notebooks/a.ipynb?token=s3", "http://h/base/", Some("s3")),
            ("http://h/lab/lab", "http://h/lab/", None),
            ("http://h/user/lab/", "http://h/user/lab/", None),
            ("http://h/user/tree/lab", "http://h/user/tree/", None),
            ("http://h/laboratory", "http://h/laboratory/", None),
        ] {
            let address = Address::new(text, None).unwrap();
            assert_eq!((address.url().as_str(), address.token.as_deref()), (url, token));
        }
        assert!(Address::new("8888", None).is_err() && Address::new("file:///tmp", None).is_err());
        let given = Address::new("http://h/?token=theirs", Some("ours".into())).unwrap();
        assert_eq!(given.token.as_deref(), Some("ours"));
        assert!(!format!("{given:?} {given}").contains("ours"));
    }

    #[test]
    fn passwords_and_tokens_are_never_shown() {
        for (url, shown) in [
            ("http://ada:s3cret@host:8888/lab?token=s3cret#s3cret", "http://host:8888/lab"),
            ("https://hub/user/ada@example.com/?token=s3cret", "https://hub/user/ada@example.com/"),
            ("http://ada:s3cret@/", "…@/"),
            ("ada:s3cret@host:8888", "…@host:8888"),
            ("htp//host?token=s3cret", "htp//host"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(url), shown);
            let (forbidden, ()) = http::Response::builder().status(403).body(()).unwrap().into_parts();
            let told = match Address::new(url, None) {
                Ok(address) => {
                    format!("{address} {address:?} {}", refusal(&address, &forbidden, "", ""))
                }
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!told.contains("s3cret"), "{told}");
        }
    }
}
