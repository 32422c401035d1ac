//! Imports inventories into the real service, and exports them again.

use crate::support::inventory_files::{
    GERMAN_HEADER, MODELS, Mess, cut_off, german_laptops, german_options_with, intune_options, intune_utf16, is_doubled, mess,
    owners, plain_laptops,
};
use crate::support::service::Service;
use crate::support::{Folder, Run, end, kill, spawn, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

fn rows(short: u64, full: u64) -> u64 {
    if dev_server::test_data::full_tests() { full } else { short }
}

fn import_owners(service: &Service, folder: &Folder) {
    let lines = owners().into_iter().map(|email| format!("{email},Person {},viewer\n", &email[6..9]));
    let text: String = std::iter::once("email,display_name,role\n".to_owned()).chain(lines).collect();
    let run = service.import(&folder.file("users.csv", text), &["--users"]);
    assert_eq!((run.code, &run.json()["created"]), (0, &json!(100)), "{}{}", run.stdout, run.stderr);
    assert_eq!(service.total("/users"), 100);
}

fn create_catalog(service: &Service) {
    let laptop = service.create("/catalog/asset-types", &json!({"name": "Laptop", "code": "LAP", "kind": "physical"}));
    for (manufacturer, name, _) in MODELS {
        let manufacturer = service.create("/catalog/manufacturers", &json!({"name": manufacturer}));
        service.create("/catalog/models", &json!({"name": name, "manufacturer_id": manufacturer, "asset_type_id": laptop}));
    }
}

/// Returns name, model, purchase date, price in cents, owner and notes of each valid laptop, by serial number.
fn german_rows(bytes: &[u8]) -> BTreeMap<String, Value> {
    let text = encoding_rs::WINDOWS_1252.decode(bytes).0;
    let mut reader = csv::ReaderBuilder::new().delimiter(b';').flexible(true).from_reader(text.as_bytes());
    let rows = reader.records().map(Result::unwrap).zip(1..);
    let mut laptops = BTreeMap::<String, Value>::new();
    for (cells, _) in rows.filter(|(_, row)| mess(*row) == Mess::None && !is_doubled(*row)) {
        let cents: u64 = cells[5].chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        let (day, rest) = cells[4].split_once('.').unwrap();
        let (month, year) = rest.split_once('.').unwrap();
        let notes = if cells[8].is_empty() { json!(null) } else { json!(cells[8]) };
        let row = json!([cells[0], cells[2], format!("{year}-{month}-{day}"), cents, cells[7].to_lowercase(), notes]);
        laptops.insert(cells[3].to_owned(), row);
    }
    laptops
}

/// Returns the same fields of exported assets.
fn asset_rows(assets: &[Value]) -> BTreeMap<String, Value> {
    let row = |asset: &Value| {
        let cents = (asset["purchase_price"].as_f64().unwrap() * 100.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a price")]
        let cents = cents as u64;
        json!([asset["name"], asset["model"], asset["purchase_date"], cents, asset["assigned_to_email"], asset["notes"]])
    };
    assets.iter().map(|asset| (asset["serial_number"].as_str().unwrap().to_owned(), row(asset))).collect()
}

/// Checks that importing an export by ID changes nothing.
fn check_round_trip(service: &Service, folder: &Folder, what: &str) {
    let total = service.total(&format!("/{what}"));
    for format in ["csv", "ndjson"] {
        let path = folder.path(&format!("{what}.export.{format}"));
        let run = service.run(&["export", what, "-o", path.to_str().unwrap(), "--json"]);
        assert_eq!((run.code, &run.json()["rows"]), (0, &json!(total)), "{}", run.stderr);
        let mut options = vec!["--match", "id"];
        options.extend((what == "users").then_some("--users"));
        let run = service.import(&path, &options);
        let summary = run.json();
        assert_eq!((run.code, &summary["unchanged"], &summary["rows"]), (0, &json!(total), &json!(total)), "{summary}");
    }
    assert_eq!(service.total(&format!("/{what}")), total);
}

fn check_counts(run: &Run, counts: [u64; 4]) {
    assert_eq!(run.counts(), counts, "{}\n{}", run.stdout, run.stderr);
}

#[test]
fn an_organization_brings_its_spreadsheet_and_takes_it_out_again() {
    let (service, folder) = (Service::start(), Folder::new());
    import_owners(&service, &folder);
    create_catalog(&service);
    let rows = rows(450, 10_000);
    let bytes = german_laptops(rows);
    let path = folder.file("laptops.csv", &bytes);
    let count = |kind| (1..=rows).filter(|row| mess(*row) == kind).count() as u64;
    let doubled = (1..=rows).filter(|row| is_doubled(*row)).count() as u64;
    let refused = rows - count(Mess::None) - count(Mess::DoubledSerial) + doubled;
    let mut options = german_options_with("Hersteller=manufacturer_name,Modell=model_name");
    options.extend(["--match", "serial_number"]);

    let dry = service.import(&path, &[&options[..], &["--dry-run"]].concat());
    check_counts(&dry, [rows - refused, 0, 0, refused]);
    assert_eq!((dry.code, &dry.json()["dry_run"], service.total("/assets")), (3, &json!(true), 0));
    assert_eq!(folder.names(), ["laptops.csv", "laptops.csv.refused.csv", "users.csv"]);
    let run = service.import(&path, &options);
    check_counts(&run, [rows - refused, 0, 0, refused]);
    assert_eq!(run.code, 3);
    let assets = service.assets();
    assert_eq!(assets.len() as u64, rows - refused);
    let (found, expected) = (asset_rows(&assets), german_rows(&bytes));
    // Compares row by row, because a diff of thousands of rows would be unreadable.
    assert!(found.keys().eq(expected.keys()));
    found.iter().for_each(|(serial, row)| assert_eq!(row, &expected[serial], "{serial}"));
    assert!(assets.iter().all(|asset| asset["asset_type_code"] == "LAP"));
    let summary = run.json();
    assert_eq!((&summary["encoding"], &summary["delimiter"]), (&json!("windows-1252"), &json!("semicolon")));
    let errors = |number: u64| {
        let row = summary["refused_rows"].as_array().unwrap().iter().find(|row| row["row"] == number);
        &row.unwrap()["errors"]
    };
    assert_eq!(*errors(49), json!([{"column": "Seriennummer", "detail": "has the same value in row 50"}]));
    let no_date = "\"31.02.2024\" is not a date of the form DD.MM.YYYY";
    assert_eq!(*errors(333), json!([{"column": "Kaufdatum", "detail": no_date, "code": "VALIDATION_ERROR"}]));
    let unknown = &errors(77)[0];
    assert_eq!((&unknown["column"], &unknown["code"]), (&json!("Hersteller"), &json!("VALIDATION_ERROR")));

    // Corrects some rows first, and the others after they are refused again.
    let refused_file = folder.path("laptops.csv.refused.csv");
    let text = std::fs::read_to_string(&refused_file).unwrap();
    assert!(text.starts_with(&format!("\u{feff}reasons;{GERMAN_HEADER}\n")), "{text}");
    assert!(text.contains(": Kaufpreis: \"\"auf Anfrage\"\" is not a price"), "{text}");
    let unmended = service.import(&refused_file, &options);
    check_counts(&unmended, [0, 0, 0, refused]);
    assert_eq!(unmended.json()["encoding"], "UTF-8");
    std::fs::write(&refused_file, text.replace("31.02.2024", "28.02.2024").replace("auf Anfrage", "1.000,00 €")).unwrap();
    let again = service.import(&refused_file, &options);
    let left = count(Mess::UnknownManufacturer) + count(Mess::TooFewCells) + doubled;
    check_counts(&again, [refused - left, 0, 0, left]);
    let refused_file = folder.path("laptops.csv.refused-2.csv");
    let text = std::fs::read_to_string(&refused_file).unwrap();
    let mended: String = text.split_inclusive('\n').map(mend).collect();
    std::fs::write(&refused_file, mended).unwrap();
    let last = service.import(&refused_file, &options);
    check_counts(&last, [left, 0, 0, 0]);
    assert_eq!(last.code, 0);
    let serials = service.serials();
    assert_eq!(serials.len() as u64, rows);
    assert!(serials.is_sorted_by(|one, other| one < other), "a serial number occurs twice");

    check_round_trip(&service, &folder, "assets");
    check_round_trip(&service, &folder, "users");
}

/// Corrects a refused row's manufacturer or serial number, or adds missing cells.
fn mend(line: &str) -> String {
    let model = MODELS.iter().find(|(_, model, _)| line.contains(&model.replace('"', "\"\"")));
    let line =
        model.map_or(line.to_owned(), |(manufacturer, ..)| line.replace(";Unbekannt & Söhne;", &format!(";{manufacturer};")));
    if line.contains("has the same value in row") {
        // Names end with the row number.
        let (serial, name) = (line.find(";SN").unwrap() + 3, line.split(';').find(|cell| cell.starts_with("Laptop ")).unwrap());
        let row: u64 = name.rsplit(' ').next().unwrap().parse().unwrap();
        return format!("{}{row:06}{}", &line[..serial], &line[serial + 6..]);
    }
    if line.contains("cells, but the header has") { line.replace('\n', ";1.000,00 €;;;\n") } else { line }
}

#[test]
fn utf16_with_tabs_and_custom_fields() {
    let (service, folder) = (Service::start(), Folder::new());
    import_owners(&service, &folder);
    let path = folder.file("DevicesWithInventory.csv", intune_utf16(300));
    let run = service.import(&path, &intune_options());
    check_counts(&run, [300, 0, 0, 0]);
    assert_eq!((run.code, &run.json()["encoding"]), (0, &json!("UTF-16LE")));
    let assets = service.assets();
    assert!(assets.iter().all(|asset| asset["custom_fields"] == json!({"os": "Windows, “11”"})));
    assert!(assets.iter().any(|asset| asset["model"] == "MacBook Pro 14\""));
    check_round_trip(&service, &folder, "assets");
}

#[test]
fn a_file_that_is_cut_off_loses_only_its_last_row() {
    let service = Service::start();
    for (in_quotes, cell, reason) in [(false, "Thin", "middle of this row"), (true, "ThinkPad T1", "middle of a quoted cell")] {
        let folder = Folder::new();
        let before = service.total("/assets");
        let path = folder.file("laptops.csv", cut_off(250, in_quotes));
        let run = service.import(&path, &[]);
        check_counts(&run, [250, 0, 0, 1]);
        let refused = &run.json()["refused_rows"][0];
        assert_eq!((run.code, &refused["row"], &refused["line"]), (3, &json!(251), &json!(252)));
        assert!(refused["errors"][0]["detail"].as_str().unwrap().contains(reason), "{refused}");
        // The row is refused again, because a replacement character marks it as cut off.
        let refused = folder.path("laptops.csv.refused.csv");
        let text = std::fs::read_to_string(&refused).unwrap();
        assert!(text.ends_with(&format!(",Laptop,Lenovo,{cell}\u{fffd}\n")), "{text}");
        check_counts(&service.import(&refused, &[]), [0, 0, 0, 1]);
        assert_eq!(service.total("/assets"), before + 250);
    }
}

fn plain_serials(rows: u64) -> Vec<String> {
    (1..=rows).map(|row| format!("PL{row:06}")).collect()
}

#[test]
fn killed_and_resumed_every_serial_number_is_there_once() {
    let (service, folder) = (Service::start(), Folder::new());
    let rows = rows(800, 5_000);
    let path = folder.file("laptops.csv", plain_laptops(rows));
    for part in [1, 3, 6] {
        let child = spawn(service.command(&["import", path.to_str().unwrap()]));
        wait_until(|| service.total("/assets") >= rows * part / 8);
        kill(child);
    }
    let run = service.import(&path, &[]);
    let summary = run.json();
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!((run.code, count("created") + count("imported_already")), (0, rows), "{summary}\n{}", run.stderr);
    assert!(count("imported_already") >= rows * 6 / 8, "{summary}");
    let repeated = service.import(&path, &[]);
    check_counts(&repeated, [0, 0, 0, 0]);
    assert_eq!((repeated.code, &repeated.json()["imported_already"]), (0, &json!(rows)));
    assert_eq!(service.serials(), plain_serials(rows));
    assert_eq!(folder.names(), ["laptops.csv"]);
}

#[test]
fn a_corrected_file_creates_nothing_twice_and_its_refused_rows_are_imported() {
    let (service, folder) = (Service::start(), Folder::new());
    let row = |n: u32, date: &str| format!("Monitor {n},{date}\n");
    let text = |date: &str| {
        let rows = (1..=250).map(|n| row(n, if n == 7 || n == 230 { date } else { "2024-03-09" }));
        format!("name,purchase_date\n{}", rows.collect::<String>())
    };
    let path = folder.file("monitors.csv", text("soon"));
    check_counts(&service.import(&path, &[]), [248, 0, 0, 2]);
    folder.file("monitors.csv", text("2024-03-10"));
    let corrected = service.import(&path, &[]);
    assert_eq!(corrected.code, 2, "{}", corrected.stderr);
    for told in ["rows 1 to 200 with different content or options", "add --again."] {
        assert!(corrected.stderr.contains(told), "{}", corrected.stderr);
    }
    assert_eq!(service.total("/assets"), 248);
    let refused = folder.path("monitors.csv.refused.csv");
    // The first import of this file created nothing, so other rows can be sent in its place.
    check_counts(&service.import(&refused, &[]), [0, 0, 0, 2]);
    let mended = std::fs::read_to_string(&refused).unwrap().replace(",soon", ",2024-03-10");
    std::fs::write(&refused, mended).unwrap();
    check_counts(&service.import(&refused, &[]), [2, 0, 0, 0]);
    assert_eq!(service.total("/assets"), 250);
}

#[test]
fn refused_rows_are_sent_again_and_imported_ones_are_not() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("assets.csv", "name,asset_type_code\nA,\nB,LAP\nC,\n");
    check_counts(&service.import(&path, &[]), [2, 0, 0, 1]);
    service.create("/catalog/asset-types", &json!({"name": "Laptop", "code": "LAP", "kind": "physical"}));
    let run = service.run(&["import", path.to_str().unwrap()]);
    assert!(
        run.stdout.ends_with(": 1 created, 0 updated, 0 unchanged, 0 refused, 0 skipped, 2 imported already\n"),
        "{}",
        run.stdout
    );
    run.tells(0, "--again imports them again.");
    check_counts(&service.import(&path, &["--again"]), [3, 0, 0, 0]);
    // Repeating `--again` with the same name continues that import.
    check_counts(&service.import(&path, &["--again=x"]), [3, 0, 0, 0]);
    check_counts(&service.import(&path, &["--again=x"]), [0, 0, 0, 0]);
    assert_eq!(service.total("/assets"), 9);
}

#[test]
fn all_or_nothing_goes_on_although_its_own_rows_are_in_the_way() {
    let (service, folder) = (Service::start(), Folder::new());
    let rows = |rows: std::ops::RangeInclusive<u32>| {
        let rows: String = rows.map(|n| format!("user{n}@example.com,User {n}\n")).collect();
        format!("email,display_name\n{rows}")
    };
    let path = folder.file("users.csv", rows(1..=450));
    let options = ["--users", "--on-error", "abort"];
    let child = spawn(service.command(&[&["import", path.to_str().unwrap()], &options[..]].concat()));
    wait_until(|| service.total("/users") >= 1);
    kill(child);
    let run = service.import(&path, &options);
    let summary = run.json();
    assert_eq!((run.code, &summary["rows"], &summary["refused"]), (0, &json!(450), &json!(0)), "{summary}\n{}", run.stderr);
    assert_eq!(service.total("/users"), 450);
    // Duplicates of rows from another import are refused.
    let others = service.import(&folder.file("others.csv", rows(450..=460)), &options).json();
    assert_eq!((&others["written"], &others["refused"]), (&json!(false), &json!(1)), "{others}");
    assert_eq!(service.total("/users"), 450);
}

#[test]
fn abort_writes_all_rows_or_none() {
    let (service, folder) = (Service::start(), Folder::new());
    let mut bytes = plain_laptops(450);
    let good = folder.file("good.csv", &bytes);
    bytes.extend(b"Bad,Lenovo,T14,PL9,2024-03-09,cheap\n");
    let bad = folder.file("bad.csv", &bytes);
    let refused = service.import(&bad, &["--on-error", "abort"]);
    assert_eq!((refused.code, &refused.json()["written"], &refused.json()["refused"]), (3, &json!(false), &json!(1)));
    assert_eq!(service.total("/assets"), 0);
    assert_eq!(folder.names(), ["bad.csv", "bad.csv.refused.csv", "good.csv"]);
    check_counts(&service.import(&good, &["--on-error", "abort"]), [450, 0, 0, 0]);
    assert_eq!(service.serials(), plain_serials(450));
}

#[test]
fn two_at_once_create_every_serial_number_once() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("laptops.csv", plain_laptops(600));
    let copy = folder.file("copy.csv", plain_laptops(600));
    let start = |path: &Path| spawn(service.command(&["import", path.to_str().unwrap(), "--json", "--match", "serial_number"]));
    for run in [&path, &path, &copy].map(|path| start(path)).map(end) {
        assert_eq!((run.code, &run.json()["rows"], &run.json()["refused"]), (0, &json!(600), &json!(0)), "{}", run.stderr);
    }
    assert_eq!(service.serials(), plain_serials(600));
}
