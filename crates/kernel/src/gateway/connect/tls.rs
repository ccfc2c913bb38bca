//! The secure layer, with the system's certificates.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{ByteStream, ConnectionFailure};
use cellwright_cell::with_causes;

/// Speaks TLS with the URL's host on a stream that leads there.
pub(super) async fn secure(
    stream: Box<dyn ByteStream>,
    url: &Url,
) -> Result<Box<dyn ByteStream>, ConnectionFailure> {
    let config = config().await?;
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).map_err(|error| {
            ConnectionFailure::Tls(format!("its name cannot be in a certificate: {error}"))
        })?,
        Some(Host::Ipv4(ip)) => ServerName::from(std::net::IpAddr::from(ip)),
        Some(Host::Ipv6(ip)) => ServerName::from(std::net::IpAddr::from(ip)),
        None => return Err(ConnectionFailure::Broken("its URL has no host".to_owned())),
    };
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        // What a server does that expects something else than TLS.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(ConnectionFailure::Tls("it closed the connection instead of using TLS".to_owned()))
        }
        Err(error) => Err(ConnectionFailure::of(&error)),
    }
}

/// Made once in a process, when it is first needed: there are hundreds of certificates to read.
async fn config() -> Result<Arc<ClientConfig>, ConnectionFailure> {
    static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();
    let made = CONFIG.get_or_try_init(async || {
        let reading = tokio::task::spawn_blocking(|| config_with(roots()?));
        reading.await.expect("reading certificates does not panic").map(Arc::new)
    });
    made.await.cloned()
}

fn config_with(roots: RootCertStore) -> Result<ClientConfig, ConnectionFailure> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectionFailure::Tls(with_causes(&error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The system's certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn roots() -> Result<RootCertStore, ConnectionFailure> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some systems have certificates that nothing can read. The others work without them.
    let (added, unusable) = roots.add_parsable_certificates(found.certs);
    let errors: Vec<_> = found.errors.iter().map(|error| with_causes(error)).collect();
    let message = errors.join("; ");
    tracing::debug!(added, unusable, errors = message, "read the certificates to trust");
    match (added, message.as_str()) {
        (0, "") => Err(ConnectionFailure::Tls("this system has no certificates to trust".to_owned())),
        (0, message) => Err(ConnectionFailure::Tls(format!("there are no certificates to trust: {message}"))),
        (1.., _) => Ok(roots),
    }
}
