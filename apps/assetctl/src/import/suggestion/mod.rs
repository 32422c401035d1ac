//! `assetctl import --suggest`: the command that imports a file, as far as its columns and cells look familiar, and notes about
//! files of other things than assets.

pub mod dates;
mod matching;
pub mod survey;

use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::import::OF_RECORD;
use crate::import::args::{Import, words};
use crate::import::columns::convert::DateFormat;
use crate::import::columns::suggest::{plain, quote, suggestions};
use crate::import::columns::{Mapping, settled};
use crate::import::source::Source;
use crate::output::{count, print_data, print_json};
use clap::ValueEnum;
use dates::Finding;
use serde_json::json;
use survey::Survey;
use terminal::{clean, print_note};

pub fn suggest(options: &Import, is_json: bool) -> Result<u8> {
    let source = Source::open(options)?;
    let (mut suggested, mut problems) = (options.clone(), Vec::new());
    suggested.mappings = settled(&options.mappings, &mut problems);
    if !problems.is_empty() {
        return Err(CliError::Usage(problems.join("\n")));
    }
    let mut found = suggestions(options.kind(), &source.names, &suggested.mappings);
    let is_mapped = |name: &String| suggested.mappings.iter().any(|mapping| mapping.column == *name);
    let is_own_field = |name: &&String| options.kind().has_column(name) && !is_mapped(name);
    // A number at the end doesn't make another custom field of it.
    found.unknown.extend(source.doubled.iter().filter(is_own_field).cloned());
    suggested.mappings.extend(found.mappings);
    let survey = Survey::of(&source, &suggested)?;
    let mut notes = source.doubts(options);
    notes.extend(other_than_assets(options, &source.names));
    survey::owners(&mut suggested, &survey, &options.mappings, &mut notes);
    survey::vocabularies(&mut suggested, &survey, &mut notes);
    survey::types(&mut suggested, &survey, &mut notes);
    dates(&mut suggested, &survey, &mut notes);
    prices(&mut suggested, &survey, &mut notes);
    matching::foreign_ids(&mut suggested, &survey, &mut notes);
    matching::suggest(&mut suggested, &survey, &mut notes);
    let ignored: Vec<&str> = found.unknown.iter().map(String::as_str).collect();
    suggested.mappings.extend(ignored.iter().map(|column| Mapping { column: (*column).to_owned(), field: None }));
    if !ignored.is_empty() {
        let fields = || options.kind().import_columns().map(|column| column.name).filter(|name| !OF_RECORD.contains(name));
        let keep = if options.users {
            format!("\"COLUMN=FIELD\", with {}", fields().collect::<Vec<_>>().join(", "))
        } else {
            "\"COLUMN=custom_fields.NAME\"".to_owned()
        };
        notes.push(format!(
            "No guess for {}, so the command ignores {}. To keep a column: --map {keep}.",
            ignored.join(", "),
            if ignored.len() == 1 { "it" } else { "them" }
        ));
    }
    let is_set = |field: &str| suggested.constants.iter().any(|constant| constant.field == field);
    let has = |field: &str| survey.column(field).is_some() || is_set(field);
    let required: &[&str] = if options.users { &["email", "display_name"] } else { &["name"] };
    for field in required.iter().filter(|field| !has(field)) {
        let article = if *field == "email" { "an" } else { "a" };
        let kind = kind_of_row(options);
        notes.push(format!("Every new {kind} needs {article} {field}, and no column has it: --map \"COLUMN={field}\"."));
    }
    if !options.users && !has("asset_type_code") && !has("asset_type_id") && options.constants.is_empty() {
        notes.push("No column has the asset type. --set asset_type_code=CODE gives all rows one.".to_owned());
    }
    if !options.users && (has("model") || has("manufacturer")) {
        notes.push(
            "manufacturer and model are free text. For models in your catalog, use manufacturer_name and model_name.".to_owned(),
        );
    }
    if survey.held_in_stock > 0 && !options.users && !is_set("status") {
        let held = count(survey.held_in_stock, "asset");
        notes.push(if survey.column("status").is_some() {
            format!("{held} would have a holder and be in_stock: --map-value says what a status means.")
        } else if survey.held_in_stock == survey.rows {
            format!("{held} would have a holder and be in_stock: --set status=in_use gives all rows that status.")
        } else {
            // A status that all rows get would be wrong for the others.
            format!(
                "{held} of {} would have a holder and be in_stock. Add a column of the status to the file; or change these assets \
                 afterwards, by an import of asset_tag,status with --match asset_tag.",
                survey.rows
            )
        });
    }
    if let Some((column, number, first)) = survey.quantity.as_ref().filter(|_| !options.users) {
        notes.push(format!(
            "{column}: {} more than one, such as {first}, and each row would become one asset.",
            if *number == 1 { "1 row stands for".to_owned() } else { format!("{number} rows stand for") }
        ));
    }
    if let Some((number, first)) = survey.column("serial_number").and_then(|column| column.shortened.as_ref()) {
        notes.push(format!(
            "A spreadsheet has shortened {}, such as {first}: they will be refused.",
            count(*number, "serial number")
        ));
    }
    for (column, number, first) in survey.columns.iter().filter_map(|column| {
        let (number, first) = column.day_numbers.as_ref()?;
        Some((&column.name, *number, first))
    }) {
        notes.push(format!(
            "{column}: {} with a spreadsheet's day number, such as {first}, will be refused. Format the column as YYYY-MM-DD in the \
             spreadsheet, and save the file again.",
            count(number, "cell")
        ));
    }
    let words = command(&suggested);
    if is_json {
        let options = words.get(1..).unwrap_or_default();
        let report = json!({
            "columns": source.names, "command": words.join(" "), "options": options, "unknown": found.unknown, "notes": notes
        });
        print_json(&report)?;
        return Ok(EXIT_SUCCESS);
    }
    print_note(&format!("{}, {}", source.describe(), count(survey.rows, "row")));
    notes.iter().for_each(|note| print_note(&clean(note)));
    print_note("Nothing was sent. This command imports the file; add --dry-run to check every row first:");
    print_data(&words.join(" \\\n  "))?;
    Ok(EXIT_SUCCESS)
}

