//! Imports files as people have them, with the real binary.

use crate::support::inventory_files::{
    GERMAN_OPTIONS, INTUNE_OPTIONS, Mess, cut_off, german_laptops, intune_utf16, is_doubled, mess, plain_laptops,
};
use crate::support::server::Server;
use crate::support::{Folder, import, run};
use serde_json::json;

#[test]
fn a_german_spreadsheet() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(2_000));
    let mut options = GERMAN_OPTIONS.to_vec();
    options.extend(["--match", "serial_number"]);
    let run = import(&server.url, &path, &options);
    let count = |kinds: &[Mess]| (1..=2_000).filter(|row| kinds.contains(&mess(*row))).count();
    let local = count(&[Mess::BadDate, Mess::BadPrice, Mess::TooFewCells]);
    let doubled = (1..=2_000).filter(|row| is_doubled(*row)).count();
    let refused = local + count(&[Mess::UnknownManufacturer]) + doubled;
    assert_eq!(run.code, 3, "{}", run.stderr);
    let summary = run.json();
    assert_eq!(
        json!([summary["rows"], summary["refused"], summary["updated"], summary["created"]]),
        json!([2_000, refused, 0, 2_000 - refused])
    );
    assert_eq!((&summary["encoding"], &summary["delimiter"]), (&json!("windows-1252"), &json!("semicolon")));
    assert_eq!(folder.names(), ["laptops.csv", "laptops.csv.refused.csv"]);

    let seen = server.seen();
    assert_eq!(seen.rows.len(), 2_000 - refused);
    assert!(seen.rows.iter().all(|row| row["purchase_date"].len() == 10 && row["purchase_date"].starts_with("20")));
    assert!(seen.rows.iter().all(|row| row["purchase_price"].parse::<f64>().is_ok_and(|price| price > 100.0)));
    assert!(seen.rows.iter().any(|row| row["notes"] == "Büro Köln – 2. OG"));
    assert!(seen.rows.iter().any(|row| row["notes"].contains("gesprungen;\r\nTausch")));
    assert!(seen.rows.iter().all(|row| row["serial_number"] != "SN000049"));

    let refused_row = |number: u64| summary["refused_rows"].as_array().unwrap().iter().find(|row| row["row"] == number).unwrap();
    let double = json!([{"column": "Seriennummer", "detail": "has the same value in row 50"}]);
    assert_eq!((&refused_row(49)["errors"], &refused_row(77)["errors"][0]["column"]), (&double, &json!("Hersteller")));
    assert_eq!(
        refused_row(333)["errors"],
        json!([{"column": "Kaufdatum", "detail": "\"31.02.2024\" is not a date of the form DD.MM.YYYY"}])
    );
}

#[test]
fn refused_rows_are_mended_and_sent_again() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(1_000));
    let first = import(&server.url, &path, &GERMAN_OPTIONS).json();
    let before = server.seen().rows.len();
    let refused = folder.path("laptops.csv.refused.csv");
    let text = std::fs::read_to_string(&refused).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("\u{feff}reasons;{}", crate::support::inventory_files::GERMAN_HEADER));
    assert_eq!(lines.len() - 1, 7, "{text}");
    assert!(text.contains(": Kaufpreis: \"\"auf Anfrage\"\" is not a price"), "{text}");

    let unmended = import(&server.url, &refused, &GERMAN_OPTIONS);
    assert_eq!((unmended.code, &unmended.json()["refused"]), (3, &first["refused"]));
    assert_eq!(unmended.json()["encoding"], "UTF-8");

    let mended: String = text
        .replace("Unbekannt & Söhne", "Lenovo")
        .replace("31.02.2024", "28.02.2024")
        .replace("auf Anfrage", "1.000,00 €")
        .split_inclusive('\n')
        .map(|line| if line.contains("has 5 cells") { line.replace('\n', ";1,00;;;\n") } else { line.to_owned() })
        .collect();
    std::fs::write(&refused, mended).unwrap();
    // It was sent before, but no row of it was imported.
    let second = import(&server.url, &refused, &GERMAN_OPTIONS);
    assert_eq!(second.code, 0, "{}{}", second.stdout, second.stderr);
    assert_eq!(second.json()["created"], first["refused"]);
    assert_eq!(server.seen().rows.len(), before + 7);
    // Now rows could be created twice.
    std::fs::write(&refused, std::fs::read_to_string(&refused).unwrap().replace("28.02.2024", "27.02.2024")).unwrap();
    let doubtful = import(&server.url, &refused, &GERMAN_OPTIONS);
    assert!(doubtful.code == 2 && doubtful.stderr.contains("add --again."), "{}", doubtful.stderr);
    let again = import(&server.url, &refused, &[&GERMAN_OPTIONS[..], &["--again"]].concat());
    assert_eq!(again.json()["created"], first["refused"]);
}

