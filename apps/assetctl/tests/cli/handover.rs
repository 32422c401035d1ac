//! `assetctl handover` and `run` against the real service, with and without `--wait`.

use crate::support::scripted::{Answer, Scripted};
use crate::support::service::Service;
use crate::support::{Run, end, interrupt, kill, run, spawn, stderr_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use terminal::pty::Session;

fn to_mary(service: &Service, words: &[&str]) -> Run {
    service.run(&[&["handover", "--to", "mary@example.org"], words].concat())
}

#[test]
fn a_repeated_command_goes_on_until_the_asset_is_handed_over() {
    let service = Service::start();
    let (mary, _) = (service.user("Mary", true), service.user("Ada", true));
    let (id, tag) = service.asset("preparing");
    let first = to_mary(&service, &[&tag, "--tick", "Device", "--tick", "power SUPPLY"]);
    first.link();
    let second = service.run(&["handover", &tag, "--to", "mary"]).link();
    let summary = format!(
        "Process     Employee Onboarding\nAssets      {tag} Laptop\nTo          Mary <mary@example.org>\n\
         Steps left  Signature of the recipient, Complete the handover\nLink        until "
    );
    assert!(first.stderr.starts_with(&summary), "{}", first.stderr);
    let started = service.get("/processes/instances");
    assert_eq!((&started["meta"]["total"], &started["data"][0]["current_step"]), (&json!(1), &json!(2)));
    assert_eq!(started["data"][0]["step_data"], json!({"employee": mary, "handover": ["Device", "Power supply"]}));

    let other = service.run(&["handover", &tag, "--to", "ada@example.org"]);
    let expected = format!("{tag}: Employee Onboarding for Mary <mary@example.org> is in progress, started by first key at ");
    other.tells(1, &expected);
    to_mary(&service, &[&tag, "--process", "repair"]).tells(2, "no step that picks a user");

    service.sign(&second, json!({}));
    for _ in ["completes it", "finds it completed"] {
        let done = to_mary(&service, &[&tag]).ok();
        assert!(done.stdout.starts_with(&service.url) && done.stdout.ends_with("/receipt?format=html\n"), "{}", done.stdout);
        assert!(done.stderr.ends_with("Receipt  needs an API key to open\n"), "{}", done.stderr);
    }
    let asset = &service.get(&format!("/assets/{id}"))["data"];
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &json!(mary)));
    assert_eq!(service.total("/processes/instances"), 1);
}

#[test]
fn with_prepare_an_asset_in_stock_is_prepared_first() {
    let service = Service::start();
    service.user("Mary", true);
    let ((id, tag), (_, returned)) = (service.asset("in_stock"), service.asset("returned"));
    let refused = to_mary(&service, &[&tag, &returned]);
    assert_eq!(refused.code, 1);
    for (tag, advice) in [
        (&tag, "The option prepare runs the process prepare first."),
        (&returned, "The option prepare runs restock and prepare first."),
    ] {
        let line = refused.stderr.lines().find(|line| line.contains(tag.as_str())).unwrap_or_default();
        assert!(line.contains(&format!("{tag} Laptop: ")) && line.contains(advice), "{}", refused.stderr);
    }
    let plan = to_mary(&service, &[&tag, "--prepare", "--dry-run"]);
    assert!(plan.code == 0 && plan.stdout.starts_with("Process    Prepare\n"), "{}{}", plan.stdout, plan.stderr);
    assert!(plan.stdout.ends_with("This would be completed first.\n"), "{}", plan.stdout);
    assert_eq!(service.total("/processes/instances"), 0);
    assert!(plan.stdout.contains("Left open  System installed, Updates installed, "), "{}", plan.stdout);
    let prepared = to_mary(&service, &[&tag, "--prepare", "--tick", "all"]);
    prepared.link();
    assert!(prepared.stderr.starts_with("Prepare: done\n"), "{}", prepared.stderr);
    to_mary(&service, &[&tag, "--prepare", "--tick", "all"]).link();
    let instances = service.get(&format!("/processes/instances?asset_id={id}"));
    let state = |number: usize| (instances["data"][number]["process_name"].clone(), instances["data"][number]["status"].clone());
    assert_eq!(state(0), (json!("Employee Onboarding"), json!("in_progress")));
    assert_eq!(state(1), (json!("Prepare"), json!("completed")));
    assert_eq!(instances["data"][1]["step_data"]["setup"].as_array().map(Vec::len), Some(4));
    let (_, other) = service.asset("in_stock");
    let prepared = to_mary(&service, &[&other, "--prepare", "--tick", "disk encrypted"]);
    prepared.link();
    let left = "Prepare: done; left open: System installed, Updates installed, Asset tag attached\n";
    assert!(prepared.stderr.starts_with(left), "{}", prepared.stderr);
}

