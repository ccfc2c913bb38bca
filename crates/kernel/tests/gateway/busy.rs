//! A server that fails to start a kernel.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cellwright_kernel::Outcome;
use cellwright_testkit::servers::Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{launch, run};

/// Answers the first requests for a kernel with 503 and passes all others on. Its port, and how many it refused.
async fn overloaded(server: u16, failures: u32) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refused = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&refused);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let length = client.read(&mut head).await.unwrap();
            head.truncate(length);
            if head.starts_with(b"POST /api/kernels ") && count.load(Ordering::Relaxed) < failures {
                count.fetch_add(1, Ordering::Relaxed);
                let answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntoo busy";
                client.write_all(answer).await.unwrap();
                continue;
            }
            tokio::spawn(async move {
                let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.unwrap();
                server.write_all(&head).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    (port, refused)
}

#[tokio::test]
async fn a_server_that_fails_to_start_a_kernel_is_asked_once_more() {
    let server = Server::kernel_gateway().await;
    let (port, refused) = overloaded(server.port, 1).await;
    let launched = launch(server.address_at(port), Path::new("/")).start().await.unwrap();
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    assert_eq!(run(&launched, "print(1)").await.outcome, Outcome::Completed);

    let (port, refused) = overloaded(server.port, u32::MAX).await;
    let error = launch(server.address_at(port), Path::new("/")).start().await.unwrap_err().to_string();
    assert_eq!(refused.load(Ordering::Relaxed), 2);
    assert!(error.contains("503") && error.contains("too busy"), "{error}");
}
