//! Proposes how to read a file: which field each column is, and what its values mean, in English, German, French and Spanish. Looks
//! at headings and cells. Only people decide: what isn't sure is a doubt in words.
//!
//! Doubts name parameters in backquotes, such as `` `set=status=in_use` ``. A program can write them in its own form.

pub mod headings;
mod sheet;
pub mod survey;
pub mod words;

#[cfg(test)]
mod tests;

pub use sheet::{Format, Sheet};

use crate::assets::csv_cell;
use crate::import::columns::{Columns, custom_field_fault, field_of};
use crate::import::dates::date_of_day_number;
use crate::import::parameters::{ColumnName, Constant, Headings, Mapping, Reading, ValueMapping};
use crate::import::prices::Decimal;
use crate::import::{CUSTOM_FIELD, Kind, OWNER_NAME, REASONS};
use crate::values::field_error::{ErrorLocation, FieldError, distance};
use crate::values::id::AssetId;
use crate::values::json::is_private;
use crate::values::string_enum::string_enum;
use fields::compared::{fold, lower, name_key};
use fields::serial_number::{is_placeholder, is_shortened};
use headings::{Placed, plain};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use survey::{Dates, Finding, Identifiers, Prices, Surveyed};
use utoipa::ToSchema;
use words::known;

/// Maximum number of different values to keep per column.
const MAX_VALUES: usize = 50;
/// Maximum number of names and places to look up.
pub const MAX_LOOKED_UP: usize = 200;
/// Maximum number of values that a doubt lists.
const MAX_LISTED: usize = 5;
/// Maximum length of a value in a doubt or an example, in characters.
const MAX_CHARS: usize = 80;
/// Maximum number of places to compare with a new one.
const MAX_COMPARED: usize = 500;

/// Times that the service writes. In a file of another system they mean something else.
const TIMES: [&str; 4] = ["status_changed_at", "created_at", "updated_at", "last_seen_at"];
const OTHER_TIME: &str = "it seems to be a time of another system";
const OWNERS: [&str; 2] = [OWNER_NAME, "assigned_to_email"];
/// The field with the ID of the user who has the asset.
const HOLDER: &str = "assigned_to";
const QUANTITIES: [&str; 7] = ["quantity", "qty", "menge", "anzahl", "stückzahl", "quantité", "cantidad"];
/// Columns with longer headings are mapped by their numbers.
const MAX_HEADING: usize = 255;
/// Endings of plurals.
const PLURALS: [&str; 5] = ["s", "es", "e", "n", "en"];

string_enum! {
    /// What kind of list a file seems to be.
    ListKind {
        /// Devices and other assets.
        Assets = "assets",
        /// People.
        Users = "users",
        /// Licences of software, with numbers of seats.
        Licences = "licences",
        /// Places with addresses.
        Places = "places",
        /// Accessories or consumables, with minimum amounts.
        Consumables = "consumables",
    }
}

/// A column of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SuggestedColumn {
    /// Heading, with a number if an earlier column has the same.
    pub heading: String,
    /// Field that the column probably is; null if nothing shows it, or if the column should be ignored.
    #[schema(required)]
    pub field: Option<String>,
    /// First cell with text; null if there is none.
    #[schema(required)]
    pub example: Option<String>,
    /// What shows it, in words.
    pub why: String,
}

/// How to read a file, and what is doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Parameters of the import: names and values, in order.
    pub parameters: Vec<(&'static str, String)>,
    pub columns: Vec<SuggestedColumn>,
    pub doubts: Vec<String>,
    pub list: ListKind,
    pub rows: usize,
}

/// What the service knows about the values of a file. `None` if the caller may not know.
#[derive(Debug, Clone, Default)]
pub struct LookedUp {
    /// Codes and names of the asset types.
    pub types: Option<Vec<(String, String)>>,
    /// Names of the custom fields that the types define.
    pub custom_fields: Vec<String>,
    /// The texts of [`Lookups::addresses`] and [`Lookups::names`] that mean no single user.
    pub unknown_people: Option<Vec<String>>,
    /// Locations of assets.
    pub places: Option<Vec<String>>,
}

/// What to look up for a suggestion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookups {
    pub addresses: BTreeSet<String>,
    pub names: BTreeSet<String>,
    pub has_places: bool,
}

/// Who says what a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Caller,
    /// The heading is the name of the field.
    Heading,
    Guess,
}

/// How a column is used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    field: Option<String>,
    why: String,
    source: Source,
}

/// What a caller has decided.
#[derive(Debug, Clone, Default)]
pub struct Decided {
    pub reading: Reading,
    pub matched: Option<&'static str>,
    pub create_unmatched: bool,
}

/// A file that was looked at.
pub struct Survey {
    kind: Kind,
    given: Decided,
    sheet: Sheet,
    /// By column; `None` if nothing shows what a column is.
    uses: Vec<Option<Use>>,
    /// Why columns are not what their headings say.
    misfits: BTreeMap<usize, String>,
    surveyed: Vec<Surveyed>,
    /// Columns that are joined to a field, in addition to those of `given`.
    joined: Vec<Placed>,
    doubts: Vec<String>,
}

