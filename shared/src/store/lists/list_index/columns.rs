//! The columns of assets, users, process instances and movements in a list index, and the conversion of their items to rows. Also
//! the list index of assets, with the catalog entries whose names assets show, and with sums for statistics.

use super::rows::{ColumnVectors, Columns, Facet, Row, RowQuery, SortKey, SortedRows, TextColumns, exact, replace, set_cell};
use super::snapshots::{Decoder, Encoder};
use super::{ChangeEvent, Inconsistent, ListIndex};
use crate::domain::assets::asset::{
    Asset, CUSTOM_FIELD, CatalogNames, Cell, ListedCustomFields, ListedFields, STATUS_CHANGED_AT, Status,
};
use crate::domain::assets::stats::{AssetSums, SummedAsset};
use crate::domain::catalog::AssetKind;
use crate::domain::keys::api_key::Role;
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Record};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::domain::values::money::Price;
use crate::domain::values::text::{Name, fold, single_spaced};
use crate::domain::values::time::{Date, Timestamp};
use crate::fields::compared::compatible;
use crate::store::StoreError;
use crate::store::keys::{self, Item, Key, Section};
use crate::store::lists::filters::{AssetFilter, CatalogMatch, unlisted};
use crate::store::lists::indexed_lists::PageRequest;
use crate::store::table::read::{LISTED, UPDATED_AT, VERSION};
use aws_sdk_dynamodb::types::AttributeValue;
use fields::{ASSET_FILTERS, serial_number};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::num::{NonZeroI64, NonZeroU64};
use std::ops::Range;
use std::sync::OnceLock;
use uuid::Uuid;

pub const LOCATION: &str = "location";
/// The coded column of models given as text.
pub const MODEL: &str = "model";
/// The coded column for assets with too many custom fields. Fields whose names sort after the column's value may be unfit.
pub const UNFIT_AFTER: &str = "unfit_after";

fn empty_row<C: Columns>(id: Uuid) -> Row<C> {
    let TextColumns { searched, exact } = C::TEXT_COLUMNS;
    let mut columns = C::default();
    columns.set_created_at(SortKey::of(id).created_at());
    Row {
        id,
        version: 0,
        facet: C::Facet::default(),
        columns,
        searched: vec![String::new(); searched],
        exact: vec![String::new(); exact],
        coded: Vec::new(),
    }
}

/// Parses an ID in its long or short form.
pub fn parse_id(text: &str) -> Result<Uuid, Inconsistent> {
    let short = || EventId::from_short(text).map(Id::uuid);
    Uuid::try_parse(text).ok().or_else(short).ok_or(Inconsistent)
}

pub fn parse<T: std::str::FromStr>(text: &str) -> Result<T, Inconsistent> {
    text.parse().map_err(|_| Inconsistent)
}

pub fn id_and_version(kind: Kind, item: &Item) -> Result<(Uuid, u64), Inconsistent> {
    let id = Key::of(item).and_then(|key| keys::record_id(kind, &key)).ok_or(Inconsistent)?;
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()).ok_or(Inconsistent)?;
    Ok((id, parse(version)?))
}

/// Returns the attributes that are texts or Booleans, by name.
pub fn text_attributes(item: &Item) -> impl Iterator<Item = (&str, &str)> {
    item.iter().filter_map(|(name, value)| match value {
        AttributeValue::S(text) => Some((name.as_str(), text.as_str())),
        AttributeValue::Bool(flag) => Some((name.as_str(), if *flag { "true" } else { "false" })),
        _ => None,
    })
}

/// Converts an item of the secondary index to a row.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read the item.
pub fn row_from_item<C: Columns>(item: &Item) -> Result<Row<C>, Inconsistent> {
    let (id, version) = id_and_version(C::Record::KIND, item)?;
    let mut row = Row { version, ..empty_row::<C>(id) };
    for (name, text) in text_attributes(item) {
        if name == UPDATED_AT {
            row.columns.set_updated_at(parse(text)?);
        } else {
            C::set_field(&mut row, name, Some(text))?;
        }
    }
    Ok(row)
}

