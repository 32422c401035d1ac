//! Parses the rows of an import from CSV (RFC 4180) or NDJSON. Each row becomes a JSON object, which is read like a request body.

pub use crate::domain::assets::asset::CUSTOM_FIELD;
use crate::domain::assets::csv_cell::{self, CLEAR};
use crate::domain::import::columns::{Columns, custom_field_fault, field_of};
use crate::domain::import::header::Header;
use crate::domain::import::parameters::{Delimiter, Headings, Reading};
use crate::domain::import::records::{Record, Records};
pub use crate::domain::import::suggestion::Format;
use crate::domain::import::{Kind, objects};
use crate::domain::values::field_error::FieldError;
use crate::domain::values::json;
use crate::domain::values::text::NUL;
use crate::http::requests::body::{Fields, FromBody, NOT_UTF8, utf8_json};
use crate::http::responses::ApiError;
use fields::CellType;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub const MAX_ROWS: usize = 200;
/// Number of bytes at the start of a body that are searched for zero bytes.
const MAX_CHECKED_BYTES: usize = 4 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub enum CustomCell {
    /// Clears the field.
    Clear,
    /// The text of a cell, which the asset type's schema interprets.
    Text(String),
    Value(Value),
}

/// A row before its fields are parsed.
#[derive(Debug, Clone, Default)]
pub struct Row {
    members: Vec<(String, String)>,
    pub custom_fields: Vec<(String, CustomCell)>,
    pub(super) errors: Vec<FieldError>,
}

impl Row {
    /// Returns the row's fields as a body, if every required field is valid, and all errors.
    pub fn read<B: FromBody>(&self) -> (Option<B>, Vec<FieldError>) {
        let members: Vec<String> =
            self.members.iter().map(|(name, json)| format!("{}:{json}", Value::from(name.as_str()))).collect();
        let (body, errors) = match B::read(format!("{{{}}}", members.join(",")).as_bytes()) {
            Ok(read) => read,
            Err(ApiError::Invalid(errors)) => (None, errors),
            Err(error) => (None, vec![FieldError::whole(error.to_string())]),
        };
        // If a row can't be split into cells, don't report missing fields.
        if self.members.is_empty() && !self.errors.is_empty() {
            return (None, self.errors.clone());
        }
        let cleared = |error: &FieldError| self.members.iter().any(|(name, json)| json == "null" && error.is_about(name));
        let errors = errors.into_iter().map(FieldError::in_column).map(|error| match cleared(&error) {
            true => FieldError { reason: "can't be cleared".into(), ..error },
            false => error,
        });
        (body, self.errors.iter().cloned().chain(errors).collect())
    }

    /// Whether the row has the field with a value other than a string or null.
    pub(super) fn is_no_text(&self, name: &str) -> bool {
        let member = self.members.iter().find(|(known, _)| known == name);
        member.is_some_and(|(_, json)| json != "null") && self.text(name).is_none()
    }

    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let (_, json) = self.members.iter().find(|(known, _)| known == name)?;
        serde_json::from_str::<String>(json).ok()
    }

    fn add_constants(&mut self, columns: &Columns) {
        for (field, value) in columns.constants() {
            // The parameters were checked.
            let Ok(value) = value else { continue };
            self.add(field, columns.kind.column(field).map(|column| column.cell), &value);
        }
    }

    fn add_json(&mut self, name: &str, json: &str) {
        match (name.strip_prefix(CUSTOM_FIELD), json::parse(json)) {
            (Some(field), Ok(value)) => self.custom_fields.push((field.to_owned(), CustomCell::Value(value))),
            (Some(_), Err(_)) => self.errors.push(FieldError::column(name, "is not JSON")),
            (None, _) => self.members.push((name.to_owned(), json.to_owned())),
        }
    }

    fn add(&mut self, name: &str, cell_type: Option<CellType>, cell: &str) {
        if cell.is_empty() {
            return;
        }
        let text = &*csv_cell::to_text(cell);
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let is_custom = name.starts_with(CUSTOM_FIELD) || cell_type == Some(CellType::Json);
        if is_custom && utf8_json(text.as_bytes()).is_none() && is_json(text) {
            self.errors.push(FieldError::column(name, NOT_UTF8));
            return;
        }
        if let Some(field) = name.strip_prefix(CUSTOM_FIELD) {
            let cell = if cell == CLEAR { CustomCell::Clear } else { CustomCell::Text(text.to_owned()) };
            self.custom_fields.push((field.to_owned(), cell));
            return;
        }
        let json = match cell_type.unwrap_or(CellType::Text) {
            _ if cell == CLEAR => "null".to_owned(),
            CellType::Number if text.trim().starts_with(|c: char| c == '-' || c.is_ascii_digit()) && is_json(text) => {
                text.trim().to_owned()
            }
            CellType::Boolean if ["true", "false"].contains(&text.to_lowercase().as_str()) => text.to_lowercase(),
            CellType::Json if is_json(text) => text.to_owned(),
            CellType::Word | CellType::Date => Value::from(text.trim()).to_string(),
            _ => Value::from(text).to_string(),
        };
        self.members.push((name.to_owned(), json));
    }
}

