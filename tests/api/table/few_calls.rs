//! A day of an integration, in at most twenty requests: import, hand over, take back, export, follow the changes.

use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client, Reply};
use serde_json::{Value, json};
use std::cell::Cell;

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
    // The first user has three laptops, the next 137 one each; ten people are new.
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
