//! A mark in every personal field of every operation, which is gone after an erasure. Also random histories of several people,
//! with erasures in between.

use crate::support::prelude::*;
use crate::support::property::{check, runtime};
use proptest::collection::vec;
use proptest::prelude::*;

/// Operations whose bodies have personal fields, besides batches and imports. Names and notes of the catalog, processes,
/// settings and webhooks aren't personal.
const WITH_FIELDS: [&str; 16] = [
    "post /assets",
    "put /assets/by-serial/{serial}",
    "patch /assets/{id}",
    "post /keys",
    "post /movements/{id}/advance",
    "post /movements/{id}/cancel",
    "post /movements/{id}/links",
    "post /processes/instances/{id}/advance",
    "post /processes/instances/{id}/cancel",
    "post /processes/instances/{id}/links",
    "post /processes/{id}/start",
    "post /sign/advance",
    "post /users",
    "patch /users/{id}",
    "post /webhooks",
    "patch /webhooks/{id}",
];
const FIELDS: [&str; 7] = ["email", "display_name", "notes", "reason", "signer", "step_data", "description"];

fn has_field(schema: &Value, document: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return has_field(&document["components"]["schemas"][name], document);
    }
    let mut names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let parts = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|part| schema[part].as_array()).flatten();
    names.any(|name| FIELDS.contains(&name)) || parts.into_iter().any(|part| has_field(part, document))
}

