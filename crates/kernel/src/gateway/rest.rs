//! A Jupyter server's REST interface: kernels and their descriptions.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Method, Request, StatusCode, response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::{Position, Url};

use super::address::{Address, without_secrets};
use super::connect::{self, ConnectionFailure, HttpConnection, HttpPurpose, Proxy};
use crate::kernelspecs;
use cellwright_cell::with_causes;

/// How long a server may take to answer; to start a kernel may take it longer.
const ANSWER: Duration = Duration::from_secs(20);
const START: Duration = Duration::from_mins(2);

/// The longest answer. What a server can start fits many times.
const LONGEST: usize = 64 << 20;

/// How often a kernel is deleted that its server is just restarting, which it cannot do then.
const DELETE_ATTEMPTS: u32 = 5;
const DELETE_PAUSE: Duration = Duration::from_millis(500);

/// A server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// It does not accept us.
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
    /// It only accepts a typed password.
    #[error(
        "{address} only accepts a password, which programs cannot use; \
         start it with a token (`--IdentityProvider.token=…`) and set CELLWRIGHT_GATEWAY_TOKEN to it"
    )]
    PasswordOnly {
        /// Which server.
        address: String,
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
    /// It cannot be reached.
    #[error("{address} cannot be reached: {why}; check that it runs there")]
    Unreachable {
        /// Which server.
        address: String,
        /// Why.
        why: String,
    },
    /// The proxy on the way to it does not let us through.
    #[error(
        "{address} cannot be reached through the proxy {proxy}: {why}; \
         check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or name the server in NO_PROXY"
    )]
    Proxy {
        /// Which server.
        address: String,
        /// Which proxy.
        proxy: String,
        /// Why.
        why: String,
    },
    /// It sends us elsewhere, where we do not go by ourselves: our token is for the server it was given for.
    #[error(
        "{address} redirects us to {location} ({status}); \
         give the URL of the server itself with its base path, or its token if that is a page to log in"
    )]
    Redirected {
        /// Which server.
        address: String,
        /// What it answered.
        status: StatusCode,
        /// Where it sends us.
        location: String,
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
    kernelspecs: BTreeMap<String, SpecContent>,
}

#[derive(Deserialize)]
struct SpecContent {
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
struct CreatedKernel {
    id: String,
}

#[derive(Deserialize)]
struct RunningKernel {
    name: String,
}

/// Asks one server.
pub(super) struct RestClient {
    pub(super) address: Address,
}

impl RestClient {
    pub(super) fn new(address: Address) -> Self {
        Self { address }
    }

    /// What the server can start. Also the question whether it is well.
    pub(super) async fn kernelspecs(&self, within: Duration) -> Result<KernelSpecs, GatewayError> {
        let answer = self.ask(Method::GET, "api/kernelspecs", "kernels to start", None, within).await;
        if let Err(GatewayError::Refused { address, .. }) = &answer
            && self.wants_password(within).await
        {
            return Err(GatewayError::PasswordOnly { address: address.clone() });
        }
        self.read(&answer?)
    }

    /// Whether its page to log in asks for a password and has no use for a token.
    async fn wants_password(&self, within: Duration) -> bool {
        let url = self.address.at("login");
        let answer = timeout(within, self.exchange(Method::GET, &url, None)).await;
        let Ok(Ok((_, Ok(page)))) = answer else { return false };
        let page = String::from_utf8_lossy(&page);
        page.contains("name=\"password\"") && !page.contains("Token authentication is enabled")
    }

    /// The name of the kernelspec of a kernel that runs there.
    pub(super) async fn running(&self, kernel: &str) -> Result<String, GatewayError> {
        let path = format!("api/kernels/{kernel}");
        let what = format!("kernel `{kernel}` that runs");
        let answer = self.ask(Method::GET, &path, &what, None, ANSWER).await?;
        Ok(self.read::<RunningKernel>(&answer)?.name)
    }

    /// Starts a kernel; its id. A server that fails by itself is asked once more: busy ones, and those that place kernels
    /// on other machines, often succeed then.
    pub(super) async fn create(
        &self,
        name: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<String, GatewayError> {
        let body = json!({"name": name, "env": env});
        let ask = || self.ask(Method::POST, "api/kernels", "kernels", Some(body.clone()), START);
        let answer = match ask().await {
            Err(GatewayError::Failed { status, .. }) if status.is_server_error() => ask().await?,
            answer => answer?,
        };
        Ok(self.read::<CreatedKernel>(&answer)?.id)
    }

    pub(super) async fn interrupt(&self, kernel: &str) -> Result<(), GatewayError> {
        let path = format!("api/kernels/{kernel}/interrupt");
        self.ask(Method::POST, &path, "such kernel", None, ANSWER).await.map(drop)
    }

    /// Ends a kernel. It may have ended already.
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

    /// The body of an answer that is a success.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        what: &str,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Bytes, GatewayError> {
        let url = self.address.at(path);
        let Ok(exchanged) = timeout(limit, self.exchange(method, &url, body)).await else {
            return Err(GatewayError::Timeout { address: self.address.to_string(), limit });
        };
        let (head, body) = exchanged?;
        if head.status.is_success() {
            return body;
        }
        let text = body.unwrap_or_default(); // the status is enough
        Err(refusal(&self.address, &head, what, &String::from_utf8_lossy(&text)))
    }

