//! Parses the rows of an import from CSV (RFC 4180) or NDJSON. Each row becomes a JSON object, which is read like a request body.

pub use crate::domain::assets::asset::CUSTOM_FIELD;
use crate::domain::assets::csv_cell::{self, CLEAR};
use crate::domain::catalog::custom_fields::field_name;
use crate::domain::values::field_error::{FieldError, unknown_name};
use crate::domain::values::json::{self, PRIVATE_NAME};
use crate::domain::values::text::NUL;
use crate::http::requests::body::{Fields, FromBody, NOT_UTF8, utf8, utf8_json};
use crate::http::responses::ApiError;
use fields::{CellType, Column};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::io::Read;

pub const MAX_ROWS: usize = 200;
/// Number of bytes at the start of a body that are searched for zero bytes.
const MAX_CHECKED_BYTES: usize = 4 * 1024;
/// Longer names of unknown columns are truncated.
const MAX_SHOWN_CHARS: usize = 255;
const MAX_NAMED_COLUMNS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    Csv,
    Ndjson,
}

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

/// Splits a body into rows with the `known` columns. If these include `custom_fields`, individual custom fields can be columns,
/// too. `matched` is the column that identifies the record a row updates.
///
/// # Errors
///
/// Returns [`ApiError::Malformed`] if the body isn't text, and [`ApiError::Invalid`] for unknown or repeated columns, a missing
/// `matched` column, or more than [`MAX_ROWS`] rows.
pub fn parse(body: &[u8], format: RowFormat, known: &[Column], matched: Option<&str>) -> Result<Vec<Row>, ApiError> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if is_other_than_utf8(body, format) {
        let detail = "The body is not UTF-8 text. Save a workbook as CSV, and convert UTF-16 to UTF-8.";
        return Err(ApiError::Malformed(detail.to_owned()));
    }
    let ParsedRows { columns, nameless, rows, count } = match format {
        RowFormat::Csv => parse_csv(body, known)?,
        RowFormat::Ndjson => parse_ndjson(body),
    };
    let mut errors = column_errors(&columns, known);
    errors.extend(
        nameless.iter().map(|place| FieldError::whole(format!("Column {place} has cells but no heading. Name it or remove it."))),
    );
    if let [only] = columns.as_slice()
        && only.contains([';', '\t'])
    {
        errors.push(FieldError::whole("The cells must be separated by commas."));
    }
    if let Some(matched) = matched.filter(|matched| count > 0 && !columns.iter().any(|column| column == matched)) {
        errors.push(FieldError::parameter("match", format!("needs the column {matched}")));
    }
    if count > MAX_ROWS {
        let detail =
            format!("The file has {count} rows, but a request can have at most {MAX_ROWS}. Split it into several requests.");
        errors.insert(0, FieldError::whole(detail));
    }
    if errors.is_empty() { Ok(rows) } else { Err(ApiError::Invalid(errors)) }
}

/// Whether the body is a workbook or UTF-16 text, which have zero bytes in the header row or at the start. A zero byte elsewhere
/// is an error in its row.
fn is_other_than_utf8(body: &[u8], format: RowFormat) -> bool {
    let is_in_lines = format == RowFormat::Csv || !body.starts_with(b"{");
    let checked = if is_in_lines { MAX_CHECKED_BYTES } else { 2 };
    let beginning = body.get(..checked).unwrap_or(body);
    let line = beginning.split(|byte| *byte == b'\n' && format == RowFormat::Csv).next();
    line.is_some_and(|line| line.contains(&0))
}

#[derive(Default)]
struct ParsedRows {
    columns: Vec<String>,
    /// Positions, from 1, of columns with cells but no heading.
    nameless: BTreeSet<usize>,
    /// The first rows of the body, at most [`MAX_ROWS`].
    rows: Vec<Row>,
    /// Number of all rows in the body.
    count: usize,
}

impl ParsedRows {
    /// Adds a row. Only counts rows beyond [`MAX_ROWS`].
    fn push(&mut self, row: impl FnOnce() -> Row) {
        self.count += 1;
        if self.count <= MAX_ROWS {
            self.rows.push(row());
        }
    }
}

/// A line appended to a CSV body. It becomes part of a cell only if the cell has an unclosed quote.
const AFTER_BODY: &[u8] = b"\nx";

