//! The columns of a file as fields, and the conversion of their cells.

use crate::assets::csv_cell::CLEAR;
use crate::catalog::custom_fields::field_name;
use crate::import::parameters::{ColumnName, Headings, LEVELS, Mapping, Reading, ValueMapping};
use crate::import::suggestion::headings;
use crate::import::{CUSTOM_FIELD, Kind, REASONS, dates, prices};
use crate::values::field_error::{FieldError, unknown_name};
use crate::values::json::{self, PRIVATE_NAME};
use fields::CellType;
use fields::compared::lower;
use fields::serial_number::{self, is_placeholder};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

const REPEATED: &str = "must not occur more than once";
/// Maximum number of errors.
const MAX_NAMED: usize = 100;
/// Longer names of columns are cut off in errors.
const MAX_SHOWN_CHARS: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Index of the column in the file.
    pub index: usize,
    /// The heading, with a number if an earlier column has the same.
    pub heading: String,
    pub field: String,
    /// Indexes of further columns whose cells are appended, and the text between the cells.
    joined: Vec<usize>,
    separator: &'static str,
}

impl Column {
    /// Returns the indexes of all columns of the file whose cells are in the field.
    pub fn places(&self) -> Vec<usize> {
        std::iter::once(self.index).chain(self.joined.iter().copied()).collect()
    }
}

/// The columns of a file that are imported.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    pub kind: Kind,
    pub columns: Vec<Column>,
    /// Indexes of columns without a heading, whose cells must be empty.
    pub nameless: Vec<usize>,
    /// Positions in `columns`, by field.
    places: HashMap<String, usize>,
    reading: Reading,
    meanings: HashMap<String, Meanings>,
    /// Whether serial numbers such as `n/a` are refused. Exports, which are imported by ID, can contain them.
    refuses_placeholders: bool,
}

impl Columns {
    /// Finds the field of each column. `matched` is the field that identifies the record of a row.
    ///
    /// # Errors
    ///
    /// Returns an error for each column that is no field or the field of another column, for each parameter that doesn't fit the
    /// columns.
    pub fn resolve(
        kind: Kind,
        names: &[String],
        repeated: &BTreeMap<String, String>,
        reading: &Reading,
        matched: Option<&str>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let targets = targets(kind, names, reading, &mut errors);
        let mut columns = Self {
            kind,
            meanings: meanings(reading, &mut errors),
            reading: reading.clone(),
            refuses_placeholders: matched != Some("id"),
            ..Self::default()
        };
        let (known, mut unknown) = (known_names(kind), 0);
        for (index, (name, target)) in names.iter().zip(targets).enumerate() {
            let is_mapped = target.is_some();
            let target = target.unwrap_or_else(|| Target { field: Some(field_of(name)), ..Target::default() });
            let Some(field) = target.field else { continue };
            if field.is_empty() {
                columns.nameless.push(index);
            } else if field == REASONS && !is_mapped {
                // The reasons in a file of refused rows.
            } else if let Some(heading) = repeated.get(name).filter(|_| !is_mapped) {
                let number = index + 1;
                errors.column(heading, || {
                    format!("{REPEATED}; map the further one as \"{name}\" or #{number}, or ignore it: `map=#{number}=`")
                });
            } else if kind == Kind::Assets && field.strip_prefix(CUSTOM_FIELD).is_some_and(json::is_private) {
                errors.column(name, || PRIVATE_NAME.to_owned());
            } else if let Some(fault) = custom_field_fault(&field).filter(|_| kind == Kind::Assets) {
                errors.column(name, || fault);
            } else if !kind.has_field(&field) {
                errors.column(name, || match headings::field(kind, name) {
                    Some(guess) => format!("unknown column; could be {guess}: `map={}`", Mapping::of(name, Some(guess))),
                    None => unknown_name(&shown(name), &known, "column", unknown),
                });
                unknown += 1;
            } else if let Some(Column { heading, .. }) = columns.column(&field) {
                let how = if is_mapped { format!(": {heading} is {field}, too") } else { String::new() };
                errors.column(if is_mapped { name } else { &field }, || format!("{REPEATED}{how}"));
            } else {
                let Target { joined, separator, .. } = target;
                columns.places.insert(field.clone(), columns.columns.len());
                columns.columns.push(Column { index, heading: name.trim().to_owned(), field, joined, separator });
            }
        }
        columns.check_constants(&mut errors);
        for value in &reading.values {
            if columns.column(&value.field).is_none() {
                errors.parameter("value", || {
                    format!("{}:{}: no column is this field; name the field, not the heading", value.field, value.text)
                });
            }
        }
        if errors.found.is_empty() { Ok(columns) } else { Err(errors.found) }
    }

