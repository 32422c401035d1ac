//! `assetctl return` with the real service.

use crate::handover::{asset, user};
use crate::support::Run;
use crate::support::service::Service;
use serde_json::{Value, json};

/// An asset of a user.
fn in_use(service: &Service, user: &str) -> (String, String) {
    let (id, tag) = asset(service, "in_use");
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": user}));
    (id, tag)
}

fn link(run: &Run) -> &str {
    assert!(run.code == 0 && run.stdout.contains("/v1/sign#sgn_"), "{}{}", run.stdout, run.stderr);
    run.stdout.trim()
}

#[test]
fn its_user_signs_and_the_repeated_command_confirms_that_it_is_here() {
    let service = Service::start();
    let mary = user(&service, "Mary", true);
    let (id, tag) = in_use(&service, &mary);
    let plan = service.run(&["return", &tag, "--dry-run"]);
    let expected = format!(
        "Process     Device Return\nAssets      {tag} Laptop\nFrom        Mary <mary@example.org>\n\
         Steps left  Given back, Condition and damage, Signature of the user, Received by IT, Complete the return\n"
    );
    assert!(plan.code == 0 && plan.stdout.starts_with(&expected), "{}{}", plan.stdout, plan.stderr);
    assert_eq!(service.total("/processes/instances"), 0);
    let first = service.run(&["return", &tag, "--tick", "all", "--condition", "A scratch"]);
    assert!(
        first.stderr.contains("Steps left  Signature of the user, Received by IT, Complete the return\n"),
        "{}",
        first.stderr
    );
    service.sign(link(&first), json!({}));
    assert_eq!(service.get(&format!("/assets/{id}"))["data"]["status"], "in_use", "it is not here yet");
    let plan = service.run(&["return", &tag, "--dry-run"]);
    assert!(plan.code == 0 && plan.stdout.ends_with("This would be completed.\n"), "{}{}", plan.stdout, plan.stderr);
    for _ in ["confirms it", "finds it done"] {
        let done = service.run(&["return", &tag]);
        assert!(done.code == 0 && done.stdout.ends_with("/receipt?format=html\n"), "{}{}", done.stdout, done.stderr);
    }
    let asset = &service.get(&format!("/assets/{id}"))["data"];
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("returned"), &Value::Null));
    let instances = service.get("/processes/instances?omit=signatures");
    let data = &instances["data"][0]["step_data"];
    assert_eq!(
        (&instances["meta"]["total"], &data["received"], &data["condition"]),
        (&json!(1), &json!(true), &json!("A scratch"))
    );
    assert_eq!(data["returned_items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_an_offboarding_has_started_is_taken_back_by_the_commands_that_it_names() {
    let service = Service::start();
    let mary = user(&service, "Mary", true);
    let ((_, one), (_, other)) = (in_use(&service, &mary), in_use(&service, &mary));
    let started = service.run(&["offboard", "mary@example.org", "--yes"]);
    let (_, command) = started.stdout.split_once("When they are back:\n  assetctl ").unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().collect();
    assert!(words.len() == 3 && words[0] == "return" && words.contains(&one.as_str()), "{}", started.stdout);
    let again = service.run(&["offboard", "mary@example.org", "--yes"]);
    assert!(again.stdout.ends_with(command), "{}", again.stdout);
    let part = service.run(&["return", &one]);
    assert!(part.code == 1 && part.stderr.contains("the return is of ") && part.stderr.contains(&other), "{}", part.stderr);
    let first = service.run(&words);
    service.sign(link(&first), json!({"returned_items": ["Device"], "condition": "fine"}));
    let done = service.run(&[&words[..], &["--json"]].concat());
    assert_eq!((done.code, &done.json()["status"]), (0, &json!("completed")), "{}", done.stderr);
    assert_eq!(service.get("/assets?status=returned&assigned_to=none")["meta"]["total"], 2);
}

#[test]
fn nothing_starts_if_nobody_is_there_to_sign() {
    let service = Service::start();
    let (mary, ada) = (user(&service, "Mary", true), user(&service, "Ada", false));
    let ((_, nobodys), (_, marys), (id, adas)) = (asset(&service, "in_use"), in_use(&service, &mary), asset(&service, "in_use"));
    service.send("PATCH", &format!("/users/{ada}"), &json!({"is_active": true}));
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": ada}));
    service.send("PATCH", &format!("/users/{ada}"), &json!({"is_active": false}));
    for (words, code, reason) in [
        (&[nobodys.as_str()][..], 2, "name who gives it back and signs: --from USER"),
        (&[&marys, &adas], 2, "name who gives it back and signs: --from USER"),
        (&[&marys, "--process", "repair", "--condition", "x"], 2, "the process repair has no step condition"),
        (&[&marys, "--from", "eve@example.org"], 1, "no user has the e-mail address eve@example.org"),
        (&[&marys, "--tick", "Dock"], 2, "tick \"Dock\": the checklists have \"Device\", "),
        (&[&asset(&service, "in_stock").1, "--from", "mary"], 1, "The asset's status is in_stock."),
    ] {
        let refused = service.run(&[&["return"], words].concat());
        assert!(refused.code == code && refused.stderr.contains(reason), "{words:?}: {}", refused.stderr);
    }
    assert_eq!(service.total("/processes/instances"), 0);
    link(&service.run(&["return", &nobodys, "--from", "mary"]));
    // Who has left signs as well.
    link(&service.run(&["return", &adas]));
}