fn parse_csv(body: &[u8], known: &[Column]) -> Result<ParsedRows, ApiError> {
    let input = body.chain(AFTER_BODY);
    let end = (body.len() + AFTER_BODY.len()) as u64;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = csv::ByteRecord::new();
    // Returns whether the row has an unclosed quote: it then contains the line break after the body. Returns `None` after the
    // last row.
    let mut read = |record: &mut csv::ByteRecord| {
        reader.read_byte_record(record).map_err(|error| ApiError::Malformed(format!("The body is not CSV: {error}.")))?;
        let is_within = reader.position().byte() < end;
        let is_cut_off = !is_within && record.iter().any(|cell| cell.contains(&b'\n'));
        Ok::<_, ApiError>((is_within || is_cut_off).then_some(is_cut_off))
    };
    let mut parsed = ParsedRows::default();
    match read(&mut record)? {
        None => return Ok(parsed),
        Some(true) => return Err(ApiError::Invalid(vec![FieldError::whole("A quoted cell in the header row is not closed.")])),
        Some(false) => {}
    }
    let name = |name: &[u8]| {
        let name = utf8(name).ok_or_else(|| ApiError::Malformed(format!("The header row {NOT_UTF8}.")))?;
        let name = name.trim();
        Ok(if name.starts_with(CUSTOM_FIELD) { custom_column(&csv_cell::to_text(name)) } else { name.to_owned() })
    };
    parsed.columns = record.iter().map(name).collect::<Result<_, ApiError>>()?;
    let cell_type = |name: &String| known.iter().find(|column| column.name == name).map(|column| column.cell);
    let types: Vec<Option<CellType>> = parsed.columns.iter().map(cell_type).collect();
    let columns = parsed.columns.clone();
    while let Some(is_cut_off) = read(&mut record)? {
        let filled =
            columns.iter().zip(&record).zip(1..).filter(|((column, cell), _)| column.is_empty() && !cell.trim_ascii().is_empty());
        parsed.nameless.extend(filled.map(|(_, place)| place));
        parsed.push(|| csv_row(&record, &columns, &types, is_cut_off));
    }
    Ok(parsed)
}

/// Normalizes the field name in a `custom_fields.<name>` column. Returns other columns and invalid names unchanged.
pub(super) fn custom_column(column: &str) -> String {
    let name = column.strip_prefix(CUSTOM_FIELD).map(field_name);
    name.and_then(Result::ok).map_or_else(|| column.to_owned(), |name| format!("{CUSTOM_FIELD}{name}"))
}

/// Returns the error in the field name of a `custom_fields.<name>` column.
fn custom_column_error(column: &str) -> Option<String> {
    column.strip_prefix(CUSTOM_FIELD).and_then(|name| field_name(name).err()).map(|error| format!("names a field that {error}"))
}

fn csv_row(record: &csv::ByteRecord, columns: &[String], types: &[Option<CellType>], is_cut_off: bool) -> Row {
    let mut row = Row::default();
    if is_cut_off {
        row.errors.push(FieldError::whole("Unclosed quote: the rest of the file was read as one cell."));
    } else if record.len() != columns.len() {
        let detail = format!("The row has {} cells, but the header row has {}.", record.len(), columns.len());
        row.errors.push(FieldError::whole(detail));
    } else {
        for ((column, cell_type), cell) in columns.iter().zip(types).zip(record).filter(|((column, _), _)| !column.is_empty()) {
            match utf8(cell) {
                Some(cell) if cell.contains('\0') => row.errors.push(FieldError::column(column, NUL)),
                Some(cell) => row.add(column, *cell_type, cell),
                None => row.errors.push(FieldError::column(column, NOT_UTF8)),
            }
        }
    }
    row
}

fn parse_ndjson(body: &[u8]) -> ParsedRows {
    let mut parsed = ParsedRows::default();
    let mut columns = BTreeSet::new();
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        parsed.push(|| ndjson_row(line, &mut columns));
    }
    parsed.columns = columns.into_iter().collect();
    parsed
}

fn ndjson_row(line: &[u8], columns: &mut BTreeSet<String>) -> Row {
    let mut row = Row::default();
    let fields = match Fields::parse(line) {
        Ok(fields) => fields,
        Err(error) => {
            let reason = if let ApiError::Malformed(reason) = error { reason } else { "Write one object per line.".to_owned() };
            row.errors.push(FieldError::whole(format!("The line is not a JSON object. {reason}")));
            return row;
        }
    };
    let (members, errors) = fields.into_members();
    row.errors = errors.into_iter().map(FieldError::in_column).collect();
    let (mut seen, mut names) = (HashSet::new(), HashSet::new());
    // Repeated members already have an error.
    for (sent, json) in members.into_iter().filter(|(name, _)| seen.insert(name.clone())) {
        let name = custom_column(&sent);
        if let Some(error) = custom_column_error(&name) {
            row.errors.push(FieldError::column(&name, error));
            continue;
        }
        if !names.insert(name.clone()) {
            row.errors.push(FieldError::column(&name, "must be sent only once; another name looks the same"));
            continue;
        }
        match (name.strip_prefix(CUSTOM_FIELD), json::parse(json)) {
            (Some(field), Ok(value)) => row.custom_fields.push((field.to_owned(), CustomCell::Value(value))),
            (Some(_), Err(_)) => row.errors.push(FieldError::column(&name, "is not JSON")),
            (None, _) => row.members.push((name.clone(), json.to_owned())),
        }
        columns.insert(name);
    }
    row
}

