//! Conversion of values before they are sent, and the values by which rows could touch the same record.

use crate::import::columns::convert::{Constant, DateFormat, Values, date_of_day_number, price_with_comma, price_with_point};
use crate::import::columns::{Joined, Kind, OWNER_NAME, Owners};
use crate::output::folded;
use fields::CellType;
use fields::serial_number::{self, SHORTENED, is_placeholder, is_shortened};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

#[derive(Debug, Clone)]
pub struct Fields {
    pub kind: Kind,
    pub date_format: Option<DateFormat>,
    pub decimal_comma: bool,
    /// Commas in prices separate thousands.
    pub decimal_point: bool,
    pub match_column: Option<&'static str>,
    pub values: Values,
    /// As the service reads them.
    pub constants: Vec<Constant>,
    pub owners: Rc<Owners>,
    /// The fields of which a bad cell is left out, instead of refusing its row.
    pub skip_bad: Vec<String>,
    /// By the column that stands for all of them.
    pub joined: BTreeMap<String, Joined>,
}

impl Fields {
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            date_format: None,
            decimal_comma: false,
            decimal_point: false,
            match_column: None,
            values: Values::default(),
            constants: Vec::new(),
            owners: Rc::default(),
            skip_bad: Vec::new(),
            joined: BTreeMap::new(),
        }
    }

    /// The value as the service reads it; `None` if it can stay as it is.
    pub fn convert(&self, field: &str, value: &str) -> Result<Option<String>, String> {
        let value = value.trim();
        if value.is_empty() || value == "\\N" {
            return Ok(None);
        }
        if field == OWNER_NAME {
            return self.owners.id(value).map(Some);
        }
        // An export, which is imported by id, may have some.
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
            Some(CellType::Number) if self.decimal_comma => price_with_comma(value).map(Some),
            Some(CellType::Number) => Ok(price_with_point(value, self.decimal_point).filter(|price| price != value)),
            _ => Ok(None),
        }
    }

    fn date(&self, value: &str) -> Result<Option<String>, String> {
        let date = self.date_format.as_ref().map(|format| format.date_or_iso(value));
        match (date, date_of_day_number(value)) {
            (None | Some(Err(_)), Some(date)) => Err(format!("{value:?} is a spreadsheet's day number, of {date}")),
            (date, _) => date.transpose(),
        }
    }

    /// Whether the service surely refuses [`REFUSED`](crate::import::rows::REFUSED) in the field.
    pub fn is_checked(&self, field: &str) -> bool {
        let cell = self.kind.import_column(field).map(|column| column.cell);
        matches!(cell, Some(CellType::Date | CellType::Number))
    }

    /// Whether bad cells of the field are left out, instead of refusing their rows.
    pub fn skips_bad(&self, field: &str) -> bool {
        self.skip_bad.iter().any(|skipped| skipped == field)
    }

    /// The hash of a value by which a row could touch the same record as another one.
    ///
    /// Different values with the same hash only cost time: their rows wait for each other.
    pub fn key(&self, field: &str, value: &str) -> Option<u64> {
        let decides = self.match_column == Some(field) || field == self.kind.unique_column() || field == "id";
        // An apostrophe may be one that the service removes.
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

impl Fields {
    /// The hash of the value by which a row names what it updates.
    pub fn match_key(&self, field: &str, value: &str) -> Option<u64> {
        // An apostrophe may be one that the service removes.
        let value = value.trim_start_matches('\'').trim();
        if self.match_column != Some(field) || value.is_empty() || value == "\\N" {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        compared(field, value).hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// A value in the form in which the service compares it.
#[must_use]
pub fn compared(field: &str, value: &str) -> String {
    if field == "serial_number" { serial_number::key(value) } else { folded(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(refused, Err("\"44606\" is a spreadsheet's day number, of 2022-02-14".into()));
        }
    }

    #[test]
    fn rows_meet_by_what_they_are_matched_by_and_by_unique_values() {
        let fields = fields();
        assert_eq!(fields.key("serial_number", "ab-1 "), fields.key("serial_number", "AB-1"));
        assert_eq!(fields.key("serial_number", "'-1"), fields.key("serial_number", "-1"));
        assert_eq!(fields.match_key("serial_number", "PF3 XK011"), fields.match_key("serial_number", "ｐf3xk011"));
        assert_ne!(fields.key("serial_number", "1"), fields.key("asset_tag", "1"));
        assert_eq!(fields.key("asset_tag", "e\u{301}"), fields.key("asset_tag", "É"));
        assert_eq!(fields.key("name", "same"), None);
        assert_eq!(fields.key("serial_number", ""), None);
    }
}
