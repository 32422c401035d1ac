//! Interrupted imports: nothing is doubled or lost.

use crate::support::inventory_files::{GERMAN_OPTIONS, german_laptops, plain_laptops};
use crate::support::server::{Misbehaviour, Options, Server};
use crate::support::{Folder, Run, command, import};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(url: &str, path: &Path, options: &[&str]) -> Child {
    let mut command = command(url, &["import", path.to_str().unwrap(), "--json"]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(30), "it took too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn slow(milliseconds: u64) -> Server {
    Server::with(Options { delay: Duration::from_millis(milliseconds), ..Options::default() })
}

fn serials(server: &Server) -> (usize, usize) {
    let seen = server.seen();
    let distinct: HashSet<&String> = seen.rows.iter().map(|row| &row["serial_number"]).collect();
    (seen.rows.len(), distinct.len())
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn counts(run: &Run) -> [u64; 3] {
    let summary = run.json();
    ["imported_already", "created", "refused"].map(|name| summary[name].as_u64().unwrap())
}

#[test]
fn killed_at_any_moment_and_run_again_every_row_is_there_once() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(6_000));
    for rows in [1, 900, 1_700, 2_600, 3_300, 4_800] {
        let child = start(&server.url, &path, &[]);
        wait_for(|| server.seen().rows.len() >= rows);
        kill(child);
    }
    let before = server.seen().rows.len() as u64;
    let run = import(&server.url, &path, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let [already, created, refused] = counts(&run);
    assert!(already >= before && already + created == 6_000 && refused == 0, "{already} {created} {refused}");
    assert_eq!((serials(&server), folder.names()), ((6_000, 6_000), vec!["laptops.csv".to_owned()]));
    let repeated = import(&server.url, &path, &[]);
    assert_eq!((repeated.code, counts(&repeated)), (0, [6_000, 0, 0]));
    assert_eq!(serials(&server), (6_000, 6_000));
    let again = import(&server.url, &path, &["--again"]);
    assert_eq!((again.code, counts(&again)), (0, [0, 6_000, 0]));
    assert_eq!(serials(&server), (12_000, 6_000));
}

#[test]
fn refused_rows_of_every_attempt_are_in_the_file() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(3_000));
    let child = start(&server.url, &path, &GERMAN_OPTIONS);
    wait_for(|| server.seen().rows.len() > 1_500);
    kill(child);
    assert_eq!(folder.names(), ["laptops.csv"]);
    let summary = import(&server.url, &path, &GERMAN_OPTIONS).json();
    assert_eq!((&summary["rows"], &summary["refused"]), (&json!(3_000), &json!(21)));
    let refused = std::fs::read_to_string(folder.path("laptops.csv.refused.csv")).unwrap();
    let rows: Vec<u64> = refused
        .lines()
        .filter_map(|line| line.trim_start_matches('"').strip_prefix("row ")?.split(',').next()?.parse().ok())
        .collect();
    assert_eq!(rows.len(), 21);
    assert!(rows.is_sorted());
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_in_order_and_says_how_to_go_on() {
    let (server, folder) = (slow(50), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(8_000));
    let interrupted = |options: &[&str]| {
        let before = server.seen().rows.len();
        let child = start(&server.url, &path, options);
        wait_for(|| server.seen().rows.len() > before + 500);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let run = Run::of(child.wait_with_output().unwrap());
        assert_eq!(run.code, 130, "{}", run.stderr);
        let told = format!("Interrupted after {} rows. To import the others, run the ", server.seen().rows.len() - before);
        assert!(run.stderr.contains(&told), "{told}: {}", run.stderr);
        run
    };
    let run = interrupted(&[]);
    assert!(run.stderr.contains(" run the same command again.\n"), "{}", run.stderr);
    assert_eq!(import(&server.url, &path, &[]).code, 0);
    assert_eq!(serials(&server), (8_000, 8_000));
    // Each `--again` imports anew, unless it has the name of an interrupted one.
    let run = interrupted(&["--again"]);
    let again = run.stderr.split_once(" run the command again with ").unwrap().1.split_once(".\n").unwrap().0;
    assert_eq!(import(&server.url, &path, &[again]).code, 0, "{again}");
    assert_eq!(serials(&server), (16_000, 8_000));
}

