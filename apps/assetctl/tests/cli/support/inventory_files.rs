//! Generates messy inventories for tests of the import, the same in every run.

use encoding_rs::WINDOWS_1252;
use fastrand::Rng;
use std::fmt::Write;

/// Kinds of errors in [`german_laptops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mess {
    None,
    /// The serial number repeats the previous row's.
    DoubledSerial,
    /// The manufacturer isn't in the catalog.
    UnknownManufacturer,
    /// The purchase date doesn't exist.
    BadDate,
    /// The price isn't a number.
    BadPrice,
    /// The row has too few cells.
    TooFewCells,
}

/// Returns the error of a row, counted from 1. In 100 rows, one has a duplicate serial number; in 250, one has an unknown
/// manufacturer; in 1,000, one has a bad date, one a bad price and one too few cells.
pub fn mess(row: u64) -> Mess {
    match row % 1_000 {
        333 => Mess::BadDate,
        444 => Mess::BadPrice,
        555 => Mess::TooFewCells,
        rest if rest % 250 == 77 => Mess::UnknownManufacturer,
        rest if rest % 100 == 50 => Mess::DoubledSerial,
        _ => Mess::None,
    }
}

/// Whether the row repeats another row's serial number.
pub fn is_doubled(row: u64) -> bool {
    [row, row + 1].iter().any(|row| mess(*row) == Mess::DoubledSerial)
}

pub const GERMAN_HEADER: &str = "Gerät;Hersteller;Modell;Seriennummer;Kaufdatum;Kaufpreis;Garantie bis;Benutzer E-Mail;Bemerkung";

/// Returns the options of `assetctl import` for [`german_laptops`].
pub fn german_options() -> Vec<&'static str> {
    german_options_with("Hersteller=manufacturer,Modell=model")
}

/// Returns the options of [`german_options`] with other fields for manufacturer and model.
pub fn german_options_with(models: &'static str) -> Vec<&'static str> {
    let columns = "Gerät=name,Seriennummer=serial_number,Kaufdatum=purchase_date,Kaufpreis=purchase_price,\
                   Garantie bis=warranty_until,Benutzer E-Mail=assigned_to_email,Bemerkung=notes";
    [maps(columns), maps(models), vec!["--date-format", "DD.MM.YYYY", "--decimal", "comma"]].concat()
}

/// Returns the options of `assetctl import` for [`intune_utf16`].
pub fn intune_options() -> Vec<&'static str> {
    maps(
        "Device name=name,Manufacturer=manufacturer,Model=model,Serial number=serial_number,\
         Primary user email address=assigned_to_email,OS=custom_fields.os",
    )
}