#[test]
fn what_came_back_is_handed_over_again() {
    let service = Service::start();
    let ada = service.user("Ada", true);
    service.user("Mary", true);
    let (id, tag) = service.asset("preparing");
    let (_, stored) = service.asset("in_stock");
    let hand_over = |user: &str, words: &[&str]| service.run(&[&["handover", "--to", user, "--tick", "all"], words].concat());
    service.sign(&hand_over("ada@example.org", &[&tag]).link(), json!({}));
    let come_back = service.run(&["return", &tag, "--tick", "all"]).link();
    service.sign(&come_back, json!({"condition": "good"}));
    service.run(&["return", &tag]).ok();
    assert_eq!(service.get(&format!("/assets/{id}"))["data"]["status"], "returned");
    let needed = "Restock comes first, and needs \"Data erased\", \"Device reset\", \"Device cleaned\": tick each, or all";
    to_mary(&service, &[&tag, &stored, "--prepare"]).tells(2, needed);
    let plan = hand_over("mary@example.org", &[&tag, &stored, "--prepare", "--dry-run"]).ok();
    assert!(plan.stdout.starts_with(&format!("Process  Restock\nAssets   {tag} Laptop\n")), "{}", plan.stdout);
    let again = hand_over("mary@example.org", &[&tag, &stored, "--prepare"]);
    service.sign(&again.link(), json!({}));
    assert!(again.stderr.starts_with("Restock: done\nPrepare: done\n"), "{}", again.stderr);
    let asset = &service.get(&format!("/assets/{id}"))["data"];
    assert!(asset["status"] == "in_use" && asset["assigned_to"] != json!(ada), "{asset}");
}

#[test]
fn the_place_is_recorded_and_a_handover_tells_where_assets_still_are() {
    let service = Service::start();
    service.user("Mary", true);
    let (id, tag) = service.asset("preparing");
    let place = || service.get(&format!("/assets/{id}"))["data"]["location"].take();
    service.run(&["set", &tag, "location=Storage"]).ok();
    let run = to_mary(&service, &[&tag, "--location", "Berlin/3.14", "--dry-run"]);
    run.shows("Location    Berlin / 3.14\n");
    to_mary(&service, &[&tag, "--location", "a//b"]).tells(1, &format!("{tag}: location: "));
    assert_eq!((place(), service.total("/processes/instances")), (json!("Storage"), 0));
    let left = to_mary(&service, &[&tag]);
    left.link();
    assert!(left.stderr.contains("\nStill at    Storage; --location PLACE records where it goes\n"), "{}", left.stderr);
    let moved = to_mary(&service, &[&tag, "--tick", "all", "--location", "Berlin/3.14"]);
    assert!(moved.stderr.contains("\nLocation    Berlin / 3.14\n") && !moved.stderr.contains("Still at"), "{}", moved.stderr);
    assert_eq!(place(), "Berlin / 3.14");
    service.sign(&moved.link(), json!({}));
    service.run(&["return", &tag, "--tick", "all", "--location", "Storage"]).link();
    assert_eq!(place(), "Storage");
}

