//! Conversion of values before they are sent, and the values by which rows could touch the same record.

use crate::folded::folded;
use crate::import::columns::convert::{DateFormat, price_with_comma};
use crate::import::columns::owners::Owners;
use crate::import::columns::values::{Constant, Values};
use crate::import::columns::{Kind, OWNER_NAME};
use fields::CellType;
use fields::serial_number::is_placeholder;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

#[derive(Debug, Clone)]
pub struct Fields {
    pub kind: Kind,
    pub date_format: Option<DateFormat>,
    pub decimal_comma: bool,
    pub match_column: Option<&'static str>,
    pub values: Values,
    /// As the service reads them.
    pub constants: Vec<Constant>,
    pub owners: Rc<Owners>,
}

impl Fields {
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            date_format: None,
            decimal_comma: false,
            match_column: None,
            values: Values::default(),
            constants: Vec::new(),
            owners: Rc::default(),
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
        if field == "serial_number" && self.match_column != Some("id") && is_placeholder(value) {
            return Err("is a placeholder, not a serial number".into());
        }
        match self.kind.import_column(field).map(|column| column.cell) {
            Some(CellType::Date) => self.date_format.as_ref().map(|format| format.date(value)).transpose(),
            Some(CellType::Number) if self.decimal_comma => price_with_comma(value).map(Some),
            _ => Ok(None),
        }
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
        folded(value).hash(&mut hasher);
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
        match field {
            "serial_number" => value.hash(&mut hasher),
            // The others are the same in upper and lower case.
            _ => value.to_lowercase().hash(&mut hasher),
        }
        Some(hasher.finish())
    }
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
    }

    #[test]
    fn rows_meet_by_what_they_are_matched_by_and_by_unique_values() {
        let fields = fields();
        assert_eq!(fields.key("serial_number", "ab-1 "), fields.key("serial_number", "AB-1"));
        assert_eq!(fields.key("serial_number", "'-1"), fields.key("serial_number", "-1"));
        assert_ne!(fields.key("serial_number", "1"), fields.key("asset_tag", "1"));
        assert_eq!(fields.key("asset_tag", "e\u{301}"), fields.key("asset_tag", "É"));
        assert_eq!(fields.key("name", "same"), None);
        assert_eq!(fields.key("serial_number", ""), None);
    }
}
