//! The list index of assets, with the catalog entries whose names they show, and with their sums for statistics.

use super::ListIndex;
use super::blocks::{Decoder, Encoder};
use super::change_event::{ChangeEvent, Inconsistent};
use super::columns::{AssetColumns, AssetFacet, UNFIT_AFTER, id_and_version, parse, parse_id, text_attributes};
use super::rows::{Columns, SortedRows};
use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::assets::listed::{CUSTOM_FIELD, Cell};
use crate::domain::assets::stats::{AssetSums, SummedAsset};
use crate::domain::catalog::AssetKind;
use crate::domain::record::Kind;
use crate::domain::values::text::Name;
use crate::store::keys::{Item, Section};
use crate::store::lists::filters::{AssetFilter, CatalogMatch};
use crate::store::table::error::StoreError;
use std::collections::HashMap;
use std::sync::OnceLock;
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
struct CatalogEntry {
    version: u64,
    name: Option<Name>,
    kind: Option<AssetKind>,
    /// Of an asset type.
    code: Option<Box<str>>,
    manufacturer: Option<Uuid>,
}

impl CatalogEntry {
    fn set_field(&mut self, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("name", Some(name)) => self.name = Some(Name::from_stored(name.to_owned())),
            ("kind", Some(kind)) => self.kind = Some(parse(kind)?),
            ("code", Some(code)) => self.code = Some(code.into()),
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
    /// From the first statistics on, which add up all assets.
    sums: OnceLock<AssetSums>,
}

/// `None` for an asset without a status, of which there are none.
pub fn summed(facet: &AssetFacet, columns: &AssetColumns) -> Option<SummedAsset> {
    let price = columns.price().unwrap_or_default();
    let (is_assigned, warranty_until) = (columns.assigned_to.is_some(), columns.warranty_until);
    Some(SummedAsset { status: facet.status?, price, is_assigned, warranty_until })
}

impl AssetIndex {
    pub fn sums(&self) -> &AssetSums {
        self.sums.get_or_init(|| {
            let mut sums = AssetSums::default();
            self.assets.iter().filter_map(|row| summed(row.facet, row.columns)).for_each(|asset| sums.add(&asset));
            sums
        })
    }

    fn summed(&self, id: Uuid) -> Option<SummedAsset> {
        self.assets.find(id).and_then(|row| summed(row.facet, row.columns))
    }

    /// Changes an asset, and the sums if there are any.
    fn change_asset<T>(&mut self, id: Uuid, change: impl FnOnce(&mut SortedRows<AssetColumns>) -> T) -> T {
        if self.sums.get().is_none() {
            return change(&mut self.assets);
        }
        let before = self.summed(id);
        let changed = change(&mut self.assets);
        let after = self.summed(id);
        if let Some(sums) = self.sums.get_mut() {
            before.iter().for_each(|asset| sums.remove(asset));
            after.iter().for_each(|asset| sums.add(asset));
        }
        changed
    }

    fn catalog_entry(&self, kind: Kind, id: Option<Uuid>) -> Option<&CatalogEntry> {
        self.catalog.get(&(kind, id?))
    }

    /// The entries that filters name by more than their ID.
    pub fn catalog(&self, filter: &AssetFilter) -> CatalogMatch {
        let mut found = CatalogMatch::default();
        for ((kind, id), entry) in &self.catalog {
            match kind {
                Kind::AssetType => found.add_type(*id, entry.kind, entry.code.as_deref(), filter),
                Kind::Model => {
                    let manufacturer = self.catalog_entry(Kind::Manufacturer, entry.manufacturer);
                    found.add_model(*id, manufacturer.and_then(|entry| entry.name.as_deref()), filter);
                }
                _ => {}
            }
        }
        found
    }

    /// Lists can be asked about these columns. Each comes with the parameter that names it.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::FieldsLeftOut`] for a custom field, if there is no memory for them, and [`StoreError::UnfitField`] if
    /// some asset has a value that lists don't know.
    pub fn check_columns<'a>(&self, columns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), StoreError> {
        let coded = self.assets.coded();
        for (parameter, column) in columns {
            let Some(name) = column.strip_prefix(CUSTOM_FIELD) else { continue };
            if coded.is_left_out() {
                return Err(StoreError::FieldsLeftOut);
            }
            let may_be_later = |cell: &Cell| matches!(cell, Cell::Text(last) if name > &**last);
            let is_later = coded.column(UNFIT_AFTER).is_some_and(|unfit| coded.cells(unfit).any(may_be_later));
            if is_later || coded.column(column).is_some_and(|number| coded.has_unfit(number)) {
                return Err(StoreError::UnfitField(parameter.to_owned()));
            }
        }
        Ok(())
    }

