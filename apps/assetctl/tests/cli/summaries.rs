//! `assetctl me` and `assetctl stats`.

use crate::support::run;
use crate::support::scripted::{Answer, Scripted};
use serde_json::{Value, json};

fn me() -> Value {
    json!({
        "key": {
            "id": "k1", "name": "ci", "prefix": "apl_0351f4Sj", "scopes": ["assets:read"], "expires_at": null,
            "rate_limit_per_minute": 600, "created_at": "2026-03-05T10:00:00.000Z"
        },
        "tenant": {"id": "t1", "name": "東京\u{1b}[2J", "time_zone": "Asia/Tokyo", "locale": "ja"},
        "user": {"id": "u1", "email": "ada@example.com", "display_name": "Ada", "role": "technician"}
    })
}

#[test]
fn me_tells_whose_the_key_is() {
    let service = Scripted::start(|_, _| Answer::data(&me()));
    let text = run(&service.url, &["me"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("User        Ada <ada@example.com>, technician\n"), "{}", text.stdout);
    assert!(!text.stdout.contains('\u{1b}'), "a name has moved the cursor");
    assert_eq!(run(&service.url, &["me", "--json"]).json(), me());
    assert!(service.requests().iter().all(|request| request.route == "GET /me"));
}

#[test]
fn stats_are_tables_or_json() {
    let stats = json!({
        "assets": {
            "total": 0, "assigned": 0, "unassigned": 0, "by_status": {"in_stock": 0}, "by_kind": {"physical": 0, "logical": 0},
            "by_type": {}, "by_manufacturer": {}, "value_by_status": {"in_stock": "0"},
            "warranty": {"ended": 0, "within_30": 0, "within_60": 0, "within_90": 0}
        },
        "instances": {"by_status": {"in_progress": 0}, "by_process": {}}
    });
    let answer = stats.clone();
    // The first request finds the service busy.
    let service = Scripted::start(move |_, number| match number {
        0 => Answer::problem(503, "UNAVAILABLE", "Try again."),
        _ => Answer::data(&answer),
    });
    let text = run(&service.url, &["stats"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(
        text.stdout.starts_with("0 assets: 0 assigned, 0 not\n\nSTATUS    ASSETS  VALUE\nin_stock       0      0\n"),
        "{}",
        text.stdout
    );
    assert!(!text.stdout.contains("MANUFACTURER") && !text.stdout.contains('\u{1b}'));
    assert_eq!(run(&service.url, &["stats", "--json"]).json(), stats);
}

#[test]
fn refusals_and_other_servers_are_explained() {
    let service = Scripted::start(|request, _| match request.route.as_str() {
        "GET /stats" => Answer::problem(403, "FORBIDDEN", "The key needs assets:read."),
        _ => Answer::new("text/html", "<html>".into()),
    });
    let refused = run(&service.url, &["stats"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("403 FORBIDDEN: The key needs assets:read."), "{}", refused.stderr);
    let other = run(&service.url, &["me"]);
    assert!(other.code == 1 && other.stderr.contains("instead of application/json; check --base-url"), "{}", other.stderr);
}

#[test]
fn completions_know_the_commands() {
    let bash = run("", &["completions", "bash"]).stdout;
    assert!(["me", "stats", "labels", "offboard", "--keep-active", "a4-65"].iter().all(|word| bash.contains(word)));
}