    pub fn column(&self, field: &str) -> Option<&Column> {
        self.columns.get(*self.places.get(field)?)
    }

    /// Returns the fields that are set in all rows, with their converted values.
    pub fn constants(&self) -> impl Iterator<Item = (&str, Result<Cow<'_, str>, String>)> {
        let constants = self.reading.constants.iter();
        constants.map(|constant| (constant.field.as_str(), self.converted(&constant.field, Cow::Borrowed(&constant.value))))
    }

    fn check_constants(&self, errors: &mut Errors) {
        let mut seen = HashSet::new();
        for constant in &self.reading.constants {
            let field = &constant.field;
            let detail = if !self.kind.has_field(field) {
                format!("is not a field of {}", self.kind.path())
            } else if let Some(Column { heading, .. }) = self.column(field) {
                format!("the column {heading:?} is this field already; ignore it with `map={}`", Mapping::of(heading, None))
            } else if !seen.insert(field) {
                "is given twice".to_owned()
            } else if let Err(detail) = self.converted(field, Cow::Borrowed(&constant.value)) {
                detail
            } else {
                continue;
            };
            errors.parameter("set", || format!("{}: {detail}", shown(field)));
        }
    }

    /// Returns the text of a column in a row, joined with the texts of other columns. `cell` returns the text of a cell by the
    /// index of its column; `None` if the row has no text there.
    pub fn text<'t>(&self, column: &Column, cell: impl Fn(usize) -> Option<&'t str>) -> Option<Cow<'t, str>> {
        let first = cell(column.index);
        if column.joined.is_empty() || first.is_some_and(|first| first.trim() == CLEAR) {
            return first.map(Cow::Borrowed);
        }
        let texts = std::iter::once(first).chain(column.joined.iter().map(|index| cell(*index))).flatten().map(str::trim);
        let filled = texts.filter(|text| !text.is_empty() && (is_digits(text) || !is_placeholder(text)));
        // Within a level, a slash would begin another one.
        let level = |text: &'t str| if column.separator == LEVELS { text.replace('/', "-") } else { text.to_owned() };
        Some(Cow::Owned(filled.map(level).collect::<Vec<_>>().join(column.separator)))
    }

    /// Returns what a text means: by the value parameters, and as a date or a price.
    ///
    /// # Errors
    ///
    /// Describes a text that can't be a value of the field.
    pub fn convert<'t>(&'t self, column: &Column, text: Cow<'t, str>) -> Result<Cow<'t, str>, String> {
        let text = self.translated(&column.field, text)?;
        self.converted(&column.field, text)
    }

    /// Returns the meaning given for a text or, without one, the only meaning given for texts that differ from it in case.
    fn translated<'t>(&'t self, field: &str, text: Cow<'t, str>) -> Result<Cow<'t, str>, String> {
        let Some(meanings) = self.meanings.get(field) else { return Ok(text) };
        let value = text.trim();
        if let Some(meaning) = meanings.exact.get(value) {
            return Ok(Cow::Borrowed(meaning));
        }
        match meanings.folded.get(&lower(value)) {
            None => Ok(text),
            Some(Some(meaning)) => Ok(Cow::Borrowed(meaning)),
            Some(None) => Err(format!("{value:?} differs only in case from several values with different meanings")),
        }
    }

    fn converted<'t>(&self, field: &str, text: Cow<'t, str>) -> Result<Cow<'t, str>, String> {
        let value = text.trim();
        if value.is_empty() || value == CLEAR {
            return Ok(text);
        }
        if field == "serial_number"
            && self.refuses_placeholders
            && let Some(fault) = serial_number::fault(value)
        {
            return Err(fault.to_owned());
        }
        let converted = match self.kind.column(field).map(|column| column.cell) {
            Some(CellType::Date) => dates::read(&self.reading.date_formats, value)?,
            Some(CellType::Number) => prices::read(self.reading.decimal, value)?,
            _ => None,
        };
        Ok(converted.filter(|converted| converted != value).map_or(text, Cow::Owned))
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The meanings of a field's values.
#[derive(Debug, Clone, Default)]
struct Meanings {
    exact: HashMap<String, String>,
    /// By the value without case; `None` if values that differ only in case have different meanings.
    folded: HashMap<String, Option<String>>,
}

