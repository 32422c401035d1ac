//! Maps a file's columns to fields, converts their values, and looks up users by name.

pub mod convert;
pub mod suggest;

use crate::output::{folded, quote};
use clap::ValueEnum;
use convert::{Constant, DateFormat, Values, date_of_day_number, price_with_comma, price_with_point};
use fields::compared::compatible;
use fields::serial_number::{self, SHORTENED, is_placeholder, is_shortened};
use fields::{ASSET_COLUMNS, CellType, Column, USER_COLUMNS};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

pub const CUSTOM_FIELD: &str = "custom_fields.";

/// The column of users by their display names. The service has no such field: the user's ID is sent.
pub const OWNER_NAME: &str = "assigned_to_name";

/// Columns that only this program understands.
const OWN_COLUMNS: &[Column] = &[Column::new(
    OWNER_NAME,
    CellType::Text,
    "assignedtoname primaryuserdisplayname checkedouttoname checkedoutto assignedto primaryuser owner user userfullname employee \
     benutzer nutzer benutzername anwender mitarbeiter besitzer inhaber verantwortlicher verantwortliche zugewiesenan ausgegebenan primärerbenutzer hauptbenutzer \
     utilisateur utilisateurprincipal attribuéà usuario asignadoa",
)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Kind {
    /// Assets
    #[default]
    Assets,
    /// Users
    Users,
}

impl Kind {
    pub fn path(self) -> &'static str {
        match self {
            Self::Assets => "assets",
            Self::Users => "users",
        }
    }

    /// Returns the columns of an import, without `custom_fields.<name>`.
    pub fn import_columns(self) -> impl Iterator<Item = &'static Column> + Clone {
        let (columns, own) = match self {
            Self::Assets => (ASSET_COLUMNS, OWN_COLUMNS),
            Self::Users => (USER_COLUMNS, &[][..]),
        };
        columns.iter().chain(own)
    }

    pub fn import_column(self, name: &str) -> Option<&'static Column> {
        self.import_columns().find(|column| column.name == name)
    }

    pub fn has_column(self, name: &str) -> bool {
        let is_custom_field = || name.starts_with(CUSTOM_FIELD);
        self.import_column(name).is_some() || (self == Self::Assets && is_custom_field())
    }
}

/// The column of reasons in a file of refused rows. The import ignores it.
pub const REASONS: &str = "reasons";

/// Separator between the levels of a location.
pub const LEVELS: &str = " / ";

/// Further columns whose cells are appended to the first column's cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub columns: Vec<String>,
    /// Text between the joined cells.
    pub separator: &'static str,
}

/// `--map "Serial No=serial_number"`. Without a field, the column is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub column: String,
    /// `None` if the column is ignored.
    pub field: Option<String>,
}

impl std::str::FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (column, field) = text.rsplit_once('=').ok_or("must be COLUMN=FIELD, or COLUMN= to ignore the column")?;
        let field = Some(field.trim().to_owned()).filter(|field| !field.is_empty());
        Ok(Self { column: column.trim().to_owned(), field })
    }
}

impl Mapping {
    /// Returns the mapped columns and the separator between their cells. Usually one column, or several as in `First Name +
    /// Last Name` and `Building / Room`.
    pub fn columns<'a>(&'a self, names: &[String]) -> (Vec<&'a str>, &'static str) {
        let is_known = |column: &str| names.iter().any(|name| name.trim() == column);
        for (between, separator) in [(" + ", " "), (LEVELS, LEVELS), ("+", " "), ("/", LEVELS)] {
            let joined: Vec<&str> = self.column.split(between).map(str::trim).collect();
            if !is_known(&self.column) && joined.len() > 1 && joined.iter().all(|column| is_known(column)) {
                return (joined, separator);
            }
        }
        (vec![&self.column], " ")
    }
}

