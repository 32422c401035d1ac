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

#[test]
fn killed_at_any_moment_and_resumed_every_row_is_there_once() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(6_000));
    for (kills, rows) in [1, 900, 1_700, 2_600, 3_300, 4_800].into_iter().enumerate() {
        let mut child = start(&server.url, &path, if kills == 0 { &[] } else { &["--resume"] });
        wait_for(|| server.seen().rows.len() >= rows);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(server.seen().rows.len() < 6_000);
    let without = import(&server.url, &path, &[]);
    assert_eq!((without.code, without.stderr.contains("--resume")), (2, true));
    let run = import(&server.url, &path, &["--resume"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!((&run.json()["created"], &run.json()["rows"]), (&json!(6_000), &json!(6_000)));
    assert_eq!(serials(&server), (6_000, 6_000));
    assert_eq!(folder.names(), ["laptops.csv"]);
    let again = import(&server.url, &path, &["--resume"]);
    assert_eq!((again.code, again.stderr.contains("nothing to resume")), (2, true));
}

#[test]
fn refused_rows_of_every_attempt_are_in_the_file() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(3_000));
    let mut options = GERMAN_OPTIONS.to_vec();
    let mut child = start(&server.url, &path, &options);
    wait_for(|| server.seen().rows.len() > 1_500);
    child.kill().unwrap();
    child.wait().unwrap();
    options.push("--resume");
    let summary = import(&server.url, &path, &options).json();
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
    let child = start(&server.url, &path, &[]);
    wait_for(|| server.seen().rows.len() > 500);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("repeat the command with --resume"), "{}", run.stderr);
    let settled = server.seen().rows.len();
    assert!(run.stderr.contains(&format!("{settled} rows are settled")), "{settled}: {}", run.stderr);
    assert_eq!(import(&server.url, &path, &["--resume"]).code, 0);
    assert_eq!(serials(&server), (8_000, 8_000));
}

#[test]
fn other_files_and_options_are_not_resumed() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(4_000));
    let mut child = start(&server.url, &path, &[]);
    wait_for(|| server.seen().rows.len() > 300);
    child.kill().unwrap();
    child.wait().unwrap();
    let set = import(&server.url, &path, &["--resume", "--set", "notes=x"]);
    assert!(set.stderr.contains("resume with the same options as before: --set was \"\", is \"notes=x\"\n"), "{}", set.stderr);
    let differing = import(&server.url, &path, &["--resume", "--match", "serial_number"]);
    assert_eq!((differing.code, differing.stderr.contains("--match was \"none\"")), (2, true), "{}", differing.stderr);
    let other = slow(0);
    assert_eq!(import(&other.url, &path, &["--resume"]).code, 2);
    std::fs::write(&path, plain_laptops(4_001)).unwrap();
    let changed = import(&server.url, &path, &["--resume"]);
    assert_eq!((changed.code, changed.stderr.contains("has changed")), (2, true));
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
fn a_service_that_keeps_up_gets_several_requests_at_once_and_a_busy_one_fewer() {
    let (fast, folder) = (Server::with(Options { crowd: 8, ..Options::default() }), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(5_000));
    assert_eq!(import(&fast.url, &path, &[]).code, 0);
    assert!(fast.seen().most_at_once >= 8, "{}", fast.seen().most_at_once);
    let mischief = Box::new(|request: usize| (request % 2 == 1).then_some(Misbehaviour::Status(503, None)));
    let busy = Server::with(Options { mischief, delay: Duration::from_millis(5), ..Options::default() });
    let path = folder.file("more.csv", plain_laptops(2_000));
    assert_eq!(import(&busy.url, &path, &[]).code, 0);
    assert!(busy.seen().most_at_once < 6, "{}", busy.seen().most_at_once);
}

#[test]
fn a_service_that_stays_away_is_given_up_and_the_import_resumed() {
    let mischief = Box::new(|request: usize| (2..40).contains(&request).then_some(Misbehaviour::Status(503, None)));
    let server = Server::with(Options { mischief, ..Options::default() });
    let folder = Folder::new();
    let path = folder.file("laptops.csv", plain_laptops(2_000));
    let run = import(&server.url, &path, &["--give-up-after", "1"]);
    assert_eq!((run.code, run.stderr.contains("--resume")), (1, true), "{}", run.stderr);
    server.seen().requests = 100;
    assert_eq!(import(&server.url, &path, &["--resume"]).code, 0);
    assert_eq!(serials(&server), (2_000, 2_000));
    let nobody = import("http://127.0.0.1:9/v1", &path, &[]);
    assert_eq!((nobody.code, nobody.stderr.contains("can't reach http://127.0.0.1:9/v1: ")), (1, true));
    assert_eq!(folder.names(), ["laptops.csv"], "nothing was sent, so there is nothing to resume");
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