/// An operation with a personal field must be in this list and in the story below.
#[test]
fn scenario_covers_every_operation_of_the_document() {
    let document = served_document();
    let mut found = BTreeSet::from(["post /keys".to_owned()]);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let is_about_nobody = path.starts_with("/catalog") || path == "/processes" || path == "/processes/{id}";
            if has_field(schema, &document) && !is_about_nobody {
                found.insert(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(found, WITH_FIELDS.iter().map(|it| (*it).to_owned()).collect());
}

fn mark(what: &str) -> String {
    format!("{MARK} {what}")
}

/// Creates and changes assets in every way, with notes from the time when the user has them.
async fn assets(client: &Client, user: &str) -> Vec<String> {
    let body = |what: &str| json!({"name": what, "assigned_to": user, "notes": mark(what)});
    let mut ids = vec![client.asset(body("single")).await];
    ids.push(client.send("PUT", "/assets/by-serial/S-1", Some("application/json"), body("serial").to_string()).await.id());
    let create = json!({"op": "create", "body": body("batch")});
    let made = client.batch("/assets/batch", &[create]).await.data();
    ids.push(made[0]["data"]["id"].as_str().unwrap().to_owned());
    let update = json!({"op": "update", "id": ids[2], "body": {"notes": mark("batch again")}});
    client.batch("/assets/batch", &[update]).await.data();
    let csv = format!("name,assigned_to_email,notes\nimported,{MARK}@example.com,{}\n", mark("import"));
    let rows = client.import_once("/assets", &csv, "assets").await.data();
    ids.push(rows[0]["id"].as_str().unwrap().to_owned());
    client.patch(&format!("/assets/{}", ids[0]), json!({"notes": mark("patched")})).await.data();
    ids
}

/// Runs movements and instances: submitted at the start, step by step and with links, and cancelled.
async fn processes(client: &Client, user: &str) {
    let steps =
        json!([step("user_picker", "who"), step("text", "note"), signature_step(), step("text", "last"), step("text", "end")]);
    let process = create_process(client, steps).await;
    let stocked = async |count| {
        let mut ids = client.assets(count).await;
        ids.sort();
        ids
    };
    let body =
        json!({"asset_id": stocked(1).await[0], "through": "note", "step_data": {"who": user, "note": mark("at the start")}});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.id();
    sign_and_go_on(client, &format!("/processes/instances/{instance}"), user).await;
    for is_cancelled in [false, true] {
        let movement = start_movement(client, &process, &stocked(2).await).await;
        let path = format!("/movements/{}", movement["id"].as_str().unwrap());
        client.post(&format!("{path}/advance"), json!({"step_data": {"who": user}})).await.data();
        client.post(&format!("{path}/advance"), json!({"step_data": {"note": mark("moved")}})).await.data();
        if is_cancelled {
            client.post(&format!("{path}/cancel"), json!({"reason": mark("moved no more")})).await.data();
            continue;
        }
        sign_and_go_on(client, &path, user).await;
        client.post(&format!("{path}/advance"), json!({"step_data": {"end": mark("at last")}})).await.data();
    }
}

/// Signs with a link as the user, and continues as somebody else with a second link, which stays open. Both requests can be
/// retried.
async fn sign_and_go_on(client: &Client, path: &str, user: &str) {
    let own = Link::create(client, path, json!({"signer": {"user_id": user}, "until": "sign"})).await;
    own.signer(client).sign_once(&json!({"step_data": {"sign": SIGNATURE}}), "signed").await.data();
    let other = Link::create(client, path, json!({"signer": {"name": "Grace Hopper"}, "until": "end"})).await;
    let session = other.signer(client).sign_once(&json!({"step_data": {"last": "checked"}}), "went on").await;
    assert_eq!(session.data()["status"], "open");
    assert!(session.text().contains(MARK), "the session shows who has signed: {}", session.text());
}

#[tokio::test(start_paused = true)]
async fn a_mark_in_every_field_is_nowhere_after_the_erasure() {
    let (api, client) = Api::with_tenant().await;
    let csv = format!("email,display_name,role\n{MARK}@example.com,{},technician\n", mark("imported"));
    let rows = client.import_once("/users", &csv, "users").await.data();
    let user = rows[0]["id"].as_str().unwrap().to_owned();
    let update = json!({"op": "update", "id": user, "body": {"display_name": mark("in a batch")}});
    client.batch("/users/batch", &[update]).await.data();
    client.patch(&format!("/users/{user}"), json!({"email": format!("{MARK}.new@example.com")})).await.data();
    client.patch(&format!("/users/{user}"), json!({"email": format!("{MARK}@example.com")})).await.data();
    let scopes = ["assets:read", "assets:write", "processes:read", "processes:write", "users:read"];
    let key = client.post("/keys", json!({"name": mark("key"), "user_id": user, "scopes": scopes})).await.data();
    let rotated = client.post(&format!("/keys/{}/rotate", key["id"].as_str().unwrap()), json!({})).await.data();
    let own = client.with_key_of(&rotated);
    let held = assets(&own, &user).await;
    processes(&own, &user).await;
    for instance in client.get("/processes/instances?status=in_progress").await.data().as_array().unwrap() {
        let path = format!("/processes/instances/{}/cancel", instance["id"].as_str().unwrap());
        client.post(&path, json!({"reason": mark("ended")})).await.data();
    }
    for asset in client.get(&format!("/assets?assigned_to={user}&status=in_use")).await.data().as_array().unwrap() {
        client.patch(&format!("/assets/{}", asset["id"].as_str().unwrap()), json!({"assigned_to": null})).await.data();
    }
    let offboarded = client.post_once(&format!("/users/{user}/offboard"), &json!({}), "offboard").await;
    offboarded.data();
    for asset in &held {
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
    }
    api.advance_clock(60);
    assert!(items_with(&api, MARK).await.len() > 60);
    erase_all(&client, &user).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());

    let verified = api.store.writer(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
    for path in ["/users", "/assets", "/processes/instances", "/movements", "/keys", "/events"] {
        let list = client.get(&format!("{path}?limit=100")).await;
        assert!(list.status == 200 && !list.text().contains(MARK), "{path}: {}", list.text());
    }
    for export in ["/users/export", "/assets/export"] {
        assert!(client.export(export).await.iter().all(|part| !part.contains(MARK)), "{export}");
    }
    let image = items_with(&api, "\"SIGNATURE#").await.len();
    assert_eq!(image, 0);
}

const PEOPLE: usize = 3;

#[derive(Debug, Clone)]
enum Change {
    Rename(usize),
    /// The first user's key assigns the asset to the second user.
    Assign(usize, usize),
    Note(usize),
    Return,
    /// The first user starts the process for the second, who is picked, types and signs, with or without a link.
    Sign(usize, usize, bool),
    Cancel(usize),
    Erase(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let who = 0..PEOPLE;
    prop_oneof![
        2 => who.clone().prop_map(Change::Rename),
        3 => (who.clone(), who.clone()).prop_map(|(by, to)| Change::Assign(by, to)),
        3 => who.clone().prop_map(Change::Note),
        2 => Just(Change::Return),
        3 => (who.clone(), who.clone(), any::<bool>()).prop_map(|(by, to, link)| Change::Sign(by, to, link)),
        1 => who.clone().prop_map(Change::Cancel),
        2 => who.prop_map(Change::Erase),
    ]
}

struct Human {
    id: String,
    mark: String,
    client: Client,
    is_erased: bool,
}

struct World {
    api: Api,
    client: Client,
    people: Vec<Human>,
    asset: String,
    process: String,
    /// The asset's holder, and the user that the asset's notes are about.
    holder: Option<usize>,
    notes: Option<(usize, String)>,
    /// Texts in completed processes by instance, with the user who typed them.
    typed: BTreeMap<String, (usize, String)>,
    count: usize,
}

impl World {
    async fn new() -> Self {
        let (api, client) = Api::with_tenant().await;
        let mut people = Vec::new();
        for n in 0..PEOPLE {
            let mark = format!("Mk{n}Person");
            let body = json!({"email": format!("{mark}@example.com"), "display_name": mark, "role": "technician"});
            let id = client.post("/users", body).await.id();
            let scopes = ["assets:read", "assets:write", "processes:read", "processes:write"];
            let key = json!({"name": format!("{mark} key"), "user_id": id, "scopes": scopes});
            let own = client.with_new_key(key).await;
            people.push(Human { id, mark, client: own, is_erased: false });
        }
        let asset = client.asset(json!({"name": "Laptop"})).await;
        let process = create_process(&client, steps()).await;
        Self { api, client, people, asset, process, holder: None, notes: None, typed: BTreeMap::new(), count: 0 }
    }

    /// Returns a unique text with the person's mark.
    fn text(&mut self, who: usize) -> String {
        self.count += 1;
        format!("{} text {}", self.people[who].mark, self.count)
    }

    async fn patch_asset(&self, client: &Client, body: Value) {
        client.patch(&format!("/assets/{}", self.asset), body).await.data();
    }

    async fn apply(&mut self, change: &Change) {
        let live = |who: usize| !self.people[who].is_erased;
        match *change {
            Change::Rename(who) if live(who) => {
                let name = self.text(who);
                self.client.patch(&format!("/users/{}", self.people[who].id), json!({"display_name": name})).await.data();
            }
            Change::Assign(by, to) if live(by) && live(to) => {
                let notes = self.text(to);
                let body = json!({"assigned_to": self.people[to].id, "notes": notes});
                self.patch_asset(&self.people[by].client, body).await;
                (self.holder, self.notes) = (Some(to), Some((to, notes)));
            }
            Change::Note(by) if live(by) => {
                let Some(to) = self.holder else { return };
                let notes = self.text(to);
                self.patch_asset(&self.people[by].client, json!({"notes": notes})).await;
                self.notes = Some((to, notes));
            }
            Change::Return => {
                self.patch_asset(&self.client, json!({"assigned_to": null})).await;
                self.holder = None;
            }
            Change::Sign(by, to, by_link) if live(by) && live(to) => self.sign(by, to, by_link).await,
            Change::Cancel(to) if live(to) => {
                let (asset, reason) = (self.client.asset(json!({"name": "x"})).await, self.text(to));
                let path = format!("/processes/{}/start", self.process);
                let instance = self.client.post(&path, json!({"asset_id": asset})).await.id();
                let path = format!("/processes/instances/{instance}");
                self.client.post(&format!("{path}/advance"), json!({"step_data": {"who": self.people[to].id}})).await.data();
                self.client.post(&format!("{path}/cancel"), json!({"reason": reason})).await.data();
            }
            Change::Erase(who) if live(who) => self.erase(who).await,
            _ => {}
        }
    }

    async fn sign(&mut self, by: usize, to: usize, by_link: bool) {
        let asset = self.client.asset(json!({"name": "x"})).await;
        let (starter, user) = (self.people[by].client.clone(), self.people[to].id.clone());
        let path = format!("/processes/{}/start", self.process);
        let instance = starter.post(&path, json!({"asset_id": asset})).await.id();
        let path = format!("/processes/instances/{instance}");
        let (note, story) = (self.text(to), self.text(to));
        starter.post(&format!("{path}/advance"), json!({"step_data": {"who": user}})).await.data();
        starter.post(&format!("{path}/advance"), json!({"step_data": {"note": note}})).await.data();
        let rest = [json!({"story": story}), json!({"sign": SIGNATURE})];
        let link = Link::create(&self.client, &path, json!({"signer": {"user_id": user}, "until": "sign"})).await;
        for data in rest {
            let body = json!({"step_data": data});
            let reply = if by_link {
                link.signer(&self.client).sign(body).await
            } else {
                starter.post(&format!("{path}/advance"), body).await
            };
            reply.data();
        }
        for data in [json!({}), json!({})] {
            self.client.post(&format!("{path}/advance"), json!({"step_data": data})).await.data();
        }
        // The process assigns the asset to the picked person, which would block an erasure.
        self.client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
        self.typed.insert(path, (to, note));
    }

    async fn erase(&mut self, who: usize) {
        if self.holder == Some(who) {
            self.patch_asset(&self.client, json!({"assigned_to": null})).await;
            self.holder = None;
        }
        let id = self.people[who].id.clone();
        self.client.patch(&format!("/users/{id}"), json!({"is_active": false})).await.data();
        self.api.advance_clock(60);
        let client =
            if who.is_multiple_of(2) { self.client.clone() } else { self.api.replica(1_000, 1 << 20).client(&self.client) };
        assert_eq!(client.post(&format!("/users/{id}/erase"), json!({})).await.data()["done"], true);
        self.people[who].is_erased = true;
    }

    async fn check(&self) {
        let store = self.api.store.writer(self.client.tenant);
        assert_eq!(store.verify_chains(|_, _| {}).await.unwrap().broken_links, []);
        for human in &self.people {
            let left = items_with(&self.api, &human.mark).await;
            assert_eq!(left.is_empty(), human.is_erased, "{}: {left:?}", human.mark);
        }
        let notes = self.client.get(&format!("/assets/{}", self.asset)).await.data()["notes"].clone();
        if let Some((who, expected)) = &self.notes {
            assert_eq!(notes == **expected, !self.people[*who].is_erased, "{notes}");
        }
        for (path, (who, expected)) in &self.typed {
            let instance = self.client.get(path).await.data();
            assert_eq!(instance["step_data"]["note"] == **expected, !self.people[*who].is_erased, "{instance}");
        }
    }
}

#[test]
fn erasure_removes_all_data_of_one_person_and_none_of_others() {
    check(&runtime(), 3, &vec(change(), 1..12), async |changes: Vec<Change>| {
        let mut world = World::new().await;
        for change in &changes {
            world.apply(change).await;
        }
        world.check().await;
        Ok(())
    });
}
