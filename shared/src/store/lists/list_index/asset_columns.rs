//! The columns of assets.

use super::blocks::{Decoder, Encoder};
use super::change_event::Inconsistent;
use super::columns::{parse, parse_id};
use super::other_columns::set_text;
use super::rows::{Columns, Facet, Row, TextColumns, exact, set_cell};
use crate::domain::assets::asset::{Asset, Status};
use crate::domain::assets::listed::{CUSTOM_FIELD, Cell, ListedCustomFields, ListedFields};
use crate::domain::values::money::Price;
use crate::domain::values::text::fold;
use crate::domain::values::time::{Date, Timestamp};
use crate::store::keys::Section;
use crate::store::table::item::LISTED;
use fields::{ASSET_FILTERS, serial_number};
use serde_json::{Map, Value};
use std::num::{NonZeroI64, NonZeroU64};
use uuid::Uuid;

/// The values that many assets share, by which lists filter and that statistics count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AssetFacet {
    pub status: Option<Status>,
    pub asset_type: Option<Uuid>,
    pub model: Option<Uuid>,
    /// As text, for an asset without a model.
    pub manufacturer: Option<Box<str>>,
}

impl Facet for AssetFacet {
    fn text_bytes(&self) -> usize {
        self.manufacturer.as_ref().map_or(0, |name| name.len())
    }

    fn encode(&self, encoder: &mut Encoder) {
        let Self { status, asset_type, model, manufacturer } = self;
        encoder.text(status.map_or("", Status::as_str));
        encoder.option(*asset_type, Encoder::id);
        encoder.option(*model, Encoder::id);
        encoder.option(manufacturer.as_deref(), Encoder::text);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            status: decoder.parsed()?,
            asset_type: decoder.option(Decoder::id)?,
            model: decoder.option(Decoder::id)?,
            manufacturer: decoder.option(|decoder| decoder.text().map(Box::from))?,
        })
    }
}

/// The other values by which lists of assets filter and sort, besides the texts, and that statistics add up.
#[derive(Debug, Clone, Default)]
pub struct AssetColumns {
    pub updated_at: Timestamp,
    pub assigned_to: Option<Uuid>,
    pub purchase_date: Option<Date>,
    pub warranty_until: Option<Date>,
    /// One more than the price in ten-thousandths.
    pub(super) price: Option<NonZeroU64>,
    /// In milliseconds. No asset was seen at zero.
    pub(super) last_seen_at: Option<NonZeroI64>,
}

/// The coded column of places.
pub const LOCATION: &str = "location";
/// The coded column of models as text.
pub const MODEL: &str = "model";
/// The coded column with the last name of custom fields after which an asset may have unfit ones.
pub const UNFIT_AFTER: &str = "unfit_after";

impl AssetColumns {
    /// The purchase price, in ten-thousandths.
    pub fn price(&self) -> Option<u64> {
        self.price.map(|price| price.get() - 1)
    }

    pub fn set_price(&mut self, price: Option<u64>) {
        self.price = price.and_then(|price| NonZeroU64::new(price.saturating_add(1)));
    }

    pub fn last_seen_at(&self) -> Option<Timestamp> {
        self.last_seen_at.map(|at| Timestamp::from_millis(at.get()))
    }

    pub fn set_last_seen_at(&mut self, at: Option<Timestamp>) {
        self.last_seen_at = at.and_then(|at| NonZeroI64::new(at.millis()));
    }

    /// The name among the searched texts.
    pub const NAME: usize = 0;
    const TAG: usize = 1;
    const SERIAL: usize = 2;

    /// The place of a filter's field among the exact texts.
    pub fn compared(field: &str) -> Option<usize> {
        ASSET_FILTERS.iter().position(|(name, _)| *name == field)
    }

    /// The form in which texts of a field are compared.
    pub fn compared_text(field: &str, text: &str) -> String {
        if field == "serial_number" { serial_number::key(text) } else { text.to_owned() }
    }
}