/// The errors of the columns and the parameters. Those of columns are limited in number.
#[derive(Default)]
struct Errors {
    found: Vec<FieldError>,
}

impl Errors {
    fn column(&mut self, name: &str, reason: impl FnOnce() -> String) {
        if self.found.len() < MAX_NAMED {
            self.found.push(FieldError::column(&shown(name), reason()));
        }
    }

    fn parameter(&mut self, name: &str, reason: impl FnOnce() -> String) {
        if self.found.len() < MAX_NAMED {
            self.found.push(FieldError::parameter(name, reason()));
        }
    }
}

/// Returns the target of each column that a mapping names.
fn targets(kind: Kind, names: &[String], reading: &Reading, errors: &mut Errors) -> Vec<Option<Target>> {
    let headings = Headings::new(names);
    let mut targets: Vec<Option<Target>> = vec![None; names.len()];
    let mut parts = Vec::new();
    for map in &reading.maps {
        let (indexes, separator) = match map.find(&headings) {
            Ok(found) => found,
            Err(ColumnName::Heading(heading)) => {
                errors.parameter("map", || format!("{:?}: the file has no such column", shown(&heading)));
                continue;
            }
            Err(number) => {
                errors.parameter("map", || format!("{number}: the file has {} columns", names.len()));
                continue;
            }
        };
        if let Some(field) = map.field.as_deref().filter(|field| !kind.has_field(field)) {
            let columns = shown(map.columns());
            errors.parameter("map", || format!("{columns:?}: {:?} is not a field of {}", shown(field), kind.path()));
            continue;
        }
        let Some((first, joined)) = indexes.split_first() else { continue };
        parts.extend_from_slice(joined);
        // The last mapping of a column counts, because people append options to a command.
        let Some(target) = targets.get_mut(*first) else { continue };
        let earlier = target.as_ref().and_then(|target| target.field.as_ref());
        if let (Some(earlier), Some(field)) = (earlier, &map.field)
            && earlier != field
        {
            errors.parameter("map", || format!("{:?}: is given twice, as {earlier} and as {field}", shown(map.columns())));
        }
        *target = Some(Target { field: map.field.clone(), joined: joined.to_vec(), separator });
    }
    for part in parts {
        // A part of a joined column can also be mapped to a field by itself.
        targets[part].get_or_insert_default();
    }
    targets
}

fn meanings(reading: &Reading, errors: &mut Errors) -> HashMap<String, Meanings> {
    let mut all = HashMap::<String, Meanings>::new();
    for ValueMapping { field, text, meaning } in &reading.values {
        let meanings = all.entry(field.clone()).or_default();
        if meanings.exact.insert(text.clone(), meaning.clone()).is_some_and(|earlier| earlier != *meaning) {
            errors.parameter("value", || format!("{field}:{text}: is given twice"));
        }
        let folded = meanings.folded.entry(lower(text)).or_insert_with(|| Some(meaning.clone()));
        if folded.as_ref() != Some(meaning) {
            *folded = None;
        }
    }
    all
}

