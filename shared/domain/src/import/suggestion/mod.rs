//! Proposes how to read a file: which field each column is, and what its values mean, in English, German, French and Spanish. Looks
//! at headings and cells. Only people decide: what isn't sure is a doubt in words.
//!
//! Doubts name parameters in backquotes, such as `` `set=status=in_use` ``. A program can write them in its own form.

pub mod headings;
mod sheet;
pub mod survey;
pub mod words;

pub use sheet::{Format, Sheet};

use crate::import::parameters::{Constant, Headings, Mapping, Reading, ValueMapping};
use crate::import::prices::Decimal;
use crate::import::{Kind, OWNER_NAME, REASONS};
use crate::values::field_error::distance;
use crate::values::string_enum::string_enum;
use fields::compared::{fold, name_key};
use headings::{Placed, plain};
use serde::Serialize;
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
const QUANTITIES: [&str; 2] = ["quantity", "qty"];

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
        let surveyed = (0..count).map(|_| Surveyed::default()).collect();
        let mut survey = Self {
            kind,
            given,
            sheet,
            uses: vec![None; count],
            misfits: BTreeMap::new(),
            surveyed,
            joined: Vec::new(),
            doubts: Vec::new(),
        };
        survey.note_given();
        survey.place();
        survey.look();
        survey.check_cells();
        survey.owners();
        survey
    }

    fn name(&self, index: usize) -> &str {
        self.sheet.names.get(index).map_or("", |name| name.as_str())
    }

    fn set(&mut self, index: usize, field: Option<&str>, why: impl Into<String>, source: Source) {
        if let Some(place) = self.uses.get_mut(index) {
            *place = Some(Use { field: field.map(str::to_owned), why: why.into(), source });
        }
    }

    fn guess(&mut self, index: usize, field: Option<&str>, why: impl Into<String>) {
        self.set(index, field, why, Source::Guess);
    }

    /// Notes what the mappings and the headings say themselves. The mappings take precedence.
    fn note_given(&mut self) {
        for index in 0..self.uses.len() {
            let name = self.name(index).to_owned();
            let is_own =
                self.kind.has_field(&name) && !TIMES.contains(&name.as_str()) && !self.sheet.repeated.contains_key(&name);
            if is_own || name == REASONS {
                self.set(index, is_own.then_some(&name), "its heading is the field", Source::Heading);
            }
        }
        let headings = Headings::new(&self.sheet.names);
        let maps = self.given.reading.maps.iter();
        let found: Vec<_> = maps.filter_map(|map| Some((map.find(&headings).ok()?.0, map.field.clone()))).collect();
        for (columns, field) in found {
            let why = if columns.len() > 1 { "joined, as given" } else { "as given" };
            columns.iter().for_each(|index| self.set(*index, field.as_deref(), why, Source::Caller));
        }
    }

    /// Places the other columns by their headings.
    fn place(&mut self) {
        let is_open = |index: &usize| self.uses[*index].is_none() && !self.name(*index).is_empty();
        let mut open: Vec<usize> = (0..self.uses.len()).filter(is_open).collect();
        let is_export = self.sheet.names.iter().any(|name| name == "id");
        for index in &open {
            let name = self.name(*index).to_owned();
            if TIMES.contains(&name.as_str()) {
                let why = if is_export { "its heading is the field" } else { OTHER_TIME };
                self.guess(*index, is_export.then_some(&name), why);
            }
        }
        let is_time = |index: usize| headings::field(self.kind, self.name(index)).is_some_and(|field| TIMES.contains(&field));
        open.retain(|index| !is_time(*index));
        let taken: BTreeSet<String> = self.uses.iter().flatten().filter_map(|used| used.field.clone()).collect();
        let is_set = |field: &str| self.given.reading.constants.iter().any(|constant| constant.field == field);
        let is_taken = |field: &str| taken.contains(field) || is_set(field);
        for placed in headings::place(self.kind, &self.sheet.names, &open, is_taken) {
            let is_joined = placed.columns.len() > 1;
            let why = if is_joined { "its heading, joined with others" } else { "its heading" };
            placed.columns.iter().for_each(|column| self.guess(*column, Some(placed.field), why));
            self.joined.extend(is_joined.then_some(placed));
        }
    }

    fn look(&mut self) {
        for row in &self.sheet.rows {
            for (index, (cell, surveyed)) in row.iter().zip(&mut self.surveyed).enumerate() {
                let field = self.uses.get(index).and_then(|used| used.as_ref()?.field.as_deref()).unwrap_or_default();
                surveyed.note(cell.trim(), field, self.kind.column(field).map(|column| column.cell));
            }
        }
    }

    /// Corrects guesses by the cells: a column `Warranty` can have months instead of dates, and a column without a telling heading
    /// can have addresses or statuses.
    fn check_cells(&mut self) {
        for index in 0..self.uses.len() {
            let surveyed = &self.surveyed[index];
            match &self.uses[index] {
                Some(Use { field: Some(field), source: Source::Guess, .. }) => {
                    let cell = self.kind.column(field).map(|column| column.cell);
                    if !surveyed.fits(cell) {
                        self.misfits.insert(index, format!("its heading could be {field}, but its values can't"));
                        self.uses[index] = None;
                    }
                }
                None if !self.name(index).is_empty() && surveyed.filled > 0 => {
                    let email = if self.kind == Kind::Users { "email" } else { "assigned_to_email" };
                    let words: &[&str] = if self.kind == Kind::Users { &["role", "is_active"] } else { &["status"] };
                    let is_open = |field: &&str| self.column(field).is_none();
                    let are_addresses = surveyed.addresses == surveyed.filled && surveyed.addresses > 1;
                    let found = Some(email).filter(|_| are_addresses).filter(is_open);
                    let found =
                        found.or_else(|| words.iter().copied().filter(is_open).find(|field| surveyed.are_words_of(field)));
                    if let Some(field) = found {
                        self.guess(index, Some(field), "its values");
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the first column that is the field.
    fn column(&self, field: &str) -> Option<usize> {
        self.uses.iter().position(|used| used.as_ref().is_some_and(|used| used.field.as_deref() == Some(field)))
    }

    fn is_joined(&self, index: usize) -> bool {
        self.joined.iter().any(|placed| placed.columns.contains(&index))
    }

    /// Decides by a column's cells, regardless of its heading, whether the column contains users' names or e-mail addresses. A
    /// column with addresses makes columns with names superfluous.
    fn owners(&mut self) {
        let is_owner = |used: &Option<Use>| {
            used.as_ref().and_then(|used| used.field.as_deref()).is_some_and(|field| OWNERS.contains(&field))
        };
        let owners: Vec<usize> = (0..self.uses.len()).filter(|index| is_owner(&self.uses[*index])).collect();
        let has_addresses = |index: &&usize| self.surveyed[**index].addresses * 2 > self.surveyed[**index].filled;
        let addresses = owners.iter().find(has_addresses).copied();
        for index in owners {
            let surveyed = &self.surveyed[index];
            let is_given = self.uses[index].as_ref().is_some_and(|used| used.source == Source::Caller);
            if is_given || surveyed.filled == 0 {
                continue;
            }
            let (field, why) = if addresses == Some(index) {
                (Some("assigned_to_email"), "its values are e-mail addresses".to_owned())
            } else if let Some(other) = addresses {
                (None, format!("{} has the e-mail addresses of users", self.name(other)))
            } else if surveyed.names * 2 > surveyed.filled || self.is_joined(index) {
                (Some(OWNER_NAME), "its values are names of users".to_owned())
            } else {
                (None, "it has neither names nor e-mail addresses of users".to_owned())
            };
            if field.is_none() {
                self.joined.retain(|placed| !placed.columns.contains(&index));
            }
            self.guess(index, field, why);
        }
    }

    /// Returns what the service should look up.
    pub fn lookups(&self) -> Lookups {
        let texts = |field: &str| {
            let column = self.column(field).filter(|index| !self.is_joined(*index));
            let cells = column.into_iter().flat_map(|index| self.cells(index)).filter(|cell| !cell.is_empty() && *cell != "\\N");
            let mut found = BTreeSet::new();
            for cell in cells {
                if found.len() < MAX_LOOKED_UP {
                    found.insert(cell.to_owned());
                }
            }
            found
        };
        Lookups { addresses: texts("assigned_to_email"), names: texts(OWNER_NAME), has_places: self.column("location").is_some() }
    }

    fn cells(&self, index: usize) -> impl Iterator<Item = &str> {
        self.sheet.rows.iter().map(move |row| row.get(index).map_or("", |cell| cell.trim()))
    }

    /// Proposes the parameters of an import.
    pub fn suggest(mut self, known: &LookedUp) -> Suggestion {
        self.custom_fields(known);
        let mut reading = self.given.reading.clone();
        reading.header_line = reading.header_line.or(Some(self.sheet.header_line).filter(|line| *line > 1));
        reading.delimiter = self.sheet.delimiter;
        let list = self.list();
        self.doubts.extend(self.doubt_of_list(list));
        self.garbled();
        self.vocabularies(&mut reading);
        self.types(&mut reading, known);
        self.dates(&mut reading);
        self.prices(&mut reading);
        self.foreign_ids();
        let (matched, create_unmatched) = self.matching(&mut reading);
        self.missing_fields(&reading);
        self.people(known);
        self.places(known);
        self.maps(&mut reading);
        let mut parameters = reading.parameters();
        parameters.extend(matched.map(|field| ("match", field.to_owned())));
        parameters.extend(create_unmatched.then(|| ("create_unmatched", "true".to_owned())));
        Suggestion { parameters, columns: self.columns(), doubts: self.doubts, list, rows: self.sheet.count }
    }

    /// Adds the mappings of columns that are placed by a guess.
    fn maps(&self, reading: &mut Reading) {
        for (index, used) in self.uses.iter().enumerate() {
            let Some(Use { field, source: Source::Guess, .. }) = used else { continue };
            let name = self.name(index);
            if let Some(placed) = self.joined.iter().find(|placed| placed.columns.contains(&index)) {
                if placed.columns.first() == Some(&index) {
                    let names: Vec<&str> = placed.columns.iter().map(|index| self.name(*index)).collect();
                    reading.maps.push(Mapping::new(&names, placed.separator, Some(placed.field)));
                }
            } else if field.as_deref() != Some(name) {
                reading.maps.push(Mapping::new(&[name], "", field.as_deref()));
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
            SuggestedColumn { heading: shortened(name), field, example, why }
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
            let field = fields.get(&plain(self.name(index))).map(|field| format!("{}{field}", crate::import::CUSTOM_FIELD));
            if let Some(field) = field.filter(|field| self.uses[index].is_none() && self.column(field).is_none()) {
                self.guess(index, Some(&field), "a custom field of your types");
            }
        }
    }

    fn doubt(&mut self, doubt: impl Into<String>) {
        self.doubts.push(doubt.into());
    }

    fn garbled(&mut self) {
        let garbled =
            self.surveyed.iter().zip(&self.sheet.names).find_map(|(column, name)| Some((name, column.garbled.as_ref()?)));
        if let Some((name, cell)) = garbled {
            let doubt = format!(
                "{}: letters are garbled, as in {}: the file was saved as UTF-8, and read as Windows-1252. Export it again.",
                shortened(name),
                shortened(cell)
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
            let Some((number, first)) = self.surveyed[index].day_numbers.clone() else { continue };
            let cells = count(number, "cell");
            let name = shortened(self.name(index));
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
        let is_one = move |used: &Option<Use>| used.as_ref().and_then(|used| used.field.as_deref()).is_some_and(&is_wanted);
        self.uses.iter().enumerate().filter(move |(_, used)| is_one(used)).map(|(index, _)| index)
    }

    fn prices(&mut self, reading: &mut Reading) {
        let is_price = |field: &str| self.kind.column(field).is_some_and(|column| column.cell == fields::CellType::Number);
        let mut prices = Prices::default();
        self.columns_where(is_price).flat_map(|index| self.cells(index)).for_each(|cell| prices.note(cell));
        match prices.finding() {
            Finding::Nothing => {}
            _ if reading.decimal.is_some() => {}
            Finding::Clear(decimal) => reading.decimal = Some(decimal),
            Finding::Ambiguous => self.doubt(format!(
                "Prices can be read with a decimal comma and with a decimal point. If 1.249 is more than a thousand, add \
                 `decimal={}`; if 1,249 is, add `decimal={}`.",
                Decimal::Comma,
                Decimal::Point
            )),
        }
    }

    fn vocabularies(&mut self, reading: &mut Reading) {
        for index in 0..self.uses.len() {
            let Some(field) = self.uses[index].as_ref().and_then(|used| used.field.clone()) else { continue };
            if known(&field).next().is_none() {
                continue;
            }
            let is_given = |value: &str| reading.values.iter().any(|mapping| mapping.field == field && mapping.text == value);
            let open: Vec<String> = self.surveyed[index]
                .spellings()
                .filter(|value| !known(&field).any(|known| known == *value) && !is_given(value))
                .map(str::to_owned)
                .collect();
            let mut strange = Vec::new();
            for text in open {
                match words::guess(&field, &text) {
                    Some(meaning) => {
                        reading.values.push(ValueMapping { field: field.clone(), text, meaning: meaning.to_owned() })
                    }
                    None => strange.push(text),
                }
            }
            if let Some(first) = strange.first() {
                let values: Vec<&str> = known(&field).collect();
                let doubt = format!(
                    "{}: no guess for {}. Say what each means, `value={field}:{first}=…`: {}.",
                    shortened(self.name(index)),
                    listed(&strange),
                    values.join(", ")
                );
                self.doubt(doubt);
            }
        }
    }

    /// Finds the codes of asset types. A type that can't be found is left out, until somebody fills in its code.
    fn types(&mut self, reading: &mut Reading, known: &LookedUp) {
        let Some(index) = self.column("asset_type_code") else { return };
        let name = shortened(self.name(index));
        if self.surveyed[index].has_more_values {
            self.misfits.insert(index, "it has too many values for types of assets".to_owned());
            self.uses[index] = None;
            return;
        }
        let codes: BTreeMap<String, &str> = known
            .types
            .iter()
            .flatten()
            .flat_map(|(code, name)| [(name_key(name), code.as_str()), (name_key(code), code.as_str())])
            .collect();
        let is_code = |text: &str| {
            (2..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        };
        let is_given =
            |value: &str| reading.values.iter().any(|mapping| mapping.field == "asset_type_code" && mapping.text == value);
        let (mut missing, mut mappings) = (Vec::new(), Vec::new());
        for value in self.surveyed[index].spellings().filter(|value| !is_given(value)) {
            let meaning = match codes.get(&name_key(value)) {
                Some(code) => *code,
                None if known.types.is_none() && is_code(value) => value,
                None => {
                    missing.push(value.to_owned());
                    ""
                }
            };
            if meaning != value {
                mappings.push(ValueMapping {
                    field: "asset_type_code".to_owned(),
                    text: value.to_owned(),
                    meaning: meaning.to_owned(),
                });
            }
        }
        reading.values.extend(mappings);
        if let Some(first) = missing.first() {
            let are = if missing.len() == 1 {
                "1 value is no type".to_owned()
            } else {
                format!("{} values are no types", missing.len())
            };
            self.doubt(format!(
                "{name}: {are} of assets: {}. Create the types, or say which they are, such as \
                 `value=asset_type_code:{first}=LAP`: without one, these assets get no type.",
                listed(&missing)
            ));
        }
    }

    /// Ignores a column `id` that contains another system's IDs.
    fn foreign_ids(&mut self) {
        let is_foreign = |index: &usize| self.surveyed[*index].ids == 0 && self.surveyed[*index].filled > 0;
        if let Some(index) = self.column("id").filter(is_foreign)
            && self.uses[index].as_ref().is_none_or(|used| used.source != Source::Caller)
        {
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
    fn matching(&mut self, reading: &mut Reading) -> (Option<&'static str>, bool) {
        let candidates: &[&'static str] =
            if self.kind == Kind::Users { &["id", "email"] } else { &["id", "serial_number", "asset_tag"] };
        let matched = self.given.matched.or_else(|| candidates.iter().copied().find(|field| self.identifiers(field).is_some()));
        // The service would refuse new assets, whose tags it doesn't know yet.
        let create_unmatched = self.given.create_unmatched || (self.given.matched.is_none() && matched == Some("asset_tag"));
        if matched != Some("serial_number")
            && let Some(index) = self.column("serial_number")
        {
            let placeholders: Vec<String> = self.surveyed[index]
                .spellings()
                .filter(|value| fields::serial_number::is_placeholder(value))
                .filter(|value| !reading.values.iter().any(|known| known.field == "serial_number" && known.text == *value))
                .map(str::to_owned)
                .collect();
            let empty = |text| ValueMapping { field: "serial_number".to_owned(), text, meaning: String::new() };
            reading.values.extend(placeholders.into_iter().map(empty));
        }
        if let Some((number, first)) = self.column("serial_number").and_then(|index| self.surveyed[index].shortened.clone()) {
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
        (found.distinct() > 0 && (field != "id" || self.surveyed[index].ids > 0)).then_some((index, found))
    }

    fn missing_fields(&mut self, reading: &Reading) {
        let is_set = |field: &str| reading.constants.iter().any(|Constant { field: set, .. }| set == field);
        let has = |field: &str| self.column(field).is_some() || is_set(field);
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
            doubts.extend(self.assigned_in_stock(is_set("status")));
            doubts.extend(self.quantity());
        }
        self.doubts.extend(doubts);
    }

    /// Returns a doubt about assets with a user that would be in stock.
    fn assigned_in_stock(&self, is_set: bool) -> Option<String> {
        let owners: Vec<usize> = self.columns_where(|field| OWNERS.contains(&field)).collect();
        let status = self.column("status");
        let filled = |row: &[String], index: usize| row.get(index).is_some_and(|cell| !cell.trim().is_empty());
        let is_one = |row: &&Vec<String>| {
            let is_in_stock =
                match status.and_then(|index| row.get(index)).map(|cell| cell.trim()).filter(|cell| !cell.is_empty()) {
                    None => true,
                    Some(cell) => words::guess("status", cell) == Some("in_stock"),
                };
            is_in_stock && owners.iter().any(|index| filled(row, *index))
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
        let (number, first) = self.surveyed[index].above_one.as_ref()?;
        let rows = if *number == 1 { "1 row stands for".to_owned() } else { format!("{number} rows stand for") };
        Some(format!("{}: {rows} more than one, such as {first}, and each row would become one asset.", self.name(index)))
    }

    fn people(&mut self, known: &LookedUp) {
        let Some(unknown) = known.unknown_people.as_ref().filter(|unknown| !unknown.is_empty()) else { return };
        let wanted = self.lookups();
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
        let new: Vec<String> = self.surveyed[index].spellings().filter(is_new).map(str::to_owned).collect();
        if new.is_empty() || places.is_empty() {
            return;
        }
        let short = |place: &&String| place.chars().count() <= MAX_CHARS;
        let near = |place: &String| {
            let all = places.iter().filter(short).take(MAX_COMPARED);
            let close = |other: &&String| distance(place, other) <= 2.min(place.chars().count() / 4);
            all.filter(close).min_by_key(|other| distance(place, other)).map(|other| format!("{place} is nearly {other}"))
        };
        let nearly: Vec<String> = new.iter().filter(short).take(MAX_LISTED * 2).filter_map(near).collect();
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
