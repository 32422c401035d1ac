//! `assetctl stocktake`.

use crate::support::scripted::{Answer, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, Run, command, end, interrupt, spawn, stderr_until, type_text};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Command, Stdio};

const PLACE: &str = "Berlin / 3rd floor";

/// Runs a command that stores stock-takings in the folder.
fn run(mut command: Command, folder: &Folder) -> Run {
    Run::of(command.env("XDG_STATE_HOME", folder.path("state")).stdin(Stdio::null()).output().unwrap())
}

fn typing(mut command: Command, folder: &Folder) -> Child {
    command.env("XDG_STATE_HOME", folder.path("state")).stdin(Stdio::piped());
    spawn(command)
}

/// Responds to an item. Tags that begin with `A` are found: even numbers here, odd ones elsewhere. Some serial numbers are
/// found, too.
fn entry(index: usize, item: &Value) -> Value {
    let found = |tag: &str, outcome: &str, location: &str| {
        json!({"index": index, "outcome": outcome, "id": format!("id of {tag}"), "asset_tag": tag, "name": "Laptop",
               "location": location, "assigned_to": (outcome == "elsewhere").then_some("u1")})
    };
    match (item["tag"].as_str(), item["serial_number"].as_str()) {
        (Some(tag), _) if tag.starts_with('A') && tag.ends_with(['0', '2', '4', '6', '8']) => found(tag, "seen", PLACE),
        (Some(tag), _) if tag.starts_with('A') => found(tag, "elsewhere", "London"),
        (None, Some(serial)) if serial.starts_with("PF") => found(serial, "seen", PLACE),
        (None, Some("S-1")) => found("A-S", "seen", PLACE),
        (None, Some("S-2")) => {
            let candidates = json!([{"asset_tag": "A-7"}, {"asset_tag": "A-9"}]);
            json!({"index": index, "outcome": "ambiguous", "id": null, "candidates": candidates})
        }
        _ => {
            json!({"index": index, "outcome": "unknown", "id": null, "asset_tag": null, "name": null, "location": null, "assigned_to": null})
        }
    }
}

/// Starts a service whose list of unseen assets is `missing`.
fn service(missing: Value) -> Scripted {
    Scripted::start(move |request, _| match request.route.as_str() {
        "GET /me" => Answer::data(&json!({"tenant": {"id": "t1"}, "key": {"scopes": []}})),
        "GET /users/u1" => Answer::data(&json!({"display_name": "Ada", "email": "ada@example.com"})),
        "POST /assets/seen" => {
            let items = request.body["items"].as_array().unwrap();
            assert!(items.len() <= 100 && request.body["location"] == PLACE, "{}", request.body);
            let entries: Value = items.iter().enumerate().map(|(index, item)| entry(index, item)).collect();
            Answer::data(&entries)
        }
        route => {
            assert_eq!((route, request.parameter("location")), ("GET /assets", PLACE));
            if request.parameter("last_seen_before").is_empty() {
                return Answer::data(&json!([{"asset_tag": "A-2", "serial_number": "PF7"}]));
            }
            assert_eq!(request.parameter("kind"), "physical");
            assert!(request.parameter("last_seen_before").ends_with('Z'));
            Answer::json(&json!({"data": missing, "meta": {"total": missing.as_array().unwrap().len(), "page": 1}}))
        }
    })
}

#[test]
fn a_thousand_scans_are_ten_requests() {
    let tags: String = (0..1_000).map(|number| format!("A-{}\r\n", number * 2)).collect();
    let serials: String = (0..1_000).map(|number| format!("PF{number}\n")).collect();
    for scans in [tags, serials] {
        let (service, folder) = (service(json!([])), Folder::new());
        let scans = folder.file("scans.txt", format!("\u{feff}{scans}\n\n"));
        let arguments = ["stocktake", "Berlin/3rd floor", "--file", scans.to_str().unwrap(), "--json"];
        let taken = run(command(&service.url, &arguments), &folder);
        assert_eq!((taken.code, taken.json()["found"].as_array().unwrap().len()), (0, 1_000), "{}", taken.stderr);
        let posts = service.posts();
        assert_eq!((posts.len(), service.requests().len()), (10, 13));
        let keys: std::collections::BTreeSet<_> = posts.iter().map(|post| post.idempotency_key.clone().unwrap()).collect();
        assert!(keys.len() == 10 && posts.iter().all(|post| post.body["move"] == false));
    }
}