impl Survey {
    /// Looks at a file.
    pub fn of(kind: Kind, sheet: Sheet, given: Decided) -> Self {
        let count = sheet.names.len();
        let mut survey = Self {
            kind,
            given,
            uses: vec![None; count],
            misfits: BTreeMap::new(),
            surveyed: (0..count).map(|index| Surveyed::of(sheet.cells(index))).collect(),
            joined: Vec::new(),
            doubts: sheet.doubts.clone(),
            sheet,
        };
        survey.note_given();
        survey.place();
        survey.place_by_values();
        survey.owners();
        survey
    }

    fn name(&self, index: usize) -> &str {
        self.sheet.names.get(index).map_or("", |name| name.as_str())
    }

    /// Returns the column as a mapping names it.
    fn named(&self, index: usize) -> ColumnName {
        match self.name(index) {
            name if self.sheet.has_numbers && (name.is_empty() || name.len() > MAX_HEADING) => ColumnName::Number(index + 1),
            name => ColumnName::Heading(name.to_owned()),
        }
    }

    fn map(&self, index: usize, field: &str) -> Mapping {
        Mapping::new(&[self.named(index)], "", Some(field).filter(|field| !field.is_empty()))
    }

    fn set(&mut self, index: usize, field: Option<&str>, why: impl Into<String>, source: Source) {
        if let Some(place) = self.uses.get_mut(index) {
            *place = Some(Use { field: field.map(str::to_owned), why: why.into(), source });
        }
    }

    /// Returns the field that a column is.
    fn field(&self, index: usize) -> Option<&str> {
        self.uses[index].as_ref()?.field.as_deref()
    }

    fn is_from(&self, index: usize, source: Source) -> bool {
        self.uses[index].as_ref().is_some_and(|used| used.source == source)
    }

    fn guess(&mut self, index: usize, field: Option<&str>, why: impl Into<String>) {
        self.set(index, field, why, Source::Guess);
    }

    /// Leaves a column to people.
    fn leave_open(&mut self, index: usize, why: impl Into<String>) {
        self.joined.retain(|placed| !placed.columns.contains(&index));
        self.misfits.insert(index, why.into());
        self.uses[index] = None;
    }

    /// Returns the field that a heading names by itself.
    fn own_field(&self, index: usize) -> Option<String> {
        let field = field_of(self.name(index));
        let is_good = custom_field_fault(&field).is_none() && !field.strip_prefix(CUSTOM_FIELD).is_some_and(is_private);
        let is_own = self.kind.has_field(&field) && is_good && !self.sheet.repeated.contains_key(self.name(index));
        Some(field).filter(|_| is_own)
    }

    /// Whether the file is an export of this service, or of another installation.
    fn is_export(&self) -> bool {
        let has = |name: &str| self.sheet.names.iter().any(|known| known == name);
        has("id") && has(if self.kind == Kind::Users { "email" } else { "asset_tag" }) && (has("created_at") || has("updated_at"))
    }

    /// Notes what the mappings say, and the headings that are fields. The mappings take precedence, and then columns with cells.
    fn note_given(&mut self) {
        let headings = Headings::new(&self.sheet.names);
        let maps = self.given.reading.maps.iter();
        let found: Vec<_> = maps.filter_map(|map| Some((map.find(&headings).ok()?.0, map.field.clone()))).collect();
        for (columns, field) in found {
            let why = if columns.len() > 1 { "joined, as given" } else { "as given" };
            columns.iter().for_each(|index| self.set(*index, field.as_deref(), why, Source::Caller));
        }
        for index in 0..self.uses.len() {
            if self.uses[index].is_some() {
                continue;
            }
            let heading = self.name(index).to_owned();
            if heading == REASONS {
                self.set(index, None, "the reasons of an earlier import", Source::Heading);
            } else if TIMES.contains(&heading.as_str()) && !self.is_export() {
                self.guess(index, None, OTHER_TIME);
            } else if self.surveyed[index].filled > 0 || self.sheet.rows.is_empty() || TIMES.contains(&heading.as_str()) {
                let field = self.own_field(index).filter(|field| match self.kind.column(field).map(|column| column.name) {
                    Some(field @ (HOLDER | OWNER_NAME | "assigned_to_email")) => {
                        self.fitting(index, field).map_or(field != HOLDER, |fitting| fitting == field)
                    }
                    _ => true,
                });
                if let Some(field) = field {
                    self.set(index, Some(&field), "its heading is the field", Source::Heading);
                }
            }
        }
    }

    fn fitting(&self, index: usize, field: &'static str) -> Option<&'static str> {
        survey::fitting(field, self.kind.column(field).map(|column| column.cell), self.cells(index))
    }

    /// Places the other columns by their headings: those with cells, and then those without, which never take a field from them.
    fn place(&mut self) {
        let is_time = |index: usize| headings::field(self.kind, self.name(index)).is_some_and(|field| TIMES.contains(&field));
        let is_open = |index: &usize| self.uses[*index].is_none() && !self.name(*index).is_empty() && !is_time(*index);
        let open: Vec<usize> = (0..self.uses.len()).filter(is_open).collect();
        let (filled, empty): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|index| self.surveyed[*index].filled > 0 || self.sheet.rows.is_empty());
        self.place_by_headings(&filled);
        for index in &empty {
            if let Some(field) = self.own_field(*index).filter(|field| !self.is_taken(field)) {
                self.set(*index, Some(&field), "its heading is the field", Source::Heading);
            }
        }
        let empty: Vec<usize> = empty.into_iter().filter(|index| self.uses[*index].is_none()).collect();
        self.place_by_headings(&empty);
        for index in empty {
            if self.uses[index].is_none() && !self.sheet.is_cut {
                self.guess(index, None, "it has no cells");
            }
        }
    }