fn set_text(texts: &mut [String], column: usize, text: String) {
    if let Some(present) = texts.get_mut(column) {
        *present = text;
    }
}

/// Values that many assets share: lists filter by them, and statistics count them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AssetFacet {
    pub status: Option<Status>,
    pub asset_type: Option<Uuid>,
    pub model: Option<Uuid>,
    /// The manufacturer as text, for an asset without a model.
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

/// Fixed-size values that asset lists filter and sort by, or that statistics sum.
#[derive(Debug, Clone, Default)]
pub struct AssetColumns {
    pub updated_at: Timestamp,
    pub status_changed_at: Timestamp,
    pub assigned_to: Option<Uuid>,
    pub purchase_date: Option<Date>,
    pub warranty_until: Option<Date>,
    /// The price in ten-thousandths, plus one.
    pub(super) price: Option<NonZeroU64>,
    /// Time in milliseconds; `None` if the asset was never seen. Zero can't be stored, but no asset was seen at that time.
    pub(super) last_seen_at: Option<NonZeroI64>,
}

impl AssetColumns {
    /// Returns the purchase price, in ten-thousandths.
    pub fn price(&self) -> Option<u64> {
        self.price.map(|price| price.get() - 1)
    }

    pub fn set_price(&mut self, price: Option<u64>) {
        self.price = price.and_then(|price| NonZeroU64::new(price.saturating_add(1)));
    }

    pub fn set_last_seen_at(&mut self, at: Option<Timestamp>) {
        self.last_seen_at = at.and_then(|at| NonZeroI64::new(at.millis()));
    }

    /// Position of the name among the searched texts.
    pub const NAME: usize = 0;
    const TAG: usize = 1;
    const SERIAL: usize = 2;

    /// Returns the position of a filter's field among the exact texts.
    pub fn compared(field: &str) -> Option<usize> {
        ASSET_FILTERS.iter().position(|(name, _)| *name == field)
    }

    /// Normalizes a field's text for comparison.
    pub fn compared_text(field: &str, text: &str) -> String {
        if field == "serial_number" { serial_number::key(text) } else { text.to_owned() }
    }
}

/// The [`AssetColumns`] of a segment's rows.
#[derive(Debug, Default)]
pub struct AssetVectors {
    pub updated_at: Vec<Timestamp>,
    pub status_changed_at: Vec<Timestamp>,
    pub assigned_to: Vec<Option<Uuid>>,
    pub purchase_date: Vec<Option<Date>>,
    pub warranty_until: Vec<Option<Date>>,
    pub price: Vec<Option<NonZeroU64>>,
    pub last_seen_at: Vec<Option<NonZeroI64>>,
}

impl AssetVectors {
    /// Returns the purchase price of a row, in ten-thousandths.
    pub fn price(&self, row: usize) -> Option<u64> {
        self.price.get(row).copied()?.map(|price| price.get() - 1)
    }
}

impl From<Vec<AssetColumns>> for AssetVectors {
    fn from(rows: Vec<AssetColumns>) -> Self {
        Self {
            updated_at: rows.iter().map(|row| row.updated_at).collect(),
            status_changed_at: rows.iter().map(|row| row.status_changed_at).collect(),
            assigned_to: rows.iter().map(|row| row.assigned_to).collect(),
            purchase_date: rows.iter().map(|row| row.purchase_date).collect(),
            warranty_until: rows.iter().map(|row| row.warranty_until).collect(),
            price: rows.iter().map(|row| row.price).collect(),
            last_seen_at: rows.iter().map(|row| row.last_seen_at).collect(),
        }
    }
}

