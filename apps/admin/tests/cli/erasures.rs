//! `admin erasures` and `admin erase`.

use crate::{Operator, UNKNOWN_ID};
use dev_server::api::{ApiClient, JSON};
use dev_server::server;
use serde_json::{Value, json};
use shared::store::keys::Item;

const MARK: &str = "Zyx9Mark";

async fn send(api: &ApiClient, method: &str, path: &str, body: Value) -> Value {
    let (status, reply) = api.send(method, path, &[JSON], &body.to_string()).await.unwrap();
    assert!(status.is_success(), "{reply}");
    reply["data"].clone()
}

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

/// A tenant with Ada, a user who has an asset.
struct Fixture {
    operator: Operator,
    /// With a clock two minutes behind, because users who have just changed can't be erased.
    api: ApiClient,
    tenant: String,
    user: String,
    asset: String,
}

impl Fixture {
    async fn new() -> Self {
        let operator = Operator::start().await;
        let made = operator.json(&["tenant", "create", "--name", "Acme"]);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let api = operator.api(operator.store_with_clock(-120), &text("api_key"));
        let user = json!({"email": format!("{MARK}@example.com"), "display_name": format!("{MARK} Ada")});
        let user = id(&send(&api, "POST", "/users", user).await);
        let asset = json!({"name": "Laptop", "assigned_to": user, "notes": format!("{MARK} notes")});
        let asset = id(&send(&api, "POST", "/assets", asset).await);
        Self { tenant: text("tenant_id"), operator, api, user, asset }
    }

    fn erase(&self, options: &[&str]) -> Vec<String> {
        let command = ["erase", "--tenant", "acme", "--user", &self.user];
        command.iter().chain(options).map(|&argument| argument.to_owned()).collect()
    }

