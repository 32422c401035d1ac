//! The details of an asset: the fields that have no rules of their own.

use crate::assets::location::Location;
use crate::record_change::record_change;
use crate::values::money::Price;
use crate::values::text::Line;
use crate::values::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_date: Option<Date>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_price: Option<Price>,
    /// The last day of the warranty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty_until: Option<Date>,
}

record_change! {
    AssetDetailsChange of AssetDetails::with {
        set_or_clear serial_number: Line,
        set_or_clear location: Location,
        set_or_clear purchase_date: Date,
        set_or_clear purchase_price: Price,
        set_or_clear warranty_until: Date,
    }
}

impl AssetDetailsChange {
    /// Without the fields that have these values already.
    #[must_use]
    pub fn unless(self, present: &AssetDetails) -> Self {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        Self {
            serial_number: serial_number.unless(present.serial_number.as_ref()),
            location: location.unless(present.location.as_ref()),
            purchase_date: purchase_date.unless(present.purchase_date.as_ref()),
            purchase_price: purchase_price.unless(present.purchase_price.as_ref()),
            warranty_until: warranty_until.unless(present.warranty_until.as_ref()),
        }
    }
}

impl AssetDetails {
    pub(crate) fn history_fields(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let Self { serial_number, location, purchase_date, purchase_price, warranty_until } = self;
        [
            ("serial_number", json!(serial_number)),
            ("location", json!(location)),
            ("purchase_date", json!(purchase_date)),
            // As text, since the canonical form (RFC 8785 §3.2.2.3) would round a number to a double.
            ("purchase_price", json!(purchase_price)),
            ("warranty_until", json!(warranty_until)),
        ]
        .into_iter()
    }
}
