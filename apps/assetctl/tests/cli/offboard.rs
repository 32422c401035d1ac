//! `assetctl offboard` and `assetctl return`.

use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, Run, command, run, spawn, type_text};
use serde_json::{Value, json};
use std::process::Stdio;

pub const USER: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

fn asset(number: u32) -> Value {
    json!({"asset_id": format!("a{number}"), "asset_tag": format!("AST-{number}"), "asset_name": "Laptop", "instance_id": null})
}

/// Returns the response for `assets`. They form a movement, except the last one if `is_refused`, on which the process can't
/// start.
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
    let [post] = service.posts().try_into().unwrap();
    assert_eq!((post.parameter("dry_run"), &post.idempotency_key), ("true", &None));
    assert_eq!(post.body, json!({"deactivate": true}));
    let json = run(&service.url, &["offboard", USER, "--dry-run", "--json"]);
    assert_eq!((json.code, &json.json()["not_started"][0]["code"]), (3, &json!("WRONG_ASSET_STATUS")));
}

#[test]
fn assets_that_stay_with_the_user_have_a_next_step() {
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
  AST-4: complete or cancel the process in progress; assetctl show TAG shows it
  AST-3: change the status to the one in which the process begins: assetctl set TAG status=STATUS; or, if the user \
                    doesn't have the asset: assetctl set TAG assigned_to=
";
    assert_eq!((done.code, steps), (3, expected), "{}", done.stderr);
}

#[test]
fn the_next_steps_let_a_return_start() {
    let service = Service::start();
    let user = service.create("/users", &json!({"email": "ada@example.com", "display_name": "Ada"}));
    let body = json!({"name": "Laptop", "status": "in_service", "assigned_to": user});
    let tag = service.send("POST", "/assets", &body)["data"]["asset_tag"].as_str().unwrap().to_owned();
    let done = service.run(&["offboard", "ada@example.com", "--yes"]);
    assert!(
        done.code == 3
            && done
                .stdout
                .contains(&format!("\n  {tag}: change the status to the one in which the process begins: assetctl set TAG ")),
        "{}",
        done.stdout
    );
    service.run(&["set", &tag, "status=in_use"]).ok();
    service.run(&["offboard", "ada@example.com", "--yes"]).shows("started on 1 asset");
}

#[test]
fn options_become_members_of_the_request() {
    let service = Scripted::start(|request, _| answer(request, false));
    let done = run(&service.url, &["offboard", USER, "--yes", "--process", "own", "--keep-active", "--json"]);
    assert_eq!((done.code, &done.json()["not_started"]), (0, &json!([])), "{}", done.stderr);
    let posts = service.posts();
    assert!(posts.iter().all(|post| post.body == json!({"deactivate": false, "process_id": "p9"})), "{posts:?}");
    assert_eq!((posts.len(), posts[0].parameter("dry_run"), posts[1].parameter("dry_run")), (2, "true", ""));
}

#[test]
fn requests_are_repeated_under_their_key_until_nothing_is_left() {
    // The responses: a dry run, a first part after a 503, and a second part.
    let service = Scripted::start(|request, number| match number {
        0 => Answer::data(&offboarding(1..4, false, true)),
        1 => Answer::problem(503, "UNAVAILABLE", "Try again."),
        2 => Answer::data(&offboarding(1..4, false, true)),
        3 => Answer::data(&offboarding(4..6, false, false)),
        _ => panic!("{request:?}"),
    });
    let done = run(&service.url, &["offboard", USER, "--yes"]).ok();
    assert!(done.stdout.contains("Device Return started on 5 assets; the user is inactive\n"), "{}", done.stdout);
    assert!(done.stdout.ends_with("\n  assetctl return AST-1 AST-2 AST-3\n  assetctl return AST-4 AST-5\n"), "{}", done.stdout);
    let keys: Vec<Option<String>> = service.posts().into_iter().map(|post| post.idempotency_key).collect();
    assert!(keys[1].is_some() && keys[1] == keys[2] && keys[3].is_some() && keys[3] != keys[2], "{keys:?}");
    let endless = Scripted::start(|_, _| Answer::data(&without_assets(true, true)));
    run(&endless.url, &["offboard", USER, "--yes"]).tells(1, "didn't start a process for any of them");
}

