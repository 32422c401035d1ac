//! `assetctl import --suggest`: surveys the cells of a file, and suggests the command that imports it. Recognizes columns,
//! users, dates, prices, and words for fields with a fixed vocabulary, in English, German, French and Spanish. The import
//! itself never relies on a guess.

use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::import::OF_RECORD;
use crate::import::args::{Import, MatchBy, command};
use crate::import::columns::convert::{DateFormat, ValueMapping, date_of_day_number, price_with_comma, price_with_point};
use crate::import::columns::suggest::{plain, suggestions};
use crate::import::columns::{Columns, Fields, Mapping, OWNER_NAME, Target, compared, joined, settled};
use crate::import::rows::encoding::delimiter_name;
use crate::import::source::Source;
use crate::lookup::is_id;
use crate::output::{count, folded, print_json};
use fields::CellType;
use fields::serial_number::{is_placeholder, is_shortened};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use strsim::osa_distance;
use terminal::{clean, print_data, print_note};

/// Maximum number of different values to keep per column.
const MAX_VALUES: usize = 50;
const OWNERS: [&str; 2] = [OWNER_NAME, "assigned_to_email"];
/// In order of preference. Only exports have usable IDs; serial numbers precede tags, because files from other systems have
/// serial numbers, too.
const ASSETS: [MatchBy; 3] = [MatchBy::Id, MatchBy::SerialNumber, MatchBy::AssetTag];
const USERS: [MatchBy; 2] = [MatchBy::Id, MatchBy::Email];

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
    // A repeated heading must not create a custom field with its number.
    found.unknown.extend(source.doubled.iter().filter(is_own_field).cloned());
    suggested.mappings.extend(found.mappings);
    let survey = Survey::of(&source, &suggested)?;
    let mut notes = source.doubts(options);
    notes.extend(other_than_assets(options, &source.names));
    owners(&mut suggested, &survey, &options.mappings, &mut notes);
    vocabularies(&mut suggested, &survey, &mut notes);
    types(&mut suggested, &survey, &mut notes);
    dates(&mut suggested, &survey, &mut notes);
    prices(&mut suggested, &survey, &mut notes);
    foreign_ids(&mut suggested, &survey, &mut notes);
    matching(&mut suggested, &survey, &mut notes);
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
        let kind = if options.users { "user" } else { "asset" };
        notes.push(format!("Every new {kind} needs {article} {field}, and no column has it: --map \"COLUMN={field}\"."));
    }
    if !options.users && !has("asset_type_code") && !has("asset_type_id") && options.constants.is_empty() {
        notes.push("No column contains the asset type. --set asset_type_code=CODE sets it in all rows.".to_owned());
    }
    if !options.users && (has("model") || has("manufacturer")) {
        notes.push(
            "manufacturer and model are free text. For models in your catalog, use manufacturer_name and model_name.".to_owned(),
        );
    }
    if survey.assigned_in_stock > 0 && !options.users && !is_set("status") {
        let assets = count(survey.assigned_in_stock, "asset");
        notes.push(if survey.column("status").is_some() {
            format!("{assets} would have a user and be in_stock: use --map-value to map their status.")
        } else if survey.assigned_in_stock == survey.rows {
            format!("{assets} would have a user and be in_stock: --set status=in_use sets the status of all rows.")
        } else {
            // A constant status would be wrong for the other rows.
            format!(
                "{assets} of {} would have a user and be in_stock. Add a column with the status to the file; or change these \
                 assets afterwards: import a file with the columns asset_tag and status, with --match asset_tag.",
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
            "A spreadsheet has shortened {}, such as {first}, which will be refused.",
            count(*number, "serial number")
        ));
    }
    for column in &survey.columns {
        let Some((number, first)) = &column.day_numbers else { continue };
        notes.push(format!(
            "{}: {} with a spreadsheet's day number, such as {first}, will be refused. Format the column as YYYY-MM-DD in the \
             spreadsheet, and save the file again.",
            column.name,
            count(*number, "cell")
        ));
    }
    let mut words = command(&suggested, &suggested.file);
    words.extend(options.encoding.map(|encoding| format!("--encoding {}", encoding.name())));
    words.extend(options.delimiter.map(|delimiter| format!("--delimiter {}", delimiter_name(delimiter as u8))));
    words.extend(options.format.map(|format| format!("--format {}", format.name())));
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
            notes.push(format!("Dates fit {one} and {other}. Add --date-format with the correct one: it is not guessed."));
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

/// Returns `1 row is` or `2 rows are`.
fn are(number: u64, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}

/// A kind of record, headings that only its files have, and how many of them identify it.
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
/// One of these headings is enough to identify assets.
const TAGS: &str = "assettag inventarnummer";
/// Like [`TAGS`], but licences also have serial numbers.
const SERIALS: &str = "serialnumber serialno serial seriennummer";

/// Headings of lists of people. Lists of assets also have some of them.
const PEOPLE: &str = "firstname givenname vorname lastname surname nachname displayname fullname username email emailaddress mail \
                      userprincipalname jobtitle employeenumber employeenum activated isactive accountenabled role";
const MANY_OF_PEOPLE: usize = 3;
/// Headings that lists of people don't have.
const THINGS: &str = "name itemname assetname devicename computername hostname device category model modelname modelnumber \
                      manufacturer status purchasedate purchasecost purchaseprice";
const QUANTITIES: [&str; 2] = ["quantity", "qty"];

/// Returns how many of these headings the file has.
fn number_of(headings: &str, names: &[String]) -> usize {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    headings.split_whitespace().filter(|heading| plain.iter().any(|name| name == heading)).count()
}

/// Whether the rows probably describe people.
pub fn is_list_of_users(names: &[String]) -> bool {
    let is_thing = [TAGS, SERIALS, THINGS].iter().any(|headings| number_of(headings, names) > 0);
    !is_thing && number_of(PEOPLE, names) >= MANY_OF_PEOPLE
}

/// Returns a note for a file whose rows are probably not assets.
fn other_than_assets(options: &Import, names: &[String]) -> Option<String> {
    if !options.users && is_list_of_users(names) {
        return Some(
            "This looks like a list of users: add --users. Without that option, the command creates an asset from each row."
                .to_owned(),
        );
    }
    let has = |headings: &str| number_of(headings, names);
    let is_kind =
        |(kind, headings, needed): &(&str, &str, usize)| has(headings) >= *needed && (*kind == LICENCES || has(SERIALS) == 0);
    let (kind, ..) = KINDS.iter().find(|kind| is_kind(kind)).filter(|_| !options.users && has(TAGS) == 0)?;
    Some(format!(
        "This looks like a list of {kind}. The command creates an asset from each row: import it only if you want that."
    ))
}

#[derive(Debug, Default)]
struct Surveyed {
    name: String,
    field: String,
    filled: u64,
    /// Different placeholders, values of a vocabulary, or types.
    values: BTreeSet<String>,
    addresses: u64,
    /// Number of cells with an ID of this service.
    ids: u64,
    /// Number of shortened serial numbers, and the first one.
    shortened: Option<(u64, String)>,
    /// Number of dates given as spreadsheet day numbers, and the first one.
    day_numbers: Option<(u64, String)>,
    /// Number of cells with several words.
    names: u64,
    /// Number of cells that repeat an earlier value, except placeholders.
    doubled: u64,
    hashes: HashSet<u64>,
}

impl Surveyed {
    /// Returns the number of different values of an identifier, without placeholders.
    fn distinct(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// Returns the different values, ignoring case.
    fn spellings(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        self.values.iter().map(String::as_str).filter(move |value| seen.insert(folded(value)))
    }

    fn note(&mut self, cell: &str) {
        if cell.is_empty() || cell == "\\N" {
            return;
        }
        self.filled += 1;
        let is_vocabulary = known(&self.field).next().is_some();
        let is_identifier = ["id", "serial_number", "asset_tag", "email"].contains(&self.field.as_str());
        let is_missing = self.field == "serial_number" && is_placeholder(cell);
        if (is_vocabulary || is_missing || self.field == "asset_type_code") && self.values.len() < MAX_VALUES {
            self.values.insert(cell.to_owned());
        }
        if is_identifier && !is_missing {
            let mut hasher = DefaultHasher::new();
            compared(&self.field, cell).hash(&mut hasher);
            self.doubled += u64::from(!self.hashes.insert(hasher.finish()));
        }
        self.ids += u64::from(is_id(cell));
        if self.field == "serial_number" && is_shortened(cell) {
            self.shortened.get_or_insert_with(|| (0, cell.to_owned())).0 += 1;
        }
        self.addresses += u64::from(cell.contains('@'));
        self.names += u64::from(cell.contains([' ', ',']));
    }
}

#[derive(Debug, Default)]
struct Survey {
    rows: u64,
    columns: Vec<Surveyed>,
    dates: Dates,
    prices: Prices,
    /// Number of rows with a user whose status is in_stock or missing.
    assigned_in_stock: u64,
    /// The column with quantities, the number of rows with a quantity above 1, and the first such quantity.
    quantity: Option<(String, u64, String)>,
}

impl Survey {
    fn of(source: &Source, options: &Import) -> Result<Self> {
        let kind = options.kind();
        let (mappings, _) = joined(&options.mappings, &source.names, &mut Vec::new());
        let field_of = |name: &str| match mappings.iter().find(|mapping| mapping.column == name) {
            Some(mapping) => mapping.field.clone(),
            None => kind.has_column(name).then(|| name.to_owned()),
        };
        let surveyed =
            |name: &String| Some(Surveyed { name: name.trim().to_owned(), field: field_of(name.trim())?, ..Surveyed::default() });
        let mut survey = Self { columns: source.names.iter().filter_map(surveyed).collect(), ..Self::default() };
        // Cells are surveyed unconverted.
        let columns = Columns { targets: vec![Target::Ignored; source.names.len()], fields: Fields::new(kind) };
        let quantity = source.names.iter().find(|name| QUANTITIES.contains(&plain(name).as_str()));
        let mut rows = source.rows(options, &columns)?;
        while let Some(row) = rows.next()? {
            survey.rows += 1;
            let (mut is_assigned, mut is_in_stock) = (false, true);
            for column in &mut survey.columns {
                let cell = row.original.text(&source.names, &column.name).unwrap_or_default();
                match kind.import_column(&column.field).map(|column| column.cell) {
                    Some(CellType::Date) => {
                        survey.dates.note(&cell);
                        if date_of_day_number(&cell).is_some() {
                            column.day_numbers.get_or_insert_with(|| (0, cell.clone())).0 += 1;
                        }
                    }
                    Some(CellType::Number) => survey.prices.note(&cell),
                    _ => {}
                }
                is_assigned |= OWNERS.contains(&column.field.as_str()) && !cell.is_empty();
                if column.field == "status" && !cell.is_empty() {
                    is_in_stock = guess("status", &cell) == Some("in_stock");
                }
                column.note(&cell);
            }
            survey.assigned_in_stock += u64::from(is_assigned && is_in_stock);
            if let Some(name) = quantity
                && let Some(cell) = row.original.text(&source.names, name)
                && cell.parse::<f64>().is_ok_and(|number| number > 1.0)
            {
                survey.quantity.get_or_insert_with(|| (name.clone(), 0, cell)).1 += 1;
            }
        }
        Ok(survey)
    }

    fn column(&self, field: &str) -> Option<&Surveyed> {
        self.columns.iter().find(|column| column.field == field)
    }

    /// Returns the columns with users, by name or by e-mail address.
    fn owners(&self) -> impl Iterator<Item = &Surveyed> {
        self.columns.iter().filter(|column| OWNERS.contains(&column.field.as_str()))
    }
}

/// Decides by a column's cells, regardless of its heading, whether the column contains users' names or e-mail addresses. A column
/// with addresses makes columns with names superfluous. Keeps columns with a `--map`.
fn owners(options: &mut Import, survey: &Survey, given: &[Mapping], notes: &mut Vec<String>) {
    let has_addresses = |column: &&Surveyed| column.addresses * 2 > column.filled;
    let addresses = survey.owners().find(has_addresses).map(|column| column.name.as_str());
    let is_open = |column: &&Surveyed| column.filled > 0 && !given.iter().any(|mapping| mapping.column == column.name);
    for column in survey.owners().filter(is_open) {
        let name = &column.name;
        let (field, note) = if addresses == Some(name) {
            (Some("assigned_to_email"), None)
        } else if let Some(other) = addresses {
            (None, Some(format!("{name}: ignored, since {other} has the e-mail addresses of users.")))
        } else if column.names * 2 > column.filled {
            let note = "names of users, who are looked up: each must be the display name of one active user.";
            (Some(OWNER_NAME), Some(format!("{name}: {note}")))
        } else {
            (None, Some(format!("{name}: ignored, since it has neither names nor e-mail addresses of users.")))
        };
        options.mappings.retain(|known| known.column != *name);
        options.mappings.push(Mapping { column: name.clone(), field: field.map(str::to_owned) });
        notes.extend(note);
    }
}

fn vocabularies(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let given = options.value_mappings.clone();
    for column in survey.columns.iter().filter(|column| known(&column.field).next().is_some()) {
        let is_given = |value: &str| given.iter().any(|mapping| mapping.cell == format!("{}:{value}", column.name));
        let is_open = |value: &str| !known(&column.field).any(|known| known == value) && !is_given(value);
        let mut strange = Vec::new();
        for value in column.spellings().filter(|value| is_open(value)) {
            match guess(&column.field, value) {
                Some(meaning) => options.value_mappings.push(ValueMapping::new(&column.name, value, meaning)),
                None => strange.push(value),
            }
        }
        notes.extend((!strange.is_empty()).then(|| unguessed(column, &strange)));
    }
}

/// Treats asset types that are not codes as empty, until the user fills in their codes.
fn types(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let Some(column) = survey.column("asset_type_code") else { return };
    let name = &column.name;
    if column.values.len() >= MAX_VALUES {
        if let Some(mapping) = options.mappings.iter_mut().find(|mapping| mapping.column == *name) {
            mapping.field = None;
            notes.push(format!("{name}: ignored, since it has too many values for types of assets."));
        }
        return;
    }
    let is_code =
        |text: &str| (2..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let new = without_meaning(options, column, |text| !is_code(text));
    if let Some(first) = new.first() {
        notes.push(format!(
            "{name}: {}. Write the code after each \"=\", such as --map-value \"{}=LAP\": without one, \
             these assets get no type.",
            if new.len() == 1 {
                "1 value is not a code of an asset type".to_owned()
            } else {
                format!("{} values are not codes of asset types", new.len())
            },
            first.cell
        ));
    }
    options.value_mappings.extend(new);
}

/// Returns mappings that treat values of a column as empty cells: the values that `is_meant` selects and no option maps.
fn without_meaning(options: &Import, column: &Surveyed, is_meant: impl Fn(&str) -> bool) -> Vec<ValueMapping> {
    let all = column.spellings().filter(|value| is_meant(value)).map(|value| ValueMapping::new(&column.name, value, ""));
    all.filter(|new| !options.value_mappings.iter().any(|known| known.cell == new.cell)).collect()
}

fn unguessed(column: &Surveyed, strange: &[&str]) -> String {
    let values: Vec<&str> = known(&column.field).collect();
    let first = strange.first().copied().unwrap_or_default();
    format!(
        "{}: no guess for {}. Map each to its meaning, --map-value \"{}:{first}=…\": {}.",
        column.name,
        strange.join(", "),
        column.name,
        values.join(", ")
    )
}

/// Fields, their values, and the words for each value, separated by commas, in lower case and without punctuation. Ambiguous
/// words are left out: "in service" can mean a repair or normal use.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "status",
        "in_stock",
        "in stock,stock,available,free,spare,stored,storage,unassigned,ready to deploy,lager,auf lager,im lager,eingelagert,verfügbar,\
         frei,vorrat,reserve,en stock,disponible,réserve,libre,en almacén,almacén,reserva",
    ),
    (
        "status",
        "preparing",
        "preparation,in preparation,staging,provisioning,being set up,vorbereitung,in vorbereitung,wird vorbereitet,einrichtung,\
         in einrichtung,préparation,en préparation,preparación,en preparación",
    ),
    (
        "status",
        "in_use",
        "used,active,deployed,assigned,checked out,issued,in operation,in benutzung,in nutzung,im einsatz,in gebrauch,in betrieb,benutzt,\
         genutzt,aktiv,ausgegeben,vergeben,zugewiesen,utilisé,en utilisation,en service,attribué,affecté,actif,en uso,en servicio,asignado,entregado,activo",
    ),
    (
        "status",
        "in_service",
        "repair,in repair,being repaired,out for repair,maintenance,in maintenance,broken,defective,reparatur,in reparatur,zur reparatur,\
         wartung,in wartung,defekt,kaputt,réparation,en réparation,en maintenance,en panne,reparación,en reparación,averiado,\
         mantenimiento,en mantenimiento",
    ),
    (
        "status",
        "returned",
        "return,given back,handed back,zurück,zurückgegeben,rückgabe,rückläufer,retour,retourné,rendu,restitué,devuelto",
    ),
    (
        "status",
        "scrapped",
        "retired,disposed,disposed of,discarded,decommissioned,recycled,written off,end of life,verschrottet,ausgemustert,entsorgt,\
         abgeschrieben,ausgesondert,stillgelegt,rebut,mis au rebut,réformé,déclassé,mis hors service,desechado,retirado,descartado,\
         dado de baja,de baja",
    ),
    ("role", "viewer", "reader,read only,leser,lesend,lecteur,lector"),
    ("role", "helpdesk", "help desk,service desk,support,first level,1st level"),
    ("role", "technician", "techniker,technicien,technicienne,técnico,técnica"),
    ("role", "admin", "administrator,administrateur,administratrice,administrador,administradora"),
    ("is_active", "true", "yes,y,1,x,active,enabled,ja,j,wahr,aktiv,oui,o,vrai,actif,sí,si,s,verdadero,activo"),
    ("is_active", "false", "no,n,0,inactive,disabled,nein,falsch,inaktiv,deaktiviert,gesperrt,non,faux,inactif,falso,inactivo"),
];

/// Returns the values of a field with a fixed vocabulary; none for other fields.
fn known(field: &str) -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(move |(known, ..)| *known == field).map(|(_, value, _)| *value)
}

