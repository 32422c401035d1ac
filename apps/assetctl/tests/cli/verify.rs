//! `assetctl verify`, with the real service and offline.

use crate::support::service::Service;
use crate::support::{Folder, command};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// An address at which nothing answers.
const NOWHERE: &str = "http://127.0.0.1:9/v1";

/// Hands an asset over, and returns it.
fn handed_over(service: &Service) -> (String, String) {
    service.user("Mary", true);
    let (id, tag) = service.asset("preparing");
    let link = service.run(&["handover", &tag, "--to", "mary@example.org", "--tick", "all"]).link();
    service.sign(&link, json!({}));
    (id, tag)
}

fn offline(words: &[&str]) -> crate::support::Run {
    let mut offline: Command = command(NOWHERE, &[&["verify"], words].concat());
    offline.env_remove("ASSETCTL_API_KEY").env_remove("ASSETCTL_BASE_URL");
    crate::support::Run::of(offline.output().unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_history_and_the_receipts_of_an_asset_are_verified() {
    let service = Service::start();
    let (_, new) = service.asset("in_stock");
    let shown = service.run(&["verify", &new]).ok();
    let expected = format!(
        "Asset     {new} Laptop\nHistory   is valid: 1 change, each with the hash of the one before\nReceipts  none: no process was completed\n"
    );
    assert_eq!(shown.stdout, expected);
    let (_, tag) = handed_over(&service);
    let shown = service.run(&["verify", &tag]).ok();
    assert!(shown.stdout.ends_with("Receipts  1 receipt valid, with the published keys\n"), "{}", shown.stdout);
    let result = service.run(&["verify", &tag, "--json"]).ok().json();
    assert_eq!((&result["verification"], &result["recomputed"]), (&result["recomputed"], &result["verification"]));
    assert_eq!((&result["verification"]["valid"], result["receipts"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    service.run(&["verify", "NOPE-1"]).tells(1, "no asset has the tag or the serial number NOPE-1");
    service.run(&["verify", &tag, "--keys", "keys.json"]).tells(2, "--keys is for a receipt in a file");
}

#[test]
fn a_receipt_in_a_file_is_verified_with_published_or_given_keys() {
    let service = Service::start();
    let (id, _) = handed_over(&service);
    let instance = service.get(&format!("/processes/instances?asset_id={id}"))["data"][0]["id"].take();
    let receipt = service.get(&format!("/processes/instances/{}/receipt", instance.as_str().unwrap()));
    let tenant = receipt["receipt"]["tenant_id"].as_str().unwrap();
    let keys = service.get(&format!("/.well-known/receipt-keys?tenant={tenant}"));
    let folder = Folder::new();
    let (file, keys) = (folder.file("receipt.json", receipt.to_string()), folder.file("keys.json", keys.to_string()));
    service.run(&["verify", text(&file)]).shows("Process    Employee Onboarding\n");
    let shown = offline(&[text(&file), "--keys", text(&keys)]).ok();
    assert!(shown.stdout.starts_with("Receipt    is valid: signed by the service, and unchanged since\n"), "{}", shown.stdout);
    let json = offline(&[text(&file), "--keys", text(&keys), "--json"]).ok().json();
    assert_eq!(
        (&json["valid"], &json["receipt"], &json["kid"]),
        (&json!(true), &receipt["receipt"], &receipt["signature"]["kid"])
    );
    let mut forged = receipt.clone();
    forged["receipt"]["asset"]["name"] = "Gold bar".into();
    let forged = folder.file("forged.json", forged.to_string());
    offline(&[text(&forged), "--keys", text(&keys)]).tells(1, "forged.json has an invalid signature: the receipt was changed");
    let none = folder.file("none.json", r#"{"keys": []}"#);
    offline(&[text(&file), "--keys", text(&none)]).tells(1, "is signed by a key that is not among the given keys");
    offline(&[text(&file)]).tells(2, "no base URL");
    offline(&[text(&file), "--keys", text(&file)]).tells(1, "receipt.json has no public keys");
}

#[test]
fn a_history_in_a_file_is_recomputed_offline() {
    let service = Service::start();
    let (id, tag) = handed_over(&service);
    service.run(&["set", &tag, "custom_fields.size=1.50", "notes=Größe"]).ok();
    let history = service.get(&format!("/assets/{id}/history?limit=100"));
    let folder = Folder::new();
    let verify = |name: &str, content: &Value| offline(&[text(&folder.file(name, content.to_string()))]);
    verify("history.json", &history).shows("The history is valid: 4 changes of 1 record, each with the hash of the one before\n");
    verify("entries.json", &history["data"]).shows("The history is valid: 4 changes of 1 record");
    let broken = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut entries = history["data"].as_array().unwrap().clone();
        change(&mut entries);
        verify("broken.json", &json!({"data": entries}))
    };
    let of = |reason: &str| format!("the history of {id} is broken at version {reason}");
    broken(&|entries| entries[1]["actor"]["key_name"] = "nobody".into()).tells(1, &of("3: wrong hash"));
    // A change while the pages are read shifts an entry to the next page.
    let mut shifted = history["data"].as_array().unwrap().clone();
    shifted.push(shifted[1].clone());
    verify("shifted.json", &json!(shifted)).shows("The history is valid: 4 changes of 1 record");
    broken(&|entries| {
        let mut forged = entries[1].clone();
        forged["actor"]["key_name"] = "nobody".into();
        entries.push(forged);
    })
    .tells(1, &of("3: doubled"));
    broken(&|entries| drop(entries.remove(1))).tells(1, &of("3: missing"));
    broken(&|entries| entries[2]["hash"] = 5.into()).tells(1, "broken.json has an entry that can't be read: ");
    verify("empty.json", &json!({"data": []})).tells(1, "empty.json is neither a receipt nor a history");
    offline(&[text(&folder.file("text.txt", "x"))]).tells(1, "text.txt is not JSON");
}
