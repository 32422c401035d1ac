//! Functions exit when the Runtime API stops.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Output};

/// Runs a function with its Runtime API at this address, until it exits.
fn run(runtime_api: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_panics"));
    command.env_clear().envs([
        ("AWS_LAMBDA_RUNTIME_API", runtime_api),
        ("AWS_LAMBDA_FUNCTION_NAME", "panics"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"),
        ("TABLE_NAME", "none"),
    ]);
    command.output().unwrap()
}

#[test]
fn a_function_ends_quietly_when_its_container_is_removed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let closing = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let length = connection.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8(request).unwrap()
    });
    let output = run(&address);
    assert!(closing.join().unwrap().starts_with("GET /2018-06-01/runtime/invocation/next"));
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !log.contains("ERROR") && log.contains("has closed the connection"), "{log}");
}

#[test]
fn a_runtime_api_that_is_not_there_is_an_error() {
    let output = run("127.0.0.1:1");
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && log.contains("\"level\":\"ERROR\""), "{log}");
    assert!(log.contains("the function can't run"), "{log}");
}