/// The command, and each of its options.
fn command(options: &Import) -> Vec<String> {
    let mut command = vec![format!("assetctl import {}", quote(&options.file.display().to_string()))];
    command.extend(words(options));
    command.extend(options.encoding.map(|encoding| format!("--encoding {}", encoding.name())));
    let name = |value: clap::builder::PossibleValue| value.get_name().to_owned();
    let delimiter = options.delimiter.and_then(|delimiter| delimiter.to_possible_value()).map(name);
    command.extend(delimiter.map(|delimiter| format!("--delimiter {delimiter}")));
    let format = options.format.and_then(|format| format.to_possible_value()).map(name);
    command.extend(format.map(|format| format!("--format {format}")));
    command
}

fn dates(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    if options.date_format.is_some() {
        return;
    }
    match survey.dates.finding() {
        Finding::Clear(format) => {
            options.date_format = DateFormat::parse(format).ok();
            let misfits = survey.dates.misfits(format);
            if misfits > 0 {
                notes.push(format!("{} not of the form {format}, and will be refused.", are(misfits, "date")));
            }
        }
        Finding::Ambiguous(one, other) => {
            notes.push(format!("Dates fit {one} and {other}. Add --date-format with the right one: it is not guessed."));
        }
        Finding::Nothing => {}
    }
}

fn prices(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    match survey.prices.finding() {
        Finding::Clear(_) if options.decimal_comma || options.decimal_point => {}
        Finding::Clear(has_comma) => (options.decimal_comma, options.decimal_point) = (has_comma, !has_comma),
        Finding::Ambiguous(..) if !options.decimal_comma && !options.decimal_point => notes.push(
            "Prices can be read with a decimal comma and with a decimal point. If 1.249 is more than a thousand, add --decimal-comma; \
             if 1,249 is, add --decimal-point."
                .to_owned(),
        ),
        Finding::Ambiguous(..) | Finding::Nothing => {}
    }
}

fn kind_of_row(options: &Import) -> &'static str {
    if options.users { "user" } else { "asset" }
}

/// `1 row is`, `2 rows are`.
fn are(number: u64, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}

/// A kind of thing, with headings that only its files have, and how many of them are needed.
const KINDS: [(&str, &str, usize); 3] = [
    (
        LICENCES,
        "seats licenseseats licensedtoname licensedtoemail licensename productkey reassignable maintained terminationdate lizenzschlüssel \
         lizenzname",
        1,
    ),
    ("places", "address address2 street city state zip postalcode country parentlocation ldapou straße plz ort stadt land", 3),
    ("accessories or consumables", "minqty minamt minamount minimumqty minimumquantity minimumamount itemno mindestbestand", 1),
];
const LICENCES: &str = "licences";
/// Headings that say that there are assets in spite of that.
const TAGS: &str = "assettag inventarnummer";
/// Likewise, but licences have some, too.
const SERIALS: &str = "serialnumber serialno serial seriennummer";

/// Headings of lists of people. A list of assets has some of them, too.
const PEOPLE: &str = "firstname givenname vorname lastname surname nachname displayname fullname username email emailaddress mail \
                      userprincipalname jobtitle employeenumber employeenum activated isactive accountenabled role";
const MANY_OF_PEOPLE: usize = 3;
/// Headings that no list of people has.
const THINGS: &str = "name itemname assetname devicename computername hostname device category model modelname modelnumber \
                      manufacturer status purchasedate purchasecost purchaseprice";
/// Headings of the number of things that a row stands for.
pub const QUANTITIES: [&str; 2] = ["quantity", "qty"];

/// The number of these headings that the file has.
fn number_of(headings: &str, names: &[String]) -> usize {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    headings.split_whitespace().filter(|heading| plain.iter().any(|name| name == heading)).count()
}

/// Whether the rows are probably people.
#[must_use]
pub fn is_list_of_users(names: &[String]) -> bool {
    let is_thing = [TAGS, SERIALS, THINGS].iter().any(|headings| number_of(headings, names) > 0);
    !is_thing && number_of(PEOPLE, names) >= MANY_OF_PEOPLE
}

/// A note for a file whose rows are probably no assets.
fn other_than_assets(options: &Import, names: &[String]) -> Option<String> {
    if !options.users && is_list_of_users(names) {
        return Some("This looks like a list of users: add --users. The command makes an asset of each row.".to_owned());
    }
    let has = |headings: &str| number_of(headings, names);
    let is_kind =
        |(kind, headings, needed): &(&str, &str, usize)| has(headings) >= *needed && (*kind == LICENCES || has(SERIALS) == 0);
    let (kind, ..) = KINDS.iter().find(|kind| is_kind(kind)).filter(|_| !options.users && has(TAGS) == 0)?;
    Some(format!("This looks like a list of {kind}. The command makes an asset of each row: import it only if that is wanted."))
}