/// The rows of a file.
#[derive(Debug, Default)]
pub struct File {
    pub rows: Vec<Row>,
    /// The headings, by field.
    pub headings: HashMap<String, String>,
}

/// Splits a body into rows. `matched` is the field that identifies the record a row updates.
///
/// # Errors
///
/// Returns [`ApiError::Malformed`] if the body isn't text, and [`ApiError::Invalid`] for unknown or repeated columns, parameters that
/// don't fit the columns, a missing `matched` column, or more than [`MAX_ROWS`] rows.
pub fn parse(body: &[u8], format: Format, kind: Kind, reading: &Reading, matched: Option<&str>) -> Result<File, ApiError> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if is_other_than_utf8(body, format) {
        let detail = "The body is not UTF-8 text. Save a workbook as CSV, and convert UTF-16 to UTF-8.";
        return Err(ApiError::Malformed(detail.to_owned()));
    }
    let resolve =
        |names: &[String], repeated: &BTreeMap<String, String>| Columns::resolve(kind, names, repeated, reading, matched);
    let mut parsed = match format {
        Format::Csv => parse_csv(body, reading, resolve)?,
        Format::Ndjson => parse_ndjson(body, reading, resolve),
    };
    // Lines that aren't objects have errors of their own.
    let is_readable = |columns: &Columns| format == Format::Csv || !columns.columns.is_empty();
    let is_missing =
        |matched: &&str| parsed.columns.as_ref().is_ok_and(|columns| columns.column(matched).is_none() && is_readable(columns));
    if let Some(matched) = matched.filter(|_| parsed.count > 0).filter(is_missing) {
        parsed.errors.push(FieldError::parameter("match", format!("needs the column {matched}")));
    }
    if parsed.count > MAX_ROWS {
        let detail = format!(
            "The file has {} rows, but a request can have at most {MAX_ROWS}. Split it into several requests.",
            parsed.count
        );
        parsed.errors.insert(0, FieldError::whole(detail));
    }
    match parsed.columns {
        Ok(columns) if parsed.errors.is_empty() => {
            let headings = columns.columns.into_iter().map(|column| (column.field, column.heading)).collect();
            Ok(File { rows: parsed.rows, headings })
        }
        columns => Err(ApiError::Invalid([parsed.errors, columns.err().unwrap_or_default()].concat())),
    }
}

/// Whether the body is a workbook or UTF-16 text, which have zero bytes in the header row or at the start. A zero byte elsewhere
/// is an error in its row.
pub(super) fn is_other_than_utf8(body: &[u8], format: Format) -> bool {
    let is_in_lines = format == Format::Csv || !body.starts_with(b"{");
    let checked = if is_in_lines { MAX_CHECKED_BYTES } else { 2 };
    let beginning = body.get(..checked).unwrap_or(body);
    let line = beginning.split(|byte| *byte == b'\n' && format == Format::Csv).next();
    line.is_some_and(|line| line.contains(&0))
}

struct Parsed {
    columns: Result<Columns, Vec<FieldError>>,
    /// Errors of the file besides those of its columns.
    errors: Vec<FieldError>,
    /// The first rows of the body, at most [`MAX_ROWS`].
    rows: Vec<Row>,
    /// Number of all rows in the body.
    count: usize,
}