    fn place_by_headings(&mut self, open: &[usize]) {
        let mut misfits = BTreeMap::new();
        let fitting = |index: usize, field: &'static str| {
            let fitting =
                self.fitting(index, field).filter(|_| field != "asset_type_code" || !self.surveyed[index].has_more_values);
            if fitting.is_none() {
                let values = || listed(&self.surveyed[index].spellings().map(str::to_owned).collect::<Vec<_>>());
                let why = match OWNERS.contains(&field) {
                    true => format!("neither names nor e-mail addresses of users, such as {}", values()),
                    false => format!("its heading could be {field}, but its values can't"),
                };
                misfits.insert(index, why);
            }
            fitting
        };
        let all = headings::place(self.kind, &self.sheet.names, open, |field| self.is_taken(field), fitting);
        self.misfits.extend(misfits);
        for placed in all {
            let is_joined = placed.columns.len() > 1;
            let why = if is_joined { "its heading, joined with others" } else { "its heading" };
            placed.columns.iter().for_each(|column| self.guess(*column, Some(placed.field), why));
            self.joined.extend(is_joined.then_some(placed));
        }
    }

    fn is_taken(&self, field: &str) -> bool {
        self.column(field).is_some() || self.given.reading.constants.iter().any(|constant| constant.field == field)
    }

    /// Places columns without a telling heading that have addresses or statuses.
    fn place_by_values(&mut self) {
        let is_users = self.kind == Kind::Users;
        let email = if is_users { "email" } else { "assigned_to_email" };
        let words: &[&str] = if is_users { &["role", "is_active"] } else { &["status"] };
        for index in 0..self.uses.len() {
            if self.uses[index].is_some() || self.name(index).is_empty() {
                continue;
            }
            let surveyed = &self.surveyed[index];
            let is_open = |field: &&str| !self.is_taken(field);
            let found = Some(email).filter(|_| surveyed.are_addresses()).filter(is_open);
            let found = found.or_else(|| words.iter().copied().filter(is_open).find(|field| surveyed.are_words_of(field)));
            if let Some(field) = found {
                self.guess(index, Some(field), "its values");
            }
        }
    }

    /// Returns the first column that is the field.
    fn column(&self, field: &str) -> Option<usize> {
        self.columns_where(|known| known == field).next()
    }

    fn is_joined(&self, index: usize) -> bool {
        self.joined.iter().any(|placed| placed.columns.contains(&index))
    }

    /// Leaves out the names of holders whose addresses another column has. Holders are never left out otherwise.
    fn owners(&mut self) {
        let names: Vec<usize> = self.columns_where(|field| field == OWNER_NAME).collect();
        let Some(addresses) = self.column("assigned_to_email") else { return self.strange_holders() };
        let other = shortened(self.name(addresses));
        let is_filled = |row: &[String], index: usize| row.get(index).is_some_and(|cell| survey::is_filled(cell.trim()));
        let without = |row: &&Vec<String>| !is_filled(row, addresses) && names.iter().any(|index| is_filled(row, *index));
        let without = self.sheet.rows.iter().filter(without).count();
        for index in names {
            if self.is_from(index, Source::Caller) {
                continue;
            }
            if without == 0 {
                self.joined.retain(|placed| !placed.columns.contains(&index));
                self.guess(index, None, format!("{other} has the e-mail addresses of users"));
            } else {
                let why =
                    format!("{other} has the e-mail addresses of users, but not in {}", count(without, "row") + " with a name");
                self.leave_open(index, why);
            }
        }
        self.strange_holders();
    }

    /// Tells about columns whose headings promise holders, and whose cells are neither names nor addresses.
    fn strange_holders(&mut self) {
        let is_holder = |index: &&usize| {
            let field = headings::field(self.kind, self.name(**index));
            self.uses[**index].is_none() && field.is_some_and(|field| OWNERS.contains(&field))
        };
        let strange: Vec<usize> = self.misfits.keys().filter(is_holder).copied().collect();
        for index in strange {
            let (why, map) = (self.misfits[&index].clone(), |field| self.map(index, field));
            let first = self.surveyed[index].values.first().map_or("", |value| value.as_str());
            let how = match self.column("assigned_to_email") {
                Some(_) => format!("keep them elsewhere, `map={}`", map("notes")),
                None => {
                    let value = ValueMapping::new("assigned_to_email", first, "ADDRESS");
                    format!("say who they are, `map={}` and `value={value}`", map("assigned_to_email"))
                }
            };
            let doubt = format!("{}: {why}. Either {how}; or ignore them, `map={}`.", shortened(self.name(index)), map(""));
            self.doubt(doubt);
        }
    }

    /// Returns what the service should look up.
    pub fn lookups(&self) -> Lookups {
        let texts = |field: &str| {
            let column = self.column(field).filter(|index| !self.is_joined(*index));
            let cells = column.into_iter().flat_map(|index| self.cells(index));
            let mut found = BTreeSet::new();
            for cell in cells.filter(|cell| survey::is_value(cell)) {
                if found.len() < MAX_LOOKED_UP {
                    found.insert(cell.to_owned());
                }
            }
            found
        };
        Lookups { addresses: texts("assigned_to_email"), names: texts(OWNER_NAME), has_places: self.column("location").is_some() }
    }

    fn cells(&self, index: usize) -> impl Iterator<Item = &str> {
        self.sheet.cells(index)
    }

    /// Returns the number of cells of a column that have a property, and the first one; `None` without one.
    fn find(&self, index: usize, is_one: impl Fn(&str) -> bool) -> Option<(usize, &str)> {
        let mut found = self.cells(index).filter(|cell| is_one(cell));
        let first = found.next()?;
        Some((1 + found.count(), first))
    }

    /// Proposes the parameters of an import.
    pub fn suggest(mut self, known: &LookedUp) -> Suggestion {
        self.custom_fields(known);
        let mut reading = self.given.reading.clone();
        reading.header_line = reading.header_line.or(Some(self.sheet.header_line).filter(|line| *line > 1));
        reading.delimiter = self.sheet.delimiter;
        let list = self.list();
        self.doubts.extend(self.doubt_of_list(list));
        let (mut matched, mut create_unmatched) = (self.given.matched, self.given.create_unmatched);
        self.foreign_ids();
        if self.sheet.rows.is_empty() {
            self.doubt(if self.sheet.count == 0 { "The file has no rows." } else { "No row could be read." });
        } else {
            self.nameless();
            self.garbled();
            self.vocabularies(&mut reading);
            self.types(&mut reading, known);
            self.dates(&mut reading);
            self.prices(&mut reading);
            (matched, create_unmatched) = self.matching();
            self.placeholders(&mut reading, matched);
            self.missing_fields(&reading);
            self.people(known);
            self.places(known);
        }
        self.maps(&mut reading);
        self.refused_parameters(&reading);
        let mut parameters = reading.parameters();
        parameters.extend(matched.map(|field| ("match", field.to_owned())));
        parameters.extend(create_unmatched.then(|| ("create_unmatched", "true".to_owned())));
        Suggestion { parameters, columns: self.columns(), doubts: self.doubts, list, rows: self.sheet.count }
    }

    /// Adds the mappings of columns that are placed by a guess.
    fn maps(&self, reading: &mut Reading) {
        let headings = Headings::new(&self.sheet.names);
        for (index, used) in self.uses.iter().enumerate() {
            let Some(Use { field, source: Source::Guess, .. }) = used else { continue };
            if let Some(placed) = self.joined.iter().find(|placed| placed.columns.contains(&index)) {
                if placed.columns.first() == Some(&index) {
                    let map = |named: &dyn Fn(usize) -> ColumnName| {
                        let names: Vec<ColumnName> = placed.columns.iter().map(|index| named(*index)).collect();
                        Mapping::new(&names, placed.separator, Some(placed.field))
                    };
                    // Another column can be called `Building / Room`.
                    let by_names = map(&|index| self.named(index));
                    let is_clear = by_names.find(&headings).is_ok_and(|(found, _)| found == placed.columns);
                    reading.maps.push(if is_clear { by_names } else { map(&|index| ColumnName::Number(index + 1)) });
                }
            } else if field.as_deref() != Some(self.name(index)) {
                reading.maps.push(self.map(index, field.as_deref().unwrap_or_default()));
            }
        }
    }

    /// Tells which parameters an import would refuse.
    fn refused_parameters(&mut self, reading: &Reading) {
        if self.sheet.is_cut {
            return;
        }
        let resolved = Columns::resolve(self.kind, &self.sheet.names, &self.sheet.repeated, reading, None);
        let of_parameter = |error: &FieldError| match &error.location {
            ErrorLocation::Parameter(name) => Some(format!("{name}: {}", error.reason.text)),
            _ => None,
        };
        self.doubts.extend(resolved.err().iter().flatten().filter_map(of_parameter));
    }

    /// Ignores columns that have cells but no heading.
    fn nameless(&mut self) {
        for index in 0..self.uses.len() {
            if self.sheet.has_numbers
                && self.name(index).is_empty()
                && self.uses[index].is_none()
                && self.surveyed[index].filled > 0
            {
                self.guess(index, None, "it has no heading");
                let map = self.map(index, if self.kind == Kind::Users { "display_name" } else { "notes" });
                self.doubt(format!("Column {} has cells but no heading, and is ignored. If it matters: `map={map}`.", index + 1));
            }
        }
    }

    /// Treats placeholders as empty cells, except in an export, which changes nothing.
    fn placeholders(&mut self, reading: &mut Reading, matched: Option<&str>) {
        if matched == Some("id") {
            return;
        }
        for index in 0..self.uses.len() {
            let field = self.field(index).map(str::to_owned);
            let is_wanted = |field: &String| {
                let has_words =
                    known(field).next().is_some() || ["id", "name", "display_name", "email"].contains(&field.as_str());
                !has_words && matched != Some(field) && !self.is_joined(index)
            };
            let Some(field) = field.filter(is_wanted) else { continue };
            let is_serial = field == "serial_number";
            let is_one = |cell: &&str| if is_serial { is_placeholder(cell) } else { survey::is_unknown(cell) };
            let distinct: BTreeSet<&str> = self.cells(index).filter(|cell| survey::is_filled(cell)).collect();
            let most = if field.starts_with(CUSTOM_FIELD) { MAX_LOOKED_UP } else { usize::MAX };
            for text in distinct.into_iter().take(most).filter(is_one) {
                add_value(reading, &field, text, "");
            }
        }
    }

    fn columns(&self) -> Vec<SuggestedColumn> {
        let column = |(index, name): (usize, &String)| {
            let (field, why) = match (&self.uses[index], self.misfits.get(&index)) {
                (Some(used), _) => (used.field.clone(), used.why.clone()),
                (None, Some(misfit)) => (None, misfit.clone()),
                (None, None) => (None, self.why_unplaced(name)),
            };
            let example = self.surveyed[index].example.as_deref().map(shortened);
            SuggestedColumn { heading: name.clone(), field, example, why }
        };
        self.sheet.names.iter().enumerate().filter(|(_, name)| !name.is_empty()).map(column).collect()
    }

    fn why_unplaced(&self, name: &str) -> String {
        match headings::field(self.kind, name) {
            Some(field) if TIMES.contains(&field) => OTHER_TIME.to_owned(),
            Some(field) => match self.column(field) {
                Some(other) => format!("{} is {field} already", shortened(self.name(other))),
                None => "nothing shows what it is".to_owned(),
            },
            None => "nothing shows what it is".to_owned(),
        }
    }

    /// Places columns whose headings are custom fields of a type.
    fn custom_fields(&mut self, known: &LookedUp) {
        let fields: BTreeMap<String, &String> = known.custom_fields.iter().map(|field| (plain(field), field)).collect();
        for index in 0..self.uses.len() {
            let field = fields.get(&plain(self.name(index))).map(|field| format!("{CUSTOM_FIELD}{field}"));
            if let Some(field) = field.filter(|field| self.uses[index].is_none() && self.column(field).is_none()) {
                self.guess(index, Some(&field), "a custom field of your types");
            }
        }
    }

    fn doubt(&mut self, doubt: impl Into<String>) {
        self.doubts.push(doubt.into());
    }

    fn garbled(&mut self) {
        let cell = |(name, column): (&'_ String, &Surveyed)| {
            let cell = column.garbled.clone().or_else(|| Some(name.clone()).filter(|name| survey::is_garbled(name)))?;
            Some((shortened(name), shortened(&cell)))
        };
        let garbled = self.sheet.names.iter().zip(&self.surveyed).find_map(cell);
        if let Some((name, cell)) = garbled {
            let doubt = format!(
                "{name}: letters are garbled, as in {cell}: the file was saved as UTF-8, and read as Windows-1252. Export it again."
            );
            self.doubt(doubt);
        }
    }

    fn dates(&mut self, reading: &mut Reading) {
        let is_date = |field: &str| self.kind.column(field).is_some_and(|column| column.cell == fields::CellType::Date);
        let columns: Vec<usize> = self.columns_where(is_date).collect();
        let mut dates = Dates::default();
        for index in &columns {
            self.cells(*index).for_each(|cell| dates.note(cell));
        }
        for index in columns {
            let Some((number, first)) = self.find(index, |cell| date_of_day_number(cell).is_some()) else { continue };
            let (name, cells) = (shortened(self.name(index)), count(number, "cell"));
            self.doubt(format!(
                "{name}: {cells} with a spreadsheet's day number, such as {first}, will be refused. Format the column as YYYY-MM-DD in \
                 the spreadsheet, and save the file again."
            ));
        }
        if !reading.date_formats.is_empty() {
            return;
        }
        let found = dates.formats();
        reading.date_formats = found.formats.iter().filter_map(|format| format.parse().ok()).collect();
        if let Some((one, other)) = found.doubt {
            self.doubt(format!("Dates fit {one} and {other}. Say which is right, `date_format={one}` or `date_format={other}`: it is not guessed."));
            return;
        }
        let misfits = dates.misfits(&found.formats);
        if misfits > 0 && !found.formats.is_empty() {
            self.doubt(format!("{} not of the form {}, and will be refused.", are(misfits, "date"), found.formats.join(" or ")));
        }
    }

    fn columns_where(&self, is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = usize> {
        (0..self.uses.len()).filter(move |index| self.field(*index).is_some_and(&is_wanted))
    }

    fn prices(&mut self, reading: &mut Reading) {
        let is_price = |field: &str| self.kind.column(field).is_some_and(|column| column.cell == fields::CellType::Number);
        let mut prices = Prices::default();
        let columns: Vec<usize> = self.columns_where(is_price).collect();
        columns.iter().flat_map(|index| self.cells(*index)).for_each(|cell| prices.note(cell));
        match prices.finding() {
            Finding::Nothing => {}
            _ if reading.decimal.is_some() => {}
            Finding::Clear(decimal) => reading.decimal = Some(decimal),
            Finding::Ambiguous => {
                // An import would read 1.249 as a small price.
                for index in columns {
                    if self.is_from(index, Source::Guess) {
                        self.leave_open(index, "its heading could be purchase_price, but its values can be read in two ways");
                    }
                }
                self.doubt(format!(
                    "Prices can be read with a decimal comma and with a decimal point. If 1.249 is more than a thousand, add \
                     `decimal={}`; if 1,249 is, add `decimal={}`.",
                    Decimal::Comma,
                    Decimal::Point
                ));
            }
        }
    }

    fn vocabularies(&mut self, reading: &mut Reading) {
        for index in 0..self.uses.len() {
            let Some(field) = self.field(index).map(str::to_owned) else { continue };
            if known(&field).next().is_none() {
                continue;
            }
            let mut strange = Vec::new();
            for text in self.surveyed[index].spellings().filter(|value| !known(&field).any(|known| known == *value)) {
                match words::guess(&field, text) {
                    Some(meaning) => add_value(reading, &field, text, meaning),
                    None if is_given(reading, &field, text) => {}
                    None => strange.push(text.to_owned()),
                }
            }
            if let Some(first) = strange.first() {
                let values: Vec<&str> = known(&field).collect();
                let doubt = format!(
                    "{}: no guess for {}. Say what each means, `value={}`: {}.",
                    shortened(self.name(index)),
                    listed(&strange),
                    ValueMapping::new(&field, first, "…"),
                    values.join(", ")
                );
                self.doubt(doubt);
            }
        }
    }

    /// Finds the codes of asset types. Rows with another type are refused until somebody says what it means.
    fn types(&mut self, reading: &mut Reading, known: &LookedUp) {
        const FIELD: &str = "asset_type_code";
        let Some(index) = self.column(FIELD) else { return };
        let codes: Vec<(String, &str)> = known
            .types
            .iter()
            .flatten()
            .flat_map(|(code, name)| [(name_key(code), code.as_str()), (name_key(name), code.as_str())])
            .collect();
        let is_plural = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|ending| PLURALS.contains(&ending));
        let code = |value: &str| {
            let key = name_key(value);
            let same = codes.iter().find(|(name, _)| *name == key).map(|(_, code)| *code);
            let near = || codes.iter().filter(|(name, _)| is_plural(name, &key) || is_plural(&key, name)).map(|(_, code)| *code);
            same.or_else(|| near().next().filter(|code| near().all(|other| other == *code)))
        };
        let is_code = |text: &str| {
            (2..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        };
        let (mut missing, mut found) = (Vec::new(), Vec::new());
        for value in
            self.surveyed[index].spellings().filter(|value| !is_given(reading, FIELD, value) && !survey::is_unknown(value))
        {
            match code(value) {
                Some(code) => found.push((value.to_owned(), code)),
                None if known.types.is_none() && is_code(value) => {}
                None => missing.push(value.to_owned()),
            }
        }
        let is_guess = self.is_from(index, Source::Guess);
        let is_varied = missing.len() > 1 && missing.len() * 2 > self.surveyed[index].filled;
        if is_guess && found.is_empty() && is_varied && self.filled_column("name").is_none() && self.kind == Kind::Assets {
            if let Some(empty) = self.column("name") {
                self.guess(empty, None, "it has no cells");
            }
            return self.guess(index, Some("name"), "its values, which are no types, are different for most rows");
        }
        for (value, code) in found.iter().filter(|(value, code)| value != code) {
            add_value(reading, FIELD, value, code);
        }
        let Some(first) = missing.first() else { return };
        let (name, all) = (shortened(self.name(index)), listed(&missing));
        let [code, empty] = ["LAP", ""].map(|meaning| ValueMapping::new(FIELD, first, meaning));
        let are = match (&known.types, missing.len()) {
            (None, _) => "without the scope catalog:read, it isn't known whether these are types of assets".to_owned(),
            (_, 1) => "1 value is no type of assets".to_owned(),
            (_, number) => format!("{number} values are no types of assets"),
        };
        self.doubt(format!(
            "{name}: {are}: {all}. Create the types, or say which they are, such as `value={code}`; or `value={empty}`, for assets \
             without a type. Until then, rows with an unknown type are refused."
        ));
    }

    /// Ignores a column `id` with another system's IDs. Only a file that looks like an export of this service has usable ones, or one
    /// that has nothing else.
    fn foreign_ids(&mut self) {
        let Some(index) = self.column("id").filter(|index| self.surveyed[*index].filled > 0) else { return };
        let others: &[&str] = if self.kind == Kind::Users { &["email"] } else { &["serial_number", "asset_tag"] };
        let is_own = self.is_export() || others.iter().all(|field| self.identifiers(field).is_none());
        let is_given = self.given.matched == Some("id") || self.is_from(index, Source::Caller);
        if !(is_given || is_own && self.identifiers("id").is_some()) {
            self.guess(index, None, "its values are not IDs of this service");
            for time in TIMES {
                if let Some(index) = self.column(time) {
                    self.guess(index, None, OTHER_TIME);
                }
            }
        }
    }

    /// Finds the field that identifies the record of a row. Only exports have usable IDs; serial numbers precede tags, because
    /// files from other systems have serial numbers, too.
    fn matching(&mut self) -> (Option<&'static str>, bool) {
        let candidates: &[&'static str] =
            if self.kind == Kind::Users { &["id", "email"] } else { &["id", "serial_number", "asset_tag"] };
        let matched = self.given.matched.or_else(|| candidates.iter().copied().find(|field| self.identifiers(field).is_some()));
        // The service would refuse new assets, whose tags it doesn't know yet.
        let create_unmatched = self.given.create_unmatched || (self.given.matched.is_none() && matched == Some("asset_tag"));
        let shortened_serials = self.column("serial_number").and_then(|index| self.find(index, is_shortened));
        if let Some((number, first)) = shortened_serials.map(|(number, first)| (number, first.to_owned())) {
            let serials = count(number, "serial number");
            self.doubt(format!("A spreadsheet has shortened {serials}, such as {first}, which will be refused."));
        }
        let Some((index, found)) = matched.and_then(|field| self.identifiers(field)) else {
            self.doubt(format!("No column has {}: importing the file twice creates everything twice.", candidates.join(" or ")));
            return (matched, create_unmatched);
        };
        let name = shortened(self.name(index));
        let missing = self.sheet.rows.len().saturating_sub(found.distinct() + found.repeated);
        if missing > 0 && !create_unmatched {
            let placeholders: Vec<String> = self.surveyed[index]
                .spellings()
                .filter(|value| matched == Some("serial_number") && fields::serial_number::is_placeholder(value))
                .map(str::to_owned)
                .collect();
            let seen = if placeholders.is_empty() { String::new() } else { format!(" Placeholders: {}.", listed(&placeholders)) };
            self.doubt(format!("{name}: {} without a value to match, and will be refused.{seen}", are(missing, "row")));
        }
        if found.repeated > 0 {
            let values = are(found.repeated, "value");
            self.doubt(format!("{name}: {values} in another row, too. Rows with the same value will be refused."));
        }
        (matched, create_unmatched)
    }

    /// Returns the column of a field, and its different values, if they can identify records.
    fn identifiers(&self, field: &str) -> Option<(usize, Identifiers)> {
        let index = self.column(field)?;
        let found = Identifiers::of(field, self.cells(index));
        let is_id = |cell: &str| cell.parse::<AssetId>().is_ok();
        (found.distinct() > 0 && (field != "id" || self.find(index, is_id).is_some())).then_some((index, found))
    }

    fn filled_column(&self, field: &str) -> Option<usize> {
        self.columns_where(|known| known == field).find(|index| self.surveyed[*index].filled > 0)
    }

    fn missing_fields(&mut self, reading: &Reading) {
        let is_set = |field: &str| reading.constants.iter().any(|Constant { field: set, .. }| set == field);
        let has = |field: &str| self.filled_column(field).is_some() || is_set(field);
        let mut doubts = Vec::new();
        let required: &[&str] = if self.kind == Kind::Users { &["email", "display_name"] } else { &["name"] };
        for field in required.iter().filter(|field| !has(field)) {
            let article = if *field == "email" { "an" } else { "a" };
            let kind = if self.kind == Kind::Users { "user" } else { "asset" };
            doubts.push(format!("Every new {kind} needs {article} {field}, and no column has it: `map=COLUMN={field}`."));
        }
        if self.kind == Kind::Assets {
            if !has("asset_type_code") && !has("asset_type_id") && reading.constants.is_empty() {
                doubts.push("No column contains the asset type. `set=asset_type_code=CODE` sets it in all rows.".to_owned());
            }
            if has("model") || has("manufacturer") {
                let free =
                    "manufacturer and model are free text. For models in your catalog, use manufacturer_name and model_name.";
                doubts.push(free.to_owned());
            }
            doubts.extend(self.assigned_in_stock(reading, is_set("status")));
            doubts.extend(self.quantity());
        }
        self.doubts.extend(doubts);
    }

    /// Returns a doubt about assets with a user that would be in stock.
    fn assigned_in_stock(&self, reading: &Reading, is_set: bool) -> Option<String> {
        let owners: Vec<usize> = self.columns_where(|field| OWNERS.contains(&field)).collect();
        let status = self.column("status");
        let filled = |row: &[String], index: usize| row.get(index).is_some_and(|cell| survey::is_value(cell.trim()));
        // Words for other statuses are mapped already.
        let words: BTreeSet<String> = reading
            .values
            .iter()
            .filter(|value| value.field == "status" && value.meaning == "in_stock")
            .map(|value| lower(&value.text))
            .collect();
        let is_in_stock = |cell: &str| cell.is_empty() || cell == "in_stock" || words.contains(&lower(cell));
        let is_one = |row: &&Vec<String>| {
            let cell = status.and_then(|index| row.get(index)).map_or("", |cell| cell.trim());
            owners.iter().any(|index| filled(row, *index)) && is_in_stock(cell)
        };
        let (number, rows) = (self.sheet.rows.iter().filter(is_one).count(), self.sheet.rows.len());
        if number == 0 || is_set {
            return None;
        }
        let assets = count(number, "asset");
        Some(if status.is_some() {
            format!("{assets} would have a user and be in_stock: say what their status means, `value=status:TEXT=in_use`.")
        } else if number == rows {
            format!("{assets} would have a user and be in_stock: `set=status=in_use` sets the status of all rows.")
        } else {
            // A constant status would be wrong for the other rows.
            format!(
                "{assets} of {rows} would have a user and be in_stock. Add a column with the status to the file; or change these \
                 assets afterwards: import a file with the columns asset_tag and status, matched by asset_tag."
            )
        })
    }

    fn quantity(&self) -> Option<String> {
        let index = self.sheet.names.iter().position(|name| QUANTITIES.contains(&plain(name).as_str()))?;
        let is_above_one = |cell: &str| cell.len() < 8 && cell.parse::<f64>().is_ok_and(|number| number > 1.0);
        let (number, first) = self.find(index, is_above_one)?;
        let rows = if number == 1 { "1 row stands for".to_owned() } else { format!("{number} rows stand for") };
        Some(format!("{}: {rows} more than one, such as {first}, and each row would become one asset.", self.name(index)))
    }

    fn people(&mut self, known: &LookedUp) {
        let wanted = self.lookups();
        if known.unknown_people.is_none() && OWNERS.iter().any(|field| self.column(field).is_some()) {
            self.doubt("Users are found only with the scope users:read: without it, rows that name one will be refused.");
        }
        let Some(unknown) = known.unknown_people.as_ref().filter(|unknown| !unknown.is_empty()) else { return };
        let all = wanted.addresses.len() + wanted.names.len();
        self.doubt(format!(
            "{} of {} no single user: {}. Import the users first, or say who they are: other rows that name them will be refused.",
            unknown.len(),
            if all == 1 { "1 person is".to_owned() } else { format!("{all} people are") },
            listed(unknown)
        ));
    }

    /// Tells which places are new, and which are nearly another one.
    fn places(&mut self, known: &LookedUp) {
        let Some(places) = known.places.as_ref() else { return };
        let Some(index) = self.column("location").filter(|index| !self.is_joined(*index)) else { return };
        let existing: BTreeSet<String> = places.iter().map(|place| fold(place)).collect();
        let is_new = |place: &&str| !existing.contains(&fold(place));
        // Exports have an apostrophe before what a spreadsheet would run.
        let texts: Vec<Cow<'_, str>> = self.surveyed[index].spellings().map(csv_cell::to_text).collect();
        let texts = texts.iter().map(|text| &**text).filter(|text| !survey::is_unknown(text));
        let new: Vec<String> = texts.filter(is_new).map(str::to_owned).collect();
        if new.is_empty() || places.is_empty() {
            return;
        }
        let short = |place: &&String| place.chars().count() <= MAX_CHARS;
        let near = |place: &String| {
            let all = places.iter().filter(short).take(MAX_COMPARED).map(|other| (distance(place, other), other));
            let nearest = all.min().filter(|(distance, _)| *distance <= 2.min(place.chars().count() / 4));
            nearest.map(|(_, other)| format!("{place} is nearly {other}"))
        };
        let nearly: Vec<String> = new.iter().filter(short).take(MAX_LISTED).filter_map(near).collect();
        let name = shortened(self.name(index));
        self.doubt(format!("{name}: {} new, such as {}.", are(new.len(), "place"), shortened(&new[0])));
        if !nearly.is_empty() {
            self.doubt(format!("{name}: {}.", nearly.join("; ")));
        }
    }

    fn list(&self) -> ListKind {
        let names = &self.sheet.names;
        if headings_of(TAGS, names) > 0 {
            return ListKind::Assets;
        }
        if is_list_of_users(names) {
            return ListKind::Users;
        }
        let has = |headings: &str| headings_of(headings, names);
        let is_kind = |(kind, headings, needed): &(ListKind, &str, usize)| {
            has(headings) >= *needed && (*kind == ListKind::Licences || has(SERIALS) == 0)
        };
        let of_kind = if self.kind == Kind::Users { ListKind::Users } else { ListKind::Assets };
        KINDS.iter().find(|kind| is_kind(kind)).map_or(of_kind, |(kind, ..)| *kind)
    }

    fn doubt_of_list(&self, list: ListKind) -> Option<String> {
        match (self.kind, list) {
            (Kind::Assets, ListKind::Assets) | (Kind::Users, _) => None,
            (Kind::Assets, ListKind::Users) => {
                Some("This looks like a list of users. Each row would become an asset.".to_owned())
            }
            (Kind::Assets, list) => Some(format!(
                "This looks like a list of {list}. Each row would become an asset: import it only if you want that."
            )),
        }
    }
}

/// A kind of record, headings that only its files have, and how many of them identify it.
const KINDS: [(ListKind, &str, usize); 3] = [
    (
        ListKind::Licences,
        "seats licenseseats licensedtoname licensedtoemail licensename productkey reassignable maintained terminationdate lizenzschlüssel \
         lizenzname",
        1,
    ),
    (
        ListKind::Places,
        "address address2 street city state zip postalcode country parentlocation ldapou straße plz ort stadt land",
        3,
    ),
    (ListKind::Consumables, "minqty minamt minamount minimumqty minimumquantity minimumamount itemno mindestbestand", 1),
];
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

/// Returns how many of these headings the file has.
fn headings_of(headings: &str, names: &[String]) -> usize {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    headings.split_whitespace().filter(|heading| plain.iter().any(|name| name == heading)).count()
}

/// Whether the rows probably describe people.
pub fn is_list_of_users(names: &[String]) -> bool {
    let is_thing = [TAGS, SERIALS, THINGS].iter().any(|headings| headings_of(headings, names) > 0);
    !is_thing && headings_of(PEOPLE, names) >= MANY_OF_PEOPLE
}

fn is_given(reading: &Reading, field: &str, text: &str) -> bool {
    reading.values.iter().any(|mapping| mapping.field == field && lower(&mapping.text) == lower(text))
}

/// Says what a value means, unless that is said already.
fn add_value(reading: &mut Reading, field: &str, text: &str, meaning: &str) {
    if !is_given(reading, field, text) {
        reading.values.push(ValueMapping::new(field, text, meaning));
    }
}

fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns `1 row is` or `2 rows are`.
fn are(number: usize, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn listed(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().take(MAX_LISTED).map(|value| shortened(value)).collect();
    match values.len().saturating_sub(MAX_LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
