//! Labels, offboarding, statistics and the key of the real service, with the real binary.

use crate::support::Folder;
use crate::support::service::Service;
use serde_json::json;

#[test]
fn what_a_user_had_is_taken_back_and_labelled() {
    let (service, folder) = (Service::start(), Folder::new());
    let user = service.create("/users", &json!({"email": "Ada@example.com", "display_name": "Ada"}));
    for (name, status) in [("Laptop", "in_use"), ("Phone", "in_use"), ("Spare", "in_stock")] {
        service.create("/assets", &json!({"name": name, "status": status, "assigned_to": user, "purchase_price": 100.5}));
    }
    let stats = service.run(&["stats", "--json"]).json();
    assert_eq!((&stats["assets"]["total"], &stats["assets"]["value_by_status"]["in_use"]), (&json!(3), &json!("201.00")));
    assert_eq!(service.run(&["me", "--json"]).json()["tenant"]["name"], "Test");
    assert!(service.run(&["me"]).stdout.contains("User        none: the key is the tenant's own"));

    let plan = service.run(&["offboard", "ada@EXAMPLE.com", "--process", "device-return", "--dry-run", "--json"]);
    assert_eq!((plan.code, &plan.json()["movements"][0]["number"]), (3, &json!(null)), "{}", plan.stderr);
    let unsure = service.run(&["offboard", "ada@example.com"]);
    assert!(unsure.code == 2 && unsure.stderr.contains("nothing was started"), "{}", unsure.stderr);
    let done = service.run(&["offboard", "ada@example.com", "--yes", "--json"]);
    let result = done.json();
    assert_eq!((done.code, &result["movements"][0]["number"]), (3, &json!("MOV-000001")), "{}", done.stderr);
    assert_eq!(result["movements"][0]["assets"].as_array().map(Vec::len), Some(2));
    assert_eq!(result["not_started"][0]["code"], "WRONG_ASSET_STATUS");
    assert_eq!(result["user"]["is_active"], false);
    let again = service.run(&["offboard", &user, "--yes", "--json"]).json();
    assert_eq!((again["movements"].as_array().map(Vec::len), again["in_progress"].as_array().map(Vec::len)), (Some(0), Some(2)));

    let tags: Vec<String> = service.assets().iter().map(|asset| asset["asset_tag"].as_str().unwrap().to_owned()).collect();
    let (sheets, single) = (folder.path("labels.html"), folder.path("labels"));
    let printed = service.run(&["labels", "--all", "--skip", "3", "-o", sheets.to_str().unwrap()]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    let page = std::fs::read_to_string(&sheets).unwrap();
    assert!(tags.iter().all(|tag| page.contains(tag)), "{page}");
    for format in ["svg", "png", "zpl"] {
        let printed = service.run(&["labels", &tags[0], "--format", format, "--size", "62x29", "-o", single.to_str().unwrap()]);
        assert_eq!(printed.code, 0, "{format}: {}", printed.stderr);
        assert!(single.join(format!("{}.{format}", tags[0])).exists());
    }
    let zpl = service.run(&["labels", "--status", "in_stock", "--format", "zpl", "--dpi", "300"]);
    assert_eq!((zpl.code, zpl.stdout.matches("^XA").count()), (0, 1), "{}", zpl.stderr);
}

#[test]
fn a_filter_that_the_service_refuses_is_a_wrong_command() {
    let (service, folder) = (Service::start(), Folder::new());
    let file = folder.path("assets.csv");
    for words in [&["export", "--status", "lent", "-o"][..], &["labels", "--filter", "colour=red", "-o"]] {
        let run = service.run(&[words, &[file.to_str().unwrap()]].concat());
        assert!(run.code == 2 && run.stderr.contains("422") && !run.stderr.contains("repeat"), "{words:?}: {}", run.stderr);
    }
}
