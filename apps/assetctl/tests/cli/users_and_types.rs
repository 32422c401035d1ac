//! `assetctl user` and `type` against the real service.

use crate::support::service::Service;
use crate::support::{Folder, Run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn users_are_added_and_changed() {
    let service = Service::start();
    let add = |words: &[&str]| service.run(&[&["user", "add"], words].concat());
    add(&["ada@example.com", "Ada Lovelace", "--role", "technician", "--dry-run"])
        .shows("Would add Ada Lovelace <ada@example.com>, technician\n");
    assert_eq!(service.total("/users"), 0);
    add(&["ada@example.com", "Ada Lovelace", "--role", "technician"]).shows("Added Ada Lovelace <ada@example.com>, technician\n");
    add(&["bob@example.com", "Bob", "--json"]).ok().json()["user"]["id"].as_str().unwrap();
    add(&["ada@example.com", "Ada"]).tells(1, "409 DUPLICATE");
    add(&["ada", "Ada", "--role", "boss"]).tells(2, "/role: must be one of");
    let change = |words: &[&str]| service.run(&[&["user", "change"], words].concat());
    change(&["ada@example.com", "role=viewer", "is_active=false", "--dry-run"]).shows("is_active: true → false");
    let done = change(&["ada lovelace", "role=viewer", "is_active=false"]).ok();
    assert!(done.stdout.contains("ada@example.com  is_active: true → false, role: technician → viewer\n"), "{}", done.stdout);
    assert_eq!(done.stderr, "1 user changed\n");
    let user = &service.get("/users?email=ada@example.com")["data"][0];
    assert_eq!((&user["role"], &user["is_active"]), (&json!("viewer"), &json!(false)));
    change(&["ada@example.com", "email=bob@example.com"]).shows_refusal("refused: email: ");
    change(&["ada@example.com", "phone=1"]).tells(2, "phone: unknown column; known: ");
    change(&["ada@example.com", "Phone"]).tells(2, "must be FIELD=VALUE");
}

impl Run {
    #[track_caller]
    fn shows_refusal(&self, text: &str) {
        assert!(self.code == 3 && self.stdout.contains(text), "{text:?}: {} {}{}", self.code, self.stdout, self.stderr);
    }
}

#[test]
fn a_person_is_reported_and_erased() {
    let days = Arc::new(AtomicU32::new(1));
    let service = Service::start_days_ago(&days);
    let mary = service.user("Mary", true);
    let asset = service.create("/assets", &json!({"name": "Laptop", "assigned_to": mary, "notes": "Mary works at home"}));
    let folder = Folder::new();
    let report = |words: &[&str]| service.run(&[&["user", "report", "mary@example.org"], words].concat()).ok();
    let shown = report(&[]).json();
    assert_eq!((&shown["user"]["display_name"], &shown["assets"][0]["notes"]), (&json!("Mary"), &json!("Mary works at home")));
    let (page, data) = (folder.path("mary.html"), folder.path("mary.json"));
    let told = report(&["--output", page.to_str().unwrap()]);
    assert_eq!(told.stderr, format!("Wrote the report about Mary <mary@example.org> to {}\n", page.display()));
    assert!(std::fs::read_to_string(&page).unwrap().contains("<h1>Report for <bdi>Mary</bdi></h1>"));
    report(&["--output", data.to_str().unwrap(), "--json"]).shows("mary.json");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    assert_eq!(written["entries"], shown["entries"]);

    let erase = |words: &[&str]| service.run(&[&["user", "erase", "mary@example.org"], words].concat());
    erase(&["--yes"]).tells(1, "The user is active.");
    service.run(&["set", "AST-000001", "assigned_to="]).ok();
    service.run(&["user", "change", "mary@example.org", "is_active=false"]).ok();
    days.store(0, Relaxed);
    let plan = erase(&["--dry-run"]).ok();
    assert!(plan.stdout.starts_with("Would erase  ") && plan.stdout.contains("entries: "), "{}", plan.stdout);
    erase(&[]).tells(2, "nothing was erased: answer y, or use --yes");
    assert_eq!(service.get(&format!("/users/{mary}"))["data"]["display_name"], "Mary");
    let done = erase(&["--yes", "--json"]).ok().json();
    assert_eq!((&done["erasure"]["done"], &done["erasure"]["user_id"]), (&json!(true), &json!(mary)));
    assert!(done["erasure"]["removed"]["entries"].as_u64().unwrap() > 0, "{done}");
    let name = service.get(&format!("/users/{mary}"))["data"]["display_name"].take();
    assert_eq!(name, done["erasure"]["pseudonym"]);
    assert_eq!(service.get(&format!("/assets/{asset}"))["data"]["notes"], name);
    service.run(&["user", "report", &mary]).shows("\"erased_at\": \"20");
    service.run(&["verify", "AST-000001"]).shows("is valid: ");
}

#[test]
fn types_are_added_and_changed() {
    let service = Service::start();
    let folder = Folder::new();
    let run = |words: &[&str]| service.run(&[&["type"], words].concat());
    let fields = ["--field", "ram_gb:integer:required", "--field", "lease_end:date"];
    let add = [&["add", "LAP", "Laptop"], &fields[..]].concat();
    let shown = "LAP Laptop, physical\nFields     ram_gb: integer, required; lease_end: date\n";
    run(&[&add[..], &["--dry-run"]].concat()).shows(&format!("Would add  {shown}"));
    assert_eq!(service.total("/catalog/asset-types"), 0);
    run(&add).shows("Added   LAP Laptop, physical\nFields  ram_gb: integer, required; lease_end: date\n");
    run(&add).tells(1, "409 DUPLICATE");
    run(&["add", "LIC", "Licence", "--kind", "virtual"]).tells(2, "/kind: must be one of");
    run(&["add", "LIC", "Licence", "--field", "until:day"])
        .tells(2, "/custom_fields_schema/properties/until/format: must be one of");
    run(&["add", "LIC", "Licence", "--field", "until"]).tells(2, "must be NAME:TYPE");
    let schema = |service: &Service| service.get("/catalog/asset-types?code=LAP")["data"][0]["custom_fields_schema"].take();
    let change =
        run(&["change", "LAP", "name=Notebook", "--field", "ram_gb:number", "--field", "imei:string", "--json"]).ok().json();
    assert_eq!(change["asset_type"]["name"], "Notebook");
    assert_eq!(schema(&service), change["asset_type"]["custom_fields_schema"]);
    assert_eq!(schema(&service)["required"], json!([]));
    assert_eq!(schema(&service)["properties"]["imei"], json!({"type": "string"}));
    let file = folder.file("schema.json", r#"{"properties": {"os": {"enum": ["Linux", "macOS"]}}}"#);
    run(&["change", "notebook", "--schema", file.to_str().unwrap()]).shows("Fields   os: any of its values\n");
    run(&["change", "LAP", "kind=logical", "--dry-run"]).shows("Would be  LAP Notebook, logical\n");
    run(&["change", "LAP"]).tells(2, "give a new value");
    run(&["change", "LAP", "colour=red"]).tells(2, "/colour: unknown field");
    run(&["change", "XYZ", "name=x"]).tells(1, "no single asset type has the code or name XYZ");
    let broken = folder.file("broken.json", "[]");
    run(&["change", "LAP", "--schema", broken.to_str().unwrap()]).tells(2, "broken.json is not a JSON Schema, an object");
}
