//! Imports messy files, and continues interrupted imports: no row is lost or imported twice.

use crate::support::inventory_files::{german_laptops, german_options, plain_laptops};
use crate::support::server::{Misbehaviour, Options, Server};
use crate::support::service::Service;
use crate::support::{Folder, KEY, command, end, import, interrupt, kill, run, spawn, wait_until};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

#[test]
fn bytes_that_are_not_text_cost_only_their_row() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("a.csv", b"name,notes\nK\xC3\xB6ln,\xC3\xA4\nB,bad \xFF byte\nC,\xC3\xBC\n");
    let summary = import(&server.url, &path, &[]).json();
    assert_eq!((&summary["created"], &summary["refused_rows"][0]["row"]), (&json!(2), &json!(2)));
    assert_eq!(summary["refused_rows"][0]["errors"][0]["column"], "notes");
}

#[test]
fn unknown_columns_are_told_before_anything_is_sent() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("a.csv", "Serial Number,Asset Tag,Color\nSN1,Y,Z\n");
    let run = import(&server.url, &path, &[]);
    assert_eq!((run.code, server.seen().requests), (2, 0));
    assert!(
        run.stderr.contains("\"Serial Number\": unknown column; could be serial_number") && run.stderr.contains("\"Color\""),
        "{}",
        run.stderr
    );
    assert_eq!(run.json()["exit_code"], 2);
}

#[test]
fn a_suggested_command_does_not_run_until_every_column_is_decided() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("a.csv", "Serial Number,Asset Tag,Item name,Color\nSN1,Y,A,red\n");
    let suggested = service.run(&["import", path.to_str().unwrap(), "--suggest"]).ok();
    let options = suggested.stdout.split_once(" \\\n  ").unwrap().1;
    let expected = [
        "--map \"Serial Number=serial_number\"",
        "--map \"Asset Tag=asset_tag\"",
        "--map \"Item name=name\"",
        "--map \"Color=?\"",
        "--match serial_number\n",
    ];
    assert_eq!(options, expected.join(" \\\n  "));
    assert!(suggested.stdout.starts_with("assetctl import /"), "{}", suggested.stdout);
    assert!(suggested.stderr.contains("Color: nothing shows what it is."), "{}", suggested.stderr);
    let pasted = service.paste(&folder.path(""), &suggested.stdout);
    pasted.tells(2, "needs a field instead of ?");
    let decided =
        service.paste(&folder.path(""), &format!("{} --json", suggested.stdout.trim_end().replace("Color=?", "Color=notes")));
    assert_eq!(decided.counts(), [1, 0, 0, 0], "{}", decided.stderr);
}

#[test]
fn files_without_a_table_are_explained() {
    let (server, folder) = (Server::start(), Folder::new());
    for (content, told) in [
        ("Laptop 1,Lenovo,SN1\nLaptop 2,Dell,SN2\n", "insert a row with the columns' names before it"),
        ("PK\u{3}\u{4}[Content_Types].xml", "Save it as \"CSV UTF-8\""),
        ("\n\n", "is empty"),
    ] {
        import(&server.url, &folder.file("a.csv", content), &[]).tells(2, told);
    }
    import(&server.url, &folder.path(""), &[]).tells(2, "is a folder");
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn users_are_imported_from_ndjson() {
    let (server, folder) = (Server::start(), Folder::new());
    let lines =
        "{\"email\": \"a@example.com\", \"is_active\": true}\n{\"email\": \"b@example.com\"\n{\"email\": \"c@example.com\"}";
    let path = folder.file("users.ndjson", lines);
    let run = import(&server.url, &path, &["--users", "--match", "email"]);
    assert_eq!((run.code, &run.json()["created"]), (3, &json!(2)));
    let refused = std::fs::read_to_string(folder.path("users.ndjson.refused.ndjson")).unwrap();
    assert!(refused.starts_with("{\"reasons\":\"row 2, line 2: is not a JSON object"), "{refused}");
    assert!(refused.ends_with("\"unreadable\":\"{\\\"email\\\": \\\"b@example.com\\\"\"}\n"), "{refused}");
    let unknown = folder.file("b.ndjson", "{\"name\": \"A\"}\n{\"colour\": \"red\"}\n");
    import(&server.url, &unknown, &[]).tells(2, "\"colour\": unknown column");
}

#[test]
fn a_refused_request_leaves_no_file() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("a.csv", "name,custom_fields.unknown\nA,B\n");
    let run = import(&server.url, &path, &[]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("custom_fields.unknown: unknown column"), "{}", run.stderr);
    assert_eq!(folder.names(), ["a.csv"]);
}

