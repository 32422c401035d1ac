//! `assetctl offboard`.

use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, Run, command, run};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

pub const USER: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

fn asset(number: u32) -> Value {
    json!({"asset_id": format!("a{number}"), "asset_tag": format!("AST-{number}"), "asset_name": "Laptop", "instance_id": null})
}

/// The answer for `assets`: the first ones make a movement, and the last can't start if `is_refused`.
pub fn offboarding(assets: std::ops::Range<u32>, is_refused: bool, has_more: bool) -> Value {
    let mut assets: Vec<Value> = assets.map(asset).collect();
    let refused = is_refused.then(|| {
        let mut refused = assets.pop().unwrap();
        refused["code"] = "WRONG_ASSET_STATUS".into();
        refused["detail"] = "The asset is in_stock.".into();
        refused["status"] = "in_stock".into();
        refused
    });
    json!({
        "user": {"id": USER, "display_name": "Ada", "email": "ada@example.com", "is_active": false},
        "process": {"id": "p", "name": "Device Return", "slug": "device-return"},
        "movements": [{"id": null, "number": null, "assets": assets}], "instances": [], "in_progress": [],
        "not_started": refused.into_iter().collect::<Vec<_>>(), "has_more": has_more
    })
}

fn answer(request: &Request, is_refused: bool) -> Answer {
    match request.route.as_str() {
        "GET /users" if request.parameter("email") == "ada@example.com" => Answer::data(&json!([{"id": USER}])),
        "GET /users" => Answer::data(&json!([])),
        "GET /processes" if request.parameter("slug") == "own" => Answer::data(&json!([{"id": "p9"}])),
        "GET /processes" if request.parameter("limit") == "100" => Answer::data(&json!([{"slug": "repair"}, {"slug": "own"}])),
        "GET /processes" => Answer::data(&json!([])),
        route => {
            assert_eq!(route, format!("POST /users/{USER}/offboard"));
            Answer::data(&offboarding(1..4, is_refused, false))
        }
    }
}

fn posts(service: &Scripted) -> Vec<Request> {
    service.requests().into_iter().filter(|request| request.route.starts_with("POST")).collect()
}

#[test]
fn a_dry_run_shows_the_plan() {
    let service = Scripted::start(|request, _| answer(request, true));
    let shown = run(&service.url, &["offboard", "ada@example.com", "--dry-run"]);
    let expected = "\
TAG    ASSET   PROCESS
AST-1  Laptop  starts in movement 1
AST-2  Laptop  starts in movement 1
AST-3  Laptop  can't start: WRONG_ASSET_STATUS The asset is in_stock.

Device Return would start on 2 assets, 1 that can't start; the user would be inactive
";
    assert_eq!((shown.code, shown.stdout.as_str()), (3, expected), "{}", shown.stderr);
    let [post] = posts(&service).try_into().unwrap();
    assert_eq!((post.parameter("dry_run"), &post.idempotency_key), ("true", &None));
    assert_eq!(post.body, json!({"deactivate": true}));
    let json = run(&service.url, &["offboard", USER, "--dry-run", "--json"]);
    assert_eq!((json.code, &json.json()["not_started"][0]["code"]), (3, &json!("WRONG_ASSET_STATUS")));
}

#[test]
fn what_stays_with_the_user_has_a_next_step() {
    let service = Scripted::start(|_, _| {
        let mut answer = offboarding(1..4, true, false);
        let mut running = asset(4);
        running["code"] = "PROCESS_RUNNING".into();
        running["detail"] = "A process is in progress.".into();
        answer["not_started"].as_array_mut().unwrap().push(running);
        Answer::data(&answer)
    });
    let done = run(&service.url, &["offboard", USER, "--yes"]);
    let (_, steps) = done.stdout.split_once("\nThese assets stay with the user. ").unwrap();
    let expected = "\
Do this first, then repeat the command:
  AST-4: complete or cancel the process in progress, which assetctl show TAG names
  AST-3: import a file of asset_tag,status that gives the status in which the process begins; or, if the user doesn't have it, one of \
                    asset_tag,assigned_to_email with \\N: assetctl import FILE --match asset_tag
";
    assert_eq!((done.code, steps), (3, expected), "{}", done.stderr);
}

#[test]
fn the_next_steps_let_a_return_start() {
    let (service, folder) = (Service::start(), Folder::new());
    let user = service.create("/users", &json!({"email": "ada@example.com", "display_name": "Ada"}));
    let body = json!({"name": "Laptop", "status": "in_service", "assigned_to": user});
    let tag = service.send("POST", "/assets", &body)["data"]["asset_tag"].as_str().unwrap().to_owned();
    let done = service.run(&["offboard", "ada@example.com", "--yes"]);
    assert!(done.code == 3 && done.stdout.contains(&format!("\n  {tag}: import a file of asset_tag,status ")), "{}", done.stdout);
    let file = folder.file("status.csv", format!("asset_tag,status\n{tag},in_use\n"));
    assert_eq!(service.import(&file, &["--match", "asset_tag"]).json()["updated"], 1);
    let again = service.run(&["offboard", "ada@example.com", "--yes"]);
    assert!(again.code == 0 && again.stdout.contains("started on 1 asset"), "{}{}", again.stdout, again.stderr);
}

