//! The columns of a file: their fields, and users who are given by name.

pub mod convert;
pub mod fields;
pub mod suggest;

use ::fields::{ASSET_COLUMNS, CellType, Column, USER_COLUMNS};
use fields::Fields;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The prefix of columns with a custom field.
const CUSTOM_FIELD: &str = "custom_fields.";

/// The column of users by their display names. The service doesn't know it: the user's ID is sent.
pub const OWNER_NAME: &str = "assigned_to_name";

/// The columns that only this program knows.
const OWN_COLUMNS: &[Column] = &[Column::new(
    OWNER_NAME,
    CellType::Text,
    "assignedtoname primaryuserdisplayname checkedouttoname checkedoutto assignedto primaryuser owner user userfullname employee \
     benutzer nutzer benutzername anwender mitarbeiter besitzer inhaber verantwortlicher verantwortliche zugewiesenan ausgegebenan primärerbenutzer hauptbenutzer \
     utilisateur utilisateurprincipal attribuéà usuario asignadoa",
)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Assets,
    Users,
}

impl Kind {
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Assets => "assets",
            Self::Users => "users",
        }
    }

    /// Without `custom_fields.<name>`.
    pub fn import_columns(self) -> impl Iterator<Item = &'static Column> + Clone {
        let (columns, own) = match self {
            Self::Assets => (ASSET_COLUMNS, OWN_COLUMNS),
            Self::Users => (USER_COLUMNS, &[][..]),
        };
        columns.iter().chain(own)
    }

    #[must_use]
    pub fn import_column(self, name: &str) -> Option<&'static Column> {
        self.import_columns().find(|column| column.name == name)
    }

    #[must_use]
    pub fn has_column(self, name: &str) -> bool {
        let is_custom_field = || name.starts_with(CUSTOM_FIELD);
        self.import_column(name).is_some() || (self == Self::Assets && is_custom_field())
    }

    #[must_use]
    pub fn unique_column(self) -> &'static str {
        match self {
            Self::Assets => "asset_tag",
            Self::Users => "email",
        }
    }
}

/// The column of reasons in a file of refused rows, which the import ignores.
pub const REASONS: &str = "reasons";

/// What is between the levels of a place.
pub const LEVELS: &str = " / ";

/// Further columns whose cells are added to the cell of a first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub columns: Vec<String>,
    /// What is between the cells.
    pub separator: &'static str,
}

/// `--map "Serial No=serial_number"`; without a field, the column is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub column: String,
    /// `None` ignores the column.
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
    /// The columns that it is about: one, or several that are joined, as in `First Name + Last Name` and `Building / Room`; and what
    /// is between their cells.
    #[must_use]
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

/// One mapping for each column. The last one counts, because people append to a command that they have pasted. Adds a problem for
/// a column with two fields.
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
            problems.push(format!("--map {:?}: is there twice, as {first} and as {second}", mapping.column));
        }
        known.field.clone_from(&mapping.field);
    }
    settled
}

/// The mappings with one for each column of those that are joined, and the other columns that are joined to a column. Adds the
/// problems of [`settled`].
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
    // A column that is a part of another one can still be a field by itself.
    parts.retain(|part: &Mapping| !single.iter().any(|known| known.column == part.column));
    single.extend(parts);
    (single, joined)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// It is sent as this field.
    Field(String),
    Ignored,
    /// It has no name, so it must be empty.
    Nameless,
}

/// The columns of a file, and what becomes of their cells.
#[derive(Debug)]
pub struct Columns {
    /// One for each column.
    pub targets: Vec<Target>,
    pub fields: Fields,
}

/// The field as the service knows it.
#[must_use]
pub fn sent_name(field: &str) -> &str {
    if field == OWNER_NAME { "assigned_to" } else { field }
}

/// The names, with a number for the second and every further column of a heading, as in `Category (2)`; and the names with a number
/// that the file doesn't have.
#[must_use]
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

/// The use of each of the file's columns. `doubled` are names that [`numbered`] has made.
///
/// # Errors
///
/// All errors of the columns and the mappings, a line for each.
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
        // A number at the end doesn't make another custom field of it.
        if doubled.contains(name) && !is_mapped() {
            let (named, ignored) = (suggest::quote(&format!("{name}=FIELD")), suggest::quote(&format!("{name}=")));
            let how = format!("name it with --map {named}, or ignore it with --map {ignored}");
            problems.push(format!("column {number} has the heading of an earlier one: {how}"));
            return Target::Ignored;
        }
        target(kind, name.trim(), mappings, &mut problems)
    };
    let targets: Vec<Target> = names.iter().zip(1..).map(target_of).collect();
    for (index, target) in targets.iter().enumerate() {
        if let Target::Field(field) = target
            && targets
                .iter()
                .take(index)
                .any(|other| matches!(other, Target::Field(other) if sent_name(other) == sent_name(field)))
        {
            problems.push(format!("column {}: another column is {}, too", index + 1, sent_name(field)));
        }
    }
    if problems.is_empty() && !targets.iter().any(|target| matches!(target, Target::Field(_))) {
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

/// The ID of the user with each name, or the error of the rows that have it.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<String, Result<String, String>>);

impl Owners {
    pub fn add(&mut self, name: &str, owner: Result<String, String>) {
        self.0.insert(name.to_owned(), owner);
    }

    pub fn id(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().unwrap_or_else(|| Err(format!("{name:?} was not looked up")))
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
    fn known_columns_need_no_mapping() {
        let columns = names(&["name", " serial_number ", "custom_fields.RAM ", "", "reasons"]);
        let targets = resolve(Kind::Assets, &columns, &BTreeSet::new(), &[]);
        let field = |name: &str| Target::Field(name.to_owned());
        let expected = vec![field("name"), field("serial_number"), field("custom_fields.RAM"), Target::Nameless, Target::Ignored];
        assert_eq!(targets, Ok(expected));
    }

    #[test]
    fn mappings_name_and_ignore_columns() {
        let given = mappings(&["Gerät=name", "a=b=notes", "OS="]);
        let targets = resolve(Kind::Assets, &names(&["Gerät", "a=b", "OS"]), &BTreeSet::new(), &given);
        assert_eq!(targets, Ok(vec![Target::Field("name".into()), Target::Field("notes".into()), Target::Ignored]));
        assert!("nothing".parse::<Mapping>().is_err());
    }

    #[test]
    fn the_last_mapping_of_a_column_counts_and_two_fields_are_refused() {
        let mut problems = Vec::new();
        let given = mappings(&["A=", "B=name", "A=notes", "A=notes", "B="]);
        assert_eq!(settled(&given, &mut problems), mappings(&["A=notes", "B="]));
        assert_eq!(problems, [""; 0]);
        settled(&mappings(&["A=notes", "A=name"]), &mut problems);
        assert_eq!(problems, ["--map \"A\": is there twice, as notes and as name"]);
        joined(&mappings(&["A=email", "A + B=name"]), &names(&["A", "B"]), &mut problems);
        assert_eq!(problems.len(), 2);
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
    fn everything_wrong_is_told_at_once() {
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
                "column 2: another column is name, too",
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
        let expected = "column 8 has the heading of an earlier one: name it with --map \"custom_fields.x (2)=FIELD\", or ignore it with \
                        --map \"custom_fields.x (2)=\"";
        assert_eq!(problems, [expected]);
    }
}