#[test]
fn keys_come_from_files_that_nobody_else_can_read() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("a.csv", "name\nA\n");
    let key = folder.file("key", format!("{}\n", KEY));
    let mut arguments = vec!["import", path.to_str().unwrap(), "--api-key-file", key.to_str().unwrap()];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        run(&server.url, &arguments).tells(2, "chmod 600");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(run(&server.url, &arguments).code, 0);
    arguments.extend(["--api-key", "wrong"]);
    assert_eq!(run(&server.url, &arguments).code, 2);
    Service::start().run(&["import", path.to_str().unwrap(), "--api-key", "wrong"]).tells(1, "401 UNAUTHORIZED");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_grows_by_at_most_128_bytes_per_row() {
    const MAX_BYTES_PER_ROW: u64 = 128;
    const FEW: u64 = 10_000;
    const MANY: u64 = 60_000;
    let (server, folder) = (Server::start(), Folder::new());
    let peak = |rows: u64| {
        let path = folder.file("laptops.csv", plain_laptops(rows));
        let mut command = command(&server.url, &["import", path.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
            peak = peak.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    };
    let (small, large) = (peak(FEW), peak(MANY));
    let limit = small + (MANY - FEW) * MAX_BYTES_PER_ROW / 1024;
    assert!(large < limit, "{small} kB for {FEW} rows, {large} kB for {MANY}");
}

#[test]
fn people_are_told_how_their_file_was_read_and_what_to_do() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(500));
    let mut arguments = vec!["import", path.to_str().unwrap(), "--match", "serial_number"];
    arguments.extend(german_options());
    let run = run(&server.url, &arguments);
    assert_eq!(run.code, 3);
    let refused = std::fs::read(folder.path("laptops.csv.refused.csv")).unwrap();
    assert_eq!(crate::support::run(&server.url, &arguments).code, 3);
    let earlier = std::fs::read(folder.path("laptops.csv.refused.csv.old")).unwrap();
    assert_eq!(earlier, refused, "rows that may have been mended are kept");
    assert!(run.stdout.starts_with("Imported: 500 rows of assets in "), "{}", run.stdout);
    assert!(run.stdout.ends_with(": 486 created, 0 updated, 0 unchanged, 14 refused, 0 skipped\n"), "{}", run.stdout);
    for line in [
        "laptops.csv: windows-1252 (detected), delimiter semicolon, 9 columns",
        "row 77, line ",
        "laptops.csv.refused.csv --map Gerät=name",
        "--date-format DD.MM.YYYY --decimal comma --match serial_number",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
}

fn start(url: &str, path: &Path, options: &[&str]) -> Child {
    let mut command = command(url, &["import", path.to_str().unwrap(), "--json"]);
    command.args(options);
    spawn(command)
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
fn refused_rows_of_every_attempt_are_in_the_file() {
    let (server, folder) = (slow(20), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(3_000));
    let child = start(&server.url, &path, &german_options());
    wait_until(|| server.seen().rows.len() > 1_500);
    kill(child);
    assert_eq!(folder.names(), ["laptops.csv"]);
    let summary = import(&server.url, &path, &german_options()).json();
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
        wait_until(|| server.seen().rows.len() > before + 500);
        interrupt(&child);
        let run = end(child);
        assert_eq!(run.code, 130, "{}", run.stderr);
        let told = format!("Interrupted after {} rows. To import the others, run the ", server.seen().rows.len() - before);
        assert!(run.stderr.contains(&told), "{told}: {}", run.stderr);
        run
    };
    let run = interrupted(&[]);
    assert!(run.stderr.contains(" run the same command again.\n"), "{}", run.stderr);
    assert_eq!(import(&server.url, &path, &[]).code, 0);
    assert_eq!(serials(&server), (8_000, 8_000));
    // Each `--again` starts over, unless it has the name of an interrupted import.
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
    wait_until(|| server.seen().rows.len() > 300);
    kill(child);
    let told = "sent rows 1 to 200 with different content or options.";
    import(&server.url, &path, &["--set", "notes=x"]).tells(2, told);
    let original = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, original.replace("Laptop 150,", "Laptop CL,")).unwrap();
    import(&server.url, &path, &[]).tells(2, told);
    assert!(server.seen().rows.iter().all(|row| row["name"] != "Laptop CL" && !row.contains_key("notes")));
    // An import of a different file, or into a different service, starts from the beginning.
    assert_eq!(import(&slow(0).url, &path, &[]).counts(), [4_000, 0, 0, 0]);
    // After adding a row, the other rows are recognized.
    std::fs::write(&path, plain_laptops(4_001)).unwrap();
    let longer = import(&server.url, &path, &[]);
    assert_eq!((longer.code, serials(&server)), (0, (4_001, 4_001)), "{}", longer.stderr);
}

