//! The parameters that say how a file is to be read, such as `map=Serial No=serial_number`.
//!
//! In a parameter, `\` before `\`, `=`, `:`, `+`, `/` or `#` means that character.

use crate::import::dates::DateFormat;
use crate::import::prices::Decimal;
use crate::values::field_error::{FieldError, ValueError};
use crate::values::string_enum::string_enum;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Characters that a backslash makes ordinary.
const SPECIAL: [char; 6] = ['\\', '=', ':', '+', '/', '#'];
/// Maximum number of the header's line.
pub const MAX_HEADER_LINE: u32 = 1_000;

string_enum! {
    /// The character between the cells of a CSV file.
    Delimiter {
        Comma = "comma",
        Semicolon = "semicolon",
        Tab = "tab",
        Pipe = "pipe",
    }
}

impl Delimiter {
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
        }
    }
}

/// How to read a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub maps: Vec<Mapping>,
    pub values: Vec<ValueMapping>,
    pub constants: Vec<Constant>,
    pub date_formats: Vec<DateFormat>,
    pub decimal: Option<Decimal>,
    /// Number of the line with the headings, from 1.
    pub header_line: Option<u32>,
    pub delimiter: Option<Delimiter>,
}

/// The names of the parameters, and their descriptions for an API.
pub const PARAMETERS: [(&str, &str); 7] = [
    (
        "map",
        "What a column means: `map=Serial No=serial_number`. `map=OS=` ignores a column. `#7` is the seventh column. `map=First Name + \
         Last Name=display_name` joins columns with a space, `map=Building / Floor=location` as levels.",
    ),
    (
        "value",
        "What a value of a field means: `value=status:Lager=in_stock`. `value=serial_number:n/a=` treats it as an empty cell.",
    ),
    ("set", "A field's value in all rows: `set=asset_type_code=LAP`."),
    (
        "date_format",
        "How dates are written, beside `YYYY-MM-DD`: `DD.MM.YYYY`. A date that two formats read differently is refused.",
    ),
    ("decimal", "The sign before the cents of a price: `comma` or `point`."),
    ("header_line", "The line with the headings, if it isn't the first."),
    ("delimiter", "The character between cells: `comma`, `semicolon`, `tab` or `pipe`. Default `comma`."),
];

impl Reading {
    /// Adds a parameter. Returns `false` if it doesn't say how to read a file.
    ///
    /// # Errors
    ///
    /// Describes an invalid value.
    pub fn add(&mut self, name: &str, value: &str) -> Result<bool, ValueError> {
        let once = |is_given: bool| if is_given { Err(ValueError::new("must not be sent more than once")) } else { Ok(()) };
        match name {
            "map" => self.maps.push(value.parse()?),
            "value" => self.values.push(value.parse()?),
            "set" => self.constants.push(value.parse()?),
            "date_format" => self.date_formats.push(value.parse().map_err(ValueError::form)?),
            "decimal" => {
                once(self.decimal.is_some())?;
                self.decimal = Some(value.parse()?);
            }
            "header_line" => {
                once(self.header_line.is_some())?;
                let line = value.parse().ok().filter(|line| (1..=MAX_HEADER_LINE).contains(line));
                let error = || ValueError::form(format!("must be a whole number from 1 to {MAX_HEADER_LINE}"));
                self.header_line = Some(line.ok_or_else(error)?);
            }
            "delimiter" => {
                once(self.delimiter.is_some())?;
                let name = match value {
                    "," => "comma",
                    ";" => "semicolon",
                    "\t" => "tab",
                    "|" => "pipe",
                    name => name,
                };
                self.delimiter = Some(name.parse()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads parameters, and leaves out those that don't say how to read a file.
    ///
    /// # Errors
    ///
    /// Returns an error for each invalid value.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Vec<FieldError>> {
        let (mut reading, mut errors) = (Self::default(), Vec::new());
        for (name, value) in pairs {
            errors.extend(reading.add(name, value).err().map(|error| FieldError::parameter(name, error)));
        }
        if errors.is_empty() { Ok(reading) } else { Err(errors) }
    }

    /// Returns the parameters as names and values, as [`Reading::parse`] reads them.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        pairs.extend(self.header_line.map(|line| ("header_line", line.to_string())));
        pairs.extend(self.delimiter.map(|delimiter| ("delimiter", delimiter.to_string())));
        pairs.extend(self.maps.iter().map(|map| ("map", map.to_string())));
        pairs.extend(self.constants.iter().map(|constant| ("set", constant.to_string())));
        pairs.extend(self.values.iter().map(|value| ("value", value.to_string())));
        pairs.extend(self.date_formats.iter().map(|format| ("date_format", format.given().to_owned())));
        pairs.extend(self.decimal.map(|decimal| ("decimal", decimal.to_string())));
        pairs
    }
}

/// A column, as a mapping names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnName {
    Heading(String),
    /// Position, from 1.
    Number(usize),
}

impl ColumnName {
    fn parse(text: &str) -> Self {
        let number = text.trim().strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match number.and_then(|digits| digits.parse().ok()) {
            Some(number) => Self::Number(number),
            None => Self::Heading(unescaped(text.trim())),
        }
    }

