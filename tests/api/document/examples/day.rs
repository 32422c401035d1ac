//! A small company's day: settings and webhooks, the catalog, people and inventory, handovers, movements and signing links, and
//! every kind of error.

use super::recorder::{Scenario, id};
use crate::support::prelude::*;
use crate::support::queue::delivery;
use crate::support::webhooks::*;
use shared::domain::webhooks::{Attempt, Delivery, DeliveryStatus};

const JSON: Option<&str> = Some("application/json");

pub async fn choose_settings(scenario: &Scenario) {
    scenario.at("10:01");
    scenario.client.use_key_once().await;
    let settings = json!({
        "name": "Analytical Engines Ltd", "asset_tag_template": "{TYPE_CODE}-NNNN", "time_zone": "Europe/London",
        "locale": "en-GB", "label_url_template": "https://assets.example.com/a/{asset_tag}",
        "status_transitions": {"scrapped": [], "returned": ["in_stock", "in_service", "scrapped"]}
    });
    scenario.patch("/settings", settings).await;
}

pub async fn read_reports(scenario: &Scenario, people: &People, laptop: &str) {
    scenario.at("17:00");
    let anonymous = scenario.by(scenario.client.with_key(""));
    anonymous.get("/health").await;
    anonymous.get(&format!("/.well-known/receipt-keys?tenant={}", scenario.client.tenant)).await;
    scenario.get("/settings").await;
    scenario.get("/stats").await;
    scenario.get(&format!("/users/{}/assets", people.ada)).await;
    scenario.get(&format!("/events?types=asset.*&entity_id={laptop}&limit=2")).await;
}

/// Lets a webhook receive changes to assets, fail once, and get the missed events again.
pub async fn follow_changes(scenario: &Scenario) {
    scenario.at("15:20");
    let webhook = json!({
        "url": "https://erp.example.com/hooks/assets", "description": "Keeps the ERP up to date",
        "events": ["asset.*", "instance.updated"]
    });
    let webhook = id(&scenario.post("/webhooks", webhook).await);
    let path = format!("/webhooks/{webhook}");
    scenario.send("POST", &format!("{path}/test"), "", "").await;
    scenario.get(&path).await;
    scenario.get("/webhooks").await;
    scenario.patch(&path, json!({"events": ["asset.*"], "is_active": true})).await;
    scenario.post(&format!("{path}/rotate"), json!({"grace_seconds": 86400})).await;

    scenario.at("15:30");
    let now = scenario.api.now();
    let missed = delivery(&webhook, now, DeliveryStatus::Pending);
    let attempt = Attempt { status: Some(503), ..missed.attempts[0].clone() };
    let missed = Delivery { attempts: vec![attempt], ..missed };
    scenario.api.queue.put(scenario.client.tenant, &missed).await;
    scenario.get(&format!("{path}/deliveries?status=pending")).await;
    scenario.send("POST", &format!("{path}/deliveries/{}/retry", missed.event_id), "", "").await;
    let replay = json!({"since": "2026-03-05T14:00:00Z", "until": "2026-03-05T15:00:00Z"});
    scenario.post(&format!("{path}/replay"), replay).await;
    scenario.delete(&path).await;
}

/// Creates a webhook that receives all further events.
pub async fn subscribe(scenario: &Scenario) -> Pipeline {
    let pipeline = Pipeline::start(&scenario.api).await;
    webhook(&scenario.api, scenario.client.tenant, URL, &["*"]).await;
    pipeline
}

/// Makes a small change to the settings, and records what the webhook from [`subscribe`] receives.
pub async fn deliver(scenario: &Scenario, mut pipeline: Pipeline) {
    scenario.client.patch("/settings", json!({"locale": "en-IE"})).await.data();
    pipeline.fan_out(&scenario.api).await;
    pipeline.run_to_end(&scenario.api).await;
    scenario.deliveries(pipeline.receivers.take().into_iter().map(|arrival| arrival.body).collect());
}

pub struct Catalog {
    /// The manufacturer "Apple".
    pub apple: String,
    /// The model "MacBook Pro 14".
    pub laptop: String,
    /// The model "iPhone 17".
    pub phone: String,
}

