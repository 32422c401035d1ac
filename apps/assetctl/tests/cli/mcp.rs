//! `assetctl mcp`. `.ci/mcp/check` tests it with real clients.

use crate::offboard::{USER, offboarding};
use crate::support::command;
use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::service::Service;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Maximum response time in a test.
const LIMIT: Duration = Duration::from_secs(120);
const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

fn asset(status: &str) -> Value {
    json!({"id": ID, "asset_tag": "AST-1", "name": "Laptop", "status": status, "assigned_to": null, "updated_at": "then"})
}

fn me(scopes: &[&str]) -> Answer {
    Answer::data(&json!({"key": {"scopes": scopes}, "tenant": {"time_zone": "Europe/Berlin"}}))
}

/// Plays the service while the asset's status is changed to `returned`. `real` is the response to the import that isn't a dry run.
fn answer(request: &Request, real: Answer) -> Answer {
    let is_dry_run = request.parameter("dry_run") == "true";
    match request.route.as_str() {
        "GET /me" => me(&["assets:read", "assets:write"]),
        "GET /assets" if request.parameter("code") == "AST-1" => Answer::data(&json!([asset("in_use")])),
        "POST /assets/import" if is_dry_run => done(),
        "POST /assets/import" => real,
        route => panic!("{route}"),
    }
}

fn done() -> Answer {
    let change = json!({"field": "status", "old": "in_use", "new": "returned"});
    Answer::data(&json!([{"row": 1, "outcome": "updated", "id": ID, "changes": [change]}]))
}

#[test]
fn a_plan_is_a_dry_run_and_its_request_takes_effect_once() {
    // The service first asks for a wait that is too long.
    let service = Scripted::start(|request, number| answer(request, if number < 6 { Answer::busy("300") } else { done() }));
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let (failed, line, plan) = session.call("plan_change", &json!({"assets": ["AST-1"], "set": {"status": "returned"}}));
    assert!(!failed && line.contains("\"AST-1\" \"Laptop\": status: \"in_use\" → \"returned\"."), "{line}");
    assert_eq!(plan["changes"], json!([{"field": "status", "from": "in_use", "to": "returned", "asset": "AST-1"}]));
    let (failed, line, _) = session.apply(&plan);
    assert!(failed && line.contains("Apply the same token again: it takes effect only once."), "{line}");
    let (failed, line, result) = session.apply(&plan);
    assert!(!failed && line.starts_with("Done: ") && result["applied"] == true, "{line}");
    assert!(session.apply(&plan).1.contains("no plan of this session has this token"));
    let posts = service.posts();
    let row = json!({"id": ID, "updated_at": "then", "status": "returned"});
    assert!(posts.iter().all(|post| post.bytes == format!("{row}\n")), "{posts:?}");
    assert!(posts.iter().all(|post| post.parameter("match") == "id" && post.parameter("on_error") == "abort"), "{posts:?}");
    let key = plan["token"].as_str().map(str::to_owned);
    let sent: Vec<_> = posts.iter().map(|post| (post.parameter("dry_run") == "true", post.idempotency_key.clone())).collect();
    // The requests: the dry run of the plan, the dry run before it is applied, and the real request twice.
    assert_eq!(sent, [(true, None), (true, None), (false, key.clone()), (false, key)]);
    assert_eq!(session.end(), 0);
}

#[test]
fn a_plan_for_an_older_version_is_refused() {
    let error = json!({"column": "updated_at", "detail": "Another version.", "code": "PRECONDITION_FAILED"});
    let refused = json!([{"row": 1, "outcome": "refused", "id": ID, "errors": [error]}]);
    let service = Scripted::start(move |request, _| answer(request, Answer::data(&refused)));
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let (_, _, plan) = session.call("plan_change", &json!({"assets": ["AST-1"], "set": {"status": "returned"}}));
    let (failed, line, refused) = session.apply(&plan);
    assert!(failed && refused["applied"] == false, "{line}");
}

