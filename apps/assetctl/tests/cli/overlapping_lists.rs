//! Imports two messy lists of the same devices with the suggested commands: a device management export and a purchase list.

use crate::support::inventory_files::encode_windows_1252;
use crate::support::scripted::{Answer, Scripted};
use crate::support::service::Service;
use crate::support::{Folder, Run, run};
use serde_json::{Value, json};
use std::fmt::Write;

/// Display names of users, whose e-mail addresses contain their index. Two users have the same name.
const PEOPLE: [&str; 8] = [
    "Ada Lovelace",
    "Alan Turing",
    "Jürgen Groß",
    "Seán O'Neill",
    "Müller, Thomas",
    "Thomas Müller",
    "Grace van der Berg",
    "Konrad Zuse",
];
/// Index in [`PEOPLE`] of an inactive user without devices.
const INACTIVE: usize = 7;
/// Index in [`PEOPLE`] of the user who has all devices of "Thomas Müller".
const THOMAS: usize = 5;
/// Words in the purchase list, with the status that they mean. The program has no guess for the last word.
const STATES: [(&str, &str); 7] = [
    ("im Einsatz", "in_use"),
    ("Im Einsatz", "in_use"),
    ("Lager", "in_stock"),
    ("in Reperatur", "in_service"),
    ("Zurückgegeben", "returned"),
    ("ausgemustert", "scrapped"),
    ("Schrank 3", "in_stock"),
];
const SERIALS_OF_NONE: [&str; 3] = ["n/a", "N/A", "-"];
/// Devices 1 to 30 are in both lists, 31 to 40 only in the device management export, and 41 to 60 only in the purchase list.
const DEVICES: usize = 60;
/// Devices without serial numbers.
const MONITORS: std::ops::RangeInclusive<usize> = 51..=60;

fn ways_out(run: &Run) -> Vec<String> {
    let summary = run.json();
    let reasons = summary["refused_reasons"].as_array().unwrap().iter();
    reasons
        .map(|reason| {
            format!("{} {}: {}", reason["rows"], reason["detail"].as_str().unwrap(), reason["way_out"].as_str().unwrap())
        })
        .collect()
}

fn inventory(service: &Service) -> Vec<Value> {
    let row = |asset: &Value| {
        let tag = asset["asset_tag"].as_str().filter(|tag| tag.starts_with("INV-"));
        let price = asset["purchase_price"].as_f64().map(|price| format!("{price:.2}"));
        let (serial, owner) = (&asset["serial_number"], &asset["assigned_to_email"]);
        let (date, code) = (&asset["purchase_date"], &asset["asset_type_code"]);
        json!([asset["name"], serial, tag, asset["status"], owner, date, price, code])
    };
    let mut rows: Vec<Value> = service.assets().iter().map(row).collect();
    rows.sort_by_key(Value::to_string);
    rows
}

#[test]
fn two_messy_lists_become_one_right_inventory_and_importing_them_again_changes_nothing() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/catalog/asset-types", &json!({"name": "Hardware", "code": "HW", "kind": "physical"}));
    for (number, name) in PEOPLE.iter().enumerate() {
        let email = format!("person{number}@example.com");
        service.create("/users", &json!({"email": email, "display_name": name, "is_active": number != INACTIVE}));
    }
    folder.file("purchases.csv", purchases());
    folder.file("devices.csv", device_management());
    let paste = |line: &str| service.paste(&folder.path(""), line);

    // The list with tags comes first, because a later import can't add them.
    let suggested = paste("assetctl import purchases.csv --suggest").ok();
    assert!(suggested.stderr.contains("Zustand: no guess for Schrank 3."), "{}", suggested.stderr);
    assert!(suggested.stderr.contains("10 rows are without a value to match"), "{}", suggested.stderr);
    let thomas = format!("--value 'assigned_to_name:Müller, Thomas=person{THOMAS}@example.com'");
    let first = suggested.stdout.trim_end();
    let purchases = format!("{first} --set asset_type_code=HW --value 'status:Schrank 3=in_stock' --json");
    let refused = paste(&purchases);
    assert_eq!((refused.code, refused.counts()), (3, [35, 0, 0, 15]), "{}", refused.stdout);
    let ways_out = ways_out(&refused);
    let has = |text: &str| assert!(ways_out.iter().any(|way_out| way_out.contains(text)), "{text}: {ways_out:#?}");
    has("<person4@example.com>");
    has("\"Müller, Thomas\" is the name of 2 active users: ");
    has("--value \"assigned_to_name:Müller, Thomas=ADDRESS\"");
    let by_tags = ways_out.iter().find_map(|way_out| way_out.split_once("import the refused rows by their tags: ")).unwrap().1;
    let purchases = format!("{purchases} {thomas}");
    assert_eq!(paste(&purchases).counts(), [5, 0, 35, 10]);
    let monitors = purchases.replace("purchases.csv", "purchases.csv.refused.csv").replace("--match serial_number", by_tags);
    let run = paste(&monitors);
    assert_eq!((run.code, run.counts()), (0, [10, 0, 0, 0]), "{}{}", run.stdout, run.stderr);

    let suggested = paste("assetctl import devices.csv --suggest").stdout.replace("OS=?", "OS=");
    let devices = format!(
        "{} --set asset_type_code=HW --value 'assigned_to_name:Thomas Müller=person{THOMAS}@example.com' --json",
        suggested.trim_end()
    );
    let run = paste(&devices);
    assert_eq!((run.code, run.counts()), (3, [10, 30, 0, 3]), "{}{}", run.stdout, run.stderr);
    assert_eq!(inventory(&service), expected());

    for (command, imported, refused) in [(&purchases, 40, 10), (&monitors, 10, 0), (&devices, 40, 3)] {
        let repeated = paste(command);
        assert_eq!(repeated.counts(), [0, 0, 0, refused], "{command}");
        assert_eq!(repeated.json()["imported_already"], imported, "{command}");
        let again = paste(&format!("{command} --again"));
        assert_eq!(again.counts(), [0, 0, imported, refused], "{command}");
    }
    assert_eq!(inventory(&service), expected());
}