#[test]
fn options_become_members_and_everything_that_starts_is_0() {
    let service = Scripted::start(|request, _| answer(request, false));
    let done = run(&service.url, &["offboard", USER, "--yes", "--process", "own", "--keep-active", "--json"]);
    assert_eq!((done.code, &done.json()["not_started"]), (0, &json!([])), "{}", done.stderr);
    let posts = posts(&service);
    assert!(posts.iter().all(|post| post.body == json!({"deactivate": false, "process_id": "p9"})), "{posts:?}");
    assert_eq!((posts.len(), posts[0].parameter("dry_run"), posts[1].parameter("dry_run")), (2, "true", ""));
}

#[test]
fn requests_are_repeated_under_their_key_until_nothing_is_left() {
    // One dry run; then a first part that must wait, and a second one.
    let service = Scripted::start(|request, number| match number {
        0 => Answer::data(&offboarding(1..4, false, true)),
        1 => Answer::problem(503, "UNAVAILABLE", "Try again."),
        2 => Answer::data(&offboarding(1..4, false, true)),
        3 => Answer::data(&offboarding(4..6, false, false)),
        _ => panic!("{request:?}"),
    });
    let done = run(&service.url, &["offboard", USER, "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("Device Return started on 5 assets; the user is inactive\n"), "{}", done.stdout);
    assert!(done.stdout.ends_with("\n  assetctl return AST-1 AST-2 AST-3\n  assetctl return AST-4 AST-5\n"), "{}", done.stdout);
    let keys: Vec<Option<String>> = posts(&service).into_iter().map(|post| post.idempotency_key).collect();
    assert!(keys[1].is_some() && keys[1] == keys[2] && keys[3].is_some() && keys[3] != keys[2], "{keys:?}");
    let endless = Scripted::start(|_, _| {
        let mut nothing = offboarding(1..1, false, true);
        nothing["movements"] = json!([]);
        Answer::data(&nothing)
    });
    let stopped = run(&endless.url, &["offboard", USER, "--yes"]);
    assert!(stopped.code == 1 && stopped.stderr.contains("starts nothing"), "{}", stopped.stderr);
}

#[test]
fn nothing_starts_without_a_yes() {
    for (typed, code) in [("", 2), ("n\n", 2), ("\n", 2), ("y\n", 0), ("Yes\n", 0)] {
        let service = Scripted::start(|request, _| answer(request, false));
        let mut command = command(&service.url, &["offboard", "ada@example.com"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let run = Run::of(child.wait_with_output().unwrap());
        assert_eq!((run.code, posts(&service).len()), (code, if code == 0 { 2 } else { 1 }), "{typed:?}: {}", run.stderr);
        assert!(run.stderr.contains("Start this for Ada <ada@example.com>, and deactivate the user? [y/N]"), "{}", run.stderr);
        assert_eq!(run.stdout.is_empty(), code == 2);
    }
}

fn without_assets(is_active: bool) -> Value {
    let mut answer = offboarding(1..1, false, false);
    answer["movements"] = json!([]);
    answer["user"]["is_active"] = is_active.into();
    answer
}

#[test]
fn nothing_is_asked_if_there_is_nothing_to_do() {
    // A dry run that deactivates says that the user would be inactive; one that doesn't says what the user is.
    for (is_active, options, asks) in [(false, &[][..], false), (true, &[], true), (true, &["--keep-active"], false)] {
        let service = Scripted::start(move |request, _| match request.body["deactivate"] == true {
            true => Answer::data(&without_assets(false)),
            false => Answer::data(&without_assets(is_active)),
        });
        let mut command = command(&service.url, &[&["offboard", USER], options].concat());
        let run = Run::of(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(run.stderr.contains("Deactivate Ada <ada@example.com>? [y/N]"), asks, "{}", run.stderr);
        assert_eq!((run.code, run.stderr.contains("There is nothing to do.")), (if asks { 2 } else { 0 }, !asks));
        assert!(posts(&service).iter().all(|post| post.parameter("dry_run") == "true"));
        assert_eq!(run.stdout.contains("The user has no assets."), !asks, "{}", run.stdout);
    }
}

#[test]
fn who_is_not_there_is_named() {
    let service = Scripted::start(|request, _| answer(request, false));
    for (arguments, code, reason) in [
        (&["offboard", "bob@example.com"][..], 1, "no user has the e-mail address bob@example.com"),
        (&["offboard", "Ada"], 1, "\"Ada\" is not the name of a user"),
        (&["offboard", USER, "--process", "none"], 1, "unknown process none; known: repair, own"),
        (&["offboard", USER, "--process", "Own one"], 1, "unknown process Own one; known: repair, own"),
    ] {
        let refused = run(&service.url, arguments);
        assert!(refused.code == code && refused.stderr.contains(reason), "{}", refused.stderr);
    }
    assert!(posts(&service).is_empty());
}
