//! What lists need of assets, and the names of the catalog that they show.

use super::change_event::ChangeEvent;
use super::index::{Columns, Inconsistent, ListIndex, head, id_of, read, texts};
use super::other_columns::set_text;
use super::segment::Row;
use super::sorted_rows::SortedRows;
use crate::domain::asset::{Asset, CatalogNames, Status};
use crate::domain::catalog::AssetKind;
use crate::domain::record::Kind;
use crate::domain::text::{Name, fold};
use crate::domain::time::{Date, Timestamp};
use crate::store::keys::Item;
use std::collections::HashMap;
use uuid::Uuid;

/// Of an asset, beside name, tag and serial number.
#[derive(Debug, Clone, Copy, Default)]
pub struct AssetColumns {
    pub updated_at: Timestamp,
    pub asset_type: Option<Uuid>,
    pub model: Option<Uuid>,
    pub assigned_to: Option<Uuid>,
    pub warranty_until: Option<Date>,
    pub status: Option<Status>,
    /// An empty serial number is one, too.
    pub has_serial: bool,
}

impl AssetColumns {
    /// Where the name stands among the texts that are searched.
    pub const NAME: usize = 0;
    /// Where the tag stands among the texts that are compared.
    pub const TAG: usize = 0;
    /// Where the serial number stands there.
    pub const SERIAL: usize = 1;
}

impl Columns for AssetColumns {
    type Of = Asset;
    const TEXTS: (usize, usize) = (3, 2);

    fn set(card: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        let facts = &mut card.facts;
        match field {
            "name" => set_text(&mut card.searched, Self::NAME, fold(value.unwrap_or_default())),
            "asset_tag" => {
                let tag = value.unwrap_or_default();
                set_text(&mut card.searched, 1, fold(tag));
                set_text(&mut card.exact, Self::TAG, tag.to_owned());
            }
            "serial_number" => {
                let serial = value.unwrap_or_default();
                facts.has_serial = value.is_some();
                set_text(&mut card.searched, 2, fold(serial));
                set_text(&mut card.exact, Self::SERIAL, serial.to_owned());
            }
            "status" => facts.status = value.map(read).transpose()?,
            "asset_type_id" => facts.asset_type = value.map(id_of).transpose()?,
            "model_id" => facts.model = value.map(id_of).transpose()?,
            "assigned_to" => facts.assigned_to = value.map(id_of).transpose()?,
            "warranty_until" => facts.warranty_until = value.map(read).transpose()?,
            _ => {}
        }
        Ok(())
    }

    fn touch(&mut self, at: Timestamp) {
        self.updated_at = at;
    }
}

/// An entry of the catalog, as far as assets show it.
#[derive(Debug, Clone, Default)]
struct CatalogEntry {
    version: u64,
    name: Option<Name>,
    /// Of a type.
    kind: Option<AssetKind>,
    /// Of a model.
    manufacturer: Option<Uuid>,
}

impl CatalogEntry {
    fn set(&mut self, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("name", Some(name)) => self.name = Some(read(name)?),
            ("kind", Some(word)) => self.kind = Some(read(word)?),
            ("manufacturer_id", Some(id)) => self.manufacturer = Some(id_of(id)?),
            _ => {}
        }
        Ok(())
    }
}

/// The assets of a tenant and its catalog's names.
#[derive(Debug, Default)]
pub struct AssetIndex {
    pub assets: SortedRows<AssetColumns>,
    labels: HashMap<(Kind, Uuid), CatalogEntry>,
}

impl AssetIndex {
    fn label(&self, kind: Kind, id: Option<Uuid>) -> Option<&CatalogEntry> {
        self.labels.get(&(kind, id?))
    }

    /// The types of kind logical, sorted; an asset of any other type, or of none, is physical (contract 6).
    pub fn logical_types(&self) -> Vec<Uuid> {
        let logical = self.labels.iter().filter(|(_, label)| label.kind == Some(AssetKind::Logical));
        let mut ids: Vec<Uuid> = logical.map(|((_, id), _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// What the asset shows of the catalog now.
    pub fn names(&self, facts: &AssetColumns) -> CatalogNames {
        let model = self.label(Kind::Model, facts.model);
        let manufacturer = self.label(Kind::Manufacturer, model.and_then(|model| model.manufacturer));
        let asset_type = self.label(Kind::AssetType, facts.asset_type);
        CatalogNames {
            asset_type: asset_type.and_then(|label| label.name.clone()),
            kind: asset_type.and_then(|label| label.kind).unwrap_or(AssetKind::Physical),
            model: model.and_then(|label| label.name.clone()),
            manufacturer: manufacturer.and_then(|label| label.name.clone()),
        }
    }
}

impl ListIndex for AssetIndex {
    type Entity = Asset;
    const BESIDE: &'static [Kind] = &[Kind::AssetType, Kind::Manufacturer, Kind::Model];

    fn take(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent> {
        if kind == Kind::Asset {
            return self.assets.take(kind, item);
        }
        let (id, version) = head(kind, item)?;
        let mut label = CatalogEntry { version, ..CatalogEntry::default() };
        for (name, text) in texts(item) {
            label.set(name, Some(text))?;
        }
        self.labels.insert((kind, id), label);
        Ok(())
    }

    fn version(&self, kind: Kind, id: Uuid) -> Option<u64> {
        if kind == Kind::Asset { self.assets.version(kind, id) } else { self.label(kind, Some(id)).map(|label| label.version) }
    }

    fn change(&mut self, news: &ChangeEvent) -> Result<(), Inconsistent> {
        if news.kind == Kind::Asset {
            return self.assets.change(news);
        }
        let label = self.labels.entry((news.kind, news.id)).or_default();
        for field in news.fields() {
            let (field, value) = field?;
            label.set(field, value)?;
        }
        label.version = news.version;
        Ok(())
    }

    fn remove(&mut self, kind: Kind, id: Uuid) {
        if kind == Kind::Asset {
            self.assets.remove(id);
        } else {
            self.labels.remove(&(kind, id));
        }
    }

    fn shrink(&mut self) {
        self.assets.shrink();
    }

    fn bytes(&self) -> usize {
        let label =
            |label: &CatalogEntry| size_of::<((Kind, Uuid), CatalogEntry)>() + label.name.as_ref().map_or(0, |name| name.len());
        self.assets.bytes() + self.labels.values().map(label).sum::<usize>()
    }

    fn len(&self) -> usize {
        self.assets.len()
    }
}
