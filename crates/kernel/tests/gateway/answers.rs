//! What servers answer that are not as they should be.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use cellwright_kernel::gateway::{Address, GatewayError};

const WITHIN: Duration = Duration::from_mins(1);

/// A server that takes one request and answers it with these bytes.
struct OneAnswer {
    port: u16,
    serving: JoinHandle<String>,
}

impl OneAnswer {
    fn new(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = answer.into();
        let serving = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            drop(client.write_all(&answer)); // the client may have read enough
            String::from_utf8(request).unwrap()
        });
        Self { port, serving }
    }

    /// The request it got.
    fn request(self) -> String {
        self.serving.join().unwrap()
    }

    async fn ask(&self, token: Option<&str>) -> Result<Vec<String>, GatewayError> {
        let url = format!("http://127.0.0.1:{}/user/ada", self.port);
        Address::new(&url, token.map(str::to_owned)).unwrap().kernels(WITHIN).await
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_server_that_forbids_is_quoted() {
    let server = OneAnswer::new(answer("403 Forbidden", "", r#"{"message": "your quota is used up"}"#));
    let error = server.ask(Some("t0ken")).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "http://127.0.0.1:{}/user/ada/ refuses us (403 Forbidden: your quota is used up); \
             check that CELLWRIGHT_GATEWAY_TOKEN is its token",
            server.port
        )
    );
    let request = server.request();
    assert!(request.starts_with("GET /user/ada/api/kernelspecs HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: token t0ken\r\n"), "{request}");
}

#[tokio::test]
async fn the_name_and_password_of_the_url_are_sent() {
    let server = OneAnswer::new(answer("200 OK", "", r#"{"kernelspecs": {"python3": {}}}"#));
    let url = format!("http://ada:p%40ss%3Aword@127.0.0.1:{}", server.port);
    let kernels = Address::new(&url, None).unwrap().kernels(WITHIN).await.unwrap();
    assert_eq!(kernels, ["python3"]);
    let request = server.request();
    // ada:p@ss:word
    assert!(request.contains("\r\nauthorization: Basic YWRhOnBAc3M6d29yZA==\r\n"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_reported_with_where_it_leads() {
    for (location, shown) in [
        ("https://hub.example/user/ada/api/kernelspecs", "https://hub.example/user/ada/api/kernelspecs"),
        ("/hub/login?next=%2Fuser&token=s3cret", "http://127.0.0.1:PORT/hub/login"),
    ] {
        let server = OneAnswer::new(answer("302 Found", &format!("Location: {location}\r\n"), ""));
        let error = server.ask(None).await.unwrap_err().to_string();
        let port = server.port.to_string();
        assert!(
            error.contains(&format!("redirects us to {} (302 Found)", shown.replace("PORT", &port))),
            "{error}"
        );
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_breaks_off_is_not_taken_for_one_of_jupyter() {
    for bytes in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"kern",
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
    ] {
        let error = OneAnswer::new(bytes).ask(None).await.unwrap_err();
        assert!(matches!(error, GatewayError::NotJupyter { .. }), "{bytes}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_not_held() {
    let mut endless = b"HTTP/1.1 200 OK\r\n\r\n\"".to_vec();
    endless.resize(65 << 20, b' ');
    let error = OneAnswer::new(endless).ask(None).await.unwrap_err().to_string();
    assert!(error.ends_with("its answer has more than 67108864 bytes"), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let limit = Duration::from_millis(50);
    let error = Address::new(&url, None).unwrap().kernels(limit).await.unwrap_err();
    assert!(matches!(error, GatewayError::Timeout { limit: told, .. } if told == limit), "{error}");
}

#[test]
fn a_host_name_that_is_not_ascii_says_how_to_write_it() {
    let error =
        Address::new("http://ada:s3cret@b\u{fc}cher.example/?token=s3cret", None).unwrap_err().to_string();
    assert_eq!(
        error,
        "the host name in `…@b\u{fc}cher.example/` cannot be read; \
         one that is not ASCII has to be written in its ASCII form, `xn--…`"
    );
    let ascii = Address::new("http://xn--bcher-kva.example", None).unwrap();
    assert_eq!(ascii.to_string(), "http://xn--bcher-kva.example/");
}