#[test]
fn any_process_runs_with_the_values_of_its_steps() {
    let service = Service::start();
    let ada = service.user("Ada", true);
    let assets: Vec<(String, String)> = (0..2).map(|_| service.asset("in_use")).collect();
    let tags = [assets[0].1.as_str(), &assets[1].1];
    let status = |number: usize| service.get(&format!("/assets/{}", assets[number].0))["data"]["status"].take();
    let run = |words: &[&str]| service.run(&[&["run"], words].concat());
    // Without a required value, the process starts and waits for it.
    let begun = run(&["repair", tags[0], tags[1]]).ok();
    assert!(
        begun.stdout.is_empty() && begun.stderr.ends_with("Then        repeat the command with --value fault=TEXT\n"),
        "{}",
        begun.stderr
    );
    let plan = run(&["repair", tags[0], tags[1], "--value", "fault=Broken screen", "--dry-run"]);
    plan.shows("This would be completed.\n");
    let done = run(&["repair", tags[0], tags[1], "--value", "fault=Broken screen"]).ok();
    assert!(done.stdout.contains("/v1/movements/") && done.stdout.ends_with("/receipt?format=html\n"), "{}", done.stdout);
    assert_eq!((status(0), status(1), service.total("/movements")), (json!("in_service"), json!("in_service"), 1));
    run(&["back-from-repair", tags[0], "--tick", "all", "--value", "invoice=R-1", "--json"]).shows("\"status\": \"completed\"");
    assert_eq!(status(0), "in_stock");
    // A process that picks a user, who signs.
    let steps = json!([
        {"type": "user_picker", "key": "borrower", "label": "Borrower", "required": true},
        {"type": "date", "key": "until", "label": "Until", "required": true},
        {"type": "confirmation", "key": "charged", "label": "Charged"},
        {"type": "signature", "key": "signature", "label": "Signature", "required": true},
        {"type": "complete", "key": "complete", "label": "Complete"}
    ]);
    service
        .create("/processes", &json!({"name": "Loan", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps}));
    let loan = |words: &[&str]| run(&[&["loan", tags[0]], words].concat());
    loan(&[]).tells(2, "name the user whom the process picks, and who signs: --to USER");
    loan(&["--to", "ada", "--value", "place=x"])
        .tells(2, "the process loan has no step `place`, so --value can't be used; its steps: borrower, until");
    loan(&["--to", "ada", "--value", "until=tomorrow", "--value", "charged=true"]).tells(1, "/step_data/until: ");
    let signed = loan(&["--to", "ada", "--value", "until=2027-01-01", "--value", "charged=true"]);
    service.sign(&signed.link(), json!({}));
    let asset = &service.get(&format!("/assets/{}", assets[0].0))["data"];
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &json!(ada)));
    loan(&["--to", "ada"]).shows("/receipt?format=html\n");
    // The signer of another process is the user who has the asset.
    let returned = run(&["device-return", tags[0], "--tick", "all"]);
    assert!(returned.stderr.contains("User        Ada <ada@example.org>\n"), "{}", returned.stderr);
    run(&["nope", tags[0]]).tells(1, "unknown process nope; known: ");
    run(&["restock", tags[0], "--value", "checks=x"]).tells(2, "--value checks: use --tick");
}

#[test]
fn several_assets_are_one_movement() {
    let service = Service::start();
    service.user("Mary", true);
    let tags: Vec<String> = (0..3).map(|_| service.asset("preparing").1).collect();
    let plan = to_mary(&service, &[&tags[0], &tags[1], "--dry-run"]);
    plan.shows("Steps left  Handed over, Signature of ");
    assert!(plan.stdout.ends_with("The process would have reached this state.\n"), "{}", plan.stdout);
    assert_eq!(service.total("/movements"), 0);
    to_mary(&service, &[&tags[0], &tags[1], &tags[0]]).link();
    let address = to_mary(&service, &[&tags[1], &tags[0], "--tick", "all"]).link();
    let part = to_mary(&service, &[&tags[1]]);
    let expected = format!("the handover has {} {}: name exactly these assets", tags[0], tags[1]);
    part.tells(1, &expected);
    to_mary(&service, &[&tags[0], &tags[1], &tags[2]]).tells(1, "is already in progress or done");
    service.sign(&address, json!({}));
    let done = to_mary(&service, &[&tags[0], &tags[1], "--json"]);
    let result = done.json();
    assert_eq!((&result["status"], &result["link"]), (&json!("completed"), &Value::Null), "{}", done.stderr);
    assert!(result["receipt"].as_str().unwrap().contains("/v1/movements/"), "{result}");
    assert_eq!((service.total("/movements"), result["assets"].as_array().map(Vec::len)), (1, Some(2)));
    // An asset that was assigned to the user directly doesn't count as handed over.
    let id = result["assets"][0]["id"].as_str().unwrap();
    let ada = service.user("Ada", true);
    service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": ada}));
    service.run(&["handover", &tags[0], "--to", "ada@example.org"]).tells(1, "The asset's status is in_use.");
}

