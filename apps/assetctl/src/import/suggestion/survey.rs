//! The cells of a file's columns, as far as they matter for a suggestion.

use crate::error::Result;
use crate::folded::folded;
use crate::import::args::Import;
use crate::import::columns::fields::{Fields, compared};
use crate::import::columns::suggest::plain;
use crate::import::columns::{Columns, OWNER_NAME, Target, joined};
use crate::import::source::Source;
use crate::import::suggestion::dates::{Dates, Prices};
use crate::import::suggestion::kinds::QUANTITIES;
use crate::import::suggestion::words;
use crate::lookup::is_id;
use fields::CellType;
use fields::serial_number::{is_placeholder, is_shortened};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The different values of a column that are kept.
const MAX_VALUES: usize = 50;

const OWNERS: [&str; 2] = [OWNER_NAME, "assigned_to_email"];

/// A column that is imported.
#[derive(Debug, Default)]
pub struct Surveyed {
    pub name: String,
    pub field: String,
    pub filled: u64,
    /// Placeholders, and values of a vocabulary.
    pub values: BTreeSet<String>,
    pub addresses: u64,
    /// Cells with an ID of this service.
    pub ids: u64,
    /// The number of serial numbers that a spreadsheet has shortened, and the first.
    pub shortened: Option<(u64, String)>,
    /// Cells with several words.
    pub names: u64,
    /// Cells that are no placeholders and have the value of an earlier one.
    pub doubled: u64,
    pub hashes: HashSet<u64>,
}

impl Surveyed {
    /// The different values of an identifier, without placeholders.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// The values, of those that differ only in case one.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        self.values.iter().map(String::as_str).filter(move |value| seen.insert(folded(value)))
    }

    fn note(&mut self, cell: &str) {
        if cell.is_empty() || cell == "\\N" {
            return;
        }
        self.filled += 1;
        let is_vocabulary = words::known(&self.field).next().is_some();
        let is_identifier = ["id", "serial_number", "asset_tag", "email"].contains(&self.field.as_str());
        let is_missing = self.field == "serial_number" && is_placeholder(cell);
        if (is_vocabulary || is_missing) && self.values.len() < MAX_VALUES {
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
pub struct Survey {
    pub rows: u64,
    pub columns: Vec<Surveyed>,
    pub dates: Dates,
    pub prices: Prices,
    /// Rows with a holder whose status is in_stock, or missing.
    pub held_in_stock: u64,
    /// The column of quantities, the number of rows with more than one thing, and the first quantity.
    pub quantity: Option<(String, u64, String)>,
}

impl Survey {
    /// Reads all rows.
    pub fn of(source: &Source, options: &Import) -> Result<Self> {
        let kind = options.kind();
        let (mappings, _) = joined(&options.mappings, &source.names, &mut Vec::new());
        let field_of = |name: &str| match mappings.iter().find(|mapping| mapping.column == name) {
            Some(mapping) => mapping.field.clone(),
            None => kind.has_column(name).then(|| name.to_owned()),
        };
        let surveyed =
            |name: &String| Some(Surveyed { name: name.trim().to_owned(), field: field_of(name.trim())?, ..Surveyed::default() });
        let mut survey = Self { columns: source.names.iter().filter_map(surveyed).collect(), ..Self::default() };
        // Cells stay as they are.
        let columns = Columns { targets: vec![Target::Ignored; source.names.len()], fields: Fields::new(kind) };
        let quantity = source.names.iter().find(|name| QUANTITIES.contains(&plain(name).as_str()));
        let mut rows = source.rows(options, &columns)?;
        while let Some(row) = rows.next()? {
            survey.rows += 1;
            let (mut is_held, mut is_in_stock) = (false, true);
            for column in &mut survey.columns {
                let cell = row.original.text(&source.names, &column.name).unwrap_or_default();
                match kind.import_column(&column.field).map(|column| column.cell) {
                    Some(CellType::Date) => survey.dates.note(&cell),
                    Some(CellType::Number) => survey.prices.note(&cell),
                    _ => {}
                }
                is_held |= OWNERS.contains(&column.field.as_str()) && !cell.is_empty();
                if column.field == "status" && !cell.is_empty() {
                    is_in_stock = words::guess("status", &cell) == Some("in_stock");
                }
                column.note(&cell);
            }
            survey.held_in_stock += u64::from(is_held && is_in_stock);
            if let Some(name) = quantity
                && let Some(cell) = row.original.text(&source.names, name)
                && cell.parse::<f64>().is_ok_and(|number| number > 1.0)
            {
                survey.quantity.get_or_insert_with(|| (name.clone(), 0, cell)).1 += 1;
            }
        }
        Ok(survey)
    }

    #[must_use]
    pub fn column(&self, field: &str) -> Option<&Surveyed> {
        self.columns.iter().find(|column| column.field == field)
    }

    /// The column of users: by name, or by e-mail address.
    pub fn owners(&self) -> impl Iterator<Item = &Surveyed> {
        self.columns.iter().filter(|column| OWNERS.contains(&column.field.as_str()))
    }
}
