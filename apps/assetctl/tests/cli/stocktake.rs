//! `assetctl stocktake`.

use crate::support::scripted::{Answer, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, Run, command, end, interrupt, kill, spawn, stderr_until, type_text};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PLACE: &str = "Berlin / 3rd floor";
/// The service's clock.
const NOW: &str = "Thu, 01 Jan 2099 10:00:00 GMT";

/// Runs a command that stores stock-takings in the folder.
fn run(mut command: Command, folder: &Folder) -> Run {
    Run::of(command.env("XDG_STATE_HOME", folder.path("state")).stdin(Stdio::null()).output().unwrap())
}

fn typing(mut command: Command, folder: &Folder) -> Child {
    command.env("XDG_STATE_HOME", folder.path("state")).stdin(Stdio::piped());
    spawn(command)
}

/// Responds to an item. Codes that begin with `A` are found: even numbers here, odd ones elsewhere. Some serial numbers are
/// found, too.
fn entry(index: usize, item: &Value) -> Value {
    let code = item["code"].as_str().unwrap();
    let found = |tag: &str, outcome: &str, location: &str| {
        json!({"index": index, "outcome": outcome, "id": format!("id of {tag}"), "asset_tag": tag, "name": "Laptop",
               "location": location, "assigned_to": (outcome == "elsewhere").then_some("u1")})
    };
    match code.rsplit('/').next().unwrap() {
        tag if tag.starts_with('A') && tag.ends_with(['0', '2', '4', '6', '8']) => found(tag, "seen", PLACE),
        tag if tag.starts_with('A') => found(tag, "elsewhere", "London"),
        serial if serial.starts_with("PF") => found(serial, "seen", PLACE),
        "S-1" => found("A-S", "seen", PLACE),
        // A scan that is older than another one.
        "S-3" => found("A-T", "seen", "London"),
        "S-2" => {
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
        "GET /me" => Answer::data(&json!({"tenant": {"id": "t1"}, "key": {"scopes": []}})).with("date", NOW),
        "GET /users/u1" => Answer::data(&json!({"display_name": "Ada", "email": "ada@example.com"})),
        "GET /users" => Answer::data(&json!([{"id": "u1", "display_name": "Ada", "email": "ada@example.com"}])),
        "GET /assets/h/history" => {
            let assigned = json!({"assigned_to": {"old": null, "new": "u1"}});
            Answer::data(
                &json!([{"at": "2026-02-03T04:05:06.000Z", "changes": {}}, {"at": "2026-01-02T03:04:05.000Z", "changes": assigned}]),
            )
        }
        "POST /assets/seen" => {
            let items = request.body["items"].as_array().unwrap();
            assert!(items.len() <= 100 && request.body["location"] == PLACE, "{}", request.body);
            let entries: Value = items.iter().enumerate().map(|(index, item)| entry(index, item)).collect();
            Answer::data(&entries).with("date", NOW)
        }
        route => {
            assert_eq!((route, request.parameter("location")), ("GET /assets", PLACE));
            if request.parameter("last_seen_before").is_empty() {
                return Answer::data(&json!([{"asset_tag": "A-2", "serial_number": "PF7"}])).with("date", NOW);
            }
            assert_eq!(request.parameter("kind"), "physical");
            assert_eq!(request.parameter("status"), "in_stock,preparing,in_use,in_service,returned");
            // The start is by the service's clock.
            assert!(
                request.parameter("last_seen_before").starts_with("2099-01-01T10:"),
                "{}",
                request.parameter("last_seen_before")
            );
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
        {"id": "h", "asset_tag": "H-1", "name": "Phone", "location": PLACE, "assigned_to": "u1", "assigned_since": null,
         "assigned_user": {"display_name": "Ada", "email": "ada@example.com"}},
        {"id": "i", "asset_tag": "H-2", "name": "Tablet", "location": PLACE, "assigned_to": "u1", "assigned_since": "2025-12-31"},
        {"id": "m", "asset_tag": "M-1", "name": "=Dock", "location": PLACE, "assigned_to": null, "last_seen_at": null}
    ]);
    let (service, folder) = (service(missing), Folder::new());
    let codes = "A-2\nA-3\nS-1\nhttps://assets.example.com/a/A-4\n\nX-1\nS-2\nS-3\n";
    let taken = type_text(typing(command(&service.url, &["stocktake", PLACE]), &folder), codes);
    assert_eq!(taken.code, 3, "{}", taken.stderr);
    for line in [
        "here       A-2 Laptop\n",
        "elsewhere  A-3 Laptop: London, Ada <ada@example.com>\n",
        "here       A-S Laptop\n",
        "here       A-4 Laptop\n",
        "unknown    X-1\n",
        "ambiguous  S-2: A-7, A-9 have this serial number\n",
        "elsewhere  A-T Laptop: London\n",
    ] {
        assert!(taken.stderr.contains(line), "{line}\n{}", taken.stderr);
    }
    let (place, rest) = taken.stdout.split_once("Since        ").unwrap();
    let (since, rest) = rest.split_once('\n').unwrap();
    let expected = "\
Place        Berlin / 3rd floor
Found        3
Elsewhere    2
Unknown      1
             X-1
Ambiguous    1
             S-2: A-7, A-9
With people  2
Missing      1

ELSEWHERE  NAME    LOCATION  ASSIGNED TO
A-3        Laptop  London    Ada <ada@example.com>
A-T        Laptop  London

WITH PEOPLE  NAME    WITH                   SINCE
H-1          Phone   Ada <ada@example.com>  2026-01-02
H-2          Tablet  Ada <ada@example.com>  2025-12-31

Missing:
ASSET TAG  NAME   LOCATION            LAST SEEN AT
M-1        =Dock  Berlin / 3rd floor
";
    assert_eq!((place.to_owned() + rest, since.ends_with(" UTC")), (expected.to_owned(), true));
    assert!(!taken.stderr.contains('\u{7}'), "{}", taken.stderr);
    let [page, csv] = ["report.HTML", "report.csv"].map(|name| folder.path(name));
    run(command(&service.url, &["stocktake", PLACE, "--report", page.to_str().unwrap()]), &folder).tells(3, "");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<h1>Berlin / 3rd floor</h1>")
            && page.contains("3 found, 2 elsewhere, 1 unknown, 1 ambiguous, 2 with people, 1 missing"),
        "{page}"
    );
    assert!(
        page.contains("<td>held</td><td></td><td>H-1</td>")
            && page.contains("Ada &lt;ada@example.com&gt;</td><td>2026-01-02</td>"),
        "{page}"
    );
    let report = run(command(&service.url, &["stocktake", PLACE, "--json", "--report", csv.to_str().unwrap()]), &folder).json();
    let csv = std::fs::read_to_string(csv).unwrap();
    for line in [
        "result,code,asset_tag,name,location,assigned_to,held_since,last_seen_at\r\nmissing,,M-1,'=Dock,Berlin / 3rd floor,,,\r\n",
        "held,,H-2,Tablet,Berlin / 3rd floor,Ada <ada@example.com>,2025-12-31,\r\n",
        "elsewhere,A-3,A-3,Laptop,London,Ada <ada@example.com>,,\r\n",
        "ambiguous,S-2,,\"A-7, A-9\",,,,\r\n",
        "unknown,X-1,,,,,,\r\n",
    ] {
        assert!(csv.contains(line), "{line}\n{csv}");
    }
    assert_eq!(
        (report["held"][0]["held_since"].as_str(), report["held"][1]["asset_tag"].as_str()),
        (Some("2026-01-02"), Some("H-2"))
    );
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
    assert_eq!(posts[0].body["items"], json!([{"code": "A-3"}, {"code": "X-1"}]));
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
    // Nothing is left to continue.
    let new = run(command(&service.url, &["stocktake", PLACE]), &folder);
    assert!(!new.stderr.contains("Continuing"), "{}", new.stderr);
}

