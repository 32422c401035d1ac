//! Two lists of the same devices, as messy as those of a small company: the export of a device management and a list of purchases.

use super::inventory_files::encode_windows_1252;
use serde_json::{Value, json};
use std::fmt::Write;

/// Display names; the e-mail address has the number. Two are called the same.
pub const PEOPLE: [&str; 8] = [
    "Ada Lovelace",
    "Alan Turing",
    "Jürgen Groß",
    "Seán O'Neill",
    "Müller, Thomas",
    "Thomas Müller",
    "Grace van der Berg",
    "Konrad Zuse",
];
/// In [`PEOPLE`]: inactive, so that no device can be his.
pub const INACTIVE: usize = 7;
/// In [`PEOPLE`]: the one who has all devices of "Thomas Müller".
pub const THOMAS: usize = 5;

/// The words of the list of purchases, and what they mean. No word list has the last one.
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

/// Devices 1 to 30 are in both lists, up to 40 only in the device management, and up to 60 only in the list of purchases.
pub const DEVICES: usize = 60;
/// Those without a serial number: monitors.
const MONITORS: std::ops::RangeInclusive<usize> = 51..=60;

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
    // Every fifth has none.
    (!device.is_multiple_of(5)).then_some([0, 1, 2, 3, THOMAS, 6][device % 6])
}

fn state(device: usize) -> (&'static str, &'static str) {
    STATES[device % STATES.len()]
}

/// In UTF-16 with a byte order mark and semicolons. Three devices have no serial number that could tell them.
pub fn device_management() -> Vec<u8> {
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

/// In Windows-1252 with semicolons, dates and prices as Germans write them, and names with the last one first.
pub fn purchases() -> Vec<u8> {
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

/// What the inventory must be: name, tag, status, owner's number, date and price of each device, by serial number or tag.
pub fn expected() -> Vec<Value> {
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