    pub fn catalog_names(&self, facet: &AssetFacet) -> CatalogNames {
        let model = self.catalog_entry(Kind::Model, facet.model);
        let manufacturer = self.catalog_entry(Kind::Manufacturer, model.and_then(|model| model.manufacturer));
        let asset_type = self.catalog_entry(Kind::AssetType, facet.asset_type);
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
            self.sums.take();
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
            return self.change_asset(event.record_id, |assets| assets.apply_change(event));
        }
        let entry = self.catalog.entry((event.kind, event.record_id)).or_default();
        for field in event.new_values()? {
            let (field, value) = field?;
            entry.set_field(field, value)?;
        }
        entry.version = event.version;
        Ok(())
    }

    fn remove(&mut self, kind: Kind, id: Uuid) {
        if kind == Kind::Asset {
            self.change_asset(id, |assets| assets.remove(id));
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
        for ((kind, id), CatalogEntry { version, name, kind: asset_kind, code, manufacturer }) in entries {
            encoder.text(kind.noun());
            encoder.id(*id);
            encoder.number(*version);
            encoder.text(name.as_deref().unwrap_or_default());
            encoder.text(asset_kind.map_or("", AssetKind::as_str));
            encoder.option(code.as_deref(), Encoder::text);
            encoder.option(*manufacturer, Encoder::id);
            encoder.may_end_block();
        }
        self.assets.encode(encoder);
    }

    fn optional_bytes(&self) -> usize {
        self.assets.optional_bytes()
    }

    fn leave_out(&mut self) -> bool {
        self.assets.leave_out()
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        let mut catalog = HashMap::new();
        for _ in 0..decoder.number()? {
            let noun = decoder.text()?;
            let kind = *Self::JOINED_KINDS.iter().find(|kind| kind.noun() == noun)?;
            let id = decoder.id()?;
            let version = decoder.number()?;
            let name = Some(decoder.text()?).filter(|name| !name.is_empty()).map(|name| Name::from_stored(name.to_owned()));
            let asset_kind = decoder.parsed()?;
            let code = decoder.option(|decoder| decoder.text().map(Box::from))?;
            let manufacturer = decoder.option(Decoder::id)?;
            catalog.insert((kind, id), CatalogEntry { version, name, kind: asset_kind, code, manufacturer });
        }
        Some(Self { assets: SortedRows::decode(decoder, with_optional)?, catalog, sums: OnceLock::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Row;
    use super::*;
    use crate::domain::assets::asset::Status;
    use crate::domain::assets::stats::{AssetStats, AssetTally};
    use crate::domain::values::time::Date;
    use chrono::NaiveDate;
    use proptest::prelude::*;

    fn finish(sums: &AssetSums) -> AssetStats {
        AssetTally::new(sums.clone()).finish(NaiveDate::from_ymd_opt(2026, 11, 22).expect("a date"))
    }

    proptest! {
        /// However assets come, change and go, before and after the first statistics.
        #[test]
        fn sums_that_follow_changes_equal_those_of_all_assets(
            changes in proptest::collection::vec((0u128..40, 0..Status::ALL.len(), any::<u64>(), 0u8..4, 0i32..9), 0..200),
            first in any::<prop::sample::Index>(),
        ) {
            let mut index = AssetIndex::default();
            for (at, (n, status, price, choice, day)) in changes.iter().copied().enumerate() {
                if at == first.index(changes.len()) {
                    index.sums();
                }
                let id = Uuid::from_u128(n << 80);
                if choice == 0 {
                    index.remove(Kind::Asset, id);
                    continue;
                }
                let facet = AssetFacet { status: Some(Status::ALL[status]), ..AssetFacet::default() };
                let mut columns = AssetColumns {
                    assigned_to: (choice == 1).then_some(id),
                    warranty_until: Date::from_days(739_940 + 20 * day),
                    ..AssetColumns::default()
                };
                columns.set_price(Some(price));
                let row = Row { id, version: 1, facet, columns, searched: Vec::new(), exact: Vec::new(), coded: Vec::new() };
                index.change_asset(id, |assets| assets.upsert(row));
            }
            let followed = finish(index.sums());
            index.sums.take();
            prop_assert_eq!(followed, finish(index.sums()));
        }
    }
}