fn parse_csv(
    body: &[u8],
    reading: &Reading,
    resolve: impl Fn(&[String], &BTreeMap<String, String>) -> Result<Columns, Vec<FieldError>>,
) -> Result<Parsed, ApiError> {
    let text = String::from_utf8_lossy(body);
    let nothing = Parsed { columns: Ok(Columns::default()), errors: Vec::new(), rows: Vec::new(), count: 0 };
    let Some(header) = Header::read(&text, reading, Delimiter::Comma) else {
        let is_beyond = |line: &u32| *line > 1;
        return match reading.header_line.filter(is_beyond) {
            Some(line) => Err(ApiError::Invalid(vec![FieldError::parameter(
                "header_line",
                format!("{line}: the file ends before this line"),
            )])),
            None => Ok(nothing),
        };
    };
    if let Some(broken) = header.broken {
        return Err(ApiError::Invalid(vec![FieldError::whole(format!("The header row {broken}."))]));
    }
    if header.names.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(ApiError::Malformed(format!("The header row {NOT_UTF8}.")));
    }
    let columns = resolve(&header.names, &header.repeated);
    let mut parsed = Parsed { columns, ..nothing };
    if let [only] = header.names.as_slice()
        && only.contains([';', '\t'])
    {
        parsed
            .errors
            .push(FieldError::whole("The cells must be separated by commas, or say delimiter=semicolon or delimiter=tab."));
    }
    let body = text.get(header.end..).unwrap_or_default();
    let mut records = Records::new(body, header.delimiter, header.next_line);
    let mut nameless = BTreeSet::new();
    while let Some(record) = records.next(Some(header.names.len())) {
        if record.broken.is_none() && record.cells.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        parsed.count += 1;
        if parsed.count > MAX_ROWS {
            continue;
        }
        let Ok(columns) = &parsed.columns else { continue };
        let is_filled = |index: &&usize| record.cells.get(**index).is_some_and(|cell| !cell.trim().is_empty());
        nameless.extend(columns.nameless.iter().filter(is_filled).map(|index| index + 1));
        let is_cut_off = records.ends_openly(&record);
        parsed.rows.push(csv_row(&record, columns, header.names.len(), is_cut_off));
    }
    let name = |place| FieldError::whole(format!("Column {place} has cells but no heading. Name it or remove it."));
    parsed.errors.extend(nameless.into_iter().map(name));
    Ok(parsed)
}

/// Reads the cells of a row of a file with `count` columns. The replacement character stands for bytes that are not text.
fn csv_row(record: &Record, columns: &Columns, count: usize, is_cut_off: bool) -> Row {
    let mut row = Row::default();
    let cells = &record.cells;
    if let Some(broken) = record.broken {
        row.errors.push(FieldError::whole(format!("The row {broken}.")));
        return row;
    }
    if cells.len() < count || cells.iter().skip(count).any(|cell| !cell.trim().is_empty()) {
        let cut_off = if is_cut_off { "; the file ends in the middle of this row" } else { "" };
        let detail = format!("The row has {} cells, but the header row has {count}{cut_off}.", cells.len());
        row.errors.push(FieldError::whole(detail));
        return row;
    }
    for column in &columns.columns {
        let Some(text) = columns.text(column, |index| cells.get(index)) else { continue };
        if text.contains(char::REPLACEMENT_CHARACTER) {
            row.errors.push(FieldError::column(&column.field, NOT_UTF8));
        } else if text.contains('\0') {
            row.errors.push(FieldError::column(&column.field, NUL));
        } else {
            match columns.convert(column, text) {
                Ok(text) => row.add(&column.field, columns.kind.column(&column.field).map(|column| column.cell), &text),
                Err(detail) => row.errors.push(FieldError::column(&column.field, detail)),
            }
        }
    }
    row.add_constants(columns);
    row
}

/// The members of a line, by the index of their name, and the row's errors.
type Members<'a> = (Vec<(usize, &'a str)>, Row);