/// Returns one mapping for each column. The last mapping of a column counts, because people append options to a pasted command.
/// Adds a problem for a column with two different fields.
pub fn settled(mappings: &[Mapping], problems: &mut Vec<String>) -> Vec<Mapping> {
    let mut settled: Vec<Mapping> = Vec::new();
    for mapping in mappings {
        let Some(known) = settled.iter_mut().find(|known| known.column == mapping.column) else {
            settled.push(mapping.clone());
            continue;
        };
        if let (Some(first), Some(second)) = (&known.field, &mapping.field)
            && first != second
        {
            problems.push(format!("--map {:?}: is given twice, as {first} and as {second}", mapping.column));
        }
        known.field.clone_from(&mapping.field);
    }
    settled
}

/// Splits mappings of joined columns into a mapping for each column, and the further columns by first column. Adds the problems
/// of [`settled`].
pub fn joined(mappings: &[Mapping], names: &[String], problems: &mut Vec<String>) -> (Vec<Mapping>, BTreeMap<String, Joined>) {
    let (mut single, mut parts, mut joined) = (Vec::new(), Vec::new(), BTreeMap::new());
    for mapping in mappings {
        let (columns, separator) = mapping.columns(names);
        let Some((first, others)) = columns.split_first() else { continue };
        single.push(Mapping { column: (*first).to_owned(), field: mapping.field.clone() });
        parts.extend(others.iter().map(|column| Mapping { column: (*column).to_owned(), field: None }));
        if !others.is_empty() {
            let columns = others.iter().map(|column| (*column).to_owned()).collect();
            joined.insert((*first).to_owned(), Joined { columns, separator });
        }
    }
    let mut single = settled(&single, problems);
    // A part of a joined column can also be mapped to a field by itself.
    parts.retain(|part: &Mapping| !single.iter().any(|known| known.column == part.column));
    single.extend(parts);
    (single, joined)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The column is sent as this field.
    Field(String),
    Ignored,
    /// The column has no name, so its cells must be empty.
    Nameless,
}

impl Target {
    pub fn field(&self) -> Option<&str> {
        if let Self::Field(field) = self { Some(field) } else { None }
    }
}

/// A file's columns, and how to send their cells.
#[derive(Debug)]
pub struct Columns {
    pub targets: Vec<Target>,
    pub fields: Fields,
}

pub fn sent_name(field: &str) -> &str {
    if field == OWNER_NAME { "assigned_to" } else { field }
}

/// Returns the column names, with a number for each repeated heading, as in `Category (2)`; and the numbered names.
pub fn numbered(headings: &[String]) -> (Vec<String>, BTreeSet<String>) {
    let known: HashSet<&str> = headings.iter().map(String::as_str).collect();
    let (mut counts, mut names, mut doubled) = (HashMap::<&str, u32>::new(), Vec::new(), BTreeSet::new());
    for heading in headings {
        let count = counts.entry(heading).or_default();
        *count += 1;
        let mut name = heading.clone();
        if *count > 1 && !heading.is_empty() && heading != REASONS {
            name = format!("{heading} ({count})");
            while known.contains(name.as_str()) {
                *count += 1;
                name = format!("{heading} ({count})");
            }
            doubled.insert(name.clone());
        }
        names.push(name);
    }
    (names, doubled)
}