#[test]
fn utf16_with_tabs() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("DevicesWithInventory.csv", intune_utf16(450));
    let run = import(&server.url, &path, &INTUNE_OPTIONS);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json()["encoding"], "UTF-16LE");
    let seen = server.seen();
    assert_eq!(seen.rows.len(), 450);
    assert_eq!(seen.rows[0]["custom_fields.os"], "Windows, “11”");
    assert!(seen.rows.iter().any(|row| row["model"] == "MacBook Pro 14\""));
}

#[test]
fn a_file_that_is_cut_off_loses_only_its_last_row() {
    for (in_quotes, reason) in [(false, "middle of this row"), (true, "middle of a quoted cell")] {
        let (server, folder) = (Server::start(), Folder::new());
        let path = folder.file("laptops.csv", cut_off(250, in_quotes));
        let run = import(&server.url, &path, &[]);
        assert_eq!(run.code, 3);
        let summary = run.json();
        assert_eq!((&summary["created"], &summary["refused"]), (&json!(250), &json!(1)));
        assert_eq!((&summary["refused_rows"][0]["row"], &summary["refused_rows"][0]["line"]), (&json!(251), &json!(252)));
        assert!(summary["refused_rows"][0]["errors"][0]["detail"].as_str().unwrap().contains(reason), "{summary}");
        let again = import(&server.url, &folder.path("laptops.csv.refused.csv"), &[]);
        assert_eq!(again.code, 3, "a row that was cut off isn't taken for a whole one");
    }
}

#[test]
fn bytes_that_are_no_text_cost_only_their_row() {
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
        run.stderr.contains("\"Serial Number\"; could be serial_number") && run.stderr.contains("\"Color\""),
        "{}",
        run.stderr
    );
    assert_eq!(run.json()["exit_code"], 2);

    let suggested = crate::support::run(&server.url, &["import", path.to_str().unwrap(), "--suggest"]);
    assert_eq!(suggested.code, 0);
    let options = suggested.stdout.split_once(" \\\n  ").unwrap().1;
    let expected =
        ["--map \"Serial Number=serial_number\"", "--map \"Asset Tag=asset_tag\"", "--map Color=", "--match serial_number\n"];
    assert_eq!(options, expected.join(" \\\n  "));
    assert!(suggested.stdout.starts_with("assetctl import /") && suggested.stderr.contains("No guess for Color"));
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn files_that_are_no_table_are_told_for_what_they_are() {
    let (server, folder) = (Server::start(), Folder::new());
    for (content, told) in [
        ("Laptop 1,Lenovo,SN1\nLaptop 2,Dell,SN2\n", "insert a row with the columns' names before it"),
        ("PK\u{3}\u{4}[Content_Types].xml", "Save it as \"CSV UTF-8\""),
        ("\n\n", "is empty"),
    ] {
        let run = import(&server.url, &folder.file("a.csv", content), &[]);
        assert_eq!((run.code, run.stderr.contains(told)), (2, true), "{}", run.stderr);
    }
    let run = import(&server.url, &folder.path(""), &[]);
    assert_eq!((run.code, run.stderr.contains("is a folder")), (2, true), "{}", run.stderr);
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn ndjson_and_users() {
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
    let run = import(&server.url, &unknown, &[]);
    assert_eq!((run.code, run.stderr.contains("unknown column \"colour\"")), (2, true));
}

#[test]
fn a_dry_run_writes_nothing_and_tells_everything() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(500));
    let mut options = GERMAN_OPTIONS.to_vec();
    options.push("--dry-run");
    let run = import(&server.url, &path, &options);
    let summary = run.json();
    assert_eq!((run.code, &summary["dry_run"], &summary["refused"]), (3, &json!(true), &json!(4)));
    let seen = server.seen();
    assert!(seen.rows.is_empty() && seen.queries.iter().all(|query| query["dry_run"] == "true"));
    assert_eq!(folder.names(), ["laptops.csv", "laptops.csv.refused.csv"]);
}