impl Columns for AssetColumns {
    type Record = Asset;
    type Facet = AssetFacet;
    const SECTIONS: &'static [Section] = &[Section::Assets];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 3, exact: ASSET_FILTERS.len() };
    const KEPT_COLUMNS: &'static [&'static str] = &[LOCATION, MODEL];

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        if let Some(column) = Self::compared(field) {
            set_text(&mut row.exact, column, exact(value.map(|text| Self::compared_text(field, text)).as_deref()));
        }
        let (facet, columns) = (&mut row.facet, &mut row.columns);
        match field {
            "name" => set_text(&mut row.searched, Self::NAME, fold(value.unwrap_or_default())),
            "asset_tag" => set_text(&mut row.searched, Self::TAG, fold(value.unwrap_or_default())),
            "serial_number" => set_text(&mut row.searched, Self::SERIAL, fold(value.unwrap_or_default())),
            "manufacturer" => facet.manufacturer = value.map(Box::from),
            "purchase_price" => {
                columns.set_price(value.map(|price| parse::<Price>(price).map(Price::ten_thousandths)).transpose()?);
            }
            "purchase_date" => columns.purchase_date = value.map(parse).transpose()?,
            "last_seen_at" => columns.set_last_seen_at(value.map(parse).transpose()?),
            LOCATION | MODEL => set_cell(&mut row.coded, field, value.map(|text| Cell::Text(text.into()))),
            LISTED => {
                let ListedFields { texts, custom_fields } = value.and_then(ListedFields::from_text).ok_or(Inconsistent)?;
                for (field, text) in texts {
                    Self::set_field(row, field, Some(&text))?;
                }
                set_listed(row, custom_fields);
            }
            "status" => facet.status = value.map(parse).transpose()?,
            "asset_type_id" => facet.asset_type = value.map(parse_id).transpose()?,
            "model_id" => facet.model = value.map(parse_id).transpose()?,
            "assigned_to" => columns.assigned_to = value.map(parse_id).transpose()?,
            "warranty_until" => columns.warranty_until = value.map(parse).transpose()?,
            _ => {}
        }
        Ok(())
    }

    fn set_custom_fields(row: &mut Row<Self>, fields: &Map<String, Value>) {
        set_listed(row, ListedCustomFields::of(fields));
    }

    fn set_updated_at(&mut self, at: Timestamp) {
        self.updated_at = at;
    }

    fn encode(&self, encoder: &mut Encoder) {
        let Self { updated_at, assigned_to, purchase_date, warranty_until, price, last_seen_at } = *self;
        let date = |encoder: &mut Encoder, date: Date| encoder.bytes(&date.days().to_le_bytes());
        encoder.bytes(&updated_at.millis().to_le_bytes());
        encoder.option(assigned_to, Encoder::id);
        encoder.option(purchase_date, date);
        encoder.option(warranty_until, date);
        encoder.number(price.map_or(0, NonZeroU64::get));
        encoder.option(last_seen_at, |encoder, at| encoder.bytes(&at.get().to_le_bytes()));
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let date = |decoder: &mut Decoder<'_>| Date::from_days(i32::from_le_bytes(decoder.array()?));
        Some(Self {
            updated_at: Timestamp::from_millis(i64::from_le_bytes(decoder.array()?)),
            assigned_to: decoder.option(Decoder::id)?,
            purchase_date: decoder.option(date)?,
            warranty_until: decoder.option(date)?,
            price: NonZeroU64::new(decoder.number()?),
            last_seen_at: decoder.option(|decoder| NonZeroI64::new(i64::from_le_bytes(decoder.array()?)))?,
        })
    }
}

fn set_listed(row: &mut Row<AssetColumns>, fields: ListedCustomFields) {
    let ListedCustomFields { cells, unfit_after } = fields;
    row.coded.retain(|(name, _)| name != UNFIT_AFTER && !name.starts_with(CUSTOM_FIELD));
    row.coded.extend(cells.into_iter().map(|(name, cell)| (format!("{CUSTOM_FIELD}{name}"), cell)));
    row.coded.extend(unfit_after.map(|name| (UNFIT_AFTER.to_owned(), Cell::Text(name.into()))));
}