fn created(rows: u32) -> Answer {
    let row = |row| json!({"row": row, "outcome": "created", "id": format!("a{row}")});
    Answer::data(&(1..=rows).map(row).collect())
}

#[test]
fn the_service_gets_rows_as_they_are_and_options_as_parameters() {
    let service = Scripted::start(|_, number| match number {
        0 => Answer::busy("1"),
        1 => Answer::problem(403, "FORBIDDEN", "Not any more."),
        _ => created(3),
    });
    let folder = Folder::new();
    let lines = "{\"Gerät\": \"NB-1\", \"Wer\": \"Lovelace, Ada\", \"Zustand\": \" LAGER\", \"S/N\": \"n/a\"}\n".repeat(3);
    let path = folder.file("laptops.ndjson", &lines);
    let mut arguments = vec!["import", path.to_str().unwrap(), "--json", "--set", "asset_type_code=LAP", "--map", "Gerät=name"];
    arguments.extend(["--map", "Wer=assigned_to_name", "--map", "Zustand=status", "--value", "status:Lager=in_stock"]);
    arguments.extend(["--map", "S/N=serial_number", "--value", "serial_number:N/A="]);
    assert_eq!(run(&service.url, &arguments).code, 1);
    let resumed = run(&service.url, &arguments);
    assert_eq!((resumed.code, resumed.counts()), (0, [3, 0, 0, 0]), "{}", resumed.stderr);
    let requests = service.requests();
    assert!(requests.iter().all(|request| request.bytes == lines.as_bytes()), "{requests:?}");
    assert_eq!(requests[0].parameter("set"), "asset_type_code=LAP");
    assert!(requests[0].idempotency_key.is_some() && requests[0].idempotency_key == requests[2].idempotency_key);
}

#[test]
fn parameters_that_are_too_long_for_a_url_are_sent_with_the_text() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("a.csv", "name,Zustand\nA,\"w7, \"\"x\"\"\"\nB,w299\n");
    let values: Vec<String> = (0..300).map(|n| format!("status:w{n}=in_use")).collect();
    let mut arguments =
        vec!["import", path.to_str().unwrap(), "--json", "--map", "Zustand=status", "--value", "status:w7, \"x\"=returned"];
    arguments.extend(values.iter().flat_map(|value| ["--value", value]));
    let imported = service.run(&arguments);
    assert_eq!((imported.code, imported.counts()), (0, [2, 0, 0, 0]), "{}{}", imported.stdout, imported.stderr);
    let statuses: Vec<Value> = service.assets().iter().map(|asset| asset["status"].clone()).collect();
    assert_eq!(statuses, ["returned", "in_use"]);
}

#[test]
fn arrays_and_standard_input_are_read() {
    let (service, folder) = (Service::start(), Folder::new());
    let array = folder.file("a.json", "[\n {\"name\": \"A\",\n  \"purchase_price\": 1.50},\n {\"name\": \"B\"}\n]\n");
    assert_eq!(service.import(&array, &[]).counts(), [2, 0, 0, 0]);
    let pasted = service
        .paste(&folder.path(""), "printf 'name;serial_number\\nC;S-1\\n' | assetctl import - --match serial_number --json");
    assert_eq!(pasted.counts(), [1, 0, 0, 0], "{}", pasted.stderr);
    let array = service.paste(&folder.path(""), "assetctl import - --json < a.json");
    assert_eq!(array.counts(), [2, 0, 0, 0], "{}", array.stderr);
    assert_eq!(service.total("/assets"), 5);
}