impl ColumnVectors<AssetColumns> for AssetVectors {
    const ROW_BYTES: usize = 2 * size_of::<Timestamp>()
        + size_of::<Option<Uuid>>()
        + 2 * size_of::<Option<Date>>()
        + size_of::<Option<NonZeroU64>>()
        + size_of::<Option<NonZeroI64>>();

    fn row(&self, row: usize) -> Option<AssetColumns> {
        Some(AssetColumns {
            updated_at: *self.updated_at.get(row)?,
            status_changed_at: *self.status_changed_at.get(row)?,
            assigned_to: *self.assigned_to.get(row)?,
            purchase_date: *self.purchase_date.get(row)?,
            warranty_until: *self.warranty_until.get(row)?,
            price: *self.price.get(row)?,
            last_seen_at: *self.last_seen_at.get(row)?,
        })
    }

    fn replace_rows(&mut self, rows: Range<usize>, new: Option<AssetColumns>) {
        let Self { updated_at, status_changed_at, assigned_to, purchase_date, warranty_until, price, last_seen_at } = self;
        let new = new.as_ref();
        replace(updated_at, rows.clone(), new.map(|new| new.updated_at));
        replace(status_changed_at, rows.clone(), new.map(|new| new.status_changed_at));
        replace(assigned_to, rows.clone(), new.map(|new| new.assigned_to));
        replace(purchase_date, rows.clone(), new.map(|new| new.purchase_date));
        replace(warranty_until, rows.clone(), new.map(|new| new.warranty_until));
        replace(price, rows.clone(), new.map(|new| new.price));
        replace(last_seen_at, rows, new.map(|new| new.last_seen_at));
    }

    fn free_unused(&mut self) {
        let Self { updated_at, status_changed_at, assigned_to, purchase_date, warranty_until, price, last_seen_at } = self;
        updated_at.shrink_to_fit();
        status_changed_at.shrink_to_fit();
        assigned_to.shrink_to_fit();
        purchase_date.shrink_to_fit();
        warranty_until.shrink_to_fit();
        price.shrink_to_fit();
        last_seen_at.shrink_to_fit();
    }
}

impl Columns for AssetColumns {
    type Record = Asset;
    type Facet = AssetFacet;
    type Vectors = AssetVectors;
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
            "manufacturer" => facet.manufacturer = value.map(|name| single_spaced(name).into()),
            "purchase_price" => {
                columns.set_price(value.map(|price| parse::<Price>(price).map(Price::ten_thousandths)).transpose()?);
            }
            "purchase_date" => columns.purchase_date = value.map(parse).transpose()?,
            "last_seen_at" => columns.set_last_seen_at(value.map(parse).transpose()?),
            STATUS_CHANGED_AT => columns.status_changed_at = value.map_or(Ok(columns.status_changed_at), parse)?,
            LOCATION | MODEL => set_cell(&mut row.coded, field, value.map(|text| Cell::Text(single_spaced(text).into()))),
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

    fn note_change(&mut self, field: &str, at: Timestamp) {
        if field == "status" {
            self.status_changed_at = at;
        }
    }

    fn set_created_at(&mut self, at: Timestamp) {
        self.status_changed_at = at;
    }

    fn encode(&self, encoder: &mut Encoder) {
        let Self { updated_at, status_changed_at, assigned_to, purchase_date, warranty_until, price, last_seen_at } = *self;
        let date = |encoder: &mut Encoder, date: Date| encoder.bytes(&date.days().to_le_bytes());
        encoder.bytes(&updated_at.millis().to_le_bytes());
        encoder.bytes(&status_changed_at.millis().to_le_bytes());
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
            status_changed_at: Timestamp::from_millis(i64::from_le_bytes(decoder.array()?)),
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

/// Values that user lists filter by, besides the searched name and address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct UserFacet {
    pub role: Option<Role>,
    pub is_active: bool,
}

impl Facet for UserFacet {
    fn encode(&self, encoder: &mut Encoder) {
        let Self { role, is_active } = *self;
        encoder.text(role.map_or("", Role::as_str));
        encoder.byte(is_active.into());
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { role: decoder.parsed()?, is_active: decoder.flag()? })
    }
}