/// Finds the value for a word: an exact match, or the only value with a similar word.
pub fn guess(field: &str, word: &str) -> Option<&'static str> {
    let word = spaced(word);
    let candidates = || {
        let of_field = WORDS.iter().filter(|(known, ..)| *known == field);
        of_field.flat_map(|(_, value, words)| {
            std::iter::once(spaced(value)).chain(words.split(',').map(str::to_owned)).map(|w| (*value, w))
        })
    };
    if let Some((value, _)) = candidates().find(|(_, candidate)| *candidate == word) {
        return Some(value);
    }
    let tolerance = match word.chars().count() {
        0..=4 => return None,
        5..=8 => 1,
        _ => 2,
    };
    let near: Vec<(usize, &str)> = candidates().map(|(value, candidate)| (osa_distance(&word, &candidate), value)).collect();
    let (least, value) = near.iter().copied().min().filter(|(least, _)| *least <= tolerance)?;
    near.iter().all(|(distance, other)| *distance > least || *other == value).then_some(value)
}

/// Converts to lower case, with single spaces instead of punctuation.
fn spaced(text: &str) -> String {
    let lower = folded(text);
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Ignores a column `id` that contains another system's IDs.
fn foreign_ids(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let Some(column) = survey.column("id").filter(|column| column.ids == 0) else { return };
    if options.mappings.iter().any(|mapping| mapping.column == column.name) {
        return;
    }
    options.mappings.push(Mapping { column: column.name.clone(), field: None });
    notes.push(format!("{}: ignored, since its values are not IDs of this service.", column.name));
}

/// Suggests the column that identifies the record of a row.
fn matching(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    let candidates = if options.users { &USERS[..] } else { &ASSETS };
    let is_usable = |column: &&Surveyed| column.distinct() > 0 && (column.field != "id" || column.ids > 0);
    let column_of = |matching: &MatchBy| survey.column(matching.column()?).filter(is_usable);
    if options.match_by == MatchBy::None {
        let found = candidates.iter().find(|matching| column_of(matching).is_some());
        options.match_by = found.copied().unwrap_or(MatchBy::None);
        // Without `--create-unmatched`, the service would refuse new assets, whose tags it doesn't know yet.
        options.create_unmatched |= options.match_by == MatchBy::AssetTag;
    }
    let Some(column) = column_of(&options.match_by) else {
        let names: Vec<&str> = candidates.iter().filter_map(|matching| matching.column()).collect();
        notes.push(format!(
            "No --match, since no column has {}: importing the file twice creates everything twice.",
            names.join(" or ")
        ));
        return;
    };
    let usable = column.distinct() + column.doubled;
    let missing = survey.rows.saturating_sub(usable);
    if missing > 0 && !options.create_unmatched {
        notes.push(format!(
            "{}: {} without a value to match, and will be refused.{}",
            column.name,
            are(missing, "row"),
            seen(column)
        ));
    }
    if column.doubled > 0 {
        let others = are(column.doubled, "value");
        notes.push(format!("{}: {others} in another row, too. Rows with the same value will be refused.", column.name));
    }
    if options.match_by != MatchBy::SerialNumber
        && let Some(serials) = survey.column("serial_number")
    {
        // Unless rows are matched by serial number, the service would accept placeholders as serial numbers.
        options.value_mappings.extend(without_meaning(options, serials, |_| true));
    }
}

fn seen(column: &Surveyed) -> String {
    let placeholders: Vec<&str> = column.spellings().collect();
    if placeholders.is_empty() { String::new() } else { format!(" Placeholders: {}.", placeholders.join(", ")) }
}

/// The service's format comes first.
const FORMATS: [&str; 14] = [
    "YYYY-MM-DD",
    "DD.MM.YYYY",
    "DD.MM.YY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "DD/MM/YY",
    "MM/DD/YY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "DD MMM YYYY",
    "YYYY-MM-DD HH:mm:ss",
    "YYYY-MM-DDTHH:mm:ssZ",
    "DD.MM.YYYY HH:mm",
];

/// Returns the formats that match a date, except the service's.
pub fn formats_of(cell: &str) -> Vec<&'static str> {
    fitting(cell).filter(|format| FORMATS.first() != Some(format)).collect()
}

