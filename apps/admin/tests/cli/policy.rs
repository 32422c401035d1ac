//! The policy for operators, docs/policies/admin.json, compared with the calls of the command line.

use crate::Operator;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

const TARGET: &str = "x-amz-target: dynamodb_20120810.";

/// Starts a proxy in front of an engine. Returns its URL, and the bytes that clients send through it.
fn proxy(engine: SocketAddr) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
    let recorded = Arc::clone(&sent);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, engine) = (client.unwrap(), TcpStream::connect(engine).unwrap());
            let (from_client, mut to_client) = (client.try_clone().unwrap(), client);
            let (mut from_engine, to_engine) = (engine.try_clone().unwrap(), engine);
            let recorded = Arc::clone(&recorded);
            std::thread::spawn(move || record(from_client, to_engine, &recorded));
            std::thread::spawn(move || std::io::copy(&mut from_engine, &mut to_client));
        }
    });
    (url, sent)
}

fn record(mut from: TcpStream, mut to: TcpStream, recorded: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        recorded.lock().unwrap().extend_from_slice(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

/// Returns the actions needed for the calls. A transaction needs the actions for its items ("DynamoDB API permissions" in the AWS
/// developer guide).
fn needed(sent: &str) -> BTreeSet<String> {
    let operations = sent
        .to_lowercase()
        .match_indices(TARGET)
        .map(|(at, _)| sent[at + TARGET.len()..].chars().take_while(char::is_ascii_alphabetic).collect::<String>())
        .collect::<BTreeSet<_>>();
    let items = ["Put", "Update", "Delete", "ConditionCheck"].into_iter();
    let items = items.filter(|write| sent.contains(&format!("{{\"{write}\":{{"))).map(|write| format!("{write}Item"));
    operations.into_iter().filter(|operation| operation != "TransactWriteItems").chain(items).collect()
}

fn policy() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies/admin.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn the_documented_policy_permits_what_the_commands_call_and_nothing_else() {
    let mut operator = Operator::start().await;
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("receipt.key").to_str().unwrap().to_owned();
    let (url, sent) = proxy(operator.engine.url.strip_prefix("http://").unwrap().parse().unwrap());
    operator.more_variables = vec![("AWS_ENDPOINT_URL_DYNAMODB", url), ("RECEIPT_KEY_FILE", key_file)];
    let made = operator.json(&["tenant", "create", "--name", "Acme", "--admin-email", "ada@example.com"]);
    let key = made["key_id"].as_str().unwrap();
    let erasures = folder.path().join("erasures.jsonl");
    std::fs::write(&erasures, made.to_string()).unwrap();
    for command in [
        "tenant list",
        "tenant limit --tenant Acme --per-minute 500",
        "tenant limit --tenant Acme --none",
        "tenant upgrade",
        "key create --tenant Acme --name ci --scopes assets:read",
        "key list --tenant Acme",
        &format!("key revoke --tenant Acme --key {key}"),
        "receipt-key rotate --tenant Acme",
        "receipt-key rotate --tenant Acme",
        "events --tenant Acme",
        "verify --tenant Acme",
        "erasures --tenant Acme",
        &format!("erase --repeat {}", erasures.to_str().unwrap()),
        "check --tenant Acme",
        "tenant delete Acme --yes --settle 0",
    ] {
        operator.lines(&command.split(' ').collect::<Vec<_>>());
    }
    // Always fails, because the engine has no backups.
    operator.run(&["doctor"]);
    let sent = String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    let policy = policy();
    let mut permitted = BTreeSet::new();
    for statement in policy["Statement"].as_array().unwrap() {
        assert!(statement["Effect"] == "Allow" && !statement["Resource"].to_string().contains("\"*\""), "{statement}");
        let actions = statement["Action"].as_array().unwrap().iter().map(|action| action.as_str().unwrap());
        permitted.extend(actions.filter_map(|action| action.strip_prefix("dynamodb:")).map(str::to_owned));
    }
    assert_eq!(needed(&sent), permitted);
    // Removing a record and erasing a person query these indexes.
    assert!(["/index/history", "/index/list_index"].iter().all(|index| policy.to_string().contains(index)));
}
