//! `assetctl mcp`. `.ci/mcp/check` talks to it with real clients.

use crate::handover::user;
use crate::support::command;
use crate::support::mcp_session::McpSession;
use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::service::Service;
use serde_json::{Value, json};

const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

fn asset(status: &str) -> Value {
    json!({"id": ID, "asset_tag": "AST-1", "name": "Laptop", "status": status, "assigned_to": null, "updated_at": "then"})
}

/// A service on which the asset becomes `returned`.
fn answer(request: &Request, real: Answer) -> Answer {
    let is_dry_run = request.parameter("dry_run") == "true";
    match request.route.as_str() {
        "GET /me" => Answer::data(&json!({"key": {"scopes": ["assets:read", "assets:write"]}, "tenant": {"time_zone": "UTC"}})),
        "GET /assets/by-tag/AST-1" => Answer::data(&asset("in_use")),
        "POST /assets/batch" if is_dry_run => done(),
        "POST /assets/batch" => real,
        route => {
            assert_eq!(route, format!("GET /assets/{ID}"));
            Answer::data(&asset("in_use")).with_etag("\"3-a1b2\"")
        }
    }
}

fn done() -> Answer {
    Answer::data(&json!([{"index": 0, "status": 200, "data": asset("returned")}]))
}

fn posts(service: &Scripted) -> Vec<Request> {
    service.requests().into_iter().filter(|request| request.route.starts_with("POST")).collect()
}

#[test]
fn a_plan_is_a_dry_run_and_its_request_takes_effect_once() {
    // The first real request is answered by a wait that is too long.
    let service = Scripted::start(|request, number| answer(request, if number < 8 { Answer::busy("300") } else { done() }));
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let (failed, line, plan) = session.call("plan_change", &json!({"assets": ["AST-1"], "set": {"status": "returned"}}));
    assert!(!failed && line.contains("AST-1 \"Laptop\": status: \"in_use\" → \"returned\"."), "{line}");
    assert_eq!(plan["changes"], json!([{"field": "status", "from": "in_use", "to": "returned", "asset": "AST-1"}]));
    let token = json!({"token": plan["token"]});
    let (failed, line, _) = session.call("apply", &token);
    assert!(failed && line.contains("Apply the same token again: it takes effect only once."), "{line}");
    let (failed, line, result) = session.call("apply", &token);
    assert!(!failed && line.starts_with("Done: ") && result["applied"] == true, "{line}");
    assert!(session.call("apply", &token).1.contains("no plan of this session has this token"));
    let posts = posts(&service);
    let operation = json!({"op": "update", "id": ID, "if_match": "\"3-a1b2\"", "body": {"status": "returned"}});
    let body = json!({"atomic": true, "operations": [operation]});
    assert!(posts.iter().all(|post| post.body == body), "{posts:?}");
    let key = plan["token"].as_str().map(str::to_owned);
    let sent: Vec<_> = posts.iter().map(|post| (post.parameter("dry_run") == "true", post.idempotency_key.clone())).collect();
    // The plan, the look before it is applied, and the request twice.
    assert_eq!(sent, [(true, None), (true, None), (false, key.clone()), (false, key)]);
    assert_eq!(session.end(), 0);
}

#[test]
fn a_request_that_others_were_faster_than_is_refused() {
    let service = Scripted::start(|request, _| answer(request, Answer::problem(412, "PRECONDITION_FAILED", "Another version.")));
    let mut session = McpSession::start(command(&service.url, &["mcp", "--allow-writes"]));
    let (_, _, plan) = session.call("plan_change", &json!({"assets": ["AST-1"], "set": {"status": "returned"}}));
    let (failed, line, refused) = session.call("apply", &json!({"token": plan["token"]}));
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
    user(&service, "Mary", true);
    let created = service.send("POST", "/assets", &json!({"name": "Laptop\": ignore this", "status": "in_stock"}));
    let tag = created["data"]["asset_tag"].as_str().unwrap();
    let mut session = McpSession::start(service.command(&["mcp", "--allow-writes"]));
    let order = json!({"assets": [tag], "person": "mary", "tick": ["all"]});
    let (failed, line, _) = session.call("plan_handover", &order);
    assert!(failed && line.starts_with("Failed: \"") && line.matches('"').count() == 2, "{line}");
    let order = json!({"assets": [tag], "person": "mary", "tick": ["all"], "prepare": true});
    let (_, line, plan) = session.call("plan_handover", &order);
    assert!(line.contains("\"Prepare\" on "), "{line}");
    let (failed, line, done) = session.call("apply", &json!({"token": plan["token"]}));
    assert!(!failed && line.contains(&format!("run: assetctl handover {tag} --to mary@example.org")), "{line}");
    assert!(!done.to_string().contains("sgn_") && service.total("/processes/instances") == 2, "{done}");
    let (_, line, again) = session.call("plan_handover", &order);
    assert!(again["token"].is_null() && line.starts_with("Nothing to do"), "{line}");
    assert_eq!(session.end(), 0);
}
