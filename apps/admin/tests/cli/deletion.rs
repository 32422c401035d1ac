//! `admin tenant delete`.

use crate::UNKNOWN_ID;
use crate::operator::Operator;
use dev_server::server;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const DELETE: [&str; 5] = ["tenant", "delete", "acme", "--settle", "0"];

/// Returns the URL, and the first line of each request.
fn bucket() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/snapshots", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, mut request, mut buffer) = (connection.unwrap(), Vec::new(), [0; 4096]);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let length = connection.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..length]);
            }
            let text = String::from_utf8(request).unwrap();
            assert!(text.to_lowercase().contains("authorization: aws4-hmac-sha256"), "{text}");
            seen.lock().unwrap().push(text.lines().next().unwrap().to_owned());
            connection.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
        }
    });
    (url, requests)
}

fn run_typing(operator: &Operator, arguments: &[&str], line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admin"));
    command.args(arguments).envs(operator.environment()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

async fn items(operator: &Operator) -> i32 {
    operator.client().scan().table_name(server::TABLE).send().await.unwrap().count
}

#[tokio::test]
async fn a_tenant_goes_with_everything_and_its_snapshots() {
    let mut operator = Operator::start().await;
    operator.json(&["tenant", "create", "--name", "Beta"]);
    let before = items(&operator).await;
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    operator.json(&["tenant", "limit", "--tenant", "Acme", "--per-minute", "500"]);
    let (url, requests) = bucket();
    operator.more_variables = vec![("SNAPSHOTS_URL", url)];
    let plan = operator.json(&[&DELETE[..], &["--dry-run"]].concat());
    assert_eq!((&plan["items"]["user"], &plan["items"]["key"]), (&json!(1), &json!(1)));
    assert!(!plan["stays"].to_string().contains("SNAPSHOTS_URL") && requests.lock().unwrap().is_empty());
    let output = operator.run(&[&DELETE[..], &["--yes"]].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("This deletes tenant Acme:"), "{text}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["deleted"], &result["snapshots"]), (&json!(true), &json!(true)));
    assert_eq!(items(&operator).await, before);
    let id = made["tenant_id"].as_str().unwrap();
    let expected = |kind| format!("DELETE /snapshots/list-index/asset-lifecycle/{id}/{kind} HTTP/1.1");
    assert_eq!(*requests.lock().unwrap(), ["asset", "user", "instance", "movement"].map(expected));
    assert_eq!(operator.json(&["tenant", "list"])["name"], "Beta");
    assert!(operator.error(&["tenant", "delete", id, "--yes"]).contains("not found"));
    assert!(operator.error(&["tenant", "delete", UNKNOWN_ID, "--yes"]).contains("not found"));
}

#[tokio::test]
async fn the_tenants_name_must_be_typed() {
    let operator = Operator::start().await;
    operator.json(&["tenant", "create", "--name", "Acme"]);
    let before = items(&operator).await;
    for (line, reason) in [
        ("Beta\n", "the names differ"),
        // Another tenant may have this name.
        ("acme\n", "the names differ"),
        ("\n", "the names differ"),
        ("", "or use --yes"),
    ] {
        let output = run_typing(&operator, &DELETE, line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(reason), "{line:?}: {text}");
        assert_eq!(items(&operator).await, before);
    }
    let output = run_typing(&operator, &DELETE, "Acme\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(items(&operator).await, 0);
}

#[tokio::test]
async fn an_interrupted_deletion_is_shown_and_finished() {
    let operator = Operator::start().await;
    let tenant = operator.create_tenant();
    let store = operator.store().tenant(tenant.parse().unwrap());
    store.begin_deletion().await.unwrap();
    assert!(operator.json(&["tenant", "list"])["deletion_began"].is_string());
    for command in [&["key", "list"][..], &["check", "--repair"], &["tenant", "upgrade"], &["verify"]] {
        let refused = operator.error(&[command, &["--tenant", "acme"]].concat());
        assert!(refused.contains(&format!("is being deleted; finish that with `admin tenant delete {tenant}`")), "{refused}");
    }
    assert!(operator.lines(&["tenant", "upgrade"]).is_empty());
    operator.json(&[&DELETE[..], &["--yes"]].concat());
    assert_eq!(items(&operator).await, 0);
}