#[test]
fn nothing_starts_without_a_yes() {
    for (typed, code) in [("", 2), ("n\n", 2), ("\n", 2), ("y\n", 0), ("Yes\n", 0)] {
        let service = Scripted::start(|request, _| answer(request, false));
        let mut command = command(&service.url, &["offboard", "ada@example.com"]);
        command.stdin(Stdio::piped());
        let run = type_text(spawn(command), typed);
        assert_eq!((run.code, service.posts().len()), (code, if code == 0 { 2 } else { 1 }), "{typed:?}: {}", run.stderr);
        assert!(run.stderr.contains("Start this for Ada <ada@example.com>, and deactivate the user? [y/N]"), "{}", run.stderr);
        assert_eq!(run.stdout.is_empty(), code == 2);
    }
}

fn without_assets(is_active: bool, has_more: bool) -> Value {
    let mut answer = offboarding(1..1, false, has_more);
    answer["movements"] = json!([]);
    answer["user"]["is_active"] = is_active.into();
    answer
}

#[test]
fn nothing_is_asked_if_there_is_nothing_to_do() {
    // With `deactivate`, a dry run reports the user's future state as inactive; without, the current state.
    for (is_active, options, asks) in [(false, &[][..], false), (true, &[], true), (true, &["--keep-active"], false)] {
        let service = Scripted::start(move |request, _| match request.body["deactivate"] == true {
            true => Answer::data(&without_assets(false, false)),
            false => Answer::data(&without_assets(is_active, false)),
        });
        let mut command = command(&service.url, &[&["offboard", USER], options].concat());
        let run = Run::of(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(run.stderr.contains("Deactivate Ada <ada@example.com>? [y/N]"), asks, "{}", run.stderr);
        assert_eq!((run.code, run.stderr.contains("There is nothing to do.")), (if asks { 2 } else { 0 }, !asks));
        assert!(service.posts().iter().all(|post| post.parameter("dry_run") == "true"));
        assert_eq!(run.stdout.contains("The user has no assets."), !asks, "{}", run.stdout);
    }
}

#[test]
fn unknown_users_and_processes_are_named() {
    let service = Scripted::start(|request, _| answer(request, false));
    for (arguments, code, reason) in [
        (&["offboard", "bob@example.com"][..], 1, "no user has the e-mail address bob@example.com"),
        (&["offboard", "Ada"], 1, "\"Ada\" is not the name of a user"),
        (&["offboard", USER, "--process", "none"], 1, "unknown process none; known: repair, own"),
        (&["offboard", USER, "--process", "Own one"], 1, "unknown process Own one; known: repair, own"),
    ] {
        run(&service.url, arguments).tells(code, reason);
    }
    assert!(service.posts().is_empty());
}

fn in_use(service: &Service, user: &str) -> (String, String) {
    let (id, tag) = service.asset("in_use");
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": user}));
    (id, tag)
}

#[test]
fn its_user_signs_and_the_repeated_command_confirms_that_it_is_here() {
    let service = Service::start();
    let mary = service.user("Mary", true);
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
    service.sign(&first.link(), json!({}));
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
fn an_offboarding_names_the_commands_that_take_the_assets_back() {
    let service = Service::start();
    let mary = service.user("Mary", true);
    let ((_, one), (_, other)) = (in_use(&service, &mary), in_use(&service, &mary));
    let started = service.run(&["offboard", "mary@example.org", "--yes"]);
    let (_, command) = started.stdout.split_once("When they are back:\n  assetctl ").unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().collect();
    assert!(words.len() == 3 && words[0] == "return" && words.contains(&one.as_str()), "{}", started.stdout);
    let again = service.run(&["offboard", "mary@example.org", "--yes"]);
    assert!(again.stdout.ends_with(command), "{}", again.stdout);
    let part = service.run(&["return", &one]);
    assert!(part.code == 1 && part.stderr.contains("the return has ") && part.stderr.contains(&other), "{}", part.stderr);
    let first = service.run(&words);
    service.sign(&first.link(), json!({"returned_items": ["Device"], "condition": "fine"}));
    let done = service.run(&[&words[..], &["--json"]].concat());
    assert_eq!((done.code, &done.json()["status"]), (0, &json!("completed")), "{}", done.stderr);
    assert_eq!(service.get("/assets?status=returned&assigned_to=none")["meta"]["total"], 2);
}

#[test]
fn nothing_starts_if_nobody_is_there_to_sign() {
    let service = Service::start();
    let (mary, ada) = (service.user("Mary", true), service.user("Ada", false));
    let ((_, nobodys), (_, marys), (id, adas)) = (service.asset("in_use"), in_use(&service, &mary), service.asset("in_use"));
    service.send("PATCH", &format!("/users/{ada}"), &json!({"is_active": true}));
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": ada}));
    service.send("PATCH", &format!("/users/{ada}"), &json!({"is_active": false}));
    for (words, code, reason) in [
        (&[nobodys.as_str()][..], 2, "name the person who returns and signs: --from USER"),
        (&[&marys, &adas], 2, "name the person who returns and signs: --from USER"),
        (&[&marys, "--process", "repair", "--condition", "x"], 2, "the process repair has no step `condition`"),
        (&[&marys, "--from", "eve@example.org"], 1, "no user has the e-mail address eve@example.org"),
        (&[&marys, "--tick", "Dock"], 2, "tick \"Dock\": the checklists have \"Device\", "),
        (&[&service.asset("in_stock").1, "--from", "mary"], 1, "The asset's status is in_stock."),
    ] {
        service.run(&[&["return"], words].concat()).tells(code, reason);
    }
    assert_eq!(service.total("/processes/instances"), 0);
    service.run(&["return", &nobodys, "--from", "mary"]).link();
    // An inactive user can sign, too.
    service.run(&["return", &adas]).link();
}

#[test]
fn an_offboarding_and_labels_with_the_real_service() {
    let (service, folder) = (Service::start(), Folder::new());
    let user = service.create("/users", &json!({"email": "Ada@example.com", "display_name": "Ada"}));
    for (name, status) in [("Laptop", "in_use"), ("Phone", "in_use"), ("Spare", "in_stock")] {
        service.create("/assets", &json!({"name": name, "status": status, "assigned_to": user, "purchase_price": 100.5}));
    }
    let stats = service.run(&["stats", "--json"]).json();
    assert_eq!((&stats["assets"]["total"], &stats["assets"]["value_by_status"]["in_use"]), (&json!(3), &json!("201.00")));
    assert_eq!(service.run(&["me", "--json"]).json()["tenant"]["name"], "Test");
    assert!(service.run(&["me"]).stdout.contains("User        none: the key is not bound to a user"));

    let new = service.create("/assets", &json!({"name": "New one", "asset_tag": "N-1", "status": "preparing"}));
    let onboarding = service.get("/processes?slug=employee-onboarding")["data"][0].clone();
    let (path, picker) =
        (format!("/processes/{}/start", onboarding["id"].as_str().unwrap()), onboarding["steps"][0]["key"].clone());
    let picked = json!({"asset_id": new, "step_data": {picker.as_str().unwrap(): user}, "through": picker});
    let instance = service.send("POST", &path, &picked)["data"]["id"].clone();
    let shown = service.run(&["offboard", "ada@example.com", "--dry-run"]).stdout;
    assert!(shown.contains("the user would be inactive; 1 instance that picked the user can't go on\n"), "{shown}");
    assert!(shown.contains("reactivate the user:\n  N-1 New one: Employee Onboarding, step 2 of "), "{shown}");
    let kept = service.run(&["offboard", "ada@example.com", "--dry-run", "--keep-active"]).stdout;
    assert!(kept.contains("the user would stay active\n") && !kept.contains("N-1"), "{kept}");
    let plan = service.run(&["offboard", "ada@EXAMPLE.com", "--process", "device-return", "--dry-run", "--json"]);
    assert_eq!(plan.json()["picked_in"], json!([instance]));
    assert_eq!((plan.code, &plan.json()["movements"][0]["number"]), (3, &json!(null)), "{}", plan.stderr);
    service.run(&["offboard", "ada@example.com"]).tells(2, "nothing was started");
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
    service.run(&["labels", "--all", "--skip", "3", "-o", sheets.to_str().unwrap()]).ok();
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
