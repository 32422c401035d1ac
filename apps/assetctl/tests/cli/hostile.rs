//! Hostile text reaches programs unchanged, but never a terminal. A command gives up on endless responses, and on a service that
//! asks it to wait for hours.

use crate::mcp::odd_answers;
use crate::support::scripted::{Answer, Endless, Request, Scripted};
use crate::support::{Folder, Run, command, end, spawn};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use terminal::pty::{HOSTILE, Session};

/// Characters that terminals interpret, and that no word contains.
const OBEYED: &str = "\u{1b}\u{9b}\u{202e}";
const USER: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

fn answer(request: &Request, _: usize) -> Answer {
    let asset =
        json!({"id": USER, "asset_id": HOSTILE, "asset_tag": HOSTILE, "asset_name": HOSTILE, "code": HOSTILE, "detail": HOSTILE});
    match request.route.as_str() {
        _ if request.parameter("status") == "refused" => Answer::problem(422, HOSTILE, HOSTILE),
        "POST /assets/import" | "POST /users/import" => {
            let error = json!({"column": HOSTILE, "detail": HOSTILE, "code": HOSTILE});
            Answer::data(&json!([{"row": 1, "outcome": "refused", "id": null, "errors": [error]}]))
        }
        "POST /assets/import/suggest" => Answer::data(&json!({
            "parameters": [{"name": "map", "value": format!("Serial{OBEYED}No=serial_number")}], "rows": 1, "list": HOSTILE,
            "columns": [{"heading": HOSTILE, "field": null, "example": HOSTILE, "why": HOSTILE}], "doubts": [HOSTILE],
        })),
        "GET /assets/export" if request.parameter("format") == "csv" => Answer::new("text/csv", table()),
        "GET /assets/export" => Answer::new("application/x-ndjson", format!("{asset}\n")),
        "GET /assets/labels" => Answer::new("text/html", String::new()),
        "GET /assets" if request.parameter("code") == "A" => Answer::data(&json!([{
            "id": USER, "asset_tag": HOSTILE, "name": HOSTILE, "status": HOSTILE, "model": HOSTILE, "assigned_to": USER
        }])),
        "GET /assets" => Answer::data(&json!([])),
        "GET /me" => {
            Answer::data(&json!({"key": {"name": HOSTILE, "scopes": [HOSTILE]}, "tenant": {"name": HOSTILE}, "user": null}))
        }
        "GET /stats" => Answer::data(&json!({"assets": {"total": 1, "by_status": {HOSTILE: 1}}})),
        "GET /events" => Answer::json(&events(request.parameter("after"))),
        "GET /users" => Answer::data(&json!([person()])),
        "POST /users" => Answer::data(&person()),
        route if route.ends_with("/erase") => Answer::data(&json!({"done": true, "pseudonym": HOSTILE, "removed": {HOSTILE: 1}})),
        "GET /catalog/asset-types" => Answer::data(&json!([{"id": USER, "name": HOSTILE}])),
        route if route.contains("/catalog/asset-types") => {
            let schema = json!({"properties": {HOSTILE: {"type": HOSTILE}}});
            Answer::data(&json!({"code": HOSTILE, "name": HOSTILE, "custom_fields_schema": schema})).with("etag", "\"1-a\"")
        }
        route if route.starts_with("GET /users/") => Answer::data(&person()),
        "GET /processes" => Answer::data(&json!([process()])),
        "GET /processes/instances" => Answer::data(&json!([process()])),
        route if route.ends_with("/history") => {
            let changes = json!({"status": {"old": HOSTILE, "new": HOSTILE}, HOSTILE: {"old": null, "new": HOSTILE}});
            Answer::data(&json!([{"at": HOSTILE, "type": "asset.updated", "actor": {"key_name": HOSTILE}, "changes": changes}]))
        }
        route if route == format!("GET /assets/{USER}/processes") => {
            Answer::data(&json!([{"id": USER, "slug": HOSTILE, "code": request.query.get("none"), "detail": HOSTILE}]))
        }
        route if route.ends_with("/start") => Answer::data(&process()),
        route if route.ends_with("/links") => Answer::data(&json!({"id": HOSTILE, "url": HOSTILE, "expires_at": HOSTILE})),
        route if route.ends_with("/label") => Answer::new("text/plain", HOSTILE.into()),
        _ => Answer::data(&json!({
            "user": {"id": USER, "display_name": HOSTILE, "email": HOSTILE, "is_active": false},
            "process": {"name": HOSTILE}, "movements": [{"number": HOSTILE, "assets": [asset]}], "instances": [], "in_progress": [],
            "not_started": [asset], "unreadable": [HOSTILE], "has_more": false
        })),
    }
}