#[test]
fn each_code_is_answered_and_missing_assets_are_listed() {
    let missing = json!([
        {"id": "id of A-2", "asset_tag": "A-2", "name": "Seen by a clock that is behind", "location": PLACE},
        {"id": "m", "asset_tag": "M-1", "name": "Dock", "location": PLACE, "assigned_to": null, "last_seen_at": null}
    ]);
    let (service, folder) = (service(missing), Folder::new());
    let codes = "A-2\nA-3\nS-1\nhttps://assets.example.com/a/A-4\n\nX-1\nS-2\n";
    let taken = type_text(typing(command(&service.url, &["stocktake", PLACE]), &folder), codes);
    assert_eq!(taken.code, 3, "{}", taken.stderr);
    for line in [
        "here       A-2 Laptop\n",
        "elsewhere  A-3 Laptop: London, Ada <ada@example.com>\n",
        "here       A-S Laptop\n",
        "here       A-4 Laptop\n",
        "unknown    X-1\n",
        "ambiguous  S-2: A-7, A-9 have this serial number\n",
    ] {
        assert!(taken.stderr.contains(line), "{line}\n{}", taken.stderr);
    }
    let (place, rest) = taken.stdout.split_once("Since      ").unwrap();
    let (since, rest) = rest.split_once('\n').unwrap();
    let expected = "\
Place      Berlin / 3rd floor
Found      3
Elsewhere  1
Unknown    1
           X-1
Ambiguous  1
           S-2: A-7, A-9
Missing    1

ELSEWHERE  NAME    LOCATION  ASSIGNED TO
A-3        Laptop  London    Ada <ada@example.com>

Missing:
ASSET TAG  NAME  LOCATION            ASSIGNED TO  LAST SEEN AT
M-1        Dock  Berlin / 3rd floor
";
    assert_eq!((place.to_owned() + rest, since.ends_with(" UTC")), (expected.to_owned(), true));
    assert!(!taken.stderr.contains('\u{7}'), "{}", taken.stderr);
    let report = run(command(&service.url, &["stocktake", PLACE, "--json"]), &folder).json();
    assert_eq!((report["found"].as_array().unwrap().len(), &report["unknown"]), (3, &json!(["X-1"])));
    assert_eq!(
        (&report["ambiguous"][0]["candidates"], &report["missing"][0]["asset_tag"]),
        (&json!(["A-7", "A-9"]), &json!("M-1"))
    );
    assert!(report["since"].as_str().unwrap().ends_with(".000Z"), "{report}");
}

#[test]
fn an_interrupted_stock_taking_continues() {
    let missing = json!([{"id": "m", "asset_tag": "M-1", "name": "Dock", "location": PLACE}]);
    let (service, folder) = (service(missing), Folder::new());
    let scans = folder.file("scans.txt", "A-2\nA-3\nX-1\n");
    let arguments = ["stocktake", PLACE, "--file", scans.to_str().unwrap(), "--json"];
    let first = run(command(&service.url, &arguments), &folder).json();
    let sent = service.posts().len();
    // Assets found before are not sent again.
    let again = run(command(&service.url, &[&arguments[..], &["--move"]].concat()), &folder);
    assert!(again.stderr.starts_with("Continuing the stock-taking of "), "{}", again.stderr);
    assert!(again.stderr.contains(": 3 codes so far."), "{}", again.stderr);
    let (again, posts) = (again.json(), service.posts().split_off(sent));
    assert_eq!(again["since"], first["since"]);
    assert_eq!((&again["found"], &again["unknown"]), (&first["found"], &json!(["X-1"])));
    assert_eq!(posts[0].body["items"], json!([{"tag": "A-3"}, {"tag": "X-1"}]));
    assert_eq!(posts[0].body["move"], true);
    // A stock-taking that is new, or at a different place, starts empty.
    let new = run(command(&service.url, &[&arguments[..], &["--again"]].concat()), &folder);
    assert!(!new.stderr.contains("Continuing"), "{}", new.stderr);
    run(command(&service.url, &["stocktake", " / "]), &folder).tells(2, "name a place");
}

#[test]
fn ctrl_c_leaves_a_stock_taking_that_continues() {
    let (service, folder) = (service(json!([])), Folder::new());
    let mut child = typing(command(&service.url, &["stocktake", PLACE]), &folder);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"A-2\n").unwrap();
    stderr_until(&mut child, "here       A-2 Laptop\n");
    interrupt(&child);
    end(child).tells(130, "Run the same command again to continue.");
    drop(input);
    type_text(typing(command(&service.url, &["stocktake", PLACE]), &folder), "A-4\n").shows("Found      2\n");
}