/// No columns: users have only texts and facets.
#[derive(Debug, Clone, Default)]
pub struct UserColumns;

impl Columns for UserColumns {
    type Record = User;
    type Facet = UserFacet;
    type Vectors = Vec<Self>;
    const SECTIONS: &'static [Section] = &[Section::Users];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 2, exact: 0 };

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("role", Some(role)) => row.facet.role = Some(parse(role)?),
            ("is_active", Some(flag)) => row.facet.is_active = parse(flag)?,
            // Addresses are compared in this form, and a search has words of both.
            ("display_name", Some(name)) => set_text(&mut row.searched, 0, compatible(name)),
            ("email", Some(email)) => set_text(&mut row.searched, 1, compatible(email)),
            _ => {}
        }
        Ok(())
    }

    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// Values that lists of process instances filter by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct InstanceFacet {
    pub status: Option<InstanceStatus>,
    pub process: Option<Uuid>,
}

impl Facet for InstanceFacet {
    fn encode(&self, encoder: &mut Encoder) {
        let Self { status, process } = *self;
        encoder.text(status.map_or("", InstanceStatus::as_str));
        encoder.option(process, Encoder::id);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { status: decoder.parsed()?, process: decoder.option(Decoder::id)? })
    }
}

#[derive(Debug, Clone, Default)]
pub struct InstanceColumns {
    pub asset: Option<Uuid>,
}

impl Columns for InstanceColumns {
    type Record = Instance;
    type Facet = InstanceFacet;
    type Vectors = Vec<Self>;
    const SECTIONS: &'static [Section] = &[Section::OpenInstances, Section::EndedInstances];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 0, exact: 0 };

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("status", Some(status)) => row.facet.status = Some(parse(status)?),
            ("asset_id", Some(id)) => row.columns.asset = Some(parse_id(id)?),
            ("process_id", Some(id)) => row.facet.process = Some(parse_id(id)?),
            _ => {}
        }
        Ok(())
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.option(self.asset, Encoder::id);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { asset: decoder.option(Decoder::id)? })
    }
}

/// No columns: lists of movements have no filters.
#[derive(Debug, Clone, Default)]
pub struct MovementColumns;

impl Facet for () {
    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(())
    }
}

impl Columns for MovementColumns {
    type Record = Movement;
    type Facet = ();
    type Vectors = Vec<Self>;
    const SECTIONS: &'static [Section] = &[Section::Movements];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 0, exact: 0 };

    fn set_field(_: &mut Row<Self>, _: &str, _: Option<&str>) -> Result<(), Inconsistent> {
        Ok(())
    }

    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Debug, Clone, Default)]
struct CatalogEntry {
    version: u64,
    name: Option<Name>,
    kind: Option<AssetKind>,
    /// The code of an asset type; `None` for other catalog entries.
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

/// A tenant's assets, and the catalog entries that the assets show.
#[derive(Debug, Default)]
pub struct AssetIndex {
    pub assets: SortedRows<AssetColumns>,
    catalog: HashMap<(Kind, Uuid), CatalogEntry>,
    /// Computed for the first statistics request, and updated from then on.
    sums: OnceLock<AssetSums>,
}

/// Returns the values that statistics sum; `None` for an asset without a status, which never occurs.
pub fn summed(facet: &AssetFacet, columns: &AssetColumns) -> Option<SummedAsset> {
    let price = columns.price().unwrap_or_default();
    let (is_assigned, warranty_until) = (columns.assigned_to.is_some(), columns.warranty_until);
    Some(SummedAsset { status: facet.status?, price, is_assigned, warranty_until })
}

impl AssetIndex {
    pub fn sums(&self) -> &AssetSums {
        self.sums.get_or_init(|| {
            let mut sums = AssetSums::default();
            self.assets.iter().filter_map(|row| summed(row.facet, &row.columns)).for_each(|asset| sums.add(&asset));
            sums
        })
    }

