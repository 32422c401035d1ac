//! Exports: all records of a kind that match a filter, ordered by ID. Reads them in chunks, and each record once.

use crate::domain::assets::asset::{Asset, Cell};
use crate::domain::assets::bound::Today;
use crate::domain::record::{Record, Stored};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id};
use crate::store::lists::filters::{AssetFilter, Resolved, UserFilter};
use crate::store::lists::indexed_lists::{Page, PageRequest};
use crate::store::lists::list_index::{Columns, RowQuery, SortedRows, row_from_item};
use crate::store::table::read;
use crate::store::{Reader, StoreError};
use std::ops::ControlFlow;
use uuid::Uuid;

#[derive(Debug)]
pub struct Chunk<T: Record> {
    /// Ordered by ID.
    pub records: Vec<Stored<T>>,
    pub unreadable: Vec<Uuid>,
    /// The next chunk starts after this record; `None` at the end.
    pub next: Option<T::Id>,
}

/// The filter of an export, with the catalog entries it refers to.
pub struct AssetExport {
    filter: AssetFilter,
    resolved: Resolved,
    /// The day from which relative days count.
    pub today: Today,
}

impl Reader {
    /// Prepares an export: reads the time zone and the catalog entries that the filter needs.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn asset_export(&self, filter: AssetFilter) -> Result<AssetExport, StoreError> {
        let (today, catalog) = futures_util::try_join!(self.today(&filter), self.catalog_match(&filter))?;
        Ok(AssetExport { resolved: Resolved { ranges: filter.ranges_on(&today), catalog }, filter, today })
    }

    /// Returns the matching assets among the next 1 MB of assets after `after`.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::asset_export`], and [`StoreError::UnfitField`] if one of these assets has a value that can't be
    /// filtered.
    pub async fn assets_after(
        &self,
        export: &AssetExport,
        after: Option<<Asset as Record>::Id>,
    ) -> Result<Chunk<Asset>, StoreError> {
        self.chunk_after(&export.filter.row_query(export.resolved.clone()), after).await
    }

    /// Returns the matching users among the next 1 MB of users after `after`.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::asset_export`].
    pub async fn users_after(&self, filter: &UserFilter, after: Option<<User as Record>::Id>) -> Result<Chunk<User>, StoreError> {
        let Some(email) = &filter.email else { return self.chunk_after(&filter.row_query(), after).await };
        let Page { mut items, unreadable, .. } = self.user_with_email(email, filter, PageRequest { number: 1, limit: 1 }).await?;
        items.retain(|user| after.is_none_or(|after| user.value.id > after));
        Ok(Chunk { records: items, unreadable, next: None })
    }

    /// Reads one page of a query, so that the chunk's size is bounded. Sort keys end with the ID, so the records are ordered by
    /// ID, and a record that exists throughout the export is in exactly one chunk.
    async fn chunk_after<C: Columns>(
        &self,
        query: &RowQuery<'_, C>,
        after: Option<<C::Record as Record>::Id>,
    ) -> Result<Chunk<C::Record>, StoreError> {
        let start = after.map(|id| self.keys.record(C::Record::KIND, id.uuid()).item());
        let page = Box::pin(self.of_kind(C::Record::KIND).set_exclusive_start_key(start).send()).await?;
        let last = page.last_evaluated_key.as_ref().and_then(crate::store::keys::Key::of);
        let next =
            last.and_then(|key| crate::store::keys::record_id(C::Record::KIND, &key)).map(<C::Record as Record>::Id::from_uuid);
        let mut chunk = Chunk { records: Vec::new(), unreadable: Vec::new(), next };
        for item in page.items.unwrap_or_default() {
            // An item that can't become a row can't become a record either.
            let row = row_from_item::<C>(&item);
            let unfit = row.iter().flat_map(|row| &row.coded).filter(|(_, cell)| *cell == Cell::Unfit);
            if let Some(wanted) = query.coded.iter().find(|wanted| unfit.clone().any(|(name, _)| *name == wanted.column)) {
                let asset = row.as_ref().ok().map(|row| AssetId::from_uuid(row.id));
                return Err(StoreError::UnfitField { parameter: wanted.column.clone(), asset });
            }
            let matches = row.map_or(true, |row| {
                let mut rows = SortedRows::default();
                rows.upsert(row);
                let mut is_matching = false;
                query.scan(&rows, |_, _, matches| {
                    is_matching = matches.contains(&true);
                    ControlFlow::Break(())
                });
                is_matching
            });
            if !matches {
                continue;
            }
            match read::read(item) {
                Ok(stored) => chunk.records.push(stored),
                Err(error) => chunk.unreadable.extend(error.unreadable_id()?),
            }
        }
        Ok(chunk)
    }
}
