//! The list index of assets: their columns, and the catalog entries whose names they show.

use super::blocks::{Decoder, Encoder};
use super::change_event::{ChangeEvent, Inconsistent};
use super::columns::{Columns, TextColumns, id_and_version, parse, parse_id, text_attributes};
use super::index::ListIndex;
use super::other_columns::set_text;
use super::row::{Row, exact};
use super::sorted_rows::SortedRows;
use crate::domain::assets::asset::{Asset, CatalogNames, Status};
use crate::domain::catalog::AssetKind;
use crate::domain::record::Kind;
use crate::domain::values::money::Price;
use crate::domain::values::text::{Name, fold};
use crate::domain::values::time::{Date, Timestamp};
use crate::store::keys::{Item, Section};
use fields::ASSET_FILTERS;
use std::collections::HashMap;
use uuid::Uuid;

/// The values by which lists of assets filter and sort, besides name, tag and serial number, and that statistics count.
#[derive(Debug, Clone, Copy, Default)]
pub struct AssetColumns {
    pub updated_at: Timestamp,
    pub asset_type: Option<Uuid>,
    pub model: Option<Uuid>,
    pub assigned_to: Option<Uuid>,
    pub warranty_until: Option<Date>,
    pub status: Option<Status>,
    /// The purchase price, in ten-thousandths; zero also without one.
    pub price: u64,
}

impl AssetColumns {
    /// The name among the searched texts.
    pub const NAME: usize = 0;
    const TAG: usize = 1;
    const SERIAL: usize = 2;
    /// The manufacturer among the exact texts, behind those of the filters.
    pub const MANUFACTURER: usize = ASSET_FILTERS.len();

    /// The place of a filter's field among the exact texts.
    pub fn compared(field: &str) -> Option<usize> {
        ASSET_FILTERS.iter().position(|(name, _)| *name == field)
    }
}

impl Columns for AssetColumns {
    type Record = Asset;
    const SECTIONS: &'static [Section] = &[Section::Assets];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 3, exact: ASSET_FILTERS.len() + 1 };

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        if let Some(column) = Self::compared(field) {
            set_text(&mut row.exact, column, exact(value));
        }
        let columns = &mut row.columns;
        match field {
            "name" => set_text(&mut row.searched, Self::NAME, fold(value.unwrap_or_default())),
            "asset_tag" => set_text(&mut row.searched, Self::TAG, fold(value.unwrap_or_default())),
            "serial_number" => set_text(&mut row.searched, Self::SERIAL, fold(value.unwrap_or_default())),
            "manufacturer" => set_text(&mut row.exact, Self::MANUFACTURER, exact(value)),
            "purchase_price" => columns.price = value.map_or(Ok(0), |price| parse::<Price>(price).map(Price::ten_thousandths))?,
            "status" => columns.status = value.map(parse).transpose()?,
            "asset_type_id" => columns.asset_type = value.map(parse_id).transpose()?,
            "model_id" => columns.model = value.map(parse_id).transpose()?,
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
        let Self { updated_at, asset_type, model, assigned_to, warranty_until, status, price } = *self;
        encoder.bytes(&updated_at.millis().to_le_bytes());
        for id in [asset_type, model, assigned_to] {
            encoder.option(id, Encoder::id);
        }
        encoder.option(warranty_until, |encoder, date| encoder.bytes(&date.days().to_le_bytes()));
        encoder.text(status.map_or("", Status::as_str));
        encoder.number(price);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            updated_at: Timestamp::from_millis(i64::from_le_bytes(decoder.array()?)),
            asset_type: decoder.option(Decoder::id)?,
            model: decoder.option(Decoder::id)?,
            assigned_to: decoder.option(Decoder::id)?,
            warranty_until: decoder.option(|decoder| Date::from_days(i32::from_le_bytes(decoder.array()?)))?,
            status: decoder.parsed()?,
            price: decoder.number()?,
        })
    }
}

#[derive(Debug, Clone, Default)]
struct CatalogEntry {
    version: u64,
    name: Option<Name>,
    kind: Option<AssetKind>,
    manufacturer: Option<Uuid>,
}

impl CatalogEntry {
    fn set_field(&mut self, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("name", Some(name)) => self.name = Some(Name::from_stored(name.to_owned())),
            ("kind", Some(kind)) => self.kind = Some(parse(kind)?),
            ("manufacturer_id", Some(id)) => self.manufacturer = Some(parse_id(id)?),
            _ => {}
        }
        Ok(())
    }
}

/// A tenant's assets, and the part of its catalog that they show.
#[derive(Debug, Default)]
pub struct AssetIndex {
    pub assets: SortedRows<AssetColumns>,
    catalog: HashMap<(Kind, Uuid), CatalogEntry>,
}