fn person() -> Value {
    json!({"id": USER, "display_name": HOSTILE, "email": HOSTILE, "is_active": true})
}

/// Returns a process definition with an instance of it.
fn process() -> Value {
    let step = json!({"type": "user_picker", "key": HOSTILE, "label": HOSTILE, "items": [HOSTILE]});
    json!({
        "id": USER, "process_id": USER, "slug": HOSTILE, "name": HOSTILE, "process_name": HOSTILE, "started_by_name": HOSTILE,
        "started_at": HOSTILE, "status": "in_progress", "current_step": 0, "steps": [step]
    })
}

fn table() -> String {
    format!("id,name\r\n1,\"{HOSTILE}\r\"\r\n")
}

fn events(after: &str) -> Value {
    let event = json!({
        "id": "e1", "at": HOSTILE, "type": HOSTILE, "entity_id": HOSTILE, "entity_name": HOSTILE, "entity_tag": HOSTILE,
        "actor": {"key_name": HOSTILE, "user_name": HOSTILE}
    });
    let data = if after == "now" { json!([]) } else { json!([event]) };
    json!({"data": data, "meta": {"after": "e1", "has_more": false}})
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Commands whose arguments, files and responses contain hostile text.
struct Commands {
    folder: Folder,
    service: Scripted,
}

impl Commands {
    fn new() -> Self {
        let commands = Self { folder: Folder::new(), service: Scripted::start(answer) };
        commands.folder.file(&format!("{HOSTILE}.csv"), "name\nA\n");
        commands.folder.file("columns.csv", format!("Serial{OBEYED}No,{HOSTILE},Asset Tag\n1,2,3\n"));
        commands
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name).to_str().unwrap().to_owned()
    }

    fn for_people(&self) -> Vec<Vec<String>> {
        let (file, columns) = (self.path(&format!("{HOSTILE}.csv")), self.path("columns.csv"));
        let (sheets, exported) = (self.path(&format!("{HOSTILE}.html")), self.path(&format!("{HOSTILE}.ndjson")));
        [
            &["import", &file][..],
            &["import", &file, "--dry-run"],
            &["import", &columns],
            &["import", HOSTILE],
            &["import", &file, "--match", HOSTILE],
            &["import", &file, "--map", HOSTILE],
            &["import", &file, "--give-up-after", HOSTILE],
            &["export", "-o", &exported],
            &["export", "--status", "refused"],
            &["labels", HOSTILE],
            &["labels", "--all", "-o", &sheets],
            &["offboard", HOSTILE],
            &["offboard", USER],
            &["offboard", USER, "--yes"],
            &["offboard", USER, "--dry-run"],
            &["offboard", USER, "--process", HOSTILE],
            &["webhooks", "listen", "--events", HOSTILE, "--count", "1"],
            &["webhooks", "listen", "--forward", HOSTILE],
            &["handover", "A", "--to", USER, "--qr"],
            &["handover", "A", "--to", HOSTILE],
            &["handover", "A", "--to", USER, "--tick", HOSTILE, "--dry-run"],
            &["handover", "A", "--to", USER, "--process", HOSTILE],
            &["handover", HOSTILE, "--to", USER],
            &["handover", "A", "--to", USER, "--location", HOSTILE],
            &["run", "own", "A", "--to", USER, "--value", &format!("{HOSTILE}=x")],
            &["run", "own", "A", "--value", &format!("x={HOSTILE}")],
            &["run", HOSTILE, "A"],
            &["set", "A", "status=x"],
            &["set", "A", &format!("notes={HOSTILE}")],
            &["set", HOSTILE, "status=x"],
            &["set", "A", &format!("custom_fields.{HOSTILE}=x")],
            &["user", "add", HOSTILE, HOSTILE],
            &["user", "change", HOSTILE, "role=x"],
            &["user", "report", HOSTILE, "-o", &self.path("report.json")],
            &["user", "erase", USER, "--yes"],
            &["type", "add", HOSTILE, HOSTILE, "--field", &format!("{HOSTILE}:string")],
            &["type", "change", HOSTILE, "name=x"],
            &["verify", "A"],
            &["verify", HOSTILE],
            &["verify", &file],
            &["show", "A"],
            &["show", HOSTILE],
            &["who", "A"],
            &["who", "A", "--on", HOSTILE],
            &["stats"],
            &["me"],
            &["me", "--base-url", HOSTILE],
            &[HOSTILE],
            &["me", &format!("--{HOSTILE}")],
            &["me", HOSTILE],
        ]
        .map(owned)
        .to_vec()
    }

    fn for_programs(&self) -> Vec<Vec<String>> {
        let (file, columns) = (self.path(&format!("{HOSTILE}.csv")), self.path("columns.csv"));
        [
            &["export"][..],
            &["export", "--format", "ndjson"],
            &["labels", "--all", "--format", "zpl"],
            &["me", "--json"],
            &["import", &file, "--dry-run", "--json"],
            &["import", &columns, "--suggest"],
            &["webhooks", "listen", "--count", "1", "--json"],
            &["export", "--json", "--status", "refused", "-o", &self.path("none.csv")],
        ]
        .map(owned)
        .to_vec()
    }

    fn command(&self, words: &[String]) -> Command {
        command(&self.service.url, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn run(&self, words: &[String]) -> Run {
        Run::of(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs a command on a terminal, and returns its output.
    fn show(&self, words: &[String]) -> String {
        let mut command = self.command(words);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let mut session = Session::start(command, 80).unwrap();
        session.type_text("n\n").unwrap();
        session.wait().unwrap();
        // Without the state of this import, the next import of the file is not refused.
        let _ = std::fs::remove_file(self.folder.path(&format!("{HOSTILE}.csv.assetctl")));
        session.shown()
    }
}

/// Whether the text has no characters that a terminal interprets, except line breaks.
fn is_clean(text: &str) -> bool {
    let directions = ['\u{202e}', '\u{2067}', '\u{200e}', '\u{200f}', '\u{61c}'];
    text.chars().all(|character| (character == '\n' || !character.is_control()) && !directions.contains(&character))
}

#[test]
fn people_get_no_hostile_text_in_a_pipe() {
    let commands = Commands::new();
    for words in commands.for_people() {
        let run = commands.run(&words);
        assert!(is_clean(&run.stdout) && is_clean(&run.stderr), "{words:?}: {:?} {:?}", run.stdout, run.stderr);
        assert!((run.stdout + &run.stderr).contains("owned"), "{words:?} must tell the text");
    }
}

#[test]
fn a_terminal_gets_no_hostile_text() {
    let commands = Commands::new();
    for words in commands.for_people().into_iter().chain(commands.for_programs()) {
        let shown = commands.show(&words);
        // The program writes progress and colours itself.
        let obeyed = "\u{1b}] \u{1b}[2J \u{1b}[8m \u{7} \u{9b} \u{7f} \u{202e} \u{2067} \u{200e} \u{200f} \u{61c}";
        for hostile in obeyed.split(' ') {
            assert!(!shown.contains(hostile), "{words:?} shows {hostile:?}: {shown:?}");
        }
    }
}

#[test]
fn programs_get_every_byte() {
    let commands = Commands::new();
    let (json, label) = (serde_json::to_string(HOSTILE).unwrap(), format!("{HOSTILE}\n"));
    let (table, option) = (table(), format!("--map \"Serial{OBEYED}No=serial_number\""));
    let expected: [&str; 8] = [&table, &json, &label, &json, &json, &option, &json, json.trim_matches('"')];
    for (words, expected) in commands.for_programs().iter().zip(expected) {
        let run = commands.run(words);
        assert!(run.stdout.contains(expected) && is_clean(&run.stderr), "{words:?}: {:?} {:?}", run.stdout, run.stderr);
    }
    assert_eq!(commands.run(&owned(&["export"])).stdout, table);
}

#[test]
fn a_terminal_still_gets_colours_and_line_breaks() {
    let commands = Commands::new();
    let show = |words: &[&str]| commands.show(&owned(words));
    let shown = show(&["labels", "B-1"]);
    assert!(shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no asset has the tag or the serial number B-1"), "{shown:?}");
    let shown = show(&["me", "--jsn"]);
    assert!(shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m unexpected argument") && shown.contains("\n\n"), "{shown:?}");
    let help = show(&["--help"]);
    assert!(help.contains("\u{1b}[1m\u{1b}[4mExamples:\u{1b}[0m\n"), "{help:?}");
    let table = show(&["export"]);
    assert!(table.contains("id,name\n1,\"A\u{fffd}]0;owned"), "{table:?}");
}

/// Runs a command that must end without being killed.
fn run(url: &str, arguments: &[&str]) -> Run {
    let mut command = command(url, arguments);
    command.stdin(Stdio::null());
    let mut child = spawn(command);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Has no effect if the command has ended.
    child.kill().unwrap();
    end(child)
}

/// Returns a command for each kind of wait.
fn waiting(file: &str) -> [Vec<&str>; 7] {
    [
        vec!["export", "--give-up-after", "3"],
        vec!["import", file, "--give-up-after", "3", "--dry-run"],
        vec!["webhooks", "listen"],
        vec!["offboard", USER, "--yes"],
        vec!["labels", "--all"],
        vec!["stats"],
        vec!["list"],
    ]
}

#[test]
fn a_service_that_asks_to_wait_too_long_is_given_up_at_once() {
    let folder = Folder::new();
    let file = folder.file("a.csv", "name\nA\n");
    for seconds in ["86400", "4294967296", "18446744073709551615", "99999999999999999999999"] {
        for arguments in waiting(file.to_str().unwrap()) {
            let service = Scripted::start(move |_, _| Answer::busy(seconds));
            let run = run(&service.url, &arguments);
            assert_eq!((run.code, service.requests().len()), (1, 1), "{seconds} {arguments:?}: {}", run.stderr);
            let told = run.stderr.contains("503 UNAVAILABLE: Not now.\nThe service asks to wait ");
            assert!(told && run.stderr.contains(", and this command gives up after "), "{arguments:?}: {}", run.stderr);
        }
    }
    let service = Scripted::start(|_, _| Answer::busy("86400"));
    let run = run(&service.url, &["export", "--give-up-after", "3"]);
    assert!(run.stderr.contains("asks to wait 24 h 0 min, and this command gives up after "), "{}", run.stderr);
}

#[test]
fn listening_goes_on_however_long_the_service_asks_to_wait() {
    let answer = |request: &Request, _: usize| match request.parameter("after") {
        "now" => Answer::json(&json!({"data": [], "meta": {"after": "e0", "has_more": true}})),
        _ => Answer::busy("18446744073709551615"),
    };
    let service = Scripted::start(answer);
    run(&service.url, &["webhooks", "listen", "--for", "1"]).tells(0, "Not now; waiting for it. No event is lost.");
}

#[test]
fn no_command_panics_whatever_the_service_answers() {
    let folder = Folder::new();
    let path = folder.path("labels.html");
    let scans = folder.file("scans.txt", "AST-1\nX\n");
    for (odd, is_whole) in odd_answers().into_iter().flat_map(|odd| [(odd.clone(), false), (odd, true)]) {
        let shown = odd.clone();
        let service = Scripted::start(move |_, _| match is_whole {
            true => Answer::json(&odd),
            false => Answer::data(&odd),
        });
        for arguments in [
            &["show", "AST-1"][..],
            &["show", USER],
            &["who", "AST-1", "--on", "2026-03-01"],
            &["who", USER],
            &["offboard", USER, "--dry-run"],
            &["handover", "AST-1", "--to", USER, "--dry-run"],
            &["return", "AST-1", "--dry-run"],
            &["run", "own", "AST-1", "--value", "x=y"],
            &["set", "AST-1", "status=in_stock", "assigned_to=ada", "asset_type=LAP"],
            &["user", "add", "ada@example.com", "Ada"],
            &["user", "change", USER, "role=viewer"],
            &["user", "report", USER],
            &["user", "erase", USER, "--dry-run"],
            &["type", "add", "LAP", "Laptop"],
            &["type", "change", "LAP", "--field", "a:string"],
            &["verify", "AST-1"],
            &["labels", "AST-1", "-o", path.to_str().unwrap()],
            &["stats"],
            &["stats", "--by", "assigned_to"],
            &["list", "--columns", "name,custom_fields.a"],
            &["list", "--format", "csv"],
            &["stocktake", "Berlin", "--file", scans.to_str().unwrap()],
            &["me"],
        ] {
            let run = run(&service.url, arguments);
            assert!(
                [0, 1, 2, 3].contains(&run.code) && !run.stderr.contains("panicked"),
                "{arguments:?} {shown}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn an_answer_without_an_end_is_not_read_to_the_end() {
    let folder = Folder::new();
    let file = folder.file("a.csv", "name\nA\n");
    let file = file.to_str().unwrap();
    for (content_type, arguments) in [
        ("application/json", &["me"][..]),
        ("application/json", &["offboard", USER, "--yes"]),
        ("application/json", &["webhooks", "listen"]),
        ("application/json", &["import", file]),
        ("text/csv", &["export"]),
        ("application/x-ndjson", &["export", "--format", "ndjson"]),
        ("application/x-ndjson", &["labels", "--all"]),
    ] {
        for is_announced in [false, true] {
            let service = Endless::start(content_type, is_announced);
            let run = run(&service.url, arguments);
            let told = run.stderr.contains("the service answered 200 with more than 6 MB, which the API never does");
            assert!(run.code == 1 && told && service.is_cut_off(), "{arguments:?}: {} {}", run.code, run.stderr);
        }
        assert_eq!(folder.names(), ["a.csv"], "{arguments:?}");
    }
}