#[test]
fn options_that_do_not_fit_are_told_before_anything_is_sent() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "name,Status,S/N,Farbe\nA,Lager,1,rot\n");
    let columns = ["--map", "Status=status", "--map", "S/N=serial_number", "--map", "Farbe="];
    for (options, told) in [
        (
            &["--set", "serial_number=1"][..],
            "--set serial_number: the column \"S/N\" is this field already; ignore it with --map S/N=\n",
        ),
        (&["--set", "colour=red"], "--set colour: is not a field of assets\n"),
        (&["--set", "asset_type_code=LAP", "--set", "asset_type_code=PHO"], "--set asset_type_code: is given twice\n"),
        (&["--set", "status="], "must be FIELD=VALUE"),
        (
            &["--map", "name=notes", "--map", "name + Status=location"],
            "--map \"name + Status\": is given twice, as notes and as location\n",
        ),
        (&["--value", "notes:rot=red"], "--value notes:rot: no column is this field; name the field, not the heading\n"),
        (&["--value", "status:a=b", "--value", "status:a=c"], "--value status:a: is given twice\n"),
        (&["--value", "status:Lager"], "must be FIELD:TEXT=VALUE"),
        (&["--set", "purchase_date=05.03.2025", "--date-format", "YYYY/MM/DD"], "\"05.03.2025\" is not a date of the form"),
        (&["--value", "Status:Lager=in_stock"], "name the field, not the heading"),
        (&["--value", "Lager=in_stock"], "must be FIELD:TEXT=VALUE"),
        (&["--map", "Farbe=?"], "needs a field instead of ?"),
        (&["--colour", "x"], "error: unexpected argument '--colour' found\n\nUsage"),
        (&["--date-forma", "x"], "a similar argument exists: '--date-format'"),
    ] {
        run("http://127.0.0.1:9", &[&["import", path.to_str().unwrap()], &columns[..], options].concat()).tells(2, told);
    }
}

fn is_monitor(device: usize) -> bool {
    MONITORS.contains(&device)
}

fn serial(device: usize) -> String {
    if is_monitor(device) { SERIALS_OF_NONE[device % 3].into() } else { format!("PF{device:05}") }
}

fn name(device: usize) -> String {
    if is_monitor(device) { "Monitor 27\"".into() } else { format!("NB-{device:04}") }
}

fn owner(device: usize) -> Option<usize> {
    // Every fifth device has no owner.
    (!device.is_multiple_of(5)).then_some([0, 1, 2, 3, THOMAS, 6][device % 6])
}

fn state(device: usize) -> (&'static str, &'static str) {
    STATES[device % STATES.len()]
}

/// Returns a list in UTF-16 with a byte order mark and semicolons. Three devices have no usable serial number.
fn device_management() -> Vec<u8> {
    let mut text = "\u{feff}Device name;Serial number;Manufacturer;Model;Primary user display name;OS\r\n".to_owned();
    for device in 1..=40 {
        let owner = owner(device).map_or("", |person| if person == THOMAS { "Thomas Müller" } else { PEOPLE[person] });
        let _ = write!(text, "{};{};Lenovo;ThinkPad T14;{owner};Windows 11\r\n", name(device), serial(device));
    }
    for (device, serial) in ["To Be Filled By O.E.M.", "n/a", "0"].iter().enumerate() {
        let _ = write!(text, "VM-{device};{serial};QEMU;;Ada Lovelace;Linux\r\n");
    }
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a list in Windows-1252 with semicolons, German dates and prices, and last names first.
fn purchases() -> Vec<u8> {
    let mut text = "Inventarnr;Bezeichnung;Seriennummer;Kaufdatum;Kaufpreis;Zustand;Benutzer;Kostenstelle\r\n".to_owned();
    for device in (1..=30).chain(41..=DEVICES) {
        let last_first = |person: usize| match PEOPLE[person].split_once(' ') {
            Some((first, last)) => format!("{last}, {first}"),
            None => PEOPLE[person].to_owned(),
        };
        let (owner, name) = (owner(device).map_or(String::new(), last_first), name(device).replace('"', "\"\""));
        let (day, price) = (device % 28 + 1, 900 + device);
        let state = state(device).0;
        let _ = write!(
            text,
            "INV-{device:04};\"{name}\";{};{day:02}.03.2024;1.{price:03},50 €;{state};{owner};4711\r\n",
            serial(device)
        );
    }
    encode_windows_1252(&text)
}

/// Returns the rows that must be in the inventory.
fn expected() -> Vec<Value> {
    let mut devices: Vec<Value> = (1..=DEVICES)
        .map(|device| {
            let is_bought = !(31..=40).contains(&device);
            let serial = (!is_monitor(device)).then(|| serial(device));
            let owner = owner(device).map(|person| format!("person{person}@example.com"));
            let tag = is_bought.then(|| format!("INV-{device:04}"));
            let status = if is_bought { state(device).1 } else { "in_stock" };
            let date = is_bought.then(|| format!("2024-03-{:02}", device % 28 + 1));
            let price = is_bought.then(|| format!("1{:03}.50", 900 + device));
            json!([name(device), serial, tag, status, owner, date, price, "HW"])
        })
        .collect();
    devices.sort_by_key(Value::to_string);
    devices
}