    fn json(&self, arguments: &[String]) -> Value {
        self.operator.json(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn error(&self, arguments: &[String]) -> String {
        self.operator.error(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    async fn leave(&self) {
        send(&self.api, "PATCH", &format!("/assets/{}", self.asset), json!({"assigned_to": null})).await;
        self.deactivate().await;
    }

    async fn deactivate(&self) {
        send(&self.api, "PATCH", &format!("/users/{}", self.user), json!({"is_active": false})).await;
    }

    async fn items(&self) -> Vec<Item> {
        self.operator.client().scan().table_name(server::TABLE).send().await.unwrap().items.unwrap()
    }

    async fn is_marked(&self) -> bool {
        format!("{:?}", self.items().await).to_lowercase().contains(&MARK.to_lowercase())
    }

    /// Replaces all items in the table.
    async fn restore(&self, items: Vec<Item>) {
        let key =
            |item: &Item| item.clone().into_iter().filter(|(name, _)| ["PK", "SK"].contains(&name.as_str())).collect::<Item>();
        for item in self.items().await {
            self.operator.delete(&key(&item)).await;
        }
        for item in items {
            self.operator.put(item).await;
        }
    }
}

#[tokio::test]
async fn a_person_is_erased_once_nothing_is_in_the_way() {
    let fixture = Fixture::new().await;
    assert!(fixture.error(&fixture.erase(&[])).contains("The user is active"));
    fixture.deactivate().await;
    let in_use = fixture.error(&fixture.erase(&["--dry-run"]));
    assert!(in_use.contains("Assets: 1.") && in_use.contains(&fixture.asset), "{in_use}");
    fixture.leave().await;
    let before = fixture.items().await.len();
    let planned = fixture.json(&fixture.erase(&["--dry-run"]));
    assert_eq!((&planned["done"], &planned["dry_run"], fixture.items().await.len()), (&json!(false), &json!(true), before));
    assert!(fixture.is_marked().await && fixture.operator.lines(&["erasures", "--tenant", "acme"]).is_empty());
    let done = fixture.json(&fixture.erase(&[]));
    assert_eq!((&done["done"], &done["still_refer"]), (&json!(true), &Value::Null));
    let entries = |result: &Value| result["removed"]["entries"].as_u64().unwrap();
    assert!(!fixture.is_marked().await && entries(&done) == 2, "{done}");
    assert_eq!(entries(&fixture.json(&fixture.erase(&[]))), 0, "once more");
    let events = fixture.operator.lines(&["events", "--tenant", "acme", "--since", "2026-01-01T00:00:00Z"]);
    assert!(!json!(events).to_string().contains(MARK));
    let check = fixture.operator.json(&["check", "--tenant", "acme"]);
    assert_eq!((&check["open"], &fixture.operator.json(&["verify", "--tenant", "acme"])["valid"]), (&json!(0), &json!(true)));
    let unknown = ["erase", "--tenant", "acme", "--user", UNKNOWN_ID];
    assert!(fixture.operator.error(&unknown).contains("not found in tenant"));
}

#[tokio::test]
async fn erasures_are_repeated_in_a_restored_table() {
    let fixture = Fixture::new().await;
    let restored = fixture.items().await;
    fixture.leave().await;
    fixture.json(&fixture.erase(&[]));
    let erasures = |since: &[&str]| fixture.operator.lines(&[&["erasures", "--tenant", "acme"], since].concat());
    let listed = erasures(&[]);
    assert_eq!((&listed[0]["user_id"], &listed[0]["tenant_id"]), (&json!(fixture.user), &json!(fixture.tenant)));
    assert!(listed[0]["done_at"].is_string() && listed.len() == 1, "{listed:?}");
    assert_eq!(erasures(&["--since", "2026-01-01T00:00:00Z"]), listed);
    assert!(erasures(&["--since", "2099-01-01T00:00:00Z"]).is_empty());
    let unknown_user = json!({"tenant_id": fixture.tenant, "user_id": UNKNOWN_ID});
    let unknown_tenant = json!({"tenant_id": UNKNOWN_ID, "user_id": fixture.user});
    let text = format!("{}\n\n{}\n{unknown_user}\n{unknown_tenant}\n", listed[0], listed[0]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("erasures.jsonl");
    std::fs::write(&file, &text).unwrap();
    let repeat = ["erase", "--repeat", file.to_str().unwrap()];
    fixture.restore(restored).await;
    let of_user = |lines: &[Value]| lines.iter().find(|line| line.get("removed").is_some()).unwrap().clone();
    let planned = fixture.operator.lines(&[&repeat[..], &["--dry-run"]].concat());
    assert!(fixture.is_marked().await);
    let done = fixture.operator.lines(&repeat);
    let (planned, user) = (of_user(&planned), of_user(&done));
    assert_eq!((&planned["dry_run"], &planned["still_refer"]), (&json!(true), &user["still_refer"]));
    assert_eq!(user["still_refer"], json!({"asset_ids": [fixture.asset], "open_processes": 0, "instance_ids": []}));
    assert_eq!((&user["done"], done.len(), fixture.is_marked().await), (&json!(true), 3, false), "{done:?}");
    let reasons: Vec<&str> = done.iter().filter_map(|line| line["skipped"].as_str()).collect();
    assert_eq!(reasons.len(), 2, "{done:?}");
    assert!(reasons.contains(&"the tenant doesn't have the user") && reasons.contains(&"the table doesn't have the tenant"));
    assert_eq!(fixture.operator.json(&["check", "--tenant", "acme"])["open"], 0);
    let output = fixture.operator.run_typing(&["erase", "--repeat", "-"], &listed[0].to_string());
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&again["done"], &again["removed"]["entries"]), (&json!(true), &json!(0)));
    std::fs::write(&file, format!("{}\n{{}}\n", listed[0])).unwrap();
    assert!(fixture.operator.error(&repeat).contains("line 2 of"));
}

#[tokio::test]
async fn guest_is_erased_by_the_link_and_again_in_a_restored_table() {
    let operator = Operator::start().await;
    let made = operator.json(&["tenant", "create", "--name", "Acme"]);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let tenant = text("tenant_id");
    let api = operator.api(operator.store_with_clock(0), &text("api_key"));
    let fixture = Fixture { tenant, user: UNKNOWN_ID.to_owned(), asset: UNKNOWN_ID.to_owned(), api, operator };
    let (api, operator) = (&fixture.api, &fixture.operator);
    let steps = json!([{"type": "text", "key": "note", "label": "Note"}, {"type": "text", "key": "end", "label": "End"}]);
    let process = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = id(&send(api, "POST", "/processes", process).await);
    let asset = id(&send(api, "POST", "/assets", json!({"name": "Laptop"})).await);
    let started = send(api, "POST", &format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let instance = format!("/processes/instances/{}", id(&started));
    let signer = json!({"signer": {"name": MARK, "email": format!("{MARK}@example.com")}});
    let link = id(&send(api, "POST", &format!("{instance}/links"), signer).await);
    let erase = ["erase", "--tenant", "acme", "--link", &link];
    assert!(operator.error(&erase).contains("still in progress"));
    send(api, "POST", &format!("{instance}/cancel"), json!({})).await;
    let before = fixture.items().await;
    let done = operator.json(&erase);
    assert_eq!((&done["link_id"], &done["done"], fixture.is_marked().await), (&json!(link), &json!(true), false), "{done}");
    let listed = operator.lines(&["erasures", "--tenant", "acme", "--since", "2026-01-01T00:00:00Z"]);
    assert_eq!((&listed[0]["link_id"], listed.len()), (&json!(link), 1), "{listed:?}");
    fixture.restore(before).await;
    let unknown = json!({"tenant_id": fixture.tenant, "link_id": UNKNOWN_ID});
    let output = operator.run_typing(&["erase", "--repeat", "-"], &format!("{}\n{unknown}\n", listed[0]));
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains("the tenant doesn't have the link") && !fixture.is_marked().await, "{output}");
    assert_eq!(operator.json(&["check", "--tenant", "acme"])["open"], 0);
    let unknown = ["erase", "--tenant", "acme", "--link", UNKNOWN_ID];
    assert!(operator.error(&unknown).contains("not found in tenant"));
}

#[tokio::test]
async fn the_arguments_of_an_erasure_are_a_person_or_a_file() {
    let operator = Operator::start().await;
    let user = ["erase", "--user", UNKNOWN_ID];
    for wrong in
        [&["erase"][..], &user, &["erase", "--tenant", "acme"], &[&user[..], &["--tenant", "a", "--repeat", "-"]].concat()]
    {
        assert_eq!(operator.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert!(operator.error(&["erase", "--repeat", "/nowhere"]).contains("can't read /nowhere"));
}
