//! The port of the embedded engine: no page in a browser can use it.

use dev_server::engine::Engine;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Over a socket of its own. Returns the response.
fn send(engine: &Engine, method: &str, headers: &str) -> String {
    let address = engine.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let body = "{}";
    let credentials =
        "authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b";
    let request = format!(
        "{method} / HTTP/1.1\r\n{headers}x-amz-target: DynamoDB_20120810.ListTables\r\nx-amz-date: 20260101T000000Z\r\n{credentials}\r\n\
         content-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn programs_on_this_machine_can_use_the_engine() {
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
    let port = engine.url.rsplit(':').next().unwrap().to_owned();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        "LOCALHOST".into(),
        format!("[::1]:{port}"),
        "127.0.0.2".into(),
    ] {
        let response = send(&engine, "POST", &format!("host: {host}\r\n"));
        assert!(response.starts_with("HTTP/1.1 200") && response.contains("TableNames"), "{host}: {response}");
    }
}

#[test]
fn pages_of_any_origin_are_refused() {
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
    let port = engine.url.rsplit(':').next().unwrap().to_owned();
    for headers in [
        format!("host: 127.0.0.1:{port}\r\norigin: https://evil.example\r\n"),
        format!("host: 127.0.0.1:{port}\r\norigin: null\r\n"),
        format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\n"),
        // A name that was resolved to this machine.
        format!("host: evil.example:{port}\r\n"),
        format!("host: 127.0.0.1.evil.example:{port}\r\n"),
        format!("host: localhost.evil.example:{port}\r\n"),
        format!("host: [::1].evil.example:{port}\r\n").replace("[::1].", "1."),
        "host: 10.0.0.1\r\n".to_owned(),
        "host: \r\n".to_owned(),
    ] {
        for method in ["POST", "OPTIONS", "GET"] {
            let response = send(&engine, method, &headers);
            assert!(response.starts_with("HTTP/1.1 403"), "{method} {headers}: {response}");
            assert!(!response.contains("TableNames") && !response.to_lowercase().contains("access-control"), "{response}");
        }
    }
}
