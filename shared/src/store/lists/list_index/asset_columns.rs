//! The columns of assets.

use super::blocks::{Decoder, Encoder};
use super::change_event::Inconsistent;
use super::columns::{parse, parse_id};
use super::other_columns::set_text;
use super::rows::{Columns, Facet, Row, TextColumns, exact};
use crate::domain::assets::asset::{Asset, Status};
use crate::domain::values::money::Price;
use crate::domain::values::text::fold;
use crate::domain::values::time::{Date, Timestamp};
use crate::store::keys::Section;
use fields::{ASSET_FILTERS, serial_number};
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
    pub warranty_until: Option<Date>,
    /// The purchase price, in ten-thousandths; zero also without one.
    pub price: u64,
}

impl AssetColumns {
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
            "purchase_price" => columns.price = value.map_or(Ok(0), |price| parse::<Price>(price).map(Price::ten_thousandths))?,
            "status" => facet.status = value.map(parse).transpose()?,
            "asset_type_id" => facet.asset_type = value.map(parse_id).transpose()?,
            "model_id" => facet.model = value.map(parse_id).transpose()?,
            "assigned_to" => columns.assigned_to = value.map(parse_id).transpose()?,
            "warranty_until" => columns.warranty_until = value.map(parse).transpose()?,
            _ => {}
        }
        Ok(())
    }

    fn set_updated_at(&mut self, at: Timestamp) {
        self.updated_at = at;
    }

    fn encode(&self, encoder: &mut Encoder) {
        let Self { updated_at, assigned_to, warranty_until, price } = *self;
        encoder.bytes(&updated_at.millis().to_le_bytes());
        encoder.option(assigned_to, Encoder::id);
        encoder.option(warranty_until, |encoder, date| encoder.bytes(&date.days().to_le_bytes()));
        encoder.number(price);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            updated_at: Timestamp::from_millis(i64::from_le_bytes(decoder.array()?)),
            assigned_to: decoder.option(Decoder::id)?,
            warranty_until: decoder.option(|decoder| Date::from_days(i32::from_le_bytes(decoder.array()?)))?,
            price: decoder.number()?,
        })
    }
}