impl AssetIndex {
    fn catalog_entry(&self, kind: Kind, id: Option<Uuid>) -> Option<&CatalogEntry> {
        self.catalog.get(&(kind, id?))
    }

    /// Sorted ids. An asset of any other type, or of no type, is physical.
    pub fn logical_types(&self) -> Vec<Uuid> {
        let logical = self.catalog.iter().filter(|(_, entry)| entry.kind == Some(AssetKind::Logical));
        let mut ids: Vec<Uuid> = logical.map(|((_, id), _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    pub fn catalog_names(&self, columns: &AssetColumns) -> CatalogNames {
        let model = self.catalog_entry(Kind::Model, columns.model);
        let manufacturer = self.catalog_entry(Kind::Manufacturer, model.and_then(|model| model.manufacturer));
        let asset_type = self.catalog_entry(Kind::AssetType, columns.asset_type);
        CatalogNames {
            asset_type: asset_type.and_then(|entry| entry.name.clone()),
            kind: asset_type.and_then(|entry| entry.kind).unwrap_or(AssetKind::Physical),
            model: model.and_then(|entry| entry.name.clone()),
            manufacturer: manufacturer.and_then(|entry| entry.name.clone()),
        }
    }
}

impl ListIndex for AssetIndex {
    type Entity = Asset;
    const SECTIONS: &'static [Section] = AssetColumns::SECTIONS;
    const JOINED_KINDS: &'static [Kind] = &[Kind::AssetType, Kind::Manufacturer, Kind::Model];

    fn load_item(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent> {
        if kind == Kind::Asset {
            return self.assets.load_item(kind, item);
        }
        let (id, version) = id_and_version(kind, item)?;
        let mut entry = CatalogEntry { version, ..CatalogEntry::default() };
        for (name, text) in text_attributes(item) {
            entry.set_field(name, Some(text))?;
        }
        self.catalog.insert((kind, id), entry);
        Ok(())
    }

    fn version(&self, kind: Kind, id: Uuid) -> Option<u64> {
        if kind == Kind::Asset {
            self.assets.version(kind, id)
        } else {
            self.catalog_entry(kind, Some(id)).map(|entry| entry.version)
        }
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        if event.kind == Kind::Asset {
            return self.assets.apply_change(event);
        }
        let entry = self.catalog.entry((event.kind, event.record_id)).or_default();
        for field in event.new_values() {
            let (field, value) = field?;
            entry.set_field(field, value)?;
        }
        entry.version = event.version;
        Ok(())
    }

    fn remove(&mut self, kind: Kind, id: Uuid) {
        if kind == Kind::Asset {
            self.assets.remove(id);
        } else {
            self.catalog.remove(&(kind, id));
        }
    }

    fn shrink_to_fit(&mut self) {
        self.assets.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        let entry_bytes =
            |entry: &CatalogEntry| size_of::<((Kind, Uuid), CatalogEntry)>() + entry.name.as_ref().map_or(0, |name| name.len());
        self.assets.bytes() + self.catalog.values().map(entry_bytes).sum::<usize>()
    }

    fn len(&self) -> usize {
        self.assets.len()
    }

    fn encode(&self, encoder: &mut Encoder) {
        let mut entries: Vec<_> = self.catalog.iter().collect();
        entries.sort_unstable_by_key(|((kind, id), _)| (kind.noun(), *id));
        encoder.number(entries.len() as u64);
        for ((kind, id), CatalogEntry { version, name, kind: asset_kind, manufacturer }) in entries {
            encoder.text(kind.noun());
            encoder.id(*id);
            encoder.number(*version);
            encoder.text(name.as_deref().unwrap_or_default());
            encoder.text(asset_kind.map_or("", AssetKind::as_str));
            encoder.option(*manufacturer, Encoder::id);
            encoder.may_end_block();
        }
        self.assets.encode(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let mut catalog = HashMap::new();
        for _ in 0..decoder.number()? {
            let noun = decoder.text()?;
            let kind = *Self::JOINED_KINDS.iter().find(|kind| kind.noun() == noun)?;
            let id = decoder.id()?;
            let version = decoder.number()?;
            let name = Some(decoder.text()?).filter(|name| !name.is_empty()).map(|name| Name::from_stored(name.to_owned()));
            let asset_kind = decoder.parsed()?;
            let manufacturer = decoder.option(Decoder::id)?;
            catalog.insert((kind, id), CatalogEntry { version, name, kind: asset_kind, manufacturer });
        }
        Some(Self { assets: SortedRows::decode(decoder)?, catalog })
    }
}