    /// Sends a request on a connection of its own, and waits for all of the answer. The body has its own error: the status
    /// of a refusal is enough.
    async fn exchange(
        &self,
        method: Method,
        url: &Url,
        body: Option<Value>,
    ) -> Result<(response::Parts, Result<Bytes, GatewayError>), GatewayError> {
        let connection = HttpConnection::open(&self.address, HttpPurpose::Requests).await?;
        let request = self.request(&method, url, body, connection.forwarder.as_ref())?;
        let failed = |error: hyper::Error| {
            if error.is_parse() {
                return self.not_jupyter(with_causes(&error));
            }
            ConnectionFailure::of(&error).at(&self.address)
        };
        let (mut sender, _driver) = connect::http(connection.stream).await.map_err(failed)?;
        let (head, body) = sender.send_request(request).await.map_err(failed)?.into_parts();
        if let (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(proxy)) = (head.status, &connection.forwarder)
        {
            return Err(GatewayError::Proxy {
                address: self.address.to_string(),
                proxy: proxy.to_string(),
                why: format!("it answered {}", head.status),
            });
        }
        let body = match Limited::new(body, LONGEST).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(self.not_jupyter(format!("its answer has more than {LONGEST} bytes")))
            }
            Err(error) => Err(self.not_jupyter(with_causes(&*error))),
        };
        Ok((head, body))
    }

    fn request(
        &self,
        method: &Method,
        url: &Url,
        body: Option<Value>,
        forwarder: Option<&Proxy>,
    ) -> Result<Request<Full<Bytes>>, GatewayError> {
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let target = match forwarder {
            Some(_) => format!("{}://{host}{path}", url.scheme()),
            None => path.to_owned(),
        };
        let body = body.map(|body| Bytes::from(body.to_string()));
        let has_body = body.is_some();
        let unsendable = |error: http::Error| ConnectionFailure::of(&error).at(&self.address);
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, host)
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Full::new(body.unwrap_or_default()))
            .map_err(unsendable)?;
        let headers = request.headers_mut();
        if let Some(authorization) = self.address.authorization() {
            headers.insert(AUTHORIZATION, authorization.map_err(|error| unsendable(error.into()))?);
        }
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        } else if *method == Method::POST {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0")); // some proxies want to know
        }
        if let Some(proxy) = forwarder {
            proxy.authorize(&mut request);
        }
        Ok(request)
    }

    fn read<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, GatewayError> {
        let unexpected = |error| self.not_jupyter(format!("its answer cannot be read: {error}"));
        serde_json::from_slice(answer).map_err(unexpected)
    }

    fn not_jupyter(&self, why: String) -> GatewayError {
        GatewayError::NotJupyter { address: self.address.to_string(), why }
    }
}

/// What an answer that is no success means.
pub(super) fn refusal(address: &Address, head: &response::Parts, what: &str, text: &str) -> GatewayError {
    let status = head.status;
    let with_token = address.has_token();
    let location = head.headers.get(LOCATION).filter(|_| status.is_redirection());
    if let Some(location) = location.and_then(|location| address.url().join(location.to_str().ok()?).ok()) {
        let location = without_secrets(location.as_str());
        return GatewayError::Redirected { address: address.to_string(), status, location };
    }
    let address = address.to_string();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let reason = message(text);
            let reason =
                (Some(reason.as_str()) != status.canonical_reason() && !reason.is_empty()).then_some(reason);
            let message = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            GatewayError::Refused { address, status, message, with_token }
        }
        StatusCode::NOT_FOUND => GatewayError::NotFound { address, what: what.to_owned() },
        _ => GatewayError::Failed { address, status, message: message(text) },
    }
}

/// What a server says about an error: a field of JSON, or the beginning of a page.
fn message(text: &str) -> String {
    let answer = serde_json::from_str::<Value>(text).ok();
    let field =
        |name| answer.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let reason = field("message").or_else(|| field("reason"));
    reason.unwrap_or_else(|| text.chars().take(200).collect::<String>().trim().to_owned())
}

impl KernelSpecs {
    pub(super) fn names(self) -> Vec<String> {
        self.kernelspecs.into_keys().collect()
    }

    /// The kernel of that name, or else the best one for a language of that name. Without a name, the default.
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