fn parse_ndjson(
    body: &[u8],
    reading: &Reading,
    resolve: impl Fn(&[String], &BTreeMap<String, String>) -> Result<Columns, Vec<FieldError>>,
) -> Parsed {
    let (mut names, mut places) = (Vec::new(), HashMap::new());
    let lines = objects::lines(body);
    let members: Vec<Members<'_>> = lines.iter().take(MAX_ROWS).map(|line| members(line, &mut names, &mut places)).collect();
    if !names.is_empty() {
        // A part of a file can lack members that are mapped.
        let missing: Vec<String> = reading.maps.iter().flat_map(|map| map.missing(&Headings::new(&names))).collect();
        names.extend(missing);
    }
    // Without any member, each line has an error of its own.
    let columns = if names.is_empty() { Ok(Columns::default()) } else { resolve(&names, &BTreeMap::new()) };
    let row = |members| columns.as_ref().map_or_else(|_| Row::default(), |columns| ndjson_row(members, columns));
    let rows = members.into_iter().map(row).collect();
    Parsed { columns, errors: Vec::new(), rows, count: lines.len() }
}

fn members<'a>(line: &'a [u8], names: &mut Vec<String>, places: &mut HashMap<String, usize>) -> Members<'a> {
    let mut row = Row::default();
    let fields = match Fields::parse(line) {
        Ok(fields) => fields,
        Err(error) => {
            let reason = if let ApiError::Malformed(reason) = error { reason } else { "Write one object per line.".to_owned() };
            row.errors.push(FieldError::whole(format!("The line is not a JSON object. {reason}")));
            return (Vec::new(), row);
        }
    };
    let (members, errors) = fields.into_members();
    row.errors = errors.into_iter().map(FieldError::in_column).collect();
    let (mut seen, mut own, mut found) = (HashSet::new(), HashSet::new(), Vec::new());
    // Repeated members already have an error.
    for (sent, json) in members.into_iter().filter(|(name, _)| seen.insert(name.clone())) {
        let name = field_of(&sent);
        if let Some(error) = custom_field_fault(&name) {
            row.errors.push(FieldError::column(&name, error));
            continue;
        }
        let place = *places.entry(name.clone()).or_insert_with(|| {
            names.push(name.clone());
            names.len() - 1
        });
        if own.insert(place) {
            found.push((place, json));
        } else {
            row.errors.push(FieldError::column(&name, "must be sent only once; another name looks the same"));
        }
    }
    (found, row)
}