#[test]
fn the_owner_of_an_asset_that_cannot_be_handed_over_is_named() {
    let service = Service::start();
    service.user("Mary", true);
    let ada = service.user("Ada", true);
    let assigned = |status: &str, owner: Option<&str>| {
        let (id, tag) = service.asset(status);
        service.send("PATCH", &format!("/assets/{id}"), &json!({"assigned_to": owner}));
        tag
    };
    let (in_use, returned, scrapped) =
        (assigned("in_use", Some(&ada)), assigned("returned", Some(&ada)), assigned("scrapped", None));
    let refused = to_mary(&service, &[&in_use, &returned, &scrapped]);
    assert_eq!(refused.code, 1);
    for (tag, advice) in [
        (&in_use, format!("Ada <ada@example.org> has it: take it back first, assetctl return {in_use}")),
        (&returned, "The option prepare runs restock and prepare first.".to_owned()),
        (&scrapped, format!("No process can start. Change its status first: assetctl set {scrapped} status=preparing")),
    ] {
        let line = refused.stderr.lines().find(|line| line.contains(&format!("{tag} Laptop: "))).unwrap_or_default();
        assert!(line.contains(&advice), "{}", refused.stderr);
    }
}

/// All steps of 20 assets are too many changes for one transaction.
#[test]
fn twenty_assets_are_prepared_and_handed_over_step_by_step() {
    let service = Service::start();
    service.user("Mary", true);
    let assets: Vec<(String, String)> = (0..20).map(|_| service.asset("in_stock")).collect();
    let mut words: Vec<&str> = assets.iter().map(|(_, tag)| tag.as_str()).collect();
    words.extend(["--prepare", "--tick", "all"]);
    let run = to_mary(&service, &words);
    run.link();
    assert!(run.stderr.contains("Steps left  Signature of the recipient, Complete the handover\n"), "{}", run.stderr);
    to_mary(&service, &words[..20]).link();
    let instances = service.get("/processes/instances?status=in_progress");
    assert_eq!((&instances["meta"]["total"], &instances["data"][0]["current_step"]), (&json!(20), &json!(2)));
}

#[test]
fn nothing_starts_with_a_wrong_argument() {
    let service = Service::start();
    service.user("Mary", true);
    service.user("Bob", false);
    service.create("/users", &json!({"email": "mary2@example.org", "display_name": "Mary"}));
    let (_, tag) = service.asset("preparing");
    for (words, code, reason) in [
        (&["NOPE-1", "--to", "mary@example.org"][..], 1, "no asset has the tag or the serial number NOPE-1"),
        (&["..", "--to", "mary@example.org"], 1, "no asset has the tag or the serial number .."),
        (&["", "--to", "mary@example.org"], 1, "no asset has the tag or the serial number"),
        (&[&tag, "A/ ?", "--to", "mary@example.org"], 1, "no asset has the tag or the serial number A/ ?"),
        (&[&tag, "--to", "bob@example.org"], 1, "Bob <bob@example.org> is inactive: activate the user first"),
        (&[&tag, "--to", "mary"], 1, "\"mary\" is the name of 2 active users: Mary <mary2@example.org>, Mary <mary@example.org>"),
        (&[&tag, "--to", "Bob"], 1, "\"Bob\" is not the name of an active user; inactive: Bob <bob@example.org>"),
        (&[&tag, "--to", "Mary Bo"], 1, "\"Mary Bo\" is not the name of a user; similar: Mary <mary"),
        (&[&tag, "--to", "eve@example.org"], 1, "no user has the e-mail address eve@example.org"),
        (&[&tag, "--to", "mary@example.org", "--process", "own"], 1, "unknown process own; known: "),
        (&[&tag, "--to", "mary@example.org", "--tick", "Dock"], 2, "tick \"Dock\": the checklists have \"Device\", "),
        (&[&tag], 2, "--to <USER>"),
        (&[&tag, "--to", "mary@example.org", "--timeout", "5"], 2, "--wait"),
    ] {
        service.run(&[&["handover"], words].concat()).tells(code, reason);
    }
    assert_eq!(service.total("/processes/instances"), 0);
}