#[test]
fn a_place_without_assets_is_probably_misspelt() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/assets", &json!({"name": "Dock", "asset_tag": "A-1", "location": "Köln / 1st floor"}));
    let scans = folder.file("scans.txt", "A-1\n");
    let file = ["--file", scans.to_str().unwrap()];
    for options in [&[][..], &["--move"]] {
        let refused = run(service.command(&[&["stocktake", "Kölm"], &file[..], options].concat()), &folder);
        let told = "No asset has the location Kölm; the nearest: Köln, Köln / 1st floor. To move assets to a new place, add";
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

/// Waits until a file of the stock-takings contains the text.
fn kept(folder: &Folder, text: &str) {
    let files = folder.path("state/assetctl/stocktake");
    let contains =
        |file: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(file.unwrap().path()).unwrap().contains(text);
    let limit = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_dir(&files).unwrap().any(contains) {
        assert!(Instant::now() < limit, "{text} was not kept");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn scans_that_waited_for_the_service_are_sent_with_their_time_after_a_kill() {
    for is_kill in [true, false] {
        let (service, folder) = (Service::start(), Folder::new());
        for tag in ["A-1", "A-2", "A-3", "A-4"] {
            service.create("/assets", &json!({"name": "Dock", "asset_tag": tag, "location": PLACE}));
        }
        let mut child = typing(service.command(&["stocktake", PLACE]), &folder);
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"A-1\n").unwrap();
        stderr_until(&mut child, "here       A-1 Dock\n");
        service.stop();
        input.write_all(b"A-2\n").unwrap();
        stderr_until(&mut child, "waiting for it. Codes are kept and sent later.\n");
        input.write_all(b"A-3\n").unwrap();
        kept(&folder, "A-3");
        if is_kill {
            kill(child);
        } else {
            interrupt(&child);
            end(child).tells(130, "Run the same command again to continue.");
        }
        drop(input);
        service.start_again();
        let between = service.send(
            "PATCH",
            &format!("/assets/{}", service.get("/assets/by-tag/A-4")["data"]["id"].as_str().unwrap()),
            &json!({"name": "x"}),
        );
        let between = between["data"]["updated_at"].as_str().unwrap();
        let again = run(service.command(&["stocktake", PLACE]), &folder);
        again.tells(3, "Sending 2 earlier scans that the service has not received.\nhere       A-2 Dock\nhere       A-3 Dock\n");
        assert!(again.stdout.contains("Found      3\n") && again.stdout.contains("Missing    1\n"), "{}", again.stdout);
        for tag in ["A-2", "A-3"] {
            let asset = service.get(&format!("/assets/by-tag/{tag}"));
            assert!(asset["data"]["last_seen_at"].as_str().unwrap() < between, "{asset} {between}");
        }
        // They are not sent twice.
        let sent = run(service.command(&["stocktake", PLACE]), &folder);
        assert!(!sent.stderr.contains("Sending"), "{}", sent.stderr);
    }
}

#[test]
fn two_at_one_place_do_not_disturb_each_other() {
    let (service, folder) = (Service::start(), Folder::new());
    for tag in ["A-1", "A-2"] {
        service.create("/assets", &json!({"name": "Dock", "asset_tag": tag, "location": PLACE}));
    }
    let start = |code: &[u8], told: &str| {
        let mut child = typing(service.command(&["stocktake", PLACE]), &folder);
        let mut input = child.stdin.take().unwrap();
        input.write_all(code).unwrap();
        stderr_until(&mut child, told);
        (child, input)
    };
    let (first, first_input) = start(b"A-1\n", "here       A-1 Dock\n");
    let (second, second_input) = start(b"A-2\n", "what it finds is not missing here.\nhere       A-2 Dock\n");
    drop(first_input);
    end(first).shows("Found      1\nElsewhere  0\nUnknown    0\nMissing    0\n");
    kill(second);
    drop(second_input);
    let again = run(service.command(&["stocktake", PLACE]), &folder);
    again.tells(0, "1 code so far");
    again.shows("Found      1\n");
}

#[test]
fn what_a_person_holds_and_what_is_scrapped_is_not_missing() {
    let (service, folder) = (Service::start(), Folder::new());
    let ada = service.user("Ada", true);
    for body in [
        json!({"name": "Dock", "asset_tag": "A-1", "location": PLACE}),
        json!({"name": "Phone", "asset_tag": "A-2", "location": PLACE, "assigned_to": ada}),
        json!({"name": "Old", "asset_tag": "A-3", "location": PLACE, "status": "scrapped"}),
    ] {
        service.create("/assets", &body);
    }
    let scans = folder.file("scans.txt", "\u{2}]C1A-1\u{3}\tno\r");
    let taken = run(service.command(&["stocktake", PLACE, "--file", scans.to_str().unwrap(), "--json"]), &folder).ok().json();
    assert_eq!(
        (&taken["missing"], &taken["unknown"], taken["found"][0]["asset_tag"].as_str()),
        (&json!([]), &json!(["no"]), Some("A-1"))
    );
    let held = &taken["held"][0];
    let today = service.get("/assets/by-tag/A-2")["data"]["updated_at"].as_str().unwrap()[..10].to_owned();
    assert_eq!(
        (&held["asset_tag"], &held["assigned_user"]["display_name"], &held["held_since"]),
        (&json!("A-2"), &json!("Ada"), &json!(today))
    );
    service.run(&["show", "]A0*A-1*"]).shows("A-1 Dock");
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
fn file_of_codes_can_have_any_encoding_of_an_import() {
    let (service, folder) = (Service::start(), Folder::new());
    for serial in ["BÜRO-1", "STRAßE 2"] {
        service.create("/assets", &json!({"name": "Dock", "serial_number": serial, "location": PLACE}));
    }
    let utf16 = "BÜRO-1\r\nSTRAßE 2\r\n".encode_utf16();
    let (little, big) = (utf16.clone().flat_map(u16::to_le_bytes).collect(), utf16.flat_map(u16::to_be_bytes).collect());
    let files: [(&str, Vec<u8>); 3] =
        [("windows-1252", b"B\xdcRO-1\nSTRA\xdfE 2\n".into()), ("UTF-16LE", little), ("UTF-16BE", big)];
    for (encoding, bytes) in files {
        let codes = folder.file(encoding, bytes);
        let taken = run(service.command(&["stocktake", PLACE, "--again", "--file", codes.to_str().unwrap()]), &folder).ok();
        assert!(taken.stdout.contains("Found      2\n") && taken.stderr.contains(&format!("as {encoding}.")), "{}", taken.stderr);
    }
}

#[test]
fn report_that_cannot_be_written_is_refused_before_the_first_scan() {
    let (service, folder) = (service(json!([])), Folder::new());
    for (path, why) in [(folder.path("missing/report.csv"), "there is no folder"), (folder.path(""), "is a folder")] {
        let arguments = ["stocktake", PLACE, "--report", path.to_str().unwrap()];
        let taken = type_text(typing(command(&service.url, &arguments), &folder), "A-2\n");
        assert!(taken.code == 2 && taken.stderr.contains(why), "{}: {}", taken.code, taken.stderr);
    }
    assert!(service.requests().is_empty());
}

#[test]
fn place_named_none_is_a_place() {
    let (service, folder) = (Service::start(), Folder::new());
    for (tag, place) in [("A-1", "none"), ("A-2", "\\none"), ("A-3", "None / 1")] {
        service.create("/assets", &json!({"name": "Dock", "asset_tag": tag, "location": place}));
    }
    service.create("/assets", &json!({"name": "nowhere", "asset_tag": "B-1"}));
    for (place, missing) in [("none", json!(["A-1", "A-3"])), ("\\none", json!(["A-2"])), ("None", json!(["A-1", "A-3"]))] {
        let report = run(service.command(&["stocktake", place, "--json"]), &folder).json();
        let tags: Value = report["missing"].as_array().unwrap().iter().map(|asset| asset["asset_tag"].clone()).collect();
        assert_eq!(tags, missing, "{place}: {report}");
    }
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