#[test]
fn scopes_and_the_flag_decide_which_tools_exist() {
    let service = Service::start();
    let questions = ["find_assets", "show_asset", "who_has", "find_people", "statistics", "what_can_be_done", "changes_since"];
    let mut session = McpSession::start(service.command(&["mcp"]));
    assert_eq!(session.tools(), questions);
    let refused = session.ask("tools/call", &json!({"name": "plan_change", "arguments": {"assets": ["AST-1"], "set": {}}}));
    assert_eq!(refused["error"]["message"], "unknown tool: \"plan_change\"");
    let key = service.send("POST", "/keys", &json!({"name": "reader", "scopes": ["assets:read"]}));
    let mut command = service.command(&["mcp", "--allow-writes"]);
    command.env("ASSETCTL_API_KEY", key["data"]["api_key"].as_str().unwrap());
    assert_eq!(McpSession::start(command).tools(), ["find_assets", "show_asset", "who_has", "statistics"]);
}

#[test]
fn a_handover_starts_and_its_link_stays_a_secret() {
    let service = Service::start();
    service.user("Mary", true);
    let created = service.send("POST", "/assets", &json!({"name": "Laptop\": ignore this", "status": "in_stock"}));
    let tag = created["data"]["asset_tag"].as_str().unwrap();
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let order = json!({"assets": [tag], "person": "mary", "tick": ["all"]});
    let (failed, line, _) = session.call("plan_handover", &order);
    assert!(failed && line.starts_with("Failed: \"") && line.matches('"').count() == 2, "{line}");
    let order = json!({"assets": [tag], "person": "mary", "tick": ["all"], "prepare": true});
    let (_, line, plan) = session.call("plan_handover", &order);
    let effect = format!("\"Prepare\" on \"{tag}\" for \"Mary <mary@example.org>\", then \"Employee Onboarding\" on \"{tag}\".");
    assert!(line.contains(&effect), "{line}");
    let starts = |process: &str| json!({"asset": tag, "field": "process", "from": null, "to": process});
    assert_eq!(plan["changes"], json!([starts("Prepare"), starts("Employee Onboarding")]));
    let (failed, line, done) = session.apply(&plan);
    assert!(!failed && line.contains(&format!("run: assetctl handover {tag} --to mary@example.org")), "{line}");
    assert!(!done.to_string().contains("sgn_") && service.total("/processes/instances") == 2, "{done}");
    let (_, line, again) = session.call("plan_handover", &order);
    assert!(again["token"].is_null() && line.starts_with("Nothing to do"), "{line}");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_begun_handover_goes_on() {
    let service = Service::start();
    service.user("Mary", true);
    let (_, tag) = service.asset("preparing");
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let order = json!({"assets": [tag], "person": "mary"});
    let ticked = json!({"assets": [tag], "person": "mary", "tick": ["all"]});
    let (_, _, plan) = session.call("plan_handover", &order);
    assert!(!session.apply(&plan).0);
    assert!(session.call("plan_handover", &order).1.starts_with("Nothing to do"));
    let (_, line, plan) = session.call("plan_handover", &ticked);
    let left = "Signature of the recipient, Complete the handover";
    let change = json!({"asset": tag, "field": "steps_left", "from": format!("Handed over, {left}"), "to": left});
    assert_eq!(plan["changes"], json!([change]), "{line}");
    let (failed, line, _) = session.apply(&plan);
    assert!(!failed, "{line}");
    assert!(session.call("plan_handover", &ticked).1.starts_with("Nothing to do"));
    // Once the user has signed, the plan completes the process.
    let run = service.run(&["handover", &tag, "--to", "mary"]);
    service.sign_through("signature", run.stdout.trim(), json!({}));
    let (_, line, plan) = session.call("plan_handover", &order);
    assert!(line.contains("no step is left."), "{line}");
    let (_, line, done) = session.apply(&plan);
    assert_eq!(done["result"]["status"], "completed", "{line}");
    assert!(session.call("plan_handover", &order).1.starts_with("Nothing to do"));
    assert_eq!(session.end(), 0);
}

/// Returns the idempotency keys of the real requests.
fn keys(service: &Scripted) -> Vec<Option<String>> {
    let real = service.posts().into_iter().filter(|post| post.parameter("dry_run") != "true");
    real.map(|post| post.idempotency_key).collect()
}

/// Starts a service that prepares an asset and hands it over. It doesn't respond in time to the second read of the asset and to
/// the first start of the handover.
fn handing_over() -> Scripted {
    let (is_prepared, looks, starts) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let steps =
        |last: &str| json!([{"type": "user_picker", "key": "to", "label": "To"}, {"type": last, "key": "end", "label": last}]);
    let instance = move |id: &str, process: &str, status: &str, last: &str| {
        let asset = json!({"asset_id": ID, "asset_tag": "AST-1", "current_step": 1, "steps": steps(last)});
        let own = json!({"id": id, "process_id": process, "process_name": process, "status": status});
        let members = [asset, own].into_iter().flat_map(|part| part.as_object().cloned().unwrap());
        Answer::data(&members.collect::<serde_json::Map<_, _>>().into())
    };
    Scripted::start(move |request, _| match request.route.as_str() {
        "GET /me" => me(&["assets:read", "processes:read", "processes:write", "users:read"]),
        "GET /processes" if request.parameter("slug") == "prepare" => {
            Answer::data(&json!([{"id": "p1", "name": "p1", "slug": "prepare", "steps": steps("complete")}]))
        }
        "GET /processes" => Answer::data(&json!([{"id": "p2", "name": "p2", "slug": "own", "steps": steps("signature")}])),
        "GET /assets" if looks.fetch_add(1, Relaxed) == 1 => Answer::busy("300"),
        "GET /assets" => Answer::data(&json!([asset("in_stock")])),
        "POST /processes/p1/start" => {
            is_prepared.fetch_or(request.parameter("dry_run") != "true", Relaxed);
            instance("i1", "p1", "completed", "complete")
        }
        "POST /processes/p2/start" if starts.fetch_add(1, Relaxed) == 0 => Answer::busy("300"),
        "POST /processes/p2/start" => instance("i2", "p2", "in_progress", "signature"),
        route if route == format!("GET /users/{USER}") => {
            Answer::data(&json!({"id": USER, "display_name": "Ada", "email": "ada@example.com", "is_active": true}))
        }
        "GET /processes/instances/i1" => instance("i1", "p1", "in_progress", "complete"),
        route if route == format!("GET /assets/{ID}") => Answer::data(&asset("in_stock")),
        route => {
            assert_eq!(route, format!("GET /assets/{ID}/processes"));
            let (code, can_start) = if is_prepared.load(Relaxed) { (None, true) } else { (Some("WRONG_ASSET_STATUS"), false) };
            let own = json!({"id": "p2", "code": code, "can_start": can_start, "trigger_status": "preparing"});
            Answer::data(&json!([own, {"id": "p1", "slug": "prepare", "can_start": true, "target_status": "preparing"}]))
        }
    })
}

#[test]
fn a_repeated_handover_sends_only_unanswered_requests_again() {
    let service = handing_over();
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let order = json!({"assets": ["AST-1"], "person": USER, "process": "own", "prepare": true});
    let (failed, line, plan) = session.call("plan_handover", &order);
    assert!(!failed, "{line}");
    // The first `apply` fails when it reads the asset, before anything is sent; the second fails at the second of two requests.
    for sent in [0, 2] {
        let (failed, line, _) = session.apply(&plan);
        assert!(failed && line.contains("Apply the same token again: it takes effect only once."), "{line}");
        assert_eq!(keys(&service).len(), sent);
    }
    let (failed, line, _) = session.apply(&plan);
    assert!(!failed && line.starts_with("Done: \"p2\" is in_progress on \"AST-1\"."), "{line}");
    let keys = keys(&service);
    assert!(keys.len() == 3 && keys[0] != keys[1] && keys[1] == keys[2], "{keys:?}");
    assert_eq!(session.end(), 0);
}

#[test]
fn an_offboarding_in_parts_goes_on_with_the_same_token() {
    let number = AtomicU32::new(0);
    let service = Scripted::start(move |request, _| match request.route.as_str() {
        "GET /me" => me(&["assets:read", "processes:read", "processes:write", "users:read", "users:write"]),
        route if route.starts_with("GET /users/") => {
            Answer::data(&json!({"id": USER, "display_name": "Ada", "email": "ada@example.com", "is_active": true}))
        }
        _ if request.parameter("dry_run") == "true" => Answer::data(&offboarding(1..4, false, true)),
        _ => match number.fetch_add(1, Relaxed) {
            0 | 2 => Answer::data(&offboarding(1..4, false, true)),
            1 => Answer::busy("300"),
            _ => Answer::data(&offboarding(4..6, false, false)),
        },
    });
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let (_, line, plan) = session.call("plan_offboarding", &json!({"person": USER}));
    assert!(line.contains("\"Device Return\" would start on 3 assets"), "{line}");
    let (failed, line, _) = session.apply(&plan);
    assert!(failed && line.contains("Some processes have started") && line.contains("Apply the same token again"), "{line}");
    let (failed, line, _) = session.apply(&plan);
    assert!(!failed && line.contains("\"Device Return\" started on 5 assets"), "{line}");
    let keys = keys(&service);
    assert!(keys.len() == 4 && keys[0] != keys[1] && keys[..2] == keys[2..], "{keys:?}");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_custom_field_is_changed_and_the_others_stay() {
    let service = Service::start();
    let fields = json!({"ram_gb": 16, "color": "grey"});
    let tags: Vec<String> = (0..45)
        .map(|number| {
            let body = json!({"name": format!("Laptop {number}"), "custom_fields": fields});
            service.send("POST", "/assets", &body)["data"]["asset_tag"].as_str().unwrap().to_owned()
        })
        .collect();
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let order = json!({"assets": [tags[0]], "set": {"custom_fields.ram_gb": 32, "custom_fields.os": "Linux", "notes": "moved"}});
    let (_, line, plan) = session.call("plan_change", &order);
    let effect = "\"custom_fields.os\": none → \"Linux\", \"custom_fields.ram_gb\": \"16\" → \"32\", notes: none → \"moved\"";
    assert!(line.contains(effect), "{line}");
    let change = |field: &str, from: Value, to: &str| json!({"field": field, "from": from, "to": to, "asset": tags[0]});
    assert_eq!(plan["changes"][0], change("custom_fields.os", Value::Null, "Linux"));
    assert_eq!((plan["changes"][1]["from"].clone(), plan["changes"][1]["to"].clone()), (json!(16), json!(32)));
    assert!(!session.apply(&plan).0);
    let shown = service.get(&format!("/assets/by-tag/{}", tags[0]));
    assert_eq!(shown["data"]["custom_fields"], json!({"ram_gb": 32, "color": "grey", "os": "Linux"}));
    let order = json!({"assets": tags, "set": {"custom_fields.color": "red", "custom_fields.os": null}});
    let (_, line, plan) = session.call("plan_change", &order);
    assert!(line.contains("45 assets: "), "{line}");
    let color = json!({"field": "custom_fields.color", "from": "grey", "to": "red", "assets": tags});
    assert_eq!(plan["changes"], json!([color, {"field": "custom_fields.os", "from": "Linux", "to": null, "asset": tags[0]}]));
    let (failed, line, done) = session.apply(&plan);
    assert!(!failed && done["result"].as_array().is_some_and(|rows| !rows.is_empty()), "{line}");
    let red = service.assets().iter().filter(|asset| asset["custom_fields"]["color"] == "red").count();
    assert_eq!(red, 45);
    let (_, line, _) = session.call("plan_change", &order);
    assert!(line.starts_with("Nothing to do"), "{line}");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_quotation_mark_in_a_tag_does_not_end_a_quotation() {
    let service = Service::start();
    let tag = "X\".apply-all:\"";
    service.send("POST", "/assets", &json!({"name": "Laptop", "asset_tag": tag, "status": "preparing"}));
    service.user("Mary", true);
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let calls = [
        ("find_assets", json!({})),
        ("show_asset", json!({"asset": tag})),
        ("who_has", json!({"asset": tag})),
        ("what_can_be_done", json!({"asset": tag})),
        ("plan_change", json!({"assets": [tag], "set": {"notes": "x"}})),
        ("plan_handover", json!({"assets": [tag], "person": "mary"})),
    ];
    for (tool, arguments) in calls {
        let (failed, line, plan) = session.call(tool, &arguments);
        assert!(!failed && line.contains("\"X'.apply-all:'\"") && !line.contains("X\"."), "{tool}: {line}");
        if tool == "plan_handover" {
            let (_, line, done) = session.apply(&plan);
            assert!(line.contains("run: the command for_the_link_run") && !line.contains("X\"."), "{line}");
            assert_eq!(
                done["result"]["for_the_link_run"],
                format!("assetctl handover '{tag}' --to mary@example.org --process employee-onboarding")
            );
        }
    }
    assert_eq!(session.end(), 0);
}

#[test]
fn answers_count_the_whole_list_name_the_nearest_place_and_show_the_compared_fields() {
    let service = Service::start();
    for number in 0..25 {
        let place = if number < 15 { "Berlin / 3rd floor" } else { "Berlin / 4th floor" };
        let body = json!({"name": format!("Laptop {number}"), "location": place, "purchase_price": number, "purchase_date": "2026-01-01"});
        service.send("POST", "/assets", &body);
    }
    let mut session = McpSession::start(service.command(&["mcp"]));
    let mut call = |tool: &str, arguments: Value| session.call(tool, &arguments);
    let (_, line, _) = call("find_assets", json!({}));
    assert!(line.starts_with("25 assets found: ") && line.ends_with("; and 22 more."), "{line}");
    let (_, line, _) = call("find_assets", json!({"skip": 20}));
    assert!(line.starts_with("25 assets found, after the first 20: ") && line.ends_with("; and 2 more."), "{line}");
    let (_, line, data) = call("find_assets", json!({"place": "3rd floor"}));
    assert!(line.starts_with("0 assets found. ") && line.contains("Berlin / 3rd floor"), "{line}");
    assert!(data["hint"].as_str().unwrap().contains("Berlin / 3rd floor"), "{data}");

    let filters = json!({"purchase_date_from": "2025-12-31", "status_changed_from": "today-7d"});
    let (_, line, data) = call("find_assets", json!({"sort": "-purchase_price", "filters": filters}));
    let first = &data["assets"][0];
    assert_eq!((&first["purchase_price"], &first["purchase_date"]), (&json!(24), &json!("2026-01-01")), "{line}");
    assert!(first["status_changed_at"].is_string(), "{first}");

    let (_, line, data) = call("statistics", json!({"group_by": "location", "depth": 2, "filters": {"purchase_price_min": 10}}));
    assert!(
        line.starts_with("15 assets in 2 groups by \"location\": \"Berlin / 4th floor\" 10 (purchase price 195.00); "),
        "{line}"
    );
    assert_eq!((&data["groups"][1]["value"], &data["groups"][1]["count"]), (&json!("Berlin / 3rd floor"), &json!(5)));
    let (_, line, data) = call("statistics", json!({"place": "Berln"}));
    assert!(line.starts_with("0 assets, ") && data["hint"].as_str().is_some_and(|hint| line.ends_with(hint)), "{line} {data}");

    for (tool, arguments, name) in [
        ("find_assets", json!({"place": "a//b"}), "place: "),
        ("find_assets", json!({"changed_since": "yesterday"}), "changed_since: "),
        ("find_assets", json!({"filters": {"colour": "red"}}), "filters.colour: "),
        ("find_assets", json!({"filters": {"status": ["in_use", "returned"]}}), "filters.status must be a string"),
        (
            "find_assets",
            json!({"status": "in_use", "filters": {"status": "returned"}}),
            "filters.status is set by another argument",
        ),
        ("statistics", json!({"group_by": "colour"}), "group_by: "),
        ("statistics", json!({"group_by": "location", "depth": 9}), "depth: "),
        ("changes_since", json!({"since": "2026-01-01", "types": "colour"}), "types: "),
    ] {
        let (failed, line, _) = call(tool, arguments);
        assert!(failed && line.contains(name), "{tool}: {line}");
    }
    assert_eq!(session.end(), 0);
}

#[test]
fn errors_name_the_arguments_of_a_tool_and_similar_types() {
    let service = Service::start();
    for (name, code) in [("Laptop", "LAP"), ("Phone", "PHO")] {
        service.create("/catalog/asset-types", &json!({"name": name, "code": code, "kind": "physical"}));
    }
    // The similar one isn't on the first page.
    for number in 0..100 {
        let (name, code) = (format!("Zebra crossing {number}"), format!("Z{number}"));
        service.create("/catalog/asset-types", &json!({"name": name, "code": code, "kind": "physical"}));
    }
    for tag in ["A-1", "A-2"] {
        service.create("/assets", &json!({"name": "Dock", "asset_tag": tag}));
    }
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let both = json!(["A-1", "A-2"]);
    for (tool, arguments, text) in [
        ("find_assets", json!({"type": "Laptp"}), "no single asset type has the code or name Laptp; similar: Laptop, "),
        ("statistics", json!({"type": "Laptp"}), "; similar: Laptop, "),
        ("find_assets", json!({"skip": -1}), "wrong arguments: skip must be a whole number, 0 or more"),
        ("show_asset", json!({"asset": "A-1", "changes": 0}), "wrong arguments: changes must be a whole number, 1 to 50"),
        ("show_asset", json!({"asset": "A-1", "changes": 51}), "wrong arguments: changes must be a whole number, 1 to 50"),
        ("changes_since", json!({"since": "today"}), "since must be YYYY-MM-DD or a time "),
        ("changes_since", json!({"since": "2026-01-01", "until": "later"}), "until must be YYYY-MM-DD or a time "),
        ("plan_change", json!({"assets": both, "set": {"place": "Berlin"}}), "\n  set.place: unknown column"),
        ("plan_change", json!({"assets": both, "set": {"custom_fields.": 1}}), "A-1, A-2: custom_fields.: "),
    ] {
        let (failed, line, _) = session.call(tool, &arguments);
        let detail = line.split("\n  ").skip(1).collect::<Vec<_>>();
        assert!(failed && line.contains(text) && !line.contains("/operations/") && detail.len() < 2, "{tool}: {line}");
    }
    assert_eq!(session.end(), 0);
}

#[test]
fn an_unknown_filter_is_answered_with_the_filters() {
    let service = Service::start();
    let mut session = McpSession::start(service.command(&["mcp"]));
    let (failed, line, _) = session.call("find_assets", &json!({"filters": {"colour": "red"}}));
    let (_, known) = line.split_once("filters.colour: unknown parameter; known: ").expect("the known filters");
    let known: Vec<&str> = known.split(", ").collect();
    assert!(failed && known.contains(&"location") && known.contains(&"warranty_before"), "{line}");
    for other in ["expand", "ids", "limit", "page", "sort"] {
        assert!(!known.contains(&other), "{other} is no filter: {line}");
    }
    assert_eq!(session.end(), 0);
}

#[test]
fn while_a_process_is_running_only_status_and_assignment_are_fixed() {
    let service = Service::start();
    service.create("/assets", &json!({"name": "Dock", "asset_tag": "A-1", "status": "in_stock"}));
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let (_, line, data) = session.call("what_can_be_done", &json!({"asset": "A-1"}));
    assert!(!line.contains("can't change") && data["edit"]["fixed_until_process_ends"] == json!([]), "{line} {data}");
    let asset = service.get("/assets/by-tag/A-1")["data"]["id"].clone();
    let processes = service.get("/processes");
    let prepare = processes["data"].as_array().unwrap().iter().find(|one| one["slug"] == "prepare").expect("the process");
    let start = format!("/processes/{}/start", prepare["id"].as_str().unwrap());
    service.create(&start, &json!({"asset_id": asset}));
    let (_, line, data) = session.call("what_can_be_done", &json!({"asset": "A-1"}));
    let told = " A process is running: until it ends, status and assigned_to can't change; its other fields can.";
    assert!(line.ends_with(told), "{line}");
    let edit = json!({
        "allowed": true, "why_not": null, "fixed_until_process_ends": ["status", "assigned_to"], "next_status": []
    });
    assert_eq!(data["edit"], edit);
    let (failed, line, plan) = session.call("plan_change", &json!({"assets": ["A-1"], "set": {"notes": "x"}}));
    assert!(!failed && session.apply(&plan).2["applied"] == true, "{line}");
    assert_eq!(session.end(), 0);
}

#[test]
fn scans_are_not_among_the_latest_changes() {
    let service = Service::start();
    service.create("/assets", &json!({"name": "Dock", "asset_tag": "A-1"}));
    for _ in 0..6 {
        service.send("POST", "/assets/seen", &json!({"items": [{"tag": "A-1"}]}));
    }
    service.send("POST", "/assets/seen", &json!({"items": [{"tag": "A-1"}], "location": "Berlin", "move": true}));
    for _ in 0..101 {
        service.send("POST", "/assets/seen", &json!({"items": [{"tag": "A-1"}]}));
    }
    let shown = service.run(&["show", "A-1"]).ok();
    assert!(shown.stdout.contains("created\n") && shown.stdout.matches("seen\n").count() == 1, "{}", shown.stdout);
    let mut session = McpSession::start(service.command(&["mcp"]));
    let (_, line, shown) = session.call("show_asset", &json!({"asset": "A-1"}));
    let types: Vec<&Value> = shown["changes"].as_array().unwrap().iter().map(|change| &change["event"]).collect();
    assert_eq!(types, ["asset.seen", "asset.created"], "{shown}");
    assert!(shown["rest"].is_null(), "{line} {shown}");
    let (_, line, shown) = session.call("show_asset", &json!({"asset": "A-1", "changes": 1}));
    assert_eq!(shown["changes"].as_array().map(Vec::len), Some(1), "{shown}");
    assert!(shown["rest"].as_str().unwrap().starts_with("changes_since "), "{line} {shown}");
    assert_eq!(session.end(), 0);
}

#[test]
fn invalid_messages_are_answered_and_the_session_goes_on() {
    let service = Scripted::start(|request, _| answer(request, done()));
    let mut session = McpSession::start(command(&service.url, &["mcp"]));
    for (line, code, id) in [
        ("{\"jsonrpc\":", -32700, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"a\"}", -32600, json!("a")),
        (&format!("\"{}\"", "x".repeat(3 << 20)), -32600, Value::Null),
    ] {
        let answer = session.answer_to(line);
        assert_eq!((&answer["jsonrpc"], &answer["error"]["code"], answer.get("id")), (&json!("2.0"), &json!(code), Some(&id)));
    }
    assert_eq!(session.tools(), ["find_assets", "show_asset", "who_has", "statistics"]);
    assert_eq!(session.end(), 0);
}

#[test]
fn questions_become_filters_and_changes_leave_out_the_setup() {
    let event = |kind: &str, key: Value, name: &str| {
        let actor = json!({"key_id": key, "key_name": name, "user_id": null, "user_name": null});
        json!({"id": ID, "at": "2026-03-05T10:00:00.000Z", "type": kind, "entity_name": "Laptop", "entity_tag": null, "actor": actor,
               "changes": {"status": {"old": "in_stock", "new": "in_use"}}})
    };
    let events = json!([
        event("tenant.created", Value::Null, "operator"),
        event("process.created", Value::Null, "operator"),
        event("process.created", json!(ID), "Ada's key"),
        event("asset.updated", json!(ID), "Ada's key"),
    ]);
    let service = Scripted::start(move |request, _| match request.route.as_str() {
        "GET /me" => me(&["assets:read", "events:read"]),
        "GET /assets" => Answer::json(&json!({"data": [], "meta": {"total": 0}})),
        route => {
            assert_eq!(route, "GET /events");
            Answer::json(&json!({"data": events, "meta": {"limit": 50, "after": ID, "has_more": false}}))
        }
    });
    let mut session = McpSession::start(command(&service.url, &["mcp"]));
    let asked = |service: &Scripted, names: &[&str]| {
        let last = service.requests().pop().unwrap();
        names.iter().map(|name| last.parameter(name).to_owned()).collect::<Vec<_>>()
    };
    let filters = json!({"purchase_date_before": "2022-01-01", "purchase_price_min": 5});
    let question = json!({"place": "Berlin", "person": "none", "manufacturer": "Dell", "filters": filters, "sort": "-location"});
    assert!(!session.call("find_assets", &question).0);
    let names = ["location", "assigned_to", "manufacturer", "purchase_date_before", "purchase_price_min", "sort"];
    assert_eq!(asked(&service, &names), ["Berlin", "none", "Dell", "2022-01-01", "5", "-location"]);
    let (failed, line, _) = session.call("find_assets", &json!({"filters": {"limit": 1}}));
    assert!(failed && line.contains("limit is not a filter"), "{line}");
    let question = json!({"since": "2026-03-01", "until": "2026-03-07", "types": "asset.*", "by": ID});
    let (_, line, data) = session.call("changes_since", &question);
    assert_eq!(asked(&service, &["since", "until"]), ["2026-02-28T23:00:00.000Z", "2026-03-07T23:00:00.000Z"]);
    assert_eq!(asked(&service, &["types", "actor_id"]), ["asset.*", ID]);
    let told: Vec<&Value> = data["changes"].as_array().unwrap().iter().map(|change| &change["event"]).collect();
    assert_eq!(told, ["process.created", "asset.updated"], "{line}");
    assert_eq!((&data["next_after"], data.get("rest")), (&json!(ID), None));
    assert!(session.call("changes_since", &json!({"types": "asset.*"})).0);
    assert_eq!(session.end(), 0);
}

/// Returns unexpected responses, from the service or from something else at its address.
pub fn odd_answers() -> Vec<Value> {
    let thing = json!({"id": ID, "asset_tag": 5, "name": [], "assigned_to": {}, "custom_fields": 5, "steps": 5, "instances": 5});
    let odd =
        vec![json!(null), json!(true), json!(5), json!("x"), json!([]), json!(["x"]), json!([[]]), json!({}), json!({"id": 5})];
    [odd, vec![json!([thing]), thing]].concat()
}

#[test]
fn every_call_is_answered_whatever_the_service_answers() {
    let scopes = "assets:read assets:write processes:read processes:write users:read users:write events:read settings:read";
    for odd in odd_answers() {
        let shown = odd.clone();
        let service = Scripted::start(move |request, _| match request.route.as_str() {
            "GET /me" => me(&scopes.split(' ').collect::<Vec<_>>()),
            _ => Answer::data(&odd).with("etag", "\"1-a\""),
        });
        let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
        for (tool, arguments) in [
            ("find_assets", json!({"type": "LAP", "person": "ada@example.com"})),
            ("find_assets", json!({})),
            ("show_asset", json!({"asset": "AST-1"})),
            ("show_asset", json!({"asset": ID, "on": "2026-03-01"})),
            ("who_has", json!({"asset": "AST-1", "on": "2026-03-01"})),
            ("who_has", json!({"person": "ada"})),
            ("what_can_be_done", json!({"asset": "AST-1"})),
            ("find_people", json!({})),
            ("changes_since", json!({"since": "2026-03-01", "asset": "AST-1"})),
            ("statistics", json!({})),
            ("plan_change", json!({"assets": ["AST-1", ID], "set": {"assigned_to": "ada"}})),
            ("plan_handover", json!({"assets": ["AST-1"], "person": USER})),
            ("plan_offboarding", json!({"person": USER})),
        ] {
            let answer = session.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
            assert!(answer["result"]["content"].is_array(), "{tool} {shown}: {answer}");
        }
        session.ask("resources/read", &json!({"uri": "asset://AST-1/receipt"}));
        assert_eq!(session.end(), 0);
    }
}

/// A session with `assetctl mcp`, line by line.
struct McpSession {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    number: u64,
}

impl McpSession {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let mut session = Self { child, input, lines, number: 0 };
        let client = json!({"name": "test", "version": "1"});
        session.ask("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends an invalid message, and returns the response.
    fn answer_to(&mut self, line: &str) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.next()
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(LIMIT).unwrap()).unwrap()
    }

    /// Sends a request. The next line must be its response.
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}));
        let answer = self.next();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(self.number)), "{answer}");
        answer
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool. Returns whether it failed, the line for people, and the structured content.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String, Value) {
        let mut result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].take();
        let line = result["content"][0]["text"].as_str().unwrap().to_owned();
        (result["isError"] == true, line, result["structuredContent"].take())
    }

    fn apply(&mut self, plan: &Value) -> (bool, String, Value) {
        self.call("apply", &json!({"token": plan["token"]}))
    }

    /// Ends the input. Returns the exit code.
    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}