fn fitting(cell: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    static PARSED: LazyLock<Vec<(&str, DateFormat)>> =
        LazyLock::new(|| FORMATS.into_iter().filter_map(|format| Some((format, DateFormat::parse(format).ok()?))).collect());
    PARSED.iter().filter(move |(_, parsed)| parsed.date(cell).is_ok()).map(|(format, _)| *format)
}

#[derive(Debug, PartialEq, Eq)]
enum Finding<T> {
    /// There are no cells, or all have the service's format.
    Nothing,
    Clear(T),
    /// The cells match several formats with different meanings.
    Ambiguous(T, T),
}

/// Number of cells by the formats that they match.
#[derive(Debug, Default)]
struct Dates(BTreeMap<Vec<&'static str>, u64>);

impl Dates {
    fn note(&mut self, cell: &str) {
        if !cell.is_empty() && cell != "\\N" {
            *self.0.entry(fitting(cell).collect()).or_default() += 1;
        }
    }

    fn count(&self, is_wanted: impl Fn(&[&str]) -> bool) -> u64 {
        self.0.iter().filter(|(formats, _)| is_wanted(formats)).map(|(_, count)| count).sum()
    }

    /// Returns the most frequent format except the service's, which is always understood. Cells with a day above 12 show the
    /// order of day and month, unless another cell contradicts.
    fn finding(&self) -> Finding<&'static str> {
        let [own, others @ ..] = FORMATS;
        let number = |format: &&str| self.count(|formats| formats.contains(format) && !formats.contains(&own));
        let Some(format) = others.into_iter().rev().max_by_key(number).filter(|format| number(format) > 0) else {
            return Finding::Nothing;
        };
        let Some(other) = swapped(format) else { return Finding::Clear(format) };
        let only = |one: &str, other: &str| self.count(|formats| formats.contains(&one) && !formats.contains(&other));
        match (only(format, other), only(other, format)) {
            (1.., 0) => Finding::Clear(format),
            _ => Finding::Ambiguous(format, other),
        }
    }

    /// Returns the number of cells that match neither this format nor the service's.
    fn misfits(&self, format: &str) -> u64 {
        let [own, ..] = FORMATS;
        self.count(|formats| !formats.contains(&format) && !formats.contains(&own))
    }
}

