//! A proxy before a server, for connections that break.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Passes bytes on, and cuts every connection each time it is told to.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    pub(crate) cut: Arc<Notify>,
    /// How many bytes have come from the server.
    passed: watch::Sender<u64>,
    /// Nobody is let through.
    is_shut: Arc<AtomicBool>,
    /// Messages have come as text, the way of old servers.
    pub(crate) as_text: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self {
            port,
            cut: Arc::default(),
            passed: watch::Sender::new(0),
            is_shut: Arc::default(),
            as_text: Arc::default(),
        };
        let (cut, passed) = (Arc::clone(&proxy.cut), proxy.passed.clone());
        let (is_shut, as_text) = (Arc::clone(&proxy.is_shut), Arc::clone(&proxy.as_text));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if is_shut.load(Ordering::Relaxed) {
                    continue; // which hangs up
                }
                let (cut, passed, as_text) = (Arc::clone(&cut), passed.clone(), Arc::clone(&as_text));
                tokio::spawn(async move {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.unwrap();
                    tokio::select! {
                        () = pass_on(client, server, &passed, &as_text) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        proxy
    }

    /// Cuts the connections that are open once so many bytes more have come from the server.
    pub(crate) async fn cut_after(&self, bytes: u64) {
        let mut passed = self.passed.subscribe();
        let until = *passed.borrow() + bytes;
        passed.wait_for(|&passed| passed >= until).await.expect("the proxy has the sender");
        self.cut.notify_waiters();
    }

    /// Cuts every connection and lets nobody through any more.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.cut.notify_waiters();
    }

    /// Lets them through again.
    pub(crate) fn open(&self) {
        self.is_shut.store(false, Ordering::Relaxed);
    }
}

async fn pass_on(client: TcpStream, server: TcpStream, passed: &watch::Sender<u64>, as_text: &AtomicBool) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async { drop(tokio::io::copy(&mut from_client, &mut to_server).await) };
    let down = async {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = from_server.read(&mut chunk).await {
            passed.send_modify(|passed| *passed += read as u64);
            as_text.fetch_or(
                memchr::memmem::find(&chunk[..read], br#""channel": "iopub""#).is_some(),
                Ordering::Relaxed,
            );
            if to_client.write_all(&chunk[..read]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! { () = up => {}, () = down => {} }
}