/// Returns errors for unknown and repeated columns, at most [`MAX_NAMED_COLUMNS`].
fn column_errors(columns: &[String], known: &[Column]) -> Vec<FieldError> {
    let mut known: Vec<&str> = known.iter().map(|column| column.name).collect();
    let has_custom_fields = known.contains(&"custom_fields");
    if has_custom_fields {
        known.push("custom_fields.<name>");
    }
    let (mut seen, mut errors) = (HashSet::new(), Vec::new());
    for column in columns.iter().filter(|column| !column.is_empty()) {
        if errors.len() == MAX_NAMED_COLUMNS {
            break;
        }
        let shown = || column.chars().take(MAX_SHOWN_CHARS).collect::<String>();
        let is_custom = has_custom_fields && column.starts_with(CUSTOM_FIELD);
        if is_custom && json::is_private(&column[CUSTOM_FIELD.len()..]) {
            errors.push(FieldError::column(&shown(), PRIVATE_NAME));
        } else if !seen.insert(column) {
            errors.push(FieldError::column(&shown(), "must not occur more than once"));
        } else if let Some(error) = custom_column_error(column).filter(|_| is_custom) {
            errors.push(FieldError::column(&shown(), error));
        } else if !is_custom && !known.contains(&column.as_str()) {
            let detail = unknown_name(&shown(), &known, "column", errors.len());
            errors.push(FieldError::column(&shown(), detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::field_error::ErrorLocation;

    const COLUMNS: &[Column] = &[
        Column::new("name", CellType::Text, ""),
        Column::new("price", CellType::Number, ""),
        Column::new("active", CellType::Boolean, ""),
        Column::new("custom_fields", CellType::Json, ""),
    ];

    crate::body! {
        pub struct TestRow {
            optional name: crate::domain::values::text::Name,
            optional active: bool,
        }
        unchanged: &["price", "custom_fields"]
    }

    fn csv(text: &str) -> Vec<Row> {
        parse(text.as_bytes(), RowFormat::Csv, COLUMNS, None).unwrap_or_else(|error| unreachable!("{error}"))
    }

    fn members(row: &Row) -> Vec<(&str, &str)> {
        row.members.iter().map(|(name, json)| (name.as_str(), json.as_str())).collect()
    }

    #[test]
    fn cells_become_json_by_the_type_of_their_column() {
        let rows = csv(
            "name,price,active,custom_fields,custom_fields.a\n12,12.50,TRUE,\"{\"\"x\"\":1}\",5\n'=x,\"1,5\",yes,none,\\N\n,\\N,,,\n",
        );
        assert_eq!(
            members(&rows[0]),
            [("name", "\"12\""), ("price", "12.50"), ("active", "true"), ("custom_fields", "{\"x\":1}")]
        );
        assert_eq!(rows[0].custom_fields, [("a".to_owned(), CustomCell::Text("5".to_owned()))]);
        assert_eq!(
            members(&rows[1]),
            [("name", "\"=x\""), ("price", "\"1,5\""), ("active", "\"yes\""), ("custom_fields", "\"none\"")]
        );
        assert_eq!(rows[1].custom_fields, [("a".to_owned(), CustomCell::Clear)]);
        assert_eq!(members(&rows[2]), [("price", "null")]);
        assert_eq!((rows[0].text("name"), rows[0].text("price")), (Some("12".to_owned()), None));
    }

    #[test]
    fn a_row_that_is_cut_off_or_not_utf8_is_the_only_one_that_is_lost() {
        let text = b"name,price\ngood,1\nb\xffd,2\nshort\n\n\"quoted \"\"inside\"\"\",3\n\"cut off,4";
        let rows = parse(text, RowFormat::Csv, COLUMNS, None).unwrap_or_default();
        let locations = |row: &Row| row.read::<TestRow>().1.into_iter().map(|error| error.location).collect::<Vec<_>>();
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
        let two_quotes = parse(b"name,price\n5\" disk,\"cut off", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
        assert_eq!(locations(&two_quotes[0]), [ErrorLocation::Whole]);
        let inches = parse(b"name,price\nMonitor 24\",1", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
        assert_eq!((locations(&inches[0]), inches[0].text("name").as_deref()), (vec![], Some("Monitor 24\"")));
        let in_last_column = parse(b"name,price\na,\"1", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
        assert_eq!(locations(&in_last_column[0]), [ErrorLocation::Whole]);
    }

    #[test]
    fn the_errors_of_a_row_name_its_columns() {
        let (row, errors) = csv("name,active\n ,perhaps\n")[0].read::<TestRow>();
        let columns: Vec<_> = errors.into_iter().map(|error| error.location).collect();
        assert!(row.is_some_and(|row| row.name.is_none() && row.active.is_none() && row.unchanged.is_empty()));
        assert_eq!(columns, ["name", "active"].map(|column| ErrorLocation::Column(column.to_owned())));
    }

    #[test]
    fn a_zero_byte_costs_only_its_row_and_utf16_the_whole_body() {
        let locations = |row: &Row| row.read::<TestRow>().1.into_iter().map(|error| error.location).collect::<Vec<_>>();
        let name = || vec![ErrorLocation::Column("name".to_owned())];
        let rows = parse(b"name,custom_fields.x\na,1\nb\0,2\nc,3\0\n", RowFormat::Csv, COLUMNS, None).unwrap_or_default();
        let custom = vec![ErrorLocation::Column("custom_fields.x".to_owned())];
        assert_eq!(rows.iter().map(locations).collect::<Vec<_>>(), [vec![], name(), custom]);
        let rows = parse(b"{\"name\":\"a\0\"}\n{\"name\":\"b\"}\n", RowFormat::Ndjson, COLUMNS, None).unwrap_or_default();
        assert_eq!(rows.iter().map(locations).collect::<Vec<_>>(), [vec![ErrorLocation::Whole], vec![]]);
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (body, format) in [
            (utf16("name\na\n"), RowFormat::Csv),
            (utf16("{\"name\":\"a\"}\n"), RowFormat::Ndjson),
            (utf16("\u{feff}{\"name\":\"a\"}\n"), RowFormat::Ndjson),
            (b"PK\x03\x04\x14\0\x06\0\n".to_vec(), RowFormat::Csv),
        ] {
            let refused = parse(&body, format, COLUMNS, None);
            assert!(matches!(refused, Err(ApiError::Malformed(detail)) if detail.contains("UTF-16")), "{body:?}");
        }
    }

    #[test]
    fn an_empty_heading_is_an_error_only_of_a_column_with_cells() {
        let rows = csv("name,,price\na,,1\nb, ,2\n");
        assert_eq!((members(&rows[0]).len(), members(&rows[1]).len()), (2, 2));
        let Err(ApiError::Invalid(errors)) = parse(b"name,,price\na,,1\nb,x,2\n", RowFormat::Csv, COLUMNS, None) else {
            panic!("it was accepted")
        };
        assert_eq!(errors.len(), 1);
        assert!(errors[0].reason.text.starts_with("Column 2 has cells but no heading."), "{errors:?}");
    }

    #[test]
    fn headings_that_look_the_same_name_the_same_field() {
        let rows = csv("custom_fields.Fa\u{308}rg ,custom_fields. ram\n1,2\n");
        let names: Vec<&str> = rows[0].custom_fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["F\u{e4}rg", "ram"]);
        for (text, column) in [
            ("custom_fields.Fa\u{308}rg,custom_fields.F\u{e4}rg\n", "custom_fields.F\u{e4}rg"),
            ("custom_fields.\u{200b}x\n", "custom_fields.\u{200b}x"),
            ("custom_fields.\n", "custom_fields."),
        ] {
            let refused = parse(text.as_bytes(), RowFormat::Csv, COLUMNS, None);
            let Err(ApiError::Invalid(errors)) = refused else { panic!("{text} was accepted") };
            assert_eq!(
                errors.iter().map(|error| &error.location).collect::<Vec<_>>(),
                [&ErrorLocation::Column(column.to_owned())]
            );
        }
        let rows = parse(b"{\"custom_fields.a \":1,\"custom_fields.a\":2}", RowFormat::Ndjson, COLUMNS, None).unwrap_or_default();
        assert_eq!(rows[0].read::<TestRow>().1.len(), 1);
    }
}