#[test]
fn with_a_column_to_match_only_changed_requests_are_sent_again() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(600));
    let options = ["--match", "serial_number"];
    assert_eq!(import(&server.url, &path, &options).counts(), [600, 0, 0, 0]);
    let original = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, original.replace("Laptop 250,", "Laptop CCL,")).unwrap();
    let changed = import(&server.url, &path, &options);
    assert_eq!((changed.code, changed.counts()), (0, [0, 1, 199, 0]), "{}", changed.stderr);
    assert_eq!(changed.json()["imported_already"], 400);
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
    let run = import(&server.url, &path, &[]).ok();
    assert_eq!(run.counts(), [3_000, 0, 0, 0]);
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
fn a_service_that_stays_away_or_asks_to_wait_too_long_is_given_up_and_the_same_command_goes_on() {
    for (faults, fault, options) in [
        (2..40, Misbehaviour::Status(503, None), &["--give-up-after", "1"][..]),
        (3..4, Misbehaviour::Status(429, Some(u64::MAX)), &[]),
    ] {
        let mischief = Box::new(move |request: usize| faults.contains(&request).then_some(fault));
        let (server, folder) = (Server::with(Options { mischief, ..Options::default() }), Folder::new());
        let path = folder.file("laptops.csv", plain_laptops(3_000));
        let run = import(&server.url, &path, options);
        run.tells(1, " rows. After fixing that, run the same command again.");
        assert!(run.stderr.contains("\nStopped after "), "{}", run.stderr);
        assert_eq!(run.stderr.contains("this command gives up after "), options.is_empty(), "{}", run.stderr);
        server.seen().requests = 100;
        let summary = import(&server.url, &path, &[]).ok().json();
        assert_eq!((&summary["rows"], &summary["refused"]), (&json!(3_000), &json!(0)));
        assert!(summary["imported_already"].as_u64().unwrap() >= 200, "{summary}");
        assert_eq!(serials(&server), (3_000, 3_000));
        assert_eq!(folder.names(), ["laptops.csv"]);
    }
    let folder = Folder::new();
    import("http://127.0.0.1:9/v1", &folder.file("a.csv", "name\nA\n"), &[]).tells(1, "can't reach http://127.0.0.1:9/v1: ");
    assert_eq!(folder.names(), ["a.csv"]);
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