fn ndjson_row((members, mut row): Members<'_>, columns: &Columns) -> Row {
    let raw: HashMap<usize, &str> = members.into_iter().collect();
    let texts: HashMap<usize, String> =
        raw.iter().filter_map(|(place, json)| Some((*place, serde_json::from_str(json).ok()?))).collect();
    for column in &columns.columns {
        let text = columns.text(column, |place| texts.get(&place).map(String::as_str));
        let json = raw.get(&column.index).copied();
        let Some(text) = text.filter(|text| json.is_some() || !text.is_empty()) else {
            // Not a string.
            json.into_iter().for_each(|json| row.add_json(&column.field, json));
            continue;
        };
        match (columns.convert(column, text), json) {
            (Err(detail), _) => row.errors.push(FieldError::column(&column.field, detail)),
            // As an empty cell. A custom field can have an empty text.
            (Ok(text), _) if text.is_empty() && !column.field.starts_with(CUSTOM_FIELD) => {}
            (Ok(text), Some(json)) if texts.get(&column.index).is_some_and(|sent| *sent == text) => {
                row.add_json(&column.field, json)
            }
            (Ok(text), _) => row.add(&column.field, columns.kind.column(&column.field).map(|column| column.cell), &text),
        }
    }
    row.add_constants(columns);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::field_error::ErrorLocation;

    crate::body! {
        pub struct TestRow {
            optional name: crate::domain::values::text::Name,
        }
        unchanged: &["purchase_price", "notes", "custom_fields"]
    }

    fn read(body: &[u8], format: Format, kind: Kind) -> Result<Vec<Row>, ApiError> {
        parse(body, format, kind, &Reading::default(), None).map(|file| file.rows)
    }

    fn rows(body: impl AsRef<[u8]>, format: Format) -> Vec<Row> {
        read(body.as_ref(), format, Kind::Assets).unwrap_or_else(|error| unreachable!("{error}"))
    }

    fn csv(text: &str) -> Vec<Row> {
        rows(text, Format::Csv)
    }

    fn errors(body: &str, format: Format) -> Vec<FieldError> {
        match read(body.as_bytes(), format, Kind::Assets) {
            Err(ApiError::Invalid(errors)) => errors,
            _ => panic!("{body} was accepted"),
        }
    }

    fn members(row: &Row) -> Vec<(&str, &str)> {
        row.members.iter().map(|(name, json)| (name.as_str(), json.as_str())).collect()
    }

    fn locations(row: &Row) -> Vec<ErrorLocation> {
        row.read::<TestRow>().1.into_iter().map(|error| error.location).collect()
    }

    #[test]
    fn cells_become_json_by_the_type_of_their_column() {
        let rows = csv(
            "name,purchase_price,custom_fields,custom_fields.a\n12,12.50,\"{\"\"x\"\":1}\",5\n'=x,\"12,58\",none,\\N\n,\\N,,\n",
        );
        assert_eq!(members(&rows[0]), [("name", "\"12\""), ("purchase_price", "12.50"), ("custom_fields", "{\"x\":1}")]);
        assert_eq!(rows[0].custom_fields, [("a".to_owned(), CustomCell::Text("5".to_owned()))]);
        assert_eq!(members(&rows[1]), [("name", "\"=x\""), ("purchase_price", "\"12,58\""), ("custom_fields", "\"none\"")]);
        assert_eq!(rows[1].custom_fields, [("a".to_owned(), CustomCell::Clear)]);
        assert_eq!(members(&rows[2]), [("purchase_price", "null")]);
        assert_eq!((rows[0].text("name"), rows[0].text("purchase_price")), (Some("12".to_owned()), None));
        let users = read(b"is_active,role\nTRUE,x\nyes,\n", Format::Csv, Kind::Users).unwrap_or_default();
        assert_eq!(members(&users[0]), [("is_active", "true"), ("role", "\"x\"")]);
        assert_eq!(members(&users[1]), [("is_active", "\"yes\"")]);
    }

    #[test]
    fn a_row_that_is_cut_off_or_not_utf8_is_the_only_one_that_is_lost() {
        let rows = rows(b"name,notes\ngood,1\nb\xffd,2\nshort\n\n\"quoted \"\"inside\"\"\",3\n\"cut off,4", Format::Csv);
        let found: Vec<_> = rows.iter().map(locations).collect();
        let expected = [
            vec![],
            vec![ErrorLocation::Column("name".to_owned())],
            vec![ErrorLocation::Whole],
            vec![],
            vec![ErrorLocation::Whole],
        ];
        assert_eq!(found, expected);
        assert_eq!(rows[3].text("name").as_deref(), Some("quoted \"inside\""));
        assert_eq!(locations(&csv("name,notes\n5\" disk,\"cut off")[0]), [ErrorLocation::Whole]);
        let inches = csv("name,notes\nMonitor 24\",1");
        assert_eq!((locations(&inches[0]), inches[0].text("name").as_deref()), (vec![], Some("Monitor 24\"")));
        assert_eq!(locations(&csv("name,notes\na,\"1")[0]), [ErrorLocation::Whole]);
        let mended = csv("name,notes\na,\"24 inch\nb,2\nc,3\n");
        assert_eq!(mended.iter().map(locations).collect::<Vec<_>>(), [vec![ErrorLocation::Whole], vec![], vec![]]);
    }

    #[test]
    fn the_errors_of_a_row_name_its_columns() {
        let (row, errors) = csv("name,notes\n ,x\n")[0].read::<TestRow>();
        let columns: Vec<_> = errors.into_iter().map(|error| error.location).collect();
        assert!(row.is_some_and(|row| row.name.is_none()));
        assert_eq!(columns, [ErrorLocation::Column("name".to_owned())]);
    }

    #[test]
    fn a_zero_byte_costs_only_its_row_and_utf16_the_whole_body() {
        let name = || vec![ErrorLocation::Column("name".to_owned())];
        let found = rows(b"name,custom_fields.x\na,1\nb\0,2\nc,3\0\n", Format::Csv);
        let custom = vec![ErrorLocation::Column("custom_fields.x".to_owned())];
        assert_eq!(found.iter().map(locations).collect::<Vec<_>>(), [vec![], name(), custom]);
        let found = rows(b"{\"name\":\"a\0\"}\n{\"name\":\"b\"}\n", Format::Ndjson);
        assert_eq!(found.iter().map(locations).collect::<Vec<_>>(), [vec![ErrorLocation::Whole], vec![]]);
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (body, format) in [
            (utf16("name\na\n"), Format::Csv),
            (utf16("{\"name\":\"a\"}\n"), Format::Ndjson),
            (utf16("\u{feff}{\"name\":\"a\"}\n"), Format::Ndjson),
            (b"PK\x03\x04\x14\0\x06\0\n".to_vec(), Format::Csv),
        ] {
            let refused = read(&body, format, Kind::Assets);
            assert!(matches!(refused, Err(ApiError::Malformed(detail)) if detail.contains("UTF-16")), "{body:?}");
        }
    }

    #[test]
    fn an_empty_heading_is_an_error_only_of_a_column_with_cells() {
        let rows = csv("name,,notes\na,,1\nb, ,2\n");
        assert_eq!((members(&rows[0]).len(), members(&rows[1]).len()), (2, 2));
        let errors = errors("name,,notes\na,,1\nb,x,2\n", Format::Csv);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].reason.text.starts_with("Column 2 has cells but no heading."), "{errors:?}");
    }

    #[test]
    fn headings_that_look_the_same_name_the_same_field() {
        let found = csv("custom_fields.Fa\u{308}rg ,custom_fields. ram\n1,2\n");
        let names: Vec<&str> = found[0].custom_fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["F\u{e4}rg", "ram"]);
        for (text, column) in [
            ("custom_fields.Fa\u{308}rg,custom_fields.F\u{e4}rg\n", "custom_fields.F\u{e4}rg"),
            ("custom_fields.\u{200b}x\n", "custom_fields.\u{200b}x"),
            ("custom_fields.\n", "custom_fields."),
        ] {
            let found = errors(text, Format::Csv);
            assert_eq!(
                found.iter().map(|error| &error.location).collect::<Vec<_>>(),
                [&ErrorLocation::Column(column.to_owned())]
            );
        }
        let found = rows(b"{\"custom_fields.a \":1,\"custom_fields.a\":2}", Format::Ndjson);
        assert_eq!(found[0].read::<TestRow>().1.len(), 1);
    }

    #[test]
    fn parameters_are_for_objects_as_well_as_for_cells() {
        let parameters = [
            ("map", "Preis=purchase_price"),
            ("map", "A + B=name"),
            ("decimal", "comma"),
            ("set", "notes=x"),
            ("value", "name:1 2=one"),
        ];
        let reading = Reading::parse(parameters).unwrap_or_default();
        let read = |body: &[u8], format| {
            let file = parse(body, format, Kind::Assets, &reading, None).unwrap_or_default();
            let rows: Vec<_> =
                file.rows.iter().map(|row| members(row).iter().map(|(_, json)| (*json).to_owned()).collect()).collect();
            (rows, file.headings.get("name").cloned())
        };
        let expected = |price: &str, name: &str| [price, &format!("\"{name}\""), "\"x\""].map(str::to_owned).to_vec();
        let csv = read("Preis,A,B\n\"1,5 €\",1,2\n2,a,\n".as_bytes(), Format::Csv);
        assert_eq!(csv, (vec![expected("1.50", "one"), expected("2.00", "a")], Some("A".to_owned())));
        let objects =
            read("[{\"Preis\":\"1,5 €\",\"A\":\"1\",\"B\":\"2\"},\n{\"Preis\":2.50,\"A\":\"a\"}]".as_bytes(), Format::Ndjson);
        assert_eq!(objects.0, [expected("1.50", "one"), expected("2.50", "a")]);
        // An empty text is an empty cell, except in a custom field.
        let body = br#"{"name":"","purchase_price":"","location":"","notes":"x","custom_fields.a":""}"#;
        let empty = rows(body, Format::Ndjson);
        assert_eq!((members(&empty[0]).len(), empty[0].custom_fields.len()), (1, 1));
        // Some parts of a file lack a member.
        let part = read(b"{\"A\":\"a\"}", Format::Ndjson);
        assert_eq!(part.0, [["\"a\"", "\"x\""]]);
    }
}