    fn summed(&self, id: Uuid) -> Option<SummedAsset> {
        self.assets.find(id).and_then(|row| summed(row.facet, &row.columns))
    }

    /// Changes an asset, and updates the sums if they have been computed.
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

    /// Finds the catalog entries needed to evaluate the filter's conditions on kind, type code and manufacturer.
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

    /// Checks that lists can filter and sort by these columns, each given with its parameter.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::FieldsLeftOut`] for a custom field if custom fields were dropped for lack of memory, and
    /// [`StoreError::UnfitField`] if an asset has an unfit value.
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
                // An asset that has the field, if there is one; otherwise, an asset with too many fields.
                let first = |wanted| {
                    let query = RowQuery { either: vec![wanted], ..RowQuery::default() };
                    let (_, rows) = query.select(&self.assets, PageRequest { number: 1, limit: 1 });
                    rows.first().map(|row| AssetId::from_uuid(row.sort_key.id()))
                };
                let asset = unlisted(column).into_iter().find_map(first);
                return Err(StoreError::UnfitField { parameter: parameter.to_owned(), asset });
            }
        }
        Ok(())
    }

    /// Returns the code of the assets' type; `None` without a type.
    pub fn type_code(&self, facet: &AssetFacet) -> Option<&str> {
        self.catalog_entry(Kind::AssetType, facet.asset_type)?.code.as_deref()
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

impl<C: Columns> ListIndex for SortedRows<C> {
    type Entity = C::Record;
    const SECTIONS: &'static [Section] = C::SECTIONS;
    const JOINED_KINDS: &'static [Kind] = &[];

    fn load_item(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        let row = row_from_item::<C>(item)?;
        // A record that moves between sections while they are read may be found in both.
        if C::SECTIONS.len() == 1 || self.find(row.id).is_none_or(|current| current.version < row.version) {
            self.upsert(row);
        }
        Ok(())
    }

    fn version(&self, _: Kind, id: Uuid) -> Option<u64> {
        self.find(id).map(|row| row.version)
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        let mut row = self.get(event.record_id).unwrap_or_else(|| empty_row(event.record_id));
        for field in event.new_values()? {
            let (field, value) = field?;
            C::set_field(&mut row, field, value)?;
            row.columns.note_change(field, event.at);
        }
        if let Some(fields) = event.new_object("custom_fields") {
            C::set_custom_fields(&mut row, fields);
        }
        row.version = event.version;
        if event.changes_shown_field::<C::Record>() {
            row.columns.set_updated_at(event.at);
        }
        self.upsert(row);
        Ok(())
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        SortedRows::remove(self, id);
    }

    fn shrink_to_fit(&mut self) {
        SortedRows::shrink_to_fit(self);
    }

    fn bytes(&self) -> usize {
        SortedRows::bytes(self)
    }

    fn len(&self) -> usize {
        SortedRows::len(self)
    }

    fn encode(&self, encoder: &mut Encoder) {
        SortedRows::encode(self, encoder);
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        SortedRows::decode(decoder, with_optional)
    }

    fn optional_bytes(&self) -> usize {
        SortedRows::optional_bytes(self)
    }

    fn leave_out(&mut self) -> bool {
        SortedRows::leave_out(self)
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
        entries.sort_unstable_by_key(|((kind, id), _)| (kind.as_str(), *id));
        encoder.number(entries.len() as u64);
        for ((kind, id), CatalogEntry { version, name, kind: asset_kind, code, manufacturer }) in entries {
            encoder.text(kind.as_str());
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
            let kind = *Self::JOINED_KINDS.iter().find(|kind| kind.as_str() == noun)?;
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