    fn find(&self, headings: &Headings<'_>) -> Option<usize> {
        match self {
            Self::Number(number) => number.checked_sub(1).filter(|index| *index < headings.count),
            Self::Heading(heading) => headings.places.get(heading.as_str()).copied(),
        }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "#{number}"),
            // A sign that would join columns is escaped only where columns are joined: see [`Mapping::new`].
            Self::Heading(heading) => formatter.write_str(&escaped_heading(heading, &[])),
        }
    }
}

/// The headings of a file.
pub struct Headings<'a> {
    count: usize,
    /// Index of the first column with the heading.
    places: HashMap<&'a str, usize>,
}

impl<'a> Headings<'a> {
    pub fn new(names: &'a [String]) -> Self {
        // The first column with a heading comes last, and stays.
        Self { count: names.len(), places: names.iter().enumerate().rev().map(|(index, name)| (name.trim(), index)).collect() }
    }
}

/// `Serial No=serial_number`, `OS=`, `#7=notes`, `First Name + Last Name=display_name`, `Building / Room=location`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The heading, or several, as written: only a file's headings show whether `A + B` is one heading.
    columns: String,
    /// `None` if the column is ignored.
    pub field: Option<String>,
}

impl Mapping {
    /// Maps columns, of which several are joined with the separator.
    pub fn new(columns: &[ColumnName], separator: &str, field: Option<&str>) -> Self {
        let joins: &[char] = if columns.len() > 1 { &['+', '/'] } else { &[] };
        let written = |column: &ColumnName| match column {
            ColumnName::Heading(heading) => escaped_heading(heading, joins),
            number @ ColumnName::Number(_) => number.to_string(),
        };
        let columns: Vec<String> = columns.iter().map(written).collect();
        Self { columns: columns.join(separator), field: field.map(str::to_owned) }
    }

    /// Maps the column with a heading.
    pub fn of(heading: &str, field: Option<&str>) -> Self {
        Self::new(&[ColumnName::Heading(heading.trim().to_owned())], "", field)
    }

    /// Returns the columns, and the text between their cells.
    ///
    /// # Errors
    ///
    /// Returns a heading that the file doesn't have.
    pub fn find(&self, headings: &Headings<'_>) -> Result<(Vec<usize>, &'static str), ColumnName> {
        let whole = ColumnName::parse(&self.columns);
        if let Some(index) = whole.find(headings) {
            return Ok((vec![index], " "));
        }
        for (sign, separator) in [('+', " "), ('/', LEVELS)] {
            let names = split(&self.columns, sign);
            if names.len() > 1 {
                let found = names.iter().map(|name| ColumnName::parse(name).find(headings)).collect::<Option<Vec<usize>>>();
                if let Some(found) = found {
                    return Ok((found, separator));
                }
            }
        }
        Err(whole)
    }

    /// Returns the headings that are missing, so that a mapping of joined columns still means several.
    pub fn missing(&self, headings: &Headings<'_>) -> Vec<String> {
        if self.find(headings).is_ok() {
            return Vec::new();
        }
        let is_missing = |name: &ColumnName| name.find(headings).is_none();
        let parts = |sign| split(&self.columns, sign).into_iter().map(ColumnName::parse).collect::<Vec<_>>();
        let joined = ['+', '/'].into_iter().map(parts).find(|names| names.len() > 1 && !names.iter().all(is_missing));
        let names = joined.unwrap_or_else(|| vec![ColumnName::parse(&self.columns)]);
        let heading = |name| if let ColumnName::Heading(heading) = name { Some(heading) } else { None };
        names.into_iter().filter(is_missing).filter_map(heading).collect()
    }

    /// Returns the columns as written.
    pub fn columns(&self) -> &str {
        &self.columns
    }
}

/// Text between the levels of a location.
pub const LEVELS: &str = " / ";

