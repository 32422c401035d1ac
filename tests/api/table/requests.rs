//! The table requests of every route, the embedded engine's port, and an integration's day in few requests.

use crate::support::prelude::*;
use dev_server::engine::Engine;
use shared::store::keys::{HISTORY, LIST_INDEX};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Collects each `PK` and `:pk` in a request.
pub fn partitions(request: &Value, found: &mut Vec<String>) {
    match request {
        Value::Object(map) => {
            found.extend(["PK", ":pk"].iter().filter_map(|name| map.get(*name)?["S"].as_str()).map(str::to_owned));
            map.values().for_each(|value| partitions(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| partitions(item, found)),
        _ => {}
    }
}

/// Finds lists of deliveries, which needn't be consistent: no decision depends on them, and callers don't write the deliveries.
fn is_delivery(sort_key: &Value) -> bool {
    sort_key["S"].as_str().unwrap_or_default().starts_with("DELIVERY#")
}

/// Whether the request reads consistently, or writes only with a condition.
pub fn is_guarded(operation: &str, request: &Value, table: &str) -> bool {
    match operation {
        // Indexes have no consistent reads. Tests in `lists::index_races` and `history::lag` show that their lag is harmless.
        "Query" if [LIST_INDEX, HISTORY].iter().any(|index| request["IndexName"] == *index) => true,
        "Query" if is_delivery(&request["ExpressionAttributeValues"][":sk"]) => true,
        "GetItem" | "Query" => request["ConsistentRead"] == true,
        "BatchGetItem" if request["RequestItems"][table]["ConsistentRead"] == true => true,
        "BatchGetItem" => request["RequestItems"][table]["Keys"].as_array().unwrap().iter().all(|key| is_delivery(&key["SK"])),
        "PutItem" | "UpdateItem" | "DeleteItem" => request["ConditionExpression"].is_string(),
        "TransactWriteItems" => {
            let items = request["TransactItems"].as_array().unwrap().iter();
            items.flat_map(|item| item.as_object().unwrap().values()).all(|item| item["ConditionExpression"].is_string())
        }
        other => panic!("{other} is not an operation that the service uses"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_stays_in_its_tenant_reads_consistently_and_writes_conditionally() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let own = Keys::of(client.tenant).partition().as_s().unwrap().clone();
    let mut checked = 0;
    for operation in by_method(operations, &METHODS).filter(|operation| operation.needs_key) {
        api.faults.take_requests();
        if operation.is_write() {
            operation.send_dry_run(&client, &samples).await;
        }
        operation.send(&client, &samples).await;
        for (call, request) in api.faults.take_requests() {
            let mut found = Vec::new();
            partitions(&request, &mut found);
            assert!(!found.is_empty(), "{operation}: {call} without a partition: {request}");
            let is_own = |partition: &String| {
                *partition == own || ["RATE", "HOOK"].iter().any(|kind| partition.starts_with(&format!("{own}#{kind}#")))
            };
            assert!(found.iter().all(is_own), "{operation}: {call} in {found:?}");
            assert!(is_guarded(&call, &request, &api.table), "{operation}: {call} is not guarded: {request}");
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} requests");
}

struct Counting<'c> {
    client: &'c Client,
    requests: Cell<usize>,
}

impl Counting<'_> {
    fn counted(&self, reply: Reply) -> Reply {
        self.requests.set(self.requests.get() + 1);
        assert!(reply.status.is_success(), "{}", reply.text());
        reply
    }

    async fn get(&self, path: &str) -> Reply {
        self.counted(self.client.get(path).await)
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.counted(self.client.post(path, body).await).data()
    }

    async fn import(&self, path: &str, rows: &str) -> Vec<Value> {
        let reply = self.counted(self.client.import(path, "", rows).await);
        reply.data().as_array().unwrap().iter().map(|row| row["id"].clone()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_day_of_an_integration_takes_at_most_twenty_requests() {
    let (api, client) = Api::with_tenant().await;
    let calls = Counting { client: &client, requests: Cell::new(0) };
    let cursor = calls.get("/events?after=now").await.json()["meta"]["after"].clone();
    calls.post("/catalog/asset-types", json!({"name": "Laptop", "code": "LAP", "kind": "physical"})).await;
    // The first user has three laptops, and the next 137 have one each. Ten users are new.
    let users: String = (0..148).map(|n| format!("p{n}@example.com,Person {n}\n")).collect();
    let users = calls.import("/users", &format!("email,display_name\n{users}")).await;
    let row = |n: usize| match n {
        0..140 => format!("Laptop,SN{n},LAP,1249.00,in_use,p{}@example.com\n", n.saturating_sub(2)),
        _ => format!("Laptop,SN{n},LAP,1249.00,preparing,\n"),
    };
    let laptops: String = (0..150).map(row).collect();
    let header = "name,serial_number,asset_type_code,purchase_price,status,assigned_to_email\n";
    let laptops = calls.import("/assets", &format!("{header}{laptops}")).await;

    let onboarding = calls.get("/processes?slug=employee-onboarding").await.data()[0]["id"].as_str().unwrap().to_owned();
    for (laptop, user) in laptops[140..].iter().zip(&users[138..]) {
        let body = json!({"asset_id": laptop, "through": "complete", "step_data":
            {"employee": user, "handover": ["Device", "Power supply"], "signature": SIGNATURE}});
        let done = calls.post(&format!("/processes/{onboarding}/start"), body).await;
        assert_eq!(done["status"], "completed");
    }
    let offboarding = calls.post(&format!("/users/{}/offboard", users[0].as_str().unwrap()), json!({})).await;
    let movement = offboarding["movements"][0]["id"].as_str().unwrap();
    let body =
        json!({"through": "complete", "step_data": {"returned_items": ["Device"], "signature": SIGNATURE, "received": true}});
    let returned = calls.post(&format!("/movements/{movement}/advance"), body).await;
    assert_eq!((&returned["status"], returned["instances"].as_array().unwrap().len()), (&json!("completed"), 3));
    let receipt = calls.get(&format!("/movements/{movement}/receipt?format=html")).await;
    assert!(receipt.text().contains("SN0") && receipt.text().contains("SN2"));

    let export = calls.get("/assets/export?status=in_use&format=ndjson").await;
    assert_eq!(export.text().lines().count(), 147);
    // Changes appear in the feed after ten seconds.
    api.advance_clock(11);
    let changes = format!("/events?after={}&types=movement.*,user.updated&limit=100", cursor.as_str().unwrap());
    let changes = calls.get(&changes).await.data();
    let types: Vec<&str> = changes.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["user.updated", "movement.created"]);
    assert!(calls.requests.get() <= 20, "{} requests", calls.requests.get());

    let stats = client.get("/stats").await.data();
    assert_eq!(stats["assets"]["by_status"]["in_use"], 147);
    assert_eq!(stats["assets"]["value_by_status"]["returned"], "3747.00");
    assert_eq!(stats["instances"]["by_process"], json!({"Device Return": 3, "Employee Onboarding": 10}));
}

/// Sends a request over a new socket. Returns the response.
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
fn programs_on_this_machine_can_use_the_engine_but_pages_of_any_origin_are_refused() {
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
    for headers in [
        format!("host: 127.0.0.1:{port}\r\norigin: https://evil.example\r\n"),
        format!("host: 127.0.0.1:{port}\r\norigin: null\r\n"),
        format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\n"),
        // A host name that resolves to this machine.
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