#[test]
fn of_two_handovers_at_once_one_succeeds() {
    let service = Service::start();
    service.user("Mary", true);
    service.user("Ada", true);
    let at_once =
        |users: [&str; 2], tag: &str| users.map(|user| spawn(service.command(&["handover", tag, "--to", user]))).map(end);
    let (_, tag) = service.asset("preparing");
    let runs = at_once(["mary@example.org", "ada@example.org"], &tag);
    let lost: Vec<&Run> = runs.iter().filter(|run| run.code == 1).collect();
    assert!(lost.len() == 1 && lost[0].stderr.contains("Employee Onboarding for "), "{}{}", runs[0].stderr, runs[1].stderr);
    let (_, tag) = service.asset("preparing");
    for run in at_once(["mary@example.org", "mary@example.org"], &tag) {
        run.link();
    }
    assert_eq!(service.total("/processes/instances"), 2);
}

/// Reads the text of a QR code drawn in half blocks, which are its light modules.
fn decode(lines: &[&str]) -> String {
    const SCALE: usize = 4;
    let rows: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let is_dark = |x: usize, y: usize| {
        let (x, y) = (x / SCALE, y / SCALE);
        match rows[y / 2][x] {
            '█' => false,
            '▀' => y % 2 == 1,
            '▄' => y % 2 == 0,
            _ => true,
        }
    };
    let (width, height) = (rows[0].len(), 2 * rows.len() - 1);
    let mut image = rqrr::PreparedImage::prepare_from_bitmap(width * SCALE, height * SCALE, is_dark);
    image.detect_grids()[0].decode().unwrap().1
}