/// Returns the target of each column. `doubled` are the names that [`numbered`] added a number to.
///
/// # Errors
///
/// Lists all errors of the columns and the mappings, one per line.
pub fn resolve(
    kind: Kind,
    names: &[String],
    doubled: &BTreeSet<String>,
    mappings: &[Mapping],
) -> Result<Vec<Target>, Vec<String>> {
    let mut problems = Vec::new();
    for mapping in mappings {
        if !names.iter().any(|name| name.trim() == mapping.column) {
            problems.push(format!("--map {:?}: the file has no such column", mapping.column));
        }
        if let Some(field) = mapping.field.as_deref().filter(|field| !kind.has_column(field)) {
            problems.push(format!("--map {:?}: {field:?} is not a field of {}", mapping.column, kind.path()));
        }
    }
    let target_of = |(name, number): (&String, usize)| {
        let is_mapped = || mappings.iter().any(|mapping| mapping.column == *name);
        // A repeated heading must not create a custom field with its number.
        if doubled.contains(name) && !is_mapped() {
            let (named, ignored) = (quote(&format!("{name}=FIELD")), quote(&format!("{name}=")));
            let how = format!("map it with --map {named}, or ignore it with --map {ignored}");
            problems.push(format!("column {number} has the same heading as an earlier column: {how}"));
            return Target::Ignored;
        }
        target(kind, name.trim(), mappings, &mut problems)
    };
    let targets: Vec<Target> = names.iter().zip(1..).map(target_of).collect();
    let sent: Vec<Option<&str>> = targets.iter().map(|target| target.field().map(sent_name)).collect();
    for (index, field) in sent.iter().enumerate() {
        if let Some(name) = field
            && sent.iter().take(index).any(|other| other == field)
        {
            problems.push(format!("column {}: another column is also mapped to {name}", index + 1));
        }
    }
    if problems.is_empty() && sent.iter().all(Option::is_none) {
        problems.push("no column is left to import".into());
    }
    if problems.is_empty() { Ok(targets) } else { Err(problems) }
}

/// Adds a problem for an unknown column.
pub fn target(kind: Kind, name: &str, mappings: &[Mapping], problems: &mut Vec<String>) -> Target {
    if let Some(mapping) = mappings.iter().find(|mapping| mapping.column == name) {
        return mapping.field.clone().map_or(Target::Ignored, Target::Field);
    }
    match name {
        "" => Target::Nameless,
        REASONS => Target::Ignored,
        _ if kind.has_column(name) => Target::Field(name.to_owned()),
        _ => {
            let guess = suggest::field(kind, name).map_or(String::new(), |field| format!("; could be {field}"));
            problems.push(format!("unknown column {name:?}{guess}"));
            Target::Ignored
        }
    }
}

/// The user's ID for each name, or the error for rows with that name.
pub type Owners = BTreeMap<String, Result<String, String>>;

#[derive(Debug, Clone, Default)]
pub struct Fields {
    pub kind: Kind,
    pub date_format: Option<DateFormat>,
    pub decimal_comma: bool,
    /// Whether commas in prices are thousands separators.
    pub decimal_point: bool,
    pub match_column: Option<&'static str>,
    pub values: Values,
    /// Constants, converted for the service.
    pub constants: Vec<Constant>,
    pub owners: Rc<Owners>,
    /// Fields whose invalid cells are left out, instead of refusing the row.
    pub skip_bad: Vec<String>,
    /// Joined columns, by the name of the first one.
    pub joined: BTreeMap<String, Joined>,
}