pub async fn fill_catalog(scenario: &Scenario) -> Catalog {
    scenario.at("10:40");
    let schema = json!({
        "type": "object", "properties": {"ram_gb": {"type": "integer", "minimum": 8}}, "additionalProperties": false
    });
    let laptop_type = json!({"name": "Notebook", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
    let laptop_type = id(&scenario.post("/catalog/asset-types", laptop_type).await);
    scenario.patch(&format!("/catalog/asset-types/{laptop_type}"), json!({"name": "Laptop"})).await;
    scenario.get(&format!("/catalog/asset-types/{laptop_type}")).await;
    scenario.get("/catalog/asset-types?code=LAP").await;
    let unused = json!({"name": "Fax machine", "code": "FAX", "kind": "physical"});
    let unused = id(&scenario.prepare("/catalog/asset-types", unused).await);
    scenario.delete(&format!("/catalog/asset-types/{unused}")).await;
    let phone_type = json!({"name": "Phone", "code": "PHN", "kind": "physical"});
    let phone_type = id(&scenario.prepare("/catalog/asset-types", phone_type).await);

    scenario.at("10:50");
    let apple = json!({"name": "Apple", "website": "https://www.apple.com"});
    let apple = id(&scenario.post("/catalog/manufacturers", apple).await);
    scenario.patch(&format!("/catalog/manufacturers/{apple}"), json!({"notes": "Customer number 4711"})).await;
    scenario.get(&format!("/catalog/manufacturers/{apple}")).await;
    scenario.get("/catalog/manufacturers?name=apple").await;
    let unused = id(&scenario.prepare("/catalog/manufacturers", json!({"name": "Commodore"})).await);
    scenario.delete(&format!("/catalog/manufacturers/{unused}")).await;

    let model = json!({"name": "MacBook Pro 14", "manufacturer_id": apple, "asset_type_id": laptop_type});
    let laptop = id(&scenario.post("/catalog/models", model).await);
    scenario.patch(&format!("/catalog/models/{laptop}"), json!({"notes": "Order with the British keyboard."})).await;
    scenario.get(&format!("/catalog/models/{laptop}")).await;
    scenario.get("/catalog/models?q=macbook").await;
    let model = json!({"name": "iPhone 17", "manufacturer_id": apple, "asset_type_id": phone_type});
    let phone = id(&scenario.prepare("/catalog/models", model).await);
    let model = json!({"name": "iPod", "manufacturer_id": apple, "asset_type_id": phone_type});
    let unused = id(&scenario.prepare("/catalog/models", model).await);
    scenario.delete(&format!("/catalog/models/{unused}")).await;
    Catalog { apple, laptop, phone }
}

pub struct People {
    /// User who gets a laptop.
    pub ada: String,
    /// The technician.
    pub grace: String,
}

pub async fn add_people(scenario: &Scenario) -> People {
    scenario.at("10:10");
    let grace = json!({"email": "grace@example.com", "display_name": "Grace Hopper", "role": "technician"});
    let grace = id(&scenario.post("/users", grace).await);
    let ada = json!({"email": "ada@example.com", "display_name": "Ada Byron"});
    let ada = id(&scenario.prepare("/users", ada).await);
    scenario.patch(&format!("/users/{ada}"), json!({"display_name": "Ada Lovelace"})).await;
    scenario.get(&format!("/users/{ada}")).await;
    scenario.get("/users?q=ada").await;

    scenario.at("10:20");
    let batch = json!({"operations": [
        {"op": "create", "body": {"email": "katherine@example.com", "display_name": "Katherine Johnson"}},
        {"op": "update", "id": grace, "body": {"email": "grace.hopper@example.com"}}
    ]});
    scenario.post("/users/batch", batch).await;
    let csv = "email,display_name,role\nalan@example.com,Alan Turing,helpdesk\nbarbara@example.com,Barbara Liskov,viewer\n";
    let imported = scenario.send("POST", "/users/import?match=email", "text/csv", csv).await;
    assert_eq!(outcomes(&imported), ["created", "created"]);
    let rows = "{\"email\":\"alan@example.com\",\"role\":\"technician\"}\n{\"email\":\"radia@example.com\",\"display_name\":\"Radia Perlman\"}\n";
    let imported = scenario.send("POST", "/users/import?match=email", "application/x-ndjson", rows).await;
    assert_eq!(outcomes(&imported), ["updated", "created"]);
    let list = "Vorname;Nachname;E-Mail\nFrances;Allen;frances@example.com\n";
    scenario.send("POST", "/users/import/suggest", "text/csv", list).await;
    let people = "{\"givenName\":\"Frances\",\"surname\":\"Allen\",\"mail\":\"frances@example.com\"}\n";
    scenario.send("POST", "/users/import/suggest", "application/x-ndjson", people).await;
    let parameters = json!([
        {"name": "map", "value": "Vorname + Nachname=display_name"}, {"name": "map", "value": "E-Mail=email"},
        {"name": "delimiter", "value": "semicolon"}, {"name": "match", "value": "email"}
    ]);
    scenario.post("/users/import/suggest", json!({"parameters": [], "text": list})).await;
    scenario.post("/users/import", json!({"parameters": parameters, "text": list})).await;
    scenario.get("/users/export?role=technician").await;
    scenario.get("/users/export?role=technician&format=ndjson").await;
    let temporary = id(&scenario.prepare("/users", json!({"email": "guest@example.com", "display_name": "Guest"})).await);
    scenario.get(&format!("/users/{temporary}/report")).await;
    scenario.delete(&format!("/users/{temporary}")).await;
    scenario.at("10:35");
    scenario.post(&format!("/users/{temporary}/erase"), json!({})).await;
    People { ada, grace }
}

/// Creates keys. Returns the scenario, continued with the technician's key.
pub async fn give_key(scenario: &Scenario, people: &People) -> Scenario {
    scenario.at("12:00");
    let key = json!({
        "name": "Inventory sync", "scopes": ["assets:read", "assets:write"], "expires_at": "2027-03-05T00:00:00Z",
        "rate_limit_per_minute": 120
    });
    let key = id(&scenario.post("/keys", key).await);
    scenario.get(&format!("/keys/{key}")).await;
    scenario.get("/keys?limit=2").await;
    scenario.post(&format!("/keys/{key}/rotate"), json!({"grace_seconds": 3600})).await;
    scenario.delete(&format!("/keys/{key}")).await;
    let scopes = ["assets:read", "assets:write", "processes:read", "processes:write", "users:read"];
    let key = json!({"name": "Grace's tablet", "scopes": scopes, "user_id": people.grace});
    let grace = scenario.by(scenario.client.with_key_of(&scenario.prepare("/keys", key).await));
    grace.get("/me").await;
    grace
}

/// Offboards Katherine, who has two laptops, and a phone that is being repaired.
pub async fn leave_company(scenario: &Scenario, catalog: &Catalog) {
    scenario.at("15:00");
    let users = scenario.client.get("/users?email=katherine@example.com").await.data();
    let katherine = id(&users[0]);
    for (model, serial) in [(&catalog.laptop, "C02ZX52PMD6M"), (&catalog.laptop, "C02ZX53PMD6M"), (&catalog.phone, "F17D20ABC1")]
    {
        let status = if *model == catalog.phone { "in_service" } else { "in_use" };
        let name = if *model == catalog.phone { "iPhone 17" } else { "MacBook Pro 14" };
        let asset = json!({
            "name": name, "model_id": model, "serial_number": serial, "status": status, "assigned_to": katherine
        });
        scenario.prepare("/assets", asset).await;
    }
    scenario.post(&format!("/users/{katherine}/offboard"), json!({"deactivate": true})).await;
}

/// Creates assets. Returns the ID of Ada's laptop.
pub async fn buy_assets(scenario: &Scenario, people: &People, catalog: &Catalog) -> String {
    scenario.at("11:00");
    // Without IDs, so that the example works for any tenant.
    let laptop = json!({
        "name": "MacBook Pro 14", "manufacturer": "Apple", "model": "MacBook Pro 14", "serial_number": "C02ZX41PMD6M",
        "purchase_date": "2026-02-27", "purchase_price": 2249.95, "warranty_until": "2029-02-26", "custom_fields": {"ram_gb": 32}
    });
    let laptop = id(&scenario.post("/assets", laptop).await);
    let path = format!("/assets/{laptop}");
    scenario
        .patch(
            &path,
            json!({"status": "preparing", "model_id": catalog.laptop, "notes": "For Ada Lovelace, who starts on Monday."}),
        )
        .await;
    scenario.get(&path).await;
    let tag = scenario.client.get(&path).await.data()["asset_tag"].as_str().unwrap().to_owned();
    scenario.get(&format!("/assets/by-tag/{tag}")).await;
    scenario.get("/assets?q=macbook&sort=-created_at&limit=2").await;
    scenario.get(&format!("{path}/processes")).await;
    let scanned =
        json!({"location": "Berlin / 3rd floor", "items": [{"code": format!("]C1{tag}")}, {"serial_number": "C02ZX41PMD6N"}]});
    scenario.post("/assets/seen", scanned).await;

    scenario.at("11:10");
    let by_serial = "/assets/by-serial/PF3XK201";
    scenario.put(by_serial, json!({"name": "ThinkPad X1 Carbon", "purchase_price": 1899.0})).await;
    scenario.put(by_serial, json!({"name": "ThinkPad X1 Carbon", "notes": "Spare device"})).await;
    let created = scenario.client.get(&format!("{path}?expand=assigned_to")).await;
    assert_eq!(created.data()["assigned_user"], Value::Null);
    let version = created.header("etag");
    let batch = json!({"operations": [
        {"op": "create", "body": {"name": "Thunderbolt dock", "serial_number": "WD-4711", "assigned_to": people.grace}},
        {"op": "update", "id": laptop, "if_match": version, "body": {"notes": "For Ada Lovelace"}}
    ]});
    scenario.post("/assets/batch", batch).await;

    scenario.at("11:20");
    let csv = "name,serial_number,asset_type_code,purchase_price,assigned_to_email,custom_fields.ram_gb\n\
        ThinkPad T14,PF4AB101,LAP,1249.5,alan@example.com,16\nThinkPad T14,PF4AB102,LPT,1249.5,,16\n";
    let imported = scenario.send("POST", "/assets/import?match=serial_number", "text/csv", csv).await;
    assert_eq!(outcomes(&imported), ["created", "refused"]);
    let rows = "{\"serial_number\":\"PF4AB101\",\"status\":\"in_use\"}\n\
        {\"name\":\"ThinkPad T14\",\"serial_number\":\"PF4AB102\",\"asset_type_code\":\"LAP\",\"status\":\"in_use\"}\n";
    let imported = scenario.send("POST", "/assets/import?match=serial_number", "application/x-ndjson", rows).await;
    assert_eq!(outcomes(&imported), ["updated", "created"]);
    let list = "Gerät;Seriennummer;Kaufdatum;Zustand\nEizo FlexScan;EZ100201;05.03.2025;Lager\n";
    scenario.send("POST", "/assets/import/suggest", "text/csv", list).await;
    let devices = "{\"deviceName\":\"LAP-0100\",\"serialNumber\":\"PF4AB109\"}\n";
    scenario.send("POST", "/assets/import/suggest", "application/x-ndjson", devices).await;
    scenario.post("/assets/import/suggest", json!({"parameters": [], "text": list})).await;
    let parameters = json!([
        {"name": "delimiter", "value": "semicolon"}, {"name": "map", "value": "Gerät=name"},
        {"name": "map", "value": "Seriennummer=serial_number"}, {"name": "map", "value": "Kaufdatum=purchase_date"},
        {"name": "map", "value": "Zustand=status"}, {"name": "value", "value": "status:Lager=in_stock"},
        {"name": "date_format", "value": "DD.MM.YYYY"}, {"name": "match", "value": "serial_number"}
    ]);
    scenario.post("/assets/import", json!({"parameters": parameters, "text": list})).await;
    scenario.get("/assets/export?status=in_use").await;
    scenario.get("/assets/export?status=in_use&format=ndjson").await;
    laptop
}

/// Deletes an asset that was created by mistake.
pub async fn clean_up(scenario: &Scenario) {
    let asset = id(&scenario.prepare("/assets", json!({"name": "Test"})).await);
    scenario.delete(&format!("/assets/{asset}")).await;
}

/// Hands the laptop over. `scenario` uses the technician's key.
pub async fn hand_over(scenario: &Scenario, people: &People, laptop: &str) {
    scenario.at("13:00");
    scenario.get("/processes?slug=employee-onboarding").await;
    let process = system_process(&scenario.client, "employee-onboarding").await;
    scenario.get(&format!("/processes/{process}")).await;
    let start = format!("/processes/{process}/start");
    let instance = id(&scenario.post(&start, json!({"asset_id": laptop})).await);
    let instance = format!("/processes/instances/{instance}");
    scenario.prepare(&format!("{instance}/advance"), json!({"current_step": 0, "step_data": {"employee": people.ada}})).await;
    let rest = json!({
        "current_step": 1, "through": "complete",
        "step_data": {"handover": ["Device", "Power supply"], "signature": SIGNATURE}
    });
    let completed = scenario.post(&format!("{instance}/advance"), rest).await;
    assert_eq!(completed["status"], "completed");

    scenario.at("13:10");
    scenario.get(&instance).await;
    scenario.get(&format!("/processes/instances?asset_id={laptop}&omit=signatures")).await;
    scenario.get(&format!("{instance}/history?limit=2")).await;
    scenario.get(&format!("{instance}/receipt")).await;
    scenario.get(&format!("/assets/{laptop}/history?verify=true&limit=2")).await;
}

/// Lends two assets together. Also cancels a movement and an instance.
pub async fn move_together(scenario: &Scenario, catalog: &Catalog) {
    scenario.at("14:00");
    let process = json!({
        "name": "Loan", "description": "Lends assets for a few days.", "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [
            {"type": "date", "key": "until", "label": "Until when?", "required": true},
            {"type": "signature", "key": "signature", "label": "Signature of the borrower", "required": true,
             "statement": "I received the devices in good condition, and bring them back in time."}
        ]
    });
    let process = id(&scenario.post("/processes", process).await);
    scenario.patch(&format!("/processes/{process}"), json!({"description": "Lends assets for at most a week."})).await;
    let mut assets = Vec::new();
    for serial in ["C02ZX42PMD6M", "C02ZX43PMD6M"] {
        let asset = json!({"name": "MacBook Pro 14", "model_id": catalog.laptop, "serial_number": serial});
        assets.push(id(&scenario.prepare("/assets", asset).await));
    }
    let start = format!("/processes/{process}/start");
    let movement = id(&scenario.prepare(&start, json!({"asset_ids": assets})).await);
    scenario.post(&format!("/movements/{movement}/cancel"), json!({"reason": "The borrower is ill."})).await;
    let movement = id(&scenario.prepare(&start, json!({"asset_ids": assets})).await);
    let movement = format!("/movements/{movement}");
    scenario.post(&format!("{movement}/advance"), json!({"current_step": 0, "step_data": {"until": "2026-03-12"}})).await;
    scenario.prepare(&format!("{movement}/advance"), json!({"step_data": {"signature": SIGNATURE}})).await;
    scenario.get(&movement).await;
    scenario.get("/movements?limit=1").await;
    scenario.get(&format!("{movement}/receipt")).await;

    scenario.at("14:20");
    let asset = id(&scenario.prepare("/assets", json!({"name": "Projector"})).await);
    let instance = id(&scenario.prepare(&start, json!({"asset_id": asset})).await);
    scenario.post(&format!("/processes/instances/{instance}/cancel"), json!({"reason": "The lamp is broken."})).await;
    let unused = json!({
        "name": "Inventory count", "trigger_status": "in_use", "target_status": "in_use",
        "steps": [{"type": "confirmation", "key": "seen", "label": "The asset is there"}]
    });
    let unused = id(&scenario.prepare("/processes", unused).await);
    scenario.delete(&format!("/processes/{unused}")).await;
}

/// Signs with a link for an instance, and with a different person's link for a movement.
pub async fn sign_by_link(scenario: &Scenario, people: &People) {
    scenario.at("14:40");
    let process = system_process(&scenario.client, "employee-onboarding").await;
    let start = format!("/processes/{process}/start");
    let handover = json!({"employee": people.ada, "handover": ["Device", "Power supply"]});
    let asset = json!({"name": "ThinkPad X1", "status": "preparing", "serial_number": "PF-4711", "model": "X1 Carbon"});
    let asset = id(&scenario.prepare("/assets", asset).await);
    let begun = json!({"asset_id": asset, "step_data": handover, "through": "handover"});
    let instance = format!("/processes/instances/{}", id(&scenario.prepare(&start, begun).await));
    let body = json!({"signer": {"user_id": people.ada}, "until": "complete", "expires_in": 86400});
    let link =
        Link::of(&instance, &scenario.send("POST", &format!("{instance}/links"), "application/json", &body.to_string()).await);
    let signer = scenario.by(link.signer(&scenario.client));
    signer.get("/sign/session").await;
    let submission = json!({
        "current_step": 2, "through": "signature", "step_data": {"signature": SIGNATURE}, "typed_signatures": ["signature"]
    });
    signer.post("/sign/advance", submission).await;
    let session = signer.prepare("/sign/advance", json!({"step_data": {}})).await;
    assert_eq!(session["status"], "used");
    signer.get("/sign/receipt").await;
    scenario.get(&format!("{instance}/links")).await;
    scenario.get(&link.path).await;
    scenario.delete(&link.path).await;

    scenario.at("14:50");
    let mut assets = Vec::new();
    for name in ["Camera", "Tripod"] {
        assets.push(id(&scenario.prepare("/assets", json!({"name": name, "status": "preparing"})).await));
    }
    let begun = json!({"asset_ids": assets, "step_data": handover, "through": "handover"});
    let movement = format!("/movements/{}", id(&scenario.prepare(&start, begun).await));
    let body = json!({"signer": {"name": "Mary Shelley", "email": "mary@example.org"}});
    let link =
        Link::of(&movement, &scenario.send("POST", &format!("{movement}/links"), "application/json", &body.to_string()).await);
    scenario.get(&format!("{movement}/links")).await;
    scenario.get(&link.path).await;
    scenario.delete(&link.path).await;
    scenario.prepare(&format!("{movement}/cancel"), json!({})).await;
    scenario.post(&format!("{}/erase", link.path), json!({})).await;
    let asset = id(&scenario.prepare("/assets", json!({"name": "Microphone", "status": "preparing"})).await);
    let begun = json!({"asset_id": asset, "step_data": handover, "through": "handover"});
    let instance = format!("/processes/instances/{}", id(&scenario.prepare(&start, begun).await));
    let body = json!({"signer": {"name": "Mary Shelley", "email": "mary@example.org"}});
    let link = id(&scenario.prepare(&format!("{instance}/links"), body).await);
    scenario.prepare(&format!("{instance}/cancel"), json!({})).await;
    scenario.post(&format!("{instance}/links/{link}/erase"), json!({})).await;
}

pub async fn meet_problems(scenario: &Scenario, people: &People, catalog: &Catalog, laptop: &str) {
    scenario.at("18:00");
    request_problems(scenario, laptop).await;
    key_problems(scenario).await;
    conflicts(scenario, people, catalog).await;
    process_problems(scenario).await;
    concurrent_requests(scenario).await;
    failures(scenario, laptop).await;
}

async fn request_problems(scenario: &Scenario, laptop: &str) {
    let client = &scenario.client;
    let path = format!("/assets/{laptop}");
    scenario.problem(&client.post_text("/assets", r#"{"name": "MacBook"#).await, 400, "MALFORMED_REQUEST");
    scenario.problem(&client.get(&format!("/assets/{UNKNOWN_ID}")).await, 404, "NOT_FOUND");
    scenario.problem(&client.send("PUT", "/assets", JSON, "{}").await, 405, "METHOD_NOT_ALLOWED");
    let stale = client.send_json("PATCH", &path, r#"{"notes":"Cracked"}"#, ("if-match", "\"1-5f5a0c7551d6bee1\"")).await;
    scenario.problem(&stale, 412, "PRECONDITION_FAILED");
    scenario.problem(&client.post_text("/assets", &" ".repeat(1024 * 1024 + 1)).await, 413, "PAYLOAD_TOO_LARGE");
    let xml = client.send("POST", "/assets", Some("application/xml"), "<asset/>").await;
    scenario.problem(&xml, 415, "UNSUPPORTED_MEDIA_TYPE");
    scenario.problem(&client.post("/assets", json!({"name": "", "status": "lost"})).await, 422, "VALIDATION_ERROR");
}

async fn key_problems(scenario: &Scenario) {
    let client = &scenario.client;
    scenario.problem(&client.with_key("").get("/assets").await, 401, "UNAUTHORIZED");
    let reader = json!({"name": "Reader", "scopes": ["assets:read"], "rate_limit_per_minute": 1});
    let reader = client.with_key_of(&scenario.prepare("/keys", reader).await);
    scenario.problem(&reader.post("/assets", json!({"name": "MacBook Pro 14"})).await, 403, "FORBIDDEN");
    scenario.problem(&reader.get("/assets").await, 429, "RATE_LIMITED");
}

async fn conflicts(scenario: &Scenario, people: &People, catalog: &Catalog) {
    let client = &scenario.client;
    let returned = id(&scenario.prepare("/assets", json!({"name": "iPhone 15", "status": "returned"})).await);
    let reused = client.patch(&format!("/assets/{returned}"), json!({"status": "in_use"})).await;
    scenario.problem(&reused, 409, "TRANSITION_NOT_ALLOWED");
    let email = client.get(&format!("/users/{}", people.ada)).await.data()["email"].clone();
    let again = client.post("/users", json!({"email": email, "display_name": "Ada"})).await;
    scenario.problem(&again, 409, "DUPLICATE");
    scenario.problem(&client.delete(&format!("/catalog/manufacturers/{}", catalog.apple)).await, 409, "IN_USE");
}

async fn process_problems(scenario: &Scenario) {
    let client = &scenario.client;
    let steps = json!([
        {"type": "text", "key": "room", "label": "Room"}, {"type": "text", "key": "desk", "label": "Desk"}
    ]);
    let process = create_process(client, steps).await;
    let begin = async |asset: &str| client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let asset = id(&scenario.prepare("/assets", json!({"name": "Screen"})).await);
    let instance = format!("/processes/instances/{}", start(client, &process, &asset).await);
    let advance = async |body: Value| client.post(&format!("{instance}/advance"), body).await;
    scenario.problem(&begin(&asset).await, 409, "PROCESS_RUNNING");
    advance(json!({"step_data": {"room": "2.14"}})).await.data();
    let late = advance(json!({"current_step": 0, "step_data": {"room": "2.14"}})).await;
    scenario.problem(&late, 409, "STEP_MOVED");
    scenario.problem(&advance(json!({"step_data": {"room": "2.15"}})).await, 409, "STEP_SUBMITTED");
    advance(json!({"step_data": {"desk": "3"}})).await.data();
    scenario.problem(&advance(json!({"step_data": {}})).await, 409, "INSTANCE_CLOSED");

    let new = id(&scenario.prepare("/assets", json!({"name": "Keyboard"})).await);
    let returning = system_process(client, "device-return").await;
    let wrong = client.post(&format!("/processes/{returning}/start"), json!({"asset_id": new})).await;
    scenario.problem(&wrong, 409, "WRONG_ASSET_STATUS");
    client.patch(&format!("/processes/{process}"), json!({"status": "inactive"})).await.data();
    scenario.problem(&begin(&new).await, 409, "PROCESS_INACTIVE");
}

/// Records a request that loses every race, and a request whose idempotency key is in use.
async fn concurrent_requests(scenario: &Scenario) {
    let (api, client) = contended(scenario, 1).await;
    let mouse = client.asset(json!({"name": "Mouse"})).await;
    api.faults.plan("TransactWriteItems", 100, 400, &cancelled("ConditionalCheckFailed"), false);
    let lost = client.patch(&format!("/assets/{mouse}"), json!({"notes": "Spare"})).await;
    let (api, client) = contended(scenario, 2).await;
    api.faults.plan("TransactWriteItems", 100, 400, &cancelled("TransactionConflict"), false);
    let same = client.send_json("POST", "/assets", r#"{"name":"Mouse"}"#, ("idempotency-key", "order-4711")).await;
    scenario.problem(&lost, 409, "CONFLICT");
    scenario.problem(&same, 409, "REQUEST_IN_PROGRESS");
}

/// Creates a tenant on a faulty table. The clock is stopped, so calls to the table take no time.
async fn contended(scenario: &Scenario, seed: u64) -> (Api, Client) {
    let api = Api::on_faulty_table(seed, Weaknesses::default()).await;
    api.stop_clock();
    api.advance_clock_millis(scenario.api.now().millis() - api.now().millis());
    let client = api.tenant().await;
    (api, client)
}

/// Returns the response to a transaction that is cancelled for this reason.
fn cancelled(code: &str) -> Value {
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled",
        "CancellationReasons": vec![json!({"Code": code}); 6]
    })
}

async fn failures(scenario: &Scenario, laptop: &str) {
    let (api, client) = (&scenario.api, &scenario.client);
    api.faults.throttle_writes_to(&[Keys::of(client.tenant).partition().as_s().unwrap().clone()]);
    let busy = client.patch(&format!("/assets/{laptop}"), json!({"notes": "Cracked screen"})).await;
    api.faults.throttle_writes_to(&[]);
    scenario.problem(&busy, 503, "UNAVAILABLE");

    let now = api.now();
    let without_table = Store::new(api.dynamo.clone(), "no-such-table", Arc::new(move || now));
    let broken = Client { router: dev_server::server::router(App::new(without_table)), ..client.clone() };
    scenario.problem(&broken.get("/assets").await, 500, "INTERNAL_ERROR");
}
