//! A Jupyter server's REST interface: kernels and their descriptions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Host, Url};

use crate::conversation::with_causes;
use crate::kernelspecs;

/// How long a server may take to answer; to start a kernel may take it longer.
const ANSWER: Duration = Duration::from_secs(20);
const START: Duration = Duration::from_mins(2);

/// How long it may take to reach a server.
const CONNECT: Duration = Duration::from_secs(5);

/// How often a kernel is deleted that its server is just restarting, which it can not do then.
const DELETE_ATTEMPTS: u32 = 5;
const DELETE_PAUSE: Duration = Duration::from_millis(500);

/// A Jupyter Kernel Gateway, Jupyter Server or Enterprise Gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    token: Option<String>,
}

/// The text is not the address of a server.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the address of a Jupyter server, such as http://127.0.0.1:8888")]
pub struct InvalidAddress(String);

impl Address {
    /// A server by its URL, which may have a path and, as Jupyter prints it, a `token` in its query.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(without_secrets(url));
        let mut parsed = Url::parse(url).map_err(|_| invalid())?;
        if !["http", "https"].contains(&parsed.scheme()) || parsed.host().is_none() {
            return Err(invalid());
        }
        let in_query =
            parsed.query_pairs().find(|(name, _)| name == "token").map(|(_, token)| token.into_owned());
        parsed.set_query(None);
        parsed.set_fragment(None);
        if !parsed.path().ends_with('/') {
            let path = format!("{}/", parsed.path());
            parsed.set_path(&path);
        }
        Ok(Self { url: parsed, token: token.or(in_query).filter(|token| !token.is_empty()) })
    }

    /// Where it is.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The kernels it can start, which also tells whether it is well and lets us in. Starts nothing.
    pub async fn kernels(&self, within: Duration) -> Result<Vec<String>, GatewayError> {
        let specs = Rest::new(self.clone())?.kernelspecs(within).await?;
        Ok(specs.kernelspecs.into_keys().collect())
    }

    /// What every request says to be let in.
    pub(super) fn authorization(&self) -> Option<String> {
        // Kernel gateways know no `Bearer`.
        self.token.as_ref().map(|token| format!("token {token}"))
    }

    pub(super) fn at(&self, path: &str) -> Url {
        self.url.join(path).expect("our paths are plain")
    }

    fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
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
    // Where they are in one that can not be read is a guess: rather too much is left out.
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    plain.rsplit_once('@').map_or_else(|| plain.to_owned(), |(_, host)| format!("…@{host}"))
}

/// A server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// It wants to know who we are.
    #[error(
        "{address} refuses us ({status}{message}); {}",
        if *with_token { "check that CELLWRIGHT_GATEWAY_TOKEN is its token" } else { "it wants a token: set CELLWRIGHT_GATEWAY_TOKEN" }
    )]
    Refused {
        /// Which server.
        address: String,
        /// What it answered.
        status: StatusCode,
        /// What it said beyond that, after a colon.
        message: String,
        /// We had a token.
        with_token: bool,
    },
    /// It has no such thing.
    #[error("{address} has no {what}; check that the URL is that of a Jupyter server, with its base path")]
    NotFound {
        /// Which server.
        address: String,
        /// What was asked for.
        what: String,
    },
    /// There is no such kernel to start.
    #[error("{address} has no kernel for `{name}`; it has {}", installed.join(", "))]
    NoKernelSpec {
        /// Which server.
        address: String,
        /// What was asked for.
        name: String,
        /// What it has.
        installed: Vec<String>,
    },
    /// It did not answer in time.
    #[error("{address} did not answer within {} seconds; check that it runs and can be reached from here", limit.as_secs())]
    Timeout {
        /// Which server.
        address: String,
        /// How long it had.
        limit: Duration,
    },
    /// Its certificate is not trusted, or it does not speak TLS.
    #[error(
        "no secure connection to {address}: {why}; a certificate of your own can be named in SSL_CERT_FILE"
    )]
    Tls {
        /// Which server.
        address: String,
        /// Why.
        why: String,
    },
    /// It can not be reached.
    #[error("{address} can not be reached: {why}; check that it runs there")]
    Unreachable {
        /// Which server.
        address: String,
        /// Why.
        why: String,
    },
    /// It answered with an error.
    #[error("{address} answered {status}: {message}")]
    Failed {
        /// Which server.
        address: String,
        /// What it answered.
        status: StatusCode,
        /// What it said.
        message: String,
    },
    /// It answered something else than a Jupyter server would.
    #[error("{address} does not answer like a Jupyter server: {why}")]
    NotJupyter {
        /// Which server.
        address: String,
        /// What is wrong.
        why: String,
    },
}

/// What kernels a server can start.
#[derive(Deserialize)]
pub(super) struct KernelSpecs {
    default: Option<String>,
    #[serde(default)]
    kernelspecs: BTreeMap<String, Spec>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

/// Asks one server.
pub(super) struct Rest {
    client: reqwest::Client,
    pub(super) address: Address,
}

impl Rest {
    pub(super) fn new(address: Address) -> Result<Self, GatewayError> {
        // Once for the process; whoever was first has set the same one.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = reqwest::Client::builder().connect_timeout(CONNECT);
        if address.is_loopback() {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| GatewayError::Tls { address: address.to_string(), why: with_causes(&error) })?;
        Ok(Self { client, address })
    }

