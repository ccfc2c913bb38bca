//! Proxies that the environment names.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use url::{Host, Url};

use super::{ByteStream, ConnectionFailure, http, tcp, tls};

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum HttpPurpose {
    Requests,
    Websocket,
}

/// The way to a server.
#[derive(Debug)]
pub(super) enum Route {
    Direct,
    /// The proxy reads our requests and makes its own.
    Forwarded(Proxy),
    /// The proxy passes bytes on.
    Tunnel(Proxy),
}

/// A proxy, and how it knows us.
#[derive(Debug)]
pub(in crate::gateway) struct Proxy {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uri) // name and password are not in it
    }
}

/// The proxies this process was started with.
pub(super) fn of_environment() -> &'static Matcher {
    static PROXIES: OnceLock<Matcher> = OnceLock::new();
    PROXIES.get_or_init(Matcher::from_env)
}

/// How to get to a URL. This machine is never reached through a proxy, whatever `NO_PROXY` says.
pub(super) fn route(proxies: &Matcher, url: &Url, purpose: HttpPurpose) -> Route {
    let uri = Uri::builder().scheme(url.scheme()).authority(authority(url)).path_and_query("/").build();
    let proxy = uri.ok().filter(|_| !is_loopback(url)).and_then(|uri| proxies.intercept(&uri));
    match (proxy.as_ref().map(Proxy::new), purpose) {
        (None, _) => Route::Direct,
        // Many proxies tunnel to the ports of TLS alone, so what can do without does.
        (Some(proxy), HttpPurpose::Requests) if url.scheme() == "http" => Route::Forwarded(proxy),
        (Some(proxy), HttpPurpose::Requests | HttpPurpose::Websocket) => Route::Tunnel(proxy),
    }
}

impl Proxy {
    fn new(intercept: &Intercept) -> Self {
        Self { uri: intercept.uri().clone(), authorization: intercept.basic_auth().cloned() }
    }

    /// Adds what the proxy wants to know of us.
    pub(in crate::gateway) fn authorize<T>(&self, request: &mut Request<T>) {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }

    /// Connects to the proxy itself.
    pub(super) async fn connect(&self) -> Result<Box<dyn ByteStream>, ConnectionFailure> {
        let secure = match self.uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => {
                let why = "only HTTP proxies can be used, not SOCKS".to_owned();
                return Err(ConnectionFailure::Broken(why));
            }
        };
        let url = Url::parse(&self.uri.to_string()).map_err(|error| ConnectionFailure::of(&error))?;
        let stream = tcp(&url).await.map_err(|error| ConnectionFailure::of(&error))?;
        if secure { tls::secure(stream, &url).await } else { Ok(stream) }
    }

    /// Connects to a server through the proxy.
    pub(super) async fn tunnel(&self, url: &Url) -> Result<Box<dyn ByteStream>, ConnectionFailure> {
        let broken = |error: hyper::Error| ConnectionFailure::of(&error);
        let (mut sender, _driver) = http(self.connect().await?).await.map_err(broken)?;
        let authority = authority(url);
        let request = Request::builder().method(Method::CONNECT).uri(&authority).header(HOST, &authority);
        let request = request.body(Full::<Bytes>::default());
        let mut request = request.map_err(|error| ConnectionFailure::of(&error))?;
        self.authorize(&mut request);
        let answer = sender.send_request(request).await.map_err(broken)?;
        if !answer.status().is_success() {
            return Err(ConnectionFailure::Broken(format!("it answered {}", answer.status())));
        }
        let tunnel = hyper::upgrade::on(answer).await.map_err(broken)?;
        Ok(Box::new(TokioIo::new(tunnel)))
    }
}

/// The URL's host with its port, which is always written out.
fn authority(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(proxies: &Matcher, url: &str, purpose: HttpPurpose) -> String {
        match route(proxies, &Url::parse(url).unwrap(), purpose) {
            Route::Direct => "direct".to_owned(),
            Route::Forwarded(proxy) => format!("forwarded by {proxy}"),
            Route::Tunnel(proxy) => format!("tunnel through {proxy}"),
        }
    }

    #[test]
    fn proxies_are_chosen_by_scheme_and_purpose() {
        let proxies = Matcher::builder()
            .http("http://ada:s3cret@one:1")
            .https("two:2")
            .no("10.0.0.0/8, .inside")
            .build();
        for (url, requests, websocket) in [
            ("http://server/", "forwarded by http://one:1/", "tunnel through http://one:1/"),
            ("https://server/", "tunnel through http://two:2/", "tunnel through http://two:2/"),
            ("http://10.1.2.3:8888/", "direct", "direct"),
            ("https://jupyter.inside/", "direct", "direct"),
            ("https://[2001:db8::1]:8888/", "tunnel through http://two:2/", "tunnel through http://two:2/"),
        ] {
            assert_eq!(way(&proxies, url, HttpPurpose::Requests), requests, "{url}");
            assert_eq!(way(&proxies, url, HttpPurpose::Websocket), websocket, "{url}");
        }
        let none = Matcher::builder().build();
        assert_eq!(way(&none, "https://server/", HttpPurpose::Websocket), "direct");
    }

    #[test]
    fn loopback_is_never_reached_through_a_proxy() {
        let proxies = Matcher::builder().all("http://proxy:1").build();
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("http://127.8.9.1:1", true),
            ("http://[::1]:1", true),
            ("http://gateway.localhost", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            let way = way(&proxies, url, HttpPurpose::Websocket);
            assert_eq!(way == "direct", loopback, "{url}: {way}");
        }
    }

    #[tokio::test]
    async fn a_socks_proxy_is_refused_and_not_passed_by() {
        let proxies = Matcher::builder().all("socks5h://ada:s3cret@proxy:1080").build();
        let Route::Tunnel(proxy) =
            route(&proxies, &Url::parse("https://server").unwrap(), HttpPurpose::Requests)
        else {
            panic!("it was passed by");
        };
        assert_eq!(proxy.connect().await.err().unwrap().why(), "only HTTP proxies can be used, not SOCKS");
        assert_eq!(proxy.to_string(), "socks5h://proxy:1080/");
    }
}