impl FromStr for Mapping {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let form = || ValueError::form("must be HEADING=FIELD, or HEADING= to ignore the column");
        let (columns, field) = rsplit_once(text, '=').ok_or_else(form)?;
        let field = Some(unescaped(field.trim())).filter(|field| !field.is_empty());
        if field.as_deref() == Some("?") {
            return Err(ValueError::form("needs a field instead of ?, or nothing, to ignore the column"));
        }
        Ok(Self { columns: columns.trim().to_owned(), field })
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.columns, escaped(self.field.as_deref().unwrap_or_default(), &['\\', '=']))
    }
}

/// `status:Lager=in_stock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMapping {
    pub field: String,
    /// Without surrounding white space.
    pub text: String,
    /// Empty if the cell counts as empty.
    pub meaning: String,
}

impl ValueMapping {
    pub fn new(field: &str, text: &str, meaning: &str) -> Self {
        Self { field: field.to_owned(), text: text.to_owned(), meaning: meaning.to_owned() }
    }
}

impl FromStr for ValueMapping {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let form = "must be FIELD:TEXT=VALUE, such as status:Lager=in_stock, or FIELD:TEXT= to treat the text as an empty cell";
        let parts = || {
            let (field, rest) = split_once(text, ':')?;
            let (text, meaning) = rsplit_once(rest, '=')?;
            Some(Self { field: unescaped(field.trim()), text: unescaped(text.trim()), meaning: unescaped(meaning.trim()) })
        };
        parts().filter(|mapping| !mapping.field.is_empty()).ok_or_else(|| ValueError::form(form))
    }
}

impl fmt::Display for ValueMapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, text) = (escaped(&self.field, &['\\', ':']), escaped(&self.text, &['\\']));
        write!(formatter, "{field}:{text}={}", escaped(&self.meaning, &['\\', '=']))
    }
}

/// `asset_type_code=LAP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    pub field: String,
    pub value: String,
}

impl FromStr for Constant {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let parts = split_once(text, '=').filter(|(field, value)| !field.trim().is_empty() && !value.trim().is_empty());
        let (field, value) = parts.ok_or_else(|| ValueError::form("must be FIELD=VALUE"))?;
        Ok(Self { field: unescaped(field.trim()), value: unescaped(value.trim()) })
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", escaped(&self.field, &['\\', '=']), escaped(&self.value, &['\\']))
    }
}

/// Returns the positions of a character that no backslash precedes.
fn places(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut is_escaped = false;
    text.char_indices().filter_map(move |(place, character)| {
        let is_ordinary = std::mem::take(&mut is_escaped);
        is_escaped = character == '\\' && !is_ordinary;
        (character == wanted && !is_ordinary).then_some(place)
    })
}

fn at(text: &str, place: usize) -> (&str, &str) {
    let (before, after) = text.split_at(place);
    (before, after.get(1..).unwrap_or_default())
}

fn split_once(text: &str, separator: char) -> Option<(&str, &str)> {
    places(text, separator).next().map(|place| at(text, place))
}

fn rsplit_once(text: &str, separator: char) -> Option<(&str, &str)> {
    places(text, separator).last().map(|place| at(text, place))
}

fn split(text: &str, separator: char) -> Vec<&str> {
    let mut start = 0;
    let mut parts = Vec::new();
    for place in places(text, separator) {
        parts.push(text.get(start..place).unwrap_or_default().trim());
        start = place + 1;
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let special = characters.next_if(|next| character == '\\' && SPECIAL.contains(next));
        plain.push(special.unwrap_or(character));
    }
    plain
}

/// Puts a backslash before special characters, and before a backslash that would be read as one of those.
fn escaped(text: &str, special: &[char]) -> String {
    let mut written = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_read_as_escape = character == '\\' && characters.peek().is_none_or(|next| SPECIAL.contains(next));
        if is_read_as_escape || (character != '\\' && special.contains(&character)) {
            written.push('\\');
        }
        written.push(character);
    }
    written
}