#[test]
fn a_terminal_shows_the_link_as_a_qr_code() {
    let service = Service::start();
    service.user("Mary", true);
    let (_, tag) = service.asset("preparing");
    let piped = to_mary(&service, &[&tag, "--qr"]);
    let (address, code) = piped.stdout.split_once('\n').unwrap();
    let lines: Vec<&str> = code.lines().collect();
    assert_eq!(decode(&lines), address);
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{code}");

    let mut command = service.command(&["handover", &tag, "--to", "mary@example.org"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut session = Session::start(command, 80).unwrap();
    assert!(session.wait().unwrap().success());
    let shown = session.shown();
    let white_on_black = "\u{1b}[97m\u{1b}[40m";
    let lines: Vec<String> =
        shown.lines().filter_map(|line| line.strip_prefix(white_on_black)).map(|line| line.replace("\u{1b}[0m", "")).collect();
    let address = shown.lines().find(|line| line.contains("/v1/sign#sgn_")).unwrap();
    assert_eq!(decode(&lines.iter().map(String::as_str).collect::<Vec<_>>()), address);
}

#[test]
fn only_a_request_that_takes_effect_once_is_repeated() {
    let (id, user) = ("0190163d-8694-739b-aea5-966c26f8ad91", "0190163d-8694-739b-aea5-966c26f8ad90");
    let steps =
        json!([{"type": "user_picker", "key": "to", "label": "To"}, {"type": "signature", "key": "sign", "label": "Signature"}]);
    let instance = json!({"id": "i1", "process_id": "p1", "status": "in_progress", "current_step": 1, "steps": steps});
    let (starts, links) = (AtomicU32::new(0), AtomicU32::new(0));
    let service = Scripted::start(move |request, _| match request.route.as_str() {
        "GET /processes" => Answer::data(&json!([{"id": "p1", "name": "Own", "slug": "own", "steps": steps}])),
        "GET /assets" => Answer::data(&json!([{"id": id, "asset_tag": request.parameter("code"), "name": "Laptop"}])),
        "POST /processes/p1/start" if starts.fetch_add(1, Relaxed) == 0 => Answer::problem(503, "UNAVAILABLE", "Try again."),
        "POST /processes/p1/start" => Answer::data(&instance),
        // A rate-limited request has no effect, so it is retried even without an idempotency key.
        "POST /processes/instances/i1/links" if links.fetch_add(1, Relaxed) == 0 => Answer::problem(429, "RATE_LIMITED", "Slow."),
        "POST /processes/instances/i1/links" => Answer::problem(503, "UNAVAILABLE", "Try again."),
        route if route == format!("GET /users/{user}") => {
            Answer::data(&json!({"id": user, "display_name": "Mary", "email": "mary@example.org", "is_active": true}))
        }
        route => {
            assert_eq!(route, format!("GET /assets/{id}/processes"));
            Answer::data(&json!([{"id": "p1", "code": null, "can_start": true}]))
        }
    });
    run(&service.url, &["handover", "AST-1", "--to", user, "--process", "own"]).tells(1, "503 UNAVAILABLE: Try again.");
    let (starts, links): (Vec<_>, Vec<_>) = service.posts().into_iter().partition(|post| post.route.ends_with("/start"));
    assert!(starts.len() == 2 && starts[0].idempotency_key.is_some(), "{starts:?}");
    assert_eq!(starts[0].idempotency_key, starts[1].idempotency_key);
    assert!(links.len() == 2 && links.iter().all(|link| link.idempotency_key.is_none()), "{links:?}");
}

struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    link: String,
}

fn wait(service: &Service, tag: &str, options: &[&str]) -> Waiting {
    let mut child = spawn(service.command(&[&["handover", tag, "--to", "mary@example.org", "--wait"], options].concat()));
    let (mut stdout, mut link) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    stdout.read_line(&mut link).unwrap();
    Waiting { child, stdout, link: link.trim().to_owned() }
}

impl Waiting {
    /// Waits until the command ends. The output lacks the link, which was read before.
    fn end(mut self) -> Run {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        Run { stdout: rest, ..end(self.child) }
    }
}

#[test]
fn a_wait_ends_with_the_signature_even_if_the_service_was_away() {
    let service = Service::start();
    let mary = service.user("Mary", true);
    let (id, tag) = service.asset("preparing");
    let killed = wait(&service, &tag, &[]);
    kill(killed.child);
    let mut waiting = wait(&service, &tag, &[]);
    service.stop();
    stderr_until(&mut waiting.child, "waiting for it. The link stays valid.");
    service.start_again();
    service.sign(&killed.link, json!({"handover": ["Device"]}));
    let done = waiting.end().ok();
    assert!(done.stderr.contains("The service answers again."), "{}", done.stderr);
    assert!(done.stdout.contains("/receipt?format=html"), "{}", done.stdout);
    let asset = &service.get(&format!("/assets/{id}"))["data"];
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &json!(mary)));
    assert_eq!(service.total("/processes/instances"), 1);
}

#[test]
fn a_wait_ends_with_the_time_or_the_link() {
    let service = Service::start();
    service.user("Mary", true);
    let (_, tag) = service.asset("preparing");
    let interrupted = wait(&service, &tag, &[]);
    interrupt(&interrupted.child);
    let interrupted = interrupted.end();
    assert_eq!(interrupted.code, 130, "{}", interrupted.stderr);
    assert!(interrupted.stderr.ends_with("Interrupted. To continue, repeat the command; a link stays valid.\n"));
    let late = wait(&service, &tag, &["--timeout", "1"]);
    let revoked = wait(&service, &tag, &[]);
    let instance = service.get("/processes/instances")["data"][0]["id"].as_str().unwrap().to_owned();
    let links = service.get(&format!("/processes/instances/{instance}/links"));
    let newest = links["data"][0]["id"].as_str().unwrap();
    service.send("DELETE", &format!("/processes/instances/{instance}/links/{newest}"), &json!({}));
    let (late, revoked) = (late.end(), revoked.end());
    late.tells(1, "not signed within 1 s; the link stays valid");
    revoked.tells(1, "not signed: the link is revoked");
}