#[test]
fn abort_writes_all_rows_or_none() {
    let (server, folder) = (Server::start(), Folder::new());
    let mut bytes = plain_laptops(700);
    let good = folder.file("good.csv", &bytes);
    bytes.extend(b"Bad,Lenovo,T14,PL9,2024-03-09,cheap\n");
    let bad = folder.file("bad.csv", &bytes);
    let refused = import(&server.url, &bad, &["--on-error", "abort"]);
    assert_eq!((refused.code, &refused.json()["written"]), (3, &json!(false)));
    assert!(server.seen().rows.is_empty());
    assert_eq!(folder.names(), ["bad.csv", "bad.csv.refused.csv", "good.csv"]);
    let written = import(&server.url, &good, &["--on-error", "abort"]);
    assert_eq!((written.code, &written.json()["created"]), (0, &json!(700)), "{}", written.stderr);
    assert_eq!(server.seen().rows.len(), 700);
}

#[test]
fn what_the_service_refuses_as_a_whole_leaves_nothing_behind() {
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
    let key = folder.file("key", format!("{}\n", crate::support::KEY));
    let mut arguments = vec!["import", path.to_str().unwrap(), "--api-key-file", key.to_str().unwrap()];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = run(&server.url, &arguments);
        assert_eq!((open.code, open.stderr.contains("chmod 600")), (2, true));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(run(&server.url, &arguments).code, 0);
    arguments.extend(["--api-key", "wrong"]);
    assert_eq!(run(&server.url, &arguments).code, 2);
    let wrong = run(&server.url, &["import", path.to_str().unwrap(), "--api-key", "wrong"]);
    assert_eq!((wrong.code, wrong.stderr.contains("401 UNAUTHORIZED")), (1, true));
    let help = crate::support::Run::of(crate::support::command(&server.url, &["import", "--help"]).output().unwrap());
    assert!(help.stdout.contains("Exit codes:") || run(&server.url, &["--help"]).stdout.contains("Exit codes:"));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_depend_on_the_size_of_the_file() {
    let (server, folder) = (Server::start(), Folder::new());
    let peak = |rows: u64| {
        let path = folder.file("laptops.csv", plain_laptops(rows));
        let mut command = crate::support::command(&server.url, &["import", path.to_str().unwrap()]);
        let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
            peak = peak.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        peak
    };
    let (small, large) = (peak(10_000), peak(60_000));
    assert!(large < small + 4_096, "{small} kB for 10,000 rows, {large} kB for 60,000");
}

#[test]
fn people_are_told_what_became_of_their_file_and_what_to_do() {
    let (server, folder) = (Server::start(), Folder::new());
    let path = folder.file("laptops.csv", german_laptops(500));
    let mut arguments = vec!["import", path.to_str().unwrap(), "--match", "serial_number"];
    arguments.extend(GERMAN_OPTIONS);
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
        "--match serial_number --date-format DD.MM.YYYY --decimal-comma",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
}