/// Escapes a heading for a mapping: characters that join columns, and a `#` that would be read as a number.
fn escaped_heading(heading: &str, joins: &[char]) -> String {
    let written = escaped(heading, joins);
    if matches!(ColumnName::parse(heading), ColumnName::Number(_)) { format!("\\{written}") } else { written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headings(headings: &[&str]) -> Vec<String> {
        headings.iter().map(|heading| (*heading).to_owned()).collect()
    }

    fn find(map: &str, names: &[&str]) -> Result<(Vec<usize>, &'static str), String> {
        let mapping: Mapping = map.parse().unwrap_or_else(|error| panic!("{map}: {error}"));
        mapping.find(&Headings::new(&headings(names))).map_err(|name| name.to_string())
    }

    #[test]
    fn a_mapping_names_one_column_or_several() {
        let names = ["First", "Last", "A + B", "Site", "Floor", "Room", "a=b", "#2", "C / D"];
        for (map, columns, separator) in [
            ("First=name", &[0][..], " "),
            ("First + Last=display_name", &[0, 1], " "),
            ("First+Last=display_name", &[0, 1], " "),
            ("A + B=email", &[2], " "),
            ("Site/Floor /Room=location", &[3, 4, 5], " / "),
            ("#4 / Room=location", &[3, 5], " / "),
            ("a=b=notes", &[6], " "),
            ("#2=notes", &[1], " "),
            ("\\#2=notes", &[7], " "),
            ("C / D=", &[8], " "),
        ] {
            assert_eq!(find(map, &names), Ok((columns.to_vec(), separator)), "{map}");
        }
        for (map, missing) in [("X + First=name", "X + First"), ("#10=name", "#10"), ("#0=name", "#0"), ("Sreial=name", "Sreial")]
        {
            assert_eq!(find(map, &names), Err(missing.to_owned()));
        }
        let field = |map: &str| map.parse::<Mapping>().map(|map| map.field);
        assert_eq!(field("x=custom_fields.a\\=b"), Ok(Some("custom_fields.a=b".to_owned())));
        assert_eq!(field("x="), Ok(None));
        assert!(field("x").is_err() && field("x=?").is_err());
    }

    #[test]
    fn values_and_constants_are_split_at_their_signs() {
        let value =
            |text: &str| text.parse::<ValueMapping>().ok().map(|ValueMapping { field, text, meaning }| [field, text, meaning]);
        let of = |parts: [&str; 3]| Some(parts.map(str::to_owned));
        assert_eq!(value("status: Lager: A=B =in_stock"), of(["status", "Lager: A=B", "in_stock"]));
        assert_eq!(value("custom_fields.a\\:b:x="), of(["custom_fields.a:b", "x", ""]));
        assert_eq!(value("notes:C:\\temp=\\N"), of(["notes", "C:\\temp", "\\N"]));
        assert_eq!(value("notes:x=a\\=b"), of(["notes", "x", "a=b"]));
        assert!(value("status").is_none() && value("status:Lager").is_none() && value(":x=y").is_none());
        let constant = |text: &str| text.parse::<Constant>().ok().map(|constant| (constant.field, constant.value));
        assert_eq!(constant("notes=a=b"), Some(("notes".to_owned(), "a=b".to_owned())));
        assert!(constant("notes=").is_none() && constant("notes").is_none());
    }

    #[test]
    fn every_invalid_parameter_is_named() {
        let pairs = [
            ("map", "x"),
            ("decimal", "semicolon"),
            ("header_line", "0"),
            ("date_format", "DD"),
            ("match", "id"),
            ("delimiter", ";"),
        ];
        let errors = Reading::parse(pairs).map_err(|errors| errors.len());
        assert_eq!(errors, Err(4));
        let twice = [("decimal", "comma"), ("decimal", "comma")];
        assert!(Reading::parse(twice).is_err());
    }

    proptest! {
        #[test]
        fn parameters_are_read_as_they_are_written(
            heading in "[a#:=+/\\\\ 2]{1,6}",
            field in "[a:=\\\\/#]{1,5}",
            text in "[a:=\\\\ +N]{0,5}",
            value in "[a:=\\\\N]{1,5}",
        ) {
            let (heading, field, text) = (heading.trim(), field.trim(), text.trim());
            prop_assume!(!heading.is_empty() && field != "?");
            let written = Reading {
                maps: vec![Mapping::of(heading, Some(field))],
                values: vec![ValueMapping { field: field.into(), text: text.into(), meaning: value.clone() }],
                constants: vec![Constant { field: field.into(), value }],
                ..Reading::default()
            };
            let parameters = written.parameters();
            let read = Reading::parse(parameters.iter().map(|(name, value)| (*name, value.as_str())));
            let read = read.map_err(|errors| TestCaseError::fail(format!("{parameters:?}: {errors:?}")))?;
            prop_assert_eq!(read.maps[0].find(&Headings::new(&headings(&["x", heading]))), Ok((vec![1], " ")), "{:?}", &parameters);
            prop_assert_eq!(&read.maps[0].field, &written.maps[0].field);
            prop_assert_eq!(&read.values, &written.values);
            prop_assert_eq!(&read.constants, &written.constants);
        }
    }
}
