//! Connections of those who have no token: they cost little, and keep nobody out.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use super::BINARY;

/// `cellwright mcp --http`, where it listens, and its token.
struct HttpChild {
    child: Child,
    address: SocketAddr,
    token: String,
    /// Kept open: what the server says has to go somewhere.
    _said: BufReader<ChildStderr>,
    _home: tempfile::TempDir,
}

impl HttpChild {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(BINARY);
        command.args(["mcp", "--http", "127.0.0.1:0", "--no-warm-up"]).current_dir(home.path());
        command.env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut after = |start: &str| {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line.trim_end().strip_prefix(start).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let address = after("listening on http://").trim_end_matches("/mcp").parse().unwrap();
        let token = after("token: ");
        Self { child, address, token, _said: said, _home: home }
    }

    /// Resident memory, in megabytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
    }

    /// The status of the answer to a client that has the token.
    fn asks(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
        .unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for HttpChild {
    fn drop(&mut self) {
        drop(self.child.kill()); // it may be gone already
        drop(self.child.wait()); // the same
    }
}

#[test]
fn half_sent_requests_and_large_bodies_without_a_token_keep_nobody_out() {
    let server = HttpChild::start();
    assert!(server.asks().contains("200"));
    let before = server.memory();
    let half: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // One of those that made room already is closed at the other end.
            drop(stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
            stream
        })
        .collect();
    let begin = Instant::now();
    assert!(server.asks().contains("200"));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    let large: Vec<_> = (0..20)
        .map(|_| {
            let address = server.address;
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    60 << 20
                );
                stream.write_all(head.as_bytes()).unwrap();
                let piece = vec![b'x'; 1 << 20];
                // It is refused before it has sent all of it.
                let sent = (0..60).take_while(|_| stream.write_all(&piece).is_ok()).count();
                let mut answer = Vec::new();
                drop(stream.read_to_end(&mut answer)); // the rest of what it sent may have cut the answer off
                sent
            })
        })
        .collect();
    let begin = Instant::now();
    assert!(server.asks().contains("200"));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    let most = large.into_iter().map(|thread| thread.join().unwrap()).max().unwrap();
    assert!(most < 60, "a body without a token was read whole");
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 50, "{grown} MB more");
    drop(half);
}