#[test]
fn without_a_column_to_match_a_file_that_changed_is_not_imported_twice() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(4_000));
    let child = start(&server.url, &path, &[]);
    wait_for(|| server.seen().rows.len() > 300);
    kill(child);
    let told = "sent rows 1 to 200 with another content or other options.";
    let other_options = import(&server.url, &path, &["--set", "notes=x"]);
    assert!(other_options.code == 2 && other_options.stderr.contains(told), "{}", other_options.stderr);
    let original = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, original.replace("Laptop 150,", "Laptop CL,")).unwrap();
    let corrected = import(&server.url, &path, &[]);
    assert!(corrected.code == 2 && corrected.stderr.contains(told), "{}", corrected.stderr);
    assert!(server.seen().rows.iter().all(|row| row["name"] != "Laptop CL" && !row.contains_key("notes")));
    // Another service, and another file, know nothing of it.
    assert_eq!(counts(&import(&slow(0).url, &path, &[])), [0, 4_000, 0]);
    // With a row that was added, all others are the same.
    std::fs::write(&path, plain_laptops(4_001)).unwrap();
    let longer = import(&server.url, &path, &[]);
    assert_eq!((longer.code, serials(&server)), (0, (4_001, 4_001)), "{}", longer.stderr);
}

#[test]
fn with_a_column_to_match_only_what_changed_is_sent_anew() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(600));
    let options = ["--match", "serial_number"];
    assert_eq!(counts(&import(&server.url, &path, &options)), [0, 600, 0]);
    let original = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, original.replace("Laptop 250,", "Laptop CCL,")).unwrap();
    let changed = import(&server.url, &path, &options);
    assert_eq!((changed.code, counts(&changed)), (0, [400, 0, 0]), "{}", changed.stderr);
    assert_eq!((&changed.json()["updated"], &changed.json()["unchanged"]), (&json!(1), &json!(199)));
    assert_eq!(serials(&server), (600, 600));
}

#[test]
fn a_busy_service_gets_every_row_once() {
    let mischief = Box::new(|request: usize| match request {
        3 => Some(Misbehaviour::Status(429, Some(1))),
        5 | 6 => Some(Misbehaviour::Status(503, Some(0))),
        8 => Some(Misbehaviour::Status(500, None)),
        9 | 12 => Some(Misbehaviour::LoseResponse),
        10 | 11 | 13 => Some(Misbehaviour::RowsUnavailable),
        _ => None,
    });
    let server = Server::with(Options { mischief, delay: Duration::from_millis(5), ..Options::default() });
    let folder = Folder::new();
    let path = folder.file("laptops.csv", plain_laptops(3_000));
    let run = import(&server.url, &path, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!((&run.json()["created"], &run.json()["refused"]), (&json!(3_000), &json!(0)));
    assert!(run.json()["seconds"].as_f64().unwrap() >= 1.0, "Retry-After was not respected");
    assert_eq!(serials(&server), (3_000, 3_000));
}

#[test]
fn four_requests_are_under_way_at_once() {
    let (server, folder) = (Server::with(Options { crowd: 4, ..Options::default() }), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(5_000));
    assert_eq!(import(&server.url, &path, &[]).code, 0);
    assert_eq!(server.seen().most_at_once, 4);
}

#[test]
fn a_service_that_stays_away_is_given_up_and_the_same_command_goes_on() {
    let mischief = Box::new(|request: usize| (2..40).contains(&request).then_some(Misbehaviour::Status(503, None)));
    let server = Server::with(Options { mischief, ..Options::default() });
    let folder = Folder::new();
    let path = folder.file("laptops.csv", plain_laptops(2_000));
    let run = import(&server.url, &path, &["--give-up-after", "1"]);
    assert!(run.code == 1 && run.stderr.contains("When that is mended, run the same command again."), "{}", run.stderr);
    server.seen().requests = 100;
    assert_eq!(import(&server.url, &path, &[]).code, 0);
    assert_eq!(serials(&server), (2_000, 2_000));
    let nobody = import("http://127.0.0.1:9/v1", &path, &[]);
    assert_eq!((nobody.code, nobody.stderr.contains("can't reach http://127.0.0.1:9/v1: ")), (1, true));
    assert_eq!(folder.names(), ["laptops.csv"]);
}

#[test]
fn rows_for_the_same_thing_keep_their_order() {
    let mut text = String::from("display_name,email\n");
    for row in 0..4_000 {
        text.push_str(&format!("{row},user{}@example.com\n", row % 700));
    }
    let (server, folder) = (slow(5), Folder::new());
    let path = folder.file("users.csv", text);
    assert_eq!(import(&server.url, &path, &["--users"]).code, 0);
    let seen = server.seen();
    assert_eq!(seen.rows.len(), 4_000);
    for user in 0..700 {
        let email = format!("user{user}@example.com");
        let rows = seen.rows.iter().filter(|row| row["email"] == email).map(|row| row["display_name"].parse::<u64>().unwrap());
        assert!(rows.is_sorted(), "{email}");
    }
}