#[test]
fn a_place_without_assets_is_probably_misspelt() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/assets", &json!({"name": "Dock", "asset_tag": "A-1", "location": "Köln / 1st floor"}));
    let scans = folder.file("scans.txt", "A-1\n");
    let file = ["--file", scans.to_str().unwrap()];
    for options in [&[][..], &["--move"]] {
        let refused = run(service.command(&[&["stocktake", "Kölm"], &file[..], options].concat()), &folder);
        let told = "no asset is recorded at Kölm; similar: Köln, Köln / 1st floor. To move assets to a new place, add";
        refused.tells(2, told);
    }
    assert_eq!(service.get("/assets/by-tag/A-1")["data"]["last_seen_at"], Value::Null);
    assert_eq!(run(service.command(&["stocktake", "Kölm", "--new-place"]), &folder).code, 2);
    let moved =
        run(service.command(&[&["stocktake", "Kölm", "/", "Cellar", "--move", "--new-place"], &file[..]].concat()), &folder);
    moved.shows("of which 1 moved here");
    assert_eq!(service.get("/assets/by-tag/A-1")["data"]["location"], "Kölm / Cellar");
}

#[test]
fn scans_wait_for_a_service_that_is_away() {
    let (service, folder) = (Service::start(), Folder::new());
    for tag in ["A-1", "A-2"] {
        service.create("/assets", &json!({"name": "Dock", "asset_tag": tag, "location": PLACE}));
    }
    let mut child = typing(service.command(&["stocktake", PLACE]), &folder);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"A-1\n").unwrap();
    stderr_until(&mut child, "here       A-1 Dock\n");
    service.stop();
    input.write_all(b"A-2\n").unwrap();
    stderr_until(&mut child, "waiting for it. Codes are kept and sent later.\n");
    service.start_again();
    stderr_until(&mut child, "here       A-2 Dock\n");
    drop(input);
    end(child).shows("Found      2\n");
}

#[test]
fn lines_without_a_code_are_unknown_and_the_others_are_counted() {
    let (service, folder) = (Service::start(), Folder::new());
    for tag in ["A-1", "A-2", "A-3"] {
        service.create("/assets", &json!({"name": "Dock", "asset_tag": tag, "location": PLACE}));
    }
    // Bytes that aren't UTF-8, U+FFFD, a control character, and a character that only the service refuses.
    let codes = b"A-1\n \nA\xff\nB\xef\xbf\xbd\nA\x01\nC\xef\xb7\x90\nA-2\n";
    let scans = folder.file("scans.txt", codes);
    let report = run(service.command(&["stocktake", PLACE, "--file", scans.to_str().unwrap(), "--json"]), &folder).json();
    assert_eq!((report["found"].as_array().unwrap().len(), report["unknown"].as_array().unwrap().len()), (2, 4), "{report}");
    let again = || typing(service.command(&["stocktake", PLACE, "--again"]), &folder);
    type_text(again(), [codes, &b"A-3\n"[..]].concat()).shows("Found      3\n");
    let utf16: Vec<u8> = "\u{feff}A-1\r\n\"A-2\"\r\n\"\"\r\nA-3\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    type_text(again(), utf16).shows("Unknown    0\n");
}

#[test]
fn a_room_is_counted_with_the_real_service() {
    let (service, folder) = (Service::start(), Folder::new());
    let kind = service.create("/catalog/asset-types", &json!({"name": "Licence", "code": "LIC", "kind": "logical"}));
    for (name, tag, location) in [("here", "A-1", "Berlin/3rd floor/3.14"), ("lost", "A-2", PLACE), ("other", "B-1", "London")] {
        let body = json!({"name": name, "asset_tag": tag, "location": location, "serial_number": format!("S-{tag}")});
        service.create("/assets", &body);
    }
    service.create("/assets", &json!({"name": "licence", "asset_type_id": kind, "location": PLACE}));
    let scans = folder.file("scans.txt", "a-1\ns-b-1\nnothing\n");
    let arguments = ["stocktake", "berlin/3RD floor", "--file", scans.to_str().unwrap(), "--json"];
    let taken = run(service.command(&arguments), &folder);
    let report = taken.json();
    let tags = |name: &str| report[name].as_array().unwrap().iter().map(|asset| asset["asset_tag"].clone()).collect::<Value>();
    assert_eq!((tags("found"), tags("elsewhere"), tags("missing")), (json!(["A-1"]), json!(["B-1"]), json!(["A-2"])), "{report}");
    assert_eq!((taken.code, &report["unknown"]), (3, &json!(["nothing"])));
    let more = folder.file("more.txt", "S-A-2\nB-1\n");
    let arguments = ["stocktake", PLACE, "--file", more.to_str().unwrap(), "--move"];
    let taken = run(service.command(&arguments), &folder).ok();
    assert!(taken.stdout.contains("Found      3, of which 1 moved here\n"), "{}", taken.stdout);
    let moved = &service.get("/assets/by-tag/B-1")["data"];
    assert!(moved["location"] == PLACE && moved["last_seen_at"].is_string(), "{moved}");
}