    /// What the server can start. Also the question whether it is well.
    pub(super) async fn kernelspecs(&self, within: Duration) -> Result<KernelSpecs, GatewayError> {
        let answer = self.ask(Method::GET, "api/kernelspecs", "kernels to start", None, within).await?;
        self.read(answer).await
    }

    /// Starts a kernel; its id.
    pub(super) async fn create(
        &self,
        name: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<String, GatewayError> {
        let body = json!({"name": name, "env": env});
        let answer = self.ask(Method::POST, "api/kernels", "kernels", Some(body), START).await?;
        Ok(self.read::<Created>(answer).await?.id)
    }

    pub(super) async fn interrupt(&self, kernel: &str) -> Result<(), GatewayError> {
        let path = format!("api/kernels/{kernel}/interrupt");
        self.ask(Method::POST, &path, "such kernel", None, ANSWER).await.map(drop)
    }

    /// Ends a kernel. One that is gone is as good.
    pub(super) async fn delete(&self, kernel: &str) -> Result<(), GatewayError> {
        let path = format!("api/kernels/{kernel}");
        let mut attempt = 1;
        loop {
            match self.ask(Method::DELETE, &path, "such kernel", None, ANSWER).await {
                Ok(_) | Err(GatewayError::NotFound { .. }) => return Ok(()),
                Err(GatewayError::Failed { .. }) if attempt < DELETE_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(DELETE_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        what: &str,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Response, GatewayError> {
        let mut request = self.client.request(method, self.address.at(path)).timeout(limit);
        if let Some(authorization) = self.address.authorization() {
            request = request.header("Authorization", authorization);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.map_err(|error| self.unanswered(&error, limit))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status => {
                let text = answer.text().await.unwrap_or_default();
                Err(refusal(&self.address, status, what, &text))
            }
        }
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, answer: Response) -> Result<T, GatewayError> {
        let not_jupyter = |error: reqwest::Error| GatewayError::NotJupyter {
            address: self.address.to_string(),
            why: with_causes(&error),
        };
        answer.json().await.map_err(not_jupyter)
    }

    fn unanswered(&self, error: &reqwest::Error, limit: Duration) -> GatewayError {
        let address = self.address.to_string();
        let why = with_causes(error);
        if error.is_timeout() {
            return GatewayError::Timeout {
                address,
                limit: if error.is_connect() { CONNECT } else { limit },
            };
        }
        if is_tls(&why) {
            return GatewayError::Tls { address, why };
        }
        GatewayError::Unreachable { address, why }
    }
}

/// Whether an error is one of the secure layer, by its words: the types that know are the library's own.
pub(super) fn is_tls(why: &str) -> bool {
    ["certificate", "CertificateUnknown", "InvalidContentType", "corrupt message", "TLS"]
        .iter()
        .any(|word| why.contains(word))
}

/// What an answer that is no success means.
pub(super) fn refusal(address: &Address, status: StatusCode, what: &str, text: &str) -> GatewayError {
    let with_token = address.token.is_some();
    let address = address.to_string();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let told = message(text);
            let told = (Some(told.as_str()) != status.canonical_reason() && !told.is_empty()).then_some(told);
            let message = told.map(|told| format!(": {told}")).unwrap_or_default();
            GatewayError::Refused { address, status, message, with_token }
        }
        StatusCode::NOT_FOUND => GatewayError::NotFound { address, what: what.to_owned() },
        _ => GatewayError::Failed { address, status, message: message(text) },
    }
}

/// What a server says about an error: a field of JSON, or the beginning of a page.
fn message(text: &str) -> String {
    let told = serde_json::from_str::<Value>(text).ok();
    let field = |name| told.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let told = field("message").or_else(|| field("reason"));
    told.unwrap_or_else(|| text.chars().take(200).collect::<String>().trim().to_owned())
}

impl KernelSpecs {
    /// The kernel of that name, else the best for a language of that name; the default when none is named.
    pub(super) fn choose(self, wanted: Option<&str>, address: &Address) -> Result<String, GatewayError> {
        let installed: Vec<_> = self.kernelspecs.keys().cloned().collect();
        let found = match wanted {
            None => self.default.or_else(|| installed.first().cloned()),
            Some(name) if self.kernelspecs.contains_key(name) => Some(name.to_owned()),
            Some(language) => {
                let specs = self.kernelspecs.into_iter().map(|(name, spec)| {
                    (spec.spec["language"].as_str().unwrap_or_default().to_owned(), name)
                });
                kernelspecs::best(specs.collect(), language, |name| name)
            }
        };
        found.ok_or_else(|| GatewayError::NoKernelSpec {
            address: address.to_string(),
            name: wanted.unwrap_or("the default").to_owned(),
            installed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_paste_it() {
        for (text, url, token) in [
            ("http://127.0.0.1:8888", "http://127.0.0.1:8888/", None),
            ("https://hub.example/user/ada?token=s3", "https://hub.example/user/ada/", Some("s3")),
            ("http://localhost:8888/lab/?token=", "http://localhost:8888/lab/", None),
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
            let told = match Address::new(url, None) {
                Ok(address) => {
                    format!("{address} {address:?} {}", refusal(&address, StatusCode::FORBIDDEN, "", ""))
                }
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!told.contains("s3cret"), "{told}");
        }
    }

    #[test]
    fn loopback_is_known_in_every_spelling() {
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("http://127.8.9.1:1", true),
            ("http://[::1]:1", true),
            ("http://gateway.localhost", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Address::new(url, None).unwrap().is_loopback(), loopback, "{url}");
        }
    }
}