fn maps(columns: &'static str) -> Vec<&'static str> {
    columns.split(',').flat_map(|column| ["--map", column]).collect()
}

/// Manufacturers and models of the laptops, with prices in cents.
pub const MODELS: [(&str, &str, u32); 6] = [
    ("Lenovo", "ThinkPad T14 Gen 4", 124_900),
    ("Dell", "Latitude 7440", 138_950),
    ("HP", "EliteBook 840 G10", 99_999),
    ("Apple", "MacBook Pro 14\"", 229_900),
    ("Fujitsu", "Lifebook E5413", 84_900),
    ("Microsoft", "Surface Laptop 6", 145_000),
];
const NAMES: [&str; 8] = ["Müller", "Schäfer", "Groß", "Böhm", "Weiß", "Lange", "D'Angelo", "van der Berg"];

/// Returns e-mail addresses in lower case, as the service stores them.
pub fn owners() -> Vec<String> {
    (1..=100).map(|number| format!("person{number:03}@example.de")).collect()
}

/// Returns a file as a German Excel writes it: Windows-1252, semicolons, CRLF, `09.03.2024` and `1.249,00 €`, e-mail addresses in
/// mixed case, notes with line breaks and quotes, and [errors][mess].
pub fn german_laptops(rows: u64) -> Vec<u8> {
    encode_windows_1252(&german_text(rows))
}

fn german_text(rows: u64) -> String {
    let mut random = Rng::with_seed(1);
    let owners = owners();
    let mut text = format!("{GERMAN_HEADER}\r\n");
    for row in 1..=rows {
        let mess = mess(row);
        let (manufacturer, model, cents) = MODELS[random.usize(..MODELS.len())];
        let manufacturer = if mess == Mess::UnknownManufacturer { "Unbekannt & Söhne" } else { manufacturer };
        let serial = if mess == Mess::DoubledSerial { row - 1 } else { row };
        let (day, month, year) = (random.u32(1..=28), random.u32(1..=12), random.u32(2019..=2025));
        let date = if mess == Mess::BadDate { "31.02.2024".to_owned() } else { format!("{day:02}.{month:02}.{year}") };
        let price = if mess == Mess::BadPrice { "auf Anfrage".to_owned() } else { german_price(cents + random.u32(..50_000)) };
        let owner = mixed_case(&owners[random.usize(..owners.len())], &mut random);
        let name = format!("Laptop {} {row}", NAMES[random.usize(..NAMES.len())]);
        let note = match random.u32(..10) {
            0 => "\"Display gesprungen;\r\nTausch geplant, siehe \"\"Ticket 4711\"\"\"",
            1 => "Büro Köln – 2. OG",
            2 => "=SUMME(A1)",
            _ => "",
        };
        let _ = write!(text, "{name};{manufacturer};{};SN{serial:06};{date}", quoted(model));
        if mess == Mess::TooFewCells {
            text.push_str("\r\n");
        } else {
            let _ = write!(text, ";{price};{day:02}.{month:02}.{};{owner};{note}\r\n", year + 3);
        }
    }
    text
}

/// Returns Intune's device export in UTF-16 (little-endian) with a byte order mark and tabs, like Excel's "Unicode text".
pub fn intune_utf16(rows: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(2);
    let owners = owners();
    let mut text = "\u{feff}Device name\tManufacturer\tModel\tSerial number\tPrimary user email address\tOS\r\n".to_owned();
    for row in 1..=rows {
        let (manufacturer, model, _) = MODELS[random.usize(..MODELS.len())];
        let owner = mixed_case(&owners[random.usize(..owners.len())], &mut random);
        let _ = write!(text, "DESKTOP-{row:06}\t{manufacturer}\t{}\tIN{row:06}\t{owner}\tWindows, “11”\r\n", quoted(model));
    }
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a file in UTF-8 with commas and the service's column names, without errors.
pub fn plain_laptops(rows: u64) -> Vec<u8> {
    let mut text = "name,manufacturer,model,serial_number,purchase_date,purchase_price\n".to_owned();
    for row in 1..=rows {
        let _ = writeln!(text, "Laptop {row},Lenovo,ThinkPad T14,PL{row:06},2024-03-09,1249.00");
    }
    text.into_bytes()
}

/// Returns [`plain_laptops`] with a last row that is cut off in the middle of a cell, which is quoted if `in_quotes`.
pub fn cut_off(rows: u64, in_quotes: bool) -> Vec<u8> {
    let mut bytes = plain_laptops(rows);
    bytes.extend(if in_quotes { &b"Laptop,Lenovo,\"ThinkPad T1"[..] } else { b"Laptop,Lenovo,Thin" });
    bytes
}

pub fn encode_windows_1252(text: &str) -> Vec<u8> {
    WINDOWS_1252.encode(text).0.into_owned()
}

fn german_price(cents: u32) -> String {
    let (euros, cents) = (cents / 100, cents % 100);
    if euros < 1_000 {
        format!("{euros},{cents:02} €")
    } else {
        format!("{}.{:03},{cents:02} €", euros / 1_000, euros % 1_000)
    }
}

fn mixed_case(text: &str, random: &mut Rng) -> String {
    text.chars().map(|character| if random.bool() { character.to_ascii_uppercase() } else { character }).collect()
}

fn quoted(text: &str) -> String {
    if text.contains('"') { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