/// Returns the format with day and month swapped, if [`FORMATS`] contains it.
fn swapped(format: &str) -> Option<&'static str> {
    let other = format.replace("DD", "_").replace("MM", "DD").replace('_', "MM");
    FORMATS.into_iter().find(|known| *known == other && *known != format)
}

#[derive(Debug, Default)]
struct Prices {
    /// Like `12,49`.
    with_comma: u64,
    /// Like `12.49`.
    with_point: u64,
    /// Like `1.249`, which can have a decimal point or a thousands separator.
    ambiguous: u64,
    /// Like `1,249`.
    thousands: u64,
}

impl Prices {
    fn note(&mut self, cell: &str) {
        let number = |price: Option<String>| price.and_then(|price| price.parse::<f64>().ok());
        let with_comma = number(price_with_comma(cell));
        match (with_comma, number(price_with_point(cell, false)), number(price_with_point(cell, true))) {
            (Some(one), Some(other), _) => self.ambiguous += u64::from((one - other).abs() > f64::EPSILON),
            (Some(_), None, Some(_)) => self.thousands += 1,
            (Some(_), None, None) => self.with_comma += 1,
            (None, Some(_), _) => self.with_point += 1,
            (None, None, _) => {}
        }
    }

    /// Returns whether prices have a decimal comma, rather than a decimal point and thousands separators.
    fn finding(&self) -> Finding<bool> {
        match (self.with_comma, self.with_point) {
            (1.., 0) => Finding::Clear(true),
            (0, 1..) if self.thousands > 0 => Finding::Clear(false),
            (0, 1..) => Finding::Nothing,
            (0, 0) if self.ambiguous + self.thousands == 0 => Finding::Nothing,
            _ => Finding::Ambiguous(true, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::args::tests::parsed;
    use crate::import::columns::suggest::as_option;
    use shared::domain::assets::asset::Status;
    use shared::domain::keys::api_key::Role;

    fn mapped(given: &[&str], columns: [(&str, &str, u64, u64); 2]) -> Vec<String> {
        let mut options = parsed(&[&["a.csv"], given].concat());
        let given = options.mappings.clone();
        let column = |(name, field, addresses, names): (&str, &str, u64, u64)| {
            let (name, field) = (name.to_owned(), field.to_owned());
            Surveyed { name, field, filled: 10, addresses, names, ..Surveyed::default() }
        };
        let survey = Survey { columns: columns.map(column).into(), ..Survey::default() };
        owners(&mut options, &survey, &given, &mut Vec::new());
        options.mappings.iter().map(as_option).collect()
    }

    #[test]
    fn cells_tell_how_users_are_named() {
        let (login, mail) = (("Nutzer", OWNER_NAME, 0, 0), ("Mail", "assigned_to_email", 10, 0));
        let (named, other) = (("Nutzer", OWNER_NAME, 0, 9), ("Ort", "notes", 0, 9));
        assert_eq!(mapped(&[], [named, other]), ["--map Nutzer=assigned_to_name"]);
        assert_eq!(mapped(&[], [login, other]), ["--map Nutzer="]);
        assert_eq!(mapped(&[], [named, mail]), ["--map Nutzer=", "--map Mail=assigned_to_email"]);
        assert_eq!(mapped(&[], [("Nutzer", OWNER_NAME, 10, 0), other]), ["--map Nutzer=assigned_to_email"]);
        assert_eq!(mapped(&["--map", "Nutzer=assigned_to_name"], [login, other]), ["--map Nutzer=assigned_to_name"]);
    }

    #[test]
    fn words_have_the_values_of_the_service() {
        assert!(known("status").eq(Status::ALL.iter().map(|status| status.as_str())));
        assert!(known("role").eq(Role::ALL.iter().map(|role| role.as_str())));
        assert!(known("is_active").eq(["true", "false"]) && known("name").next().is_none());
    }

    #[test]
    fn words_and_slips_of_the_pen_have_a_meaning() {
        for (field, word, meaning) in [
            ("status", "Auf Lager", "in_stock"),
            ("status", " LAGER ", "in_stock"),
            ("status", "In-Use", "in_use"),
            ("status", "im Einsatz", "in_use"),
            ("status", "ausgemusert", "scrapped"),
            ("status", "Zuru\u{308}ckgegeben", "returned"),
            ("status", "en réparation", "in_service"),
            ("status", "en service", "in_use"),
            ("status", "Dado de baja", "scrapped"),
            ("role", "Administratorr", "admin"),
            ("is_active", "Ja", "true"),
        ] {
            assert_eq!(guess(field, word), Some(meaning), "{word}");
        }
        for (field, word) in [("status", "verkauft"), ("status", ""), ("status", "?"), ("is_active", "jein"), ("name", "yes")] {
            assert_eq!(guess(field, word), None, "{word}");
        }
    }

    #[test]
    fn no_word_means_two_values() {
        let words: Vec<(&str, &str)> =
            WORDS.iter().flat_map(|(field, _, words)| words.split(',').map(move |word| (*field, word))).collect();
        let distinct: HashSet<_> = words.iter().collect();
        assert_eq!(words.len(), distinct.len());
        assert!(words.iter().all(|(_, word)| spaced(word) == *word));
    }

    fn dates(cells: &[&str]) -> Finding<&'static str> {
        let mut dates = Dates::default();
        cells.iter().for_each(|cell| dates.note(cell));
        dates.finding()
    }

    fn prices(cells: &[&str]) -> Finding<bool> {
        let mut prices = Prices::default();
        cells.iter().for_each(|cell| prices.note(cell));
        prices.finding()
    }

    #[test]
    fn dates_show_their_format() {
        assert_eq!(dates(&["05.03.2025", "", "31.12.2024", "soon"]), Finding::Clear("DD.MM.YYYY"));
        assert_eq!(dates(&["2025-03-05"]), Finding::Nothing);
        assert_eq!(dates(&["2025-03-05", "2025-03-06", "31.12.2024"]), Finding::Clear("DD.MM.YYYY"));
        assert_eq!(dates(&["soon", ""]), Finding::Nothing);
        assert_eq!(dates(&["05/03/2025", "03/25/2025"]), Finding::Clear("MM/DD/YYYY"));
        assert_eq!(dates(&["05/03/25", "25/03/25"]), Finding::Clear("DD/MM/YY"));
        assert_eq!(dates(&["2025-03-05 10:30:00"]), Finding::Clear("YYYY-MM-DD HH:mm:ss"));
        assert_eq!(formats_of("03/04/2025"), ["DD/MM/YYYY", "MM/DD/YYYY"]);
    }

    #[test]
    fn day_and_month_are_not_guessed() {
        assert_eq!(dates(&["05/03/2025", "01/02/2025"]), Finding::Ambiguous("DD/MM/YYYY", "MM/DD/YYYY"));
        assert_eq!(dates(&["25-03-2025", "24-03-2025", "03-25-2025"]), Finding::Ambiguous("DD-MM-YYYY", "MM-DD-YYYY"));
    }

    #[test]
    fn prices_show_their_comma() {
        assert_eq!(prices(&["1.249,00 €", "1.249", "999"]), Finding::Clear(true));
        assert_eq!(prices(&["12.49", "1.249", "999"]), Finding::Nothing);
        assert_eq!(prices(&["$12.49", "1,249.00", "1,249"]), Finding::Clear(false));
        assert_eq!(prices(&["$12.49", "1,249.00"]), Finding::Nothing);
        assert_eq!(prices(&["1,249", "999"]), Finding::Ambiguous(true, false));
        assert_eq!(prices(&["999", "", "free"]), Finding::Nothing);
        assert_eq!(prices(&["1.249"]), Finding::Ambiguous(true, false));
        assert_eq!(prices(&["12,49", "12.49"]), Finding::Ambiguous(true, false));
    }
}