impl Fields {
    pub fn new(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Returns the converted value; `None` if it can be sent unchanged.
    pub fn convert(&self, field: &str, value: &str) -> Result<Option<String>, String> {
        let value = value.trim();
        if value.is_empty() || value == "\\N" {
            return Ok(None);
        }
        if field == OWNER_NAME {
            let owner = self.owners.get(value).cloned();
            return owner.unwrap_or_else(|| Err(format!("{value:?} was not looked up"))).map(Some);
        }
        // Exports, which are imported by ID, can contain placeholders.
        if field == "serial_number" && self.match_column != Some("id") {
            if is_placeholder(value) {
                return Err("is a placeholder, not a serial number".into());
            }
            if is_shortened(value) {
                return Err(SHORTENED.into());
            }
        }
        match self.kind.import_column(field).map(|column| column.cell) {
            Some(CellType::Date) => self.date(value),
            Some(CellType::Number) if self.decimal_comma => match price_with_comma(value) {
                None => Err(format!("{value:?} is not a price with a decimal comma, such as 1.249,00 €")),
                price => Ok(price),
            },
            Some(CellType::Number) => Ok(price_with_point(value, self.decimal_point).filter(|price| price != value)),
            _ => Ok(None),
        }
    }

    fn date(&self, value: &str) -> Result<Option<String>, String> {
        let date = self.date_format.as_ref().map(|format| format.date_or_iso(value));
        match (date, date_of_day_number(value)) {
            (None | Some(Err(_)), Some(date)) => Err(format!("{value:?} is a spreadsheet's day number for {date}")),
            (date, _) => date.transpose(),
        }
    }

    /// Whether the service rejects `?` as a value of the field, because it is a date or a number.
    pub fn is_checked(&self, field: &str) -> bool {
        let cell = self.kind.import_column(field).map(|column| column.cell);
        matches!(cell, Some(CellType::Date | CellType::Number))
    }

    /// Returns the hash of a value that could identify the same record in another row.
    ///
    /// A collision only costs time: the rows wait for each other.
    pub fn key(&self, field: &str, value: &str) -> Option<u64> {
        let unique = if self.kind == Kind::Assets { "asset_tag" } else { "email" };
        let decides = self.match_column == Some(field) || [unique, "id"].contains(&field);
        // The service removes a leading apostrophe.
        let value = value.trim_start_matches('\'').trim();
        if !decides || value.is_empty() || value == "\\N" {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        field.hash(&mut hasher);
        compared(field, value).hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// Normalizes a value as the service does for comparisons.
pub fn compared(field: &str, value: &str) -> String {
    match field {
        "serial_number" => serial_number::key(value),
        "email" => compatible(value),
        _ => folded(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn mappings(texts: &[&str]) -> Vec<Mapping> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn columns_are_known_or_mapped_or_ignored() {
        let targets =
            |columns: &[&str], given: &[&str]| resolve(Kind::Assets, &names(columns), &BTreeSet::new(), &mappings(given));
        let field = |name: &str| Target::Field(name.to_owned());
        let expected = vec![field("name"), field("serial_number"), field("custom_fields.RAM"), Target::Nameless, Target::Ignored];
        assert_eq!(targets(&["name", " serial_number ", "custom_fields.RAM ", "", "reasons"], &[]), Ok(expected));
        let given = ["Gerät=name", "a=b=notes", "OS="];
        assert_eq!(targets(&["Gerät", "a=b", "OS"], &given), Ok(vec![field("name"), field("notes"), Target::Ignored]));
        assert!("nothing".parse::<Mapping>().is_err());
    }

    #[test]
    fn columns_are_joined() {
        let columns = names(&["First", "Last", "A + B", "Site", "Floor", "Room", "C / D"]);
        let given =
            mappings(&["First=", "Last=", "First + Last=display_name", "A + B=email", "X + Y=role", "Site/Floor /Room=location"]);
        let (single, joined) = joined(&given, &columns, &mut Vec::new());
        let expected = ["First=display_name", "Last=", "A + B=email", "X + Y=role", "Site=location", "Floor=", "Room="];
        assert_eq!(single, mappings(&expected));
        let others = |columns: &[&str], separator| Joined { columns: names(columns), separator };
        let expected = [("First".to_owned(), others(&["Last"], " ")), ("Site".to_owned(), others(&["Floor", "Room"], " / "))];
        assert_eq!(joined, BTreeMap::from(expected));
        assert_eq!(mappings(&["C / D=notes"])[0].columns(&columns).0, ["C / D"]);
    }

    #[test]
    fn all_errors_of_columns_are_told_at_once() {
        let columns = names(&["name", "name", "Serial No", "OS", "email"]);
        let given = mappings(&["Sreial=serial_number", "OS=os"]);
        let problems = resolve(Kind::Assets, &columns, &BTreeSet::new(), &given).unwrap_err();
        assert_eq!(
            problems,
            [
                "--map \"Sreial\": the file has no such column",
                "--map \"OS\": \"os\" is not a field of assets",
                "unknown column \"Serial No\"; could be serial_number",
                "unknown column \"email\"; could be assigned_to_email",
                "column 2: another column is also mapped to name",
            ]
        );
        let of_users = |column: &str| resolve(Kind::Users, &names(&[column]), &BTreeSet::new(), &[]);
        assert!(of_users("custom_fields.x").is_err());
        assert_eq!(of_users("reasons").unwrap_err(), ["no column is left to import"]);
    }

    #[test]
    fn further_columns_of_a_heading_have_a_number() {
        let (numbered, doubled) =
            numbered(&names(&["A", "A", "", "", "A (2)", "A", "custom_fields.x", "custom_fields.x", "name"]));
        assert_eq!(
            numbered,
            ["A", "A (3)", "", "", "A (2)", "A (4)", "custom_fields.x", "custom_fields.x (2)", "name"].map(str::to_owned)
        );
        assert!(doubled.iter().eq(["A (3)", "A (4)", "custom_fields.x (2)"]));
        let problems =
            resolve(Kind::Assets, &numbered, &doubled, &mappings(&["A=", "A (2)=", "A (3)=notes", "A (4)="])).unwrap_err();
        let expected = "column 8 has the same heading as an earlier column: map it with --map \"custom_fields.x (2)=FIELD\", or \
                        ignore it with --map \"custom_fields.x (2)=\"";
        assert_eq!(problems, [expected]);
    }

    fn fields() -> Fields {
        Fields {
            date_format: Some(DateFormat::parse("DD.MM.YYYY").unwrap()),
            decimal_comma: true,
            match_column: Some("serial_number"),
            ..Fields::new(Kind::Assets)
        }
    }

    #[test]
    fn only_dates_and_prices_are_converted() {
        let fields = fields();
        assert_eq!(fields.convert("purchase_date", " 09.03.2024 "), Ok(Some("2024-03-09".into())));
        assert_eq!(fields.convert("purchase_price", "1.249,00 €"), Ok(Some("1249.00".into())));
        assert_eq!(fields.convert("notes", "09.03.2024"), Ok(None));
        assert_eq!(fields.convert("purchase_date", "\\N"), Ok(None));
        assert_eq!(fields.convert("purchase_price", ""), Ok(None));
        assert!(fields.convert("warranty_until", "soon").is_err() && fields.convert("serial_number", "N/A").is_err());
        assert_eq!(fields.convert("warranty_until", "2024-03-09"), Ok(Some("2024-03-09".into())));
        assert_eq!(fields.convert("serial_number", "8.93901E+18"), Err(SHORTENED.into()));
        let plain = Fields::new(Kind::Assets);
        assert_eq!(plain.convert("serial_number", "100E10"), Ok(None));
        assert_eq!(plain.convert("purchase_price", "$1,249.00"), Ok(Some("1249.00".into())));
        assert_eq!(plain.convert("purchase_price", "1249.00"), Ok(None));
        for fields in [fields, plain] {
            let refused = fields.convert("purchase_date", "44606");
            assert_eq!(refused, Err("\"44606\" is a spreadsheet's day number for 2022-02-14".into()));
        }
    }

    #[test]
    fn rows_are_compared_by_the_matched_column_and_by_unique_values() {
        let fields = fields();
        assert_eq!(fields.key("serial_number", "ab-1 "), fields.key("serial_number", "AB-1"));
        assert_eq!(fields.key("serial_number", "'-1"), fields.key("serial_number", "-1"));
        assert_eq!(fields.key("serial_number", "PF3 XK011"), fields.key("serial_number", "ｐf3xk011"));
        assert_ne!(fields.key("serial_number", "1"), fields.key("asset_tag", "1"));
        assert_eq!(fields.key("asset_tag", "e\u{301}"), fields.key("asset_tag", "É"));
        assert_eq!(fields.key("name", "same"), None);
        assert_eq!(fields.key("serial_number", ""), None);
    }
}
