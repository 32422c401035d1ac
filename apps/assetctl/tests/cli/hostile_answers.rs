//! Answers that ask for too much: to wait for longer than anybody would, or to read without an end.

use crate::mcp::odd_answers;
use crate::support::endless::Endless;
use crate::support::inventory_files::plain_laptops;
use crate::support::scripted::{Answer, Request, Scripted};
use crate::support::server::{Misbehaviour, Options, Server};
use crate::support::{Folder, Run, command, import};
use serde_json::json;
use std::process::Stdio;
use std::time::{Duration, Instant};

const USER: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

/// Runs a command that must end by itself.
fn run(url: &str, arguments: &[&str]) -> Run {
    let mut command = command(url, arguments);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Has no effect on one that has ended.
    child.kill().unwrap();
    Run::of(child.wait_with_output().unwrap())
}

/// One for each way to wait.
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
fn an_import_that_is_given_up_says_how_it_goes_on() {
    let mischief = Box::new(|request: usize| (request == 3).then_some(Misbehaviour::Status(429, Some(u64::MAX))));
    let (server, folder) = (Server::with(Options { mischief, ..Options::default() }), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(3_000));
    let given_up = run(&server.url, &["import", path.to_str().unwrap()]);
    assert_eq!(given_up.code, 1, "{}", given_up.stderr);
    assert!(given_up.stderr.contains("this command gives up after "), "{}", given_up.stderr);
    let told = " rows. When that is mended, run the same command again.";
    assert!(given_up.stderr.contains("\nStopped after ") && given_up.stderr.contains(told), "{}", given_up.stderr);
    let resumed = import(&server.url, &path, &[]);
    let summary = resumed.json();
    assert_eq!((resumed.code, &summary["rows"], &summary["refused"]), (0, &json!(3_000), &json!(0)), "{}", resumed.stderr);
    assert!(summary["imported_already"].as_u64().unwrap() >= 200, "{summary}");
    assert_eq!(server.seen().rows.len(), 3_000);
}

#[test]
fn listening_goes_on_however_long_the_service_asks_to_wait() {
    let answer = |request: &Request, _: usize| match request.parameter("after") {
        "now" => Answer::new("application/json", json!({"data": [], "meta": {"after": "e0", "has_more": true}}).to_string()),
        _ => Answer::busy("18446744073709551615"),
    };
    let service = Scripted::start(answer);
    let run = run(&service.url, &["webhooks", "listen", "--for", "1"]);
    assert!(run.code == 0 && run.stderr.contains("Not now.; waiting for it. No event is lost."), "{}", run.stderr);
}

#[test]
fn no_command_panics_whatever_the_service_answers() {
    let folder = Folder::new();
    let path = folder.path("labels.html");
    let scans = folder.file("scans.txt", "AST-1\nX\n");
    for (odd, is_whole) in odd_answers().into_iter().flat_map(|odd| [(odd.clone(), false), (odd, true)]) {
        let shown = odd.clone();
        let service = Scripted::start(move |_, _| match is_whole {
            true => Answer::new("application/json", odd.to_string()),
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