fn known_names(kind: Kind) -> Vec<&'static str> {
    let names = kind.columns().iter().map(|column| column.name);
    names.chain((kind == Kind::Assets).then_some("custom_fields.<name>")).collect()
}

/// Returns what is wrong with the name in a field `custom_fields.<name>`.
pub fn custom_field_fault(field: &str) -> Option<String> {
    let name = field.strip_prefix(CUSTOM_FIELD)?;
    field_name(name).err().map(|error| format!("names a field that {error}"))
}

#[derive(Debug, Clone)]
struct Target {
    /// `None` if the column is ignored.
    field: Option<String>,
    joined: Vec<usize>,
    separator: &'static str,
}

impl Default for Target {
    fn default() -> Self {
        Self { field: None, joined: Vec::new(), separator: " " }
    }
}

/// Returns the field that a heading names by itself. The names of custom fields are normalized.
pub fn field_of(heading: &str) -> String {
    let heading = heading.trim();
    match heading.strip_prefix(CUSTOM_FIELD).map(field_name) {
        Some(Ok(name)) => format!("{CUSTOM_FIELD}{name}"),
        _ => heading.to_owned(),
    }
}

fn shown(name: &str) -> String {
    name.chars().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn resolve(kind: Kind, names: &[&str], parameters: &[(&str, &str)], matched: Option<&str>) -> Result<Columns, Vec<String>> {
        let reading = Reading::parse(parameters.iter().copied()).map_err(|errors| texts(&errors))?;
        Columns::resolve(kind, &list(names), &BTreeMap::new(), &reading, matched).map_err(|errors| texts(&errors))
    }

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|error| format!("{:?} {}", error.location, error.reason)).collect()
    }

    fn fields(columns: &Columns) -> Vec<(usize, &str)> {
        columns.columns.iter().map(|column| (column.index, column.field.as_str())).collect()
    }

    /// Converts the cells of a row, by field.
    fn row(columns: &Columns, cells: &[&str]) -> Vec<(String, Result<String, String>)> {
        let cell = |index: usize| cells.get(index).copied();
        let convert = |column: &Column| {
            let text = columns.text(column, cell)?;
            Some((column.field.clone(), columns.convert(column, text).map(Cow::into_owned)))
        };
        columns.columns.iter().filter_map(convert).collect()
    }

    #[test]
    fn columns_are_known_or_mapped_or_ignored() {
        let names = ["name", " serial_number ", "custom_fields.RAM ", "", "reasons", "OS", "Seite"];
        let columns = resolve(Kind::Assets, &names, &[("map", "OS="), ("map", "#7=notes")], None).unwrap_or_default();
        assert_eq!(fields(&columns), [(0, "name"), (1, "serial_number"), (2, "custom_fields.RAM"), (6, "notes")]);
        assert_eq!(columns.nameless, [3]);
    }

    #[test]
    fn all_errors_of_columns_and_parameters_are_told_at_once() {
        let names = ["name", "name", "Serial No", "OS", "Color", "Bought"];
        let parameters = [
            ("map", "Sreial=serial_number"),
            ("map", "OS=os"),
            ("map", "#9=notes"),
            ("map", "Bought=purchase_date"),
            ("map", "Bought=warranty_until"),
            ("set", "name=x"),
            ("set", "purchase_price=free"),
            ("value", "status:Lager=in_stock"),
        ];
        let errors = resolve(Kind::Assets, &names, &parameters, None).err().unwrap_or_default();
        let expected = [
            "Parameter(\"map\") \"Sreial\": the file has no such column",
            "Parameter(\"map\") \"OS\": \"os\" is not a field of assets",
            "Parameter(\"map\") #9: the file has 6 columns",
            "Parameter(\"map\") \"Bought\": is given twice, as purchase_date and as warranty_until",
            "Column(\"name\") must not occur more than once",
            "Column(\"Serial No\") unknown column; could be serial_number: `map=Serial No=serial_number`",
            "Column(\"OS\") unknown column; known: ",
            "Column(\"Color\") unknown column; known: ",
            "Parameter(\"set\") name: the column \"name\" is this field already; ignore it with `map=name=`",
            "Parameter(\"value\") status:Lager: no column is this field",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        errors.iter().zip(expected).for_each(|(error, expected)| assert!(error.starts_with(expected), "{error}"));
        let users = resolve(Kind::Users, &["custom_fields.x", "email"], &[], Some("id")).err().unwrap_or_default();
        assert_eq!(users.len(), 1);
    }

    #[test]
    fn cells_are_converted_by_their_field() {
        let parameters = [
            ("map", "Kauf=purchase_date"),
            ("date_format", "DD.MM.YYYY"),
            ("decimal", "comma"),
            ("value", "status:Lager=in_stock"),
            ("value", "serial_number:n/a="),
        ];
        let names = ["Kauf", "purchase_price", "status", "serial_number", "notes"];
        let columns = resolve(Kind::Assets, &names, &parameters, Some("serial_number")).unwrap_or_default();
        let values = |cells: &[&str]| row(&columns, cells).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        let ok = |texts: [&str; 5]| texts.map(|text| Ok(text.to_owned())).to_vec();
        assert_eq!(
            values(&["09.03.2024", "1.249,00 €", " LAGER", "N/A", "09.03.2024"]),
            ok(["2024-03-09", "1249.00", "in_stock", "", "09.03.2024"])
        );
        assert_eq!(values(&["\\N", "", "Lager 2", "S1", "1,5"]), ok(["\\N", "", "Lager 2", "S1", "1,5"]));
        let errors = values(&["soon", "free", "x", "unknown", ""]);
        assert_eq!(errors.iter().filter(|value| value.is_err()).count(), 3, "{errors:?}");
        assert_eq!(values(&["", "", "", "8.93901E+18", ""])[3], Err(serial_number::SHORTENED.to_owned()));
        let by_id = resolve(Kind::Assets, &["id", "serial_number"], &[], Some("id")).unwrap_or_default();
        assert_eq!(row(&by_id, &["1", "unknown"])[1].1, Ok("unknown".to_owned()));
    }

    #[test]
    fn an_ambiguous_case_is_refused_and_an_exact_value_is_not() {
        let parameters = [
            ("value", "status:Ab=in_stock"),
            ("value", "status:aB=returned"),
            ("value", "status:Cd=in_use"),
            ("value", "status:cD=in_use"),
        ];
        let columns = resolve(Kind::Assets, &["status"], &parameters, None).unwrap_or_default();
        let value = |cell: &str| row(&columns, &[cell])[0].1.clone();
        assert_eq!([value("aB"), value("CD")], [Ok("returned".to_owned()), Ok("in_use".to_owned())]);
        assert!(value("AB").is_err());
        assert!(
            resolve(Kind::Assets, &["status"], &[("value", "status:a=in_use"), ("value", "status:a=returned")], None).is_err()
        );
    }

    #[test]
    fn joined_cells_leave_out_what_is_empty_or_unknown() {
        let names = ["Site", "Room", "First", "Last"];
        let parameters = [("map", "Site / Room=location"), ("map", "First + Last=notes")];
        let columns = resolve(Kind::Assets, &names, &parameters, None).unwrap_or_default();
        for (cells, location, notes) in [
            (["Berlin", "2.14/2.15", "Ada", "Lovelace"], "Berlin / 2.14-2.15", "Ada Lovelace"),
            (["Berlin", "n/a", "Ada", ""], "Berlin", "Ada"),
            (["-", "0", "", ""], "0", ""),
            ([" Berlin ", "", "", "Lovelace"], "Berlin", "Lovelace"),
        ] {
            let values: Vec<_> = row(&columns, &cells).into_iter().filter_map(|(_, value)| value.ok()).collect();
            assert_eq!(values, [location, notes], "{cells:?}");
        }
        let single = resolve(Kind::Assets, &["location"], &[], None).unwrap_or_default();
        assert_eq!(row(&single, &["Berlin / 2.14"])[0].1, Ok("Berlin / 2.14".to_owned()));
    }
}
