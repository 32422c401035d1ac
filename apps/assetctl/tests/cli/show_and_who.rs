//! `assetctl show` and `assetctl who` with the real service.

use crate::support::service::Service;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn who_had_an_asset_on_a_day() {
    let days_ago = Arc::new(AtomicU32::new(10));
    let service = Service::start_days_ago(&days_ago);
    let (ada, mary) = (service.user("Ada", true), service.user("Mary", true));
    let created = &service.send("POST", "/assets", &json!({"name": "Laptop", "assigned_to": ada}))["data"];
    let (id, tag) = (created["id"].as_str().unwrap(), created["asset_tag"].as_str().unwrap());
    let day = |asset: &serde_json::Value| asset["updated_at"].as_str().unwrap()[..10].to_owned();
    let first = day(created);
    days_ago.store(5, Ordering::Relaxed);
    let second = day(&service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": mary}))["data"]);
    days_ago.store(0, Ordering::Relaxed);
    for (arguments, expected) in [
        (
            &[tag, "--on", &first][..],
            format!("Assigned to  Ada <ada@example.org>\nStatus       in_stock\nWhen         the end of {first} in UTC "),
        ),
        (
            &[id, "--on", &second],
            format!("Assigned to  Mary <mary@example.org>\nStatus       in_stock\nWhen         the end of {second} in UTC "),
        ),
        (
            &[tag],
            format!("Asset        {tag} Laptop\nAssigned to  Mary <mary@example.org>\nStatus       in_stock\nWhen         now\n"),
        ),
    ] {
        service.run(&[&["who"], arguments].concat()).shows(&expected);
    }
    let json = service.run(&["who", tag, "--on", &first, "--json"]).json();
    assert_eq!((&json["user"], &json["as_of"]), (&json!(ada), &json!(format!("{first}T23:59:59.999Z"))));
    for (day, code, reason) in [
        ("2001-01-01", 1, "did not exist at the end of 2001-01-01 in UTC"),
        ("2150-01-01", 2, "in the future"),
        ("9999-12-31", 2, "is out of range"),
        ("1.2.26", 2, "must be a date"),
    ] {
        service.run(&["who", tag, "--on", day]).tells(code, reason);
    }
    service.send("DELETE", &format!("/assets/{id}"), &json!({}));
    assert!(service.run(&["who", id, "--on", &second]).stdout.contains("Mary"));
}

#[test]
fn events_show_the_changes_of_a_period() {
    let days_ago = Arc::new(AtomicU32::new(10));
    let service = Service::start_days_ago(&days_ago);
    let mary = service.user("Mary", true);
    let created = &service.send("POST", "/assets", &json!({"name": "Laptop"}))["data"];
    let (id, tag) = (created["id"].as_str().unwrap(), created["asset_tag"].as_str().unwrap());
    days_ago.store(5, Ordering::Relaxed);
    let changed = service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": mary}));
    let day = &changed["data"]["updated_at"].as_str().unwrap()[..10];
    days_ago.store(0, Ordering::Relaxed);
    let key = service.get("/me")["data"]["key"]["id"].as_str().unwrap().to_owned();
    let events = |options: &[&str]| service.run(&[&["events", "--types", "asset.*"], options].concat());
    let week = ["--since", day, "--until", day];
    let shown = events(&week);
    let line = format!("{tag}  Laptop  assigned_to: none → Mary  first key\n");
    assert!(shown.stdout.ends_with(&line) && shown.stderr == "1 event\n", "{}{}", shown.stdout, shown.stderr);
    let csv = events(&["--format", "csv"]).stdout;
    assert!(
        csv.starts_with("at,asset_tag,name,what,who\r\n") && csv.contains(&format!(",{tag},Laptop,created,first key\r\n")),
        "{csv}"
    );
    let json = events(&[&week[..], &["--json"]].concat()).json();
    assert_eq!(
        (json["events"].as_array().unwrap().len(), &json["events"][0]["changes"]["assigned_to"]["new"]),
        (1, &json!(mary))
    );
    assert_eq!(events(&["--limit", "1"]).stderr, "1 event, and there are more\n");
    assert_eq!(events(&["--actor", &key]).stderr, "2 events\n");
    assert_eq!(events(&["--actor", "mary@example.org"]).stderr, "0 events\n");
    for (options, told) in [
        (&["--types", "assets"][..], "\n  --types: must be event types"),
        (&["--since", "March"], "--since must be YYYY-MM-DD or a time"),
    ] {
        service.run(&[&["events"], options].concat()).tells(2, told);
    }
}

#[test]
fn an_asset_is_shown_on_one_screen() {
    let service = Service::start();
    let mary = service.user("Mary", true);
    let (id, tag) = service.asset("in_stock");
    let details = json!({"status": "preparing", "serial_number": "PF3XK201", "model": "T14", "notes": "a\nb", "purchase_price": 12.5,
               "custom_fields": {"ram_gb": 16, "cost center": "0815"}});
    service.send("PATCH", &format!("/assets/{id}"), &details);
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": mary}));
    assert_eq!(service.run(&["handover", &tag, "--to", "mary@example.org"]).code, 0);
    let shown = service.run(&["show", &tag]);
    let text = &shown.stdout;
    for expected in [
        &format!("{tag} Laptop\nStatus                     preparing\nOwner                      Mary <mary@example.org>\n"),
        "Process                    Employee Onboarding, step 2 of 4: Handed over (by\n",
        "Serial number              PF3XK201\n",
        "Purchase price             12.50\n",
        "Notes                      a b\n",
        "Asset kind                 physical\n",
        "custom_fields.ram_gb       16\n",
        "custom_fields.cost center  0815\n",
        &format!("Id                         {id}\n"),
        "first key  assigned_to: none → Mary\n",
        "first key  status: in_stock → preparing, custom_fields: {} →\n",
        "first key  process started\n",
        "first key  created\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(text.lines().count() < 30 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!((&service.run(&["show", "PF3XK201"]).stdout, &service.run(&["show", &id]).stdout), (text, text));
    let other = service.send("POST", "/assets", &json!({"name": "Twin", "serial_number": "PF3XK201"}));
    let twins = service.run(&["show", "PF3XK201"]);
    twins.tells(1, "several assets have the serial number PF3XK201: ");
    assert!(twins.stderr.contains(other["data"]["asset_tag"].as_str().unwrap()));
    let json = service.run(&["show", &tag, "--json"]).json();
    assert_eq!((&json["asset"]["id"], &json["process"]["current_step"]), (&json!(id), &json!(1)));
}

#[test]
fn a_serial_number_and_a_tag_can_have_the_form_of_an_id() {
    let days_ago = Arc::new(AtomicU32::new(5));
    let service = Service::start_days_ago(&days_ago);
    service.user("Mary", true);
    let (serial, worn) = ("27aa8378-b0f4-4289-84a4-405da95c6999", "5c1b0c5e-4b0d-4b7a-9a57-6d1f3a1b2c3d");
    let body = json!({"name": "VM", "serial_number": serial, "asset_tag": worn, "status": "preparing"});
    let created = &service.send("POST", "/assets", &body)["data"];
    let (id, day) = (created["id"].as_str().unwrap(), created["created_at"].as_str().unwrap()[..10].to_owned());
    days_ago.store(0, Ordering::Relaxed);
    for name in [serial, worn, id] {
        assert_eq!(service.run(&["show", name, "--json"]).json()["asset"]["id"], id, "{name}");
        assert_eq!(service.run(&["who", name, "--on", &day, "--json"]).json()["asset"]["id"], id, "{name}");
    }
    service.run(&["handover", serial, "--to", "mary@example.org", "--dry-run"]).shows(" VM\n");
    let labels = service.run(&["labels", serial, "--format", "zpl"]);
    assert_eq!((labels.code, labels.stdout.matches("^XA").count()), (0, 1), "{}", labels.stderr);
    let other = "27aa8378-b0f4-4289-84a4-405da95c6998";
    let missing = service.run(&["show", other]);
    let expected = format!("no asset has the ID, the tag or the serial number {other}");
    missing.tells(1, &expected);
    service.run(&["who", other, "--on", &day]).tells(1, "did not exist at the end of ");
}
