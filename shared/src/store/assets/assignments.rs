//! The assets that users had at an earlier time.
//!
//! Each event that assigns an asset to a user is also in the index `list_index`, under the user and the asset. So the assets
//! that a user may have had are found without reading every event of the tenant.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::history::chain::HistoryEntry;
use crate::domain::record::{Kind, Stored};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id, UserId};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::history::as_of::CONCURRENT_HISTORIES;
use crate::store::keys::{self, Keys, LS, PK};
use crate::store::lists::list_index::ChangeEvent;
use crate::store::lists::page::{Page, PageRequest};
use crate::store::table::delays::max_secondary_index_delay;
use crate::store::table::error::StoreError;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The most assignments to a user whose assets are looked for at an earlier time: each asset's whole history is read.
pub const MAX_ASSIGNMENTS: i32 = 1_000;

/// The assets that a user had at an earlier time, each with the catalog names that it showed then. One that an import claimed is
/// as it was after that import.
#[derive(Debug)]
pub enum PastAssets {
    /// There never was such a user.
    NoUser,
    /// The user was assigned assets more than [`MAX_ASSIGNMENTS`] times.
    TooMany,
    /// Newest first.
    Page(Page<(Stored<Asset>, CatalogNames)>),
}

impl TenantStore {
    /// # Errors
    ///
    /// As [`TenantStore::asset_as_of`].
    pub async fn assets_of_user_as_of(
        &self,
        user: UserId,
        at: Timestamp,
        request: PageRequest,
    ) -> Result<PastAssets, StoreError> {
        let (is_known, assets) = tokio::try_join!(self.ever_existed::<User>(user), self.ever_assigned(user))?;
        if !is_known {
            return Ok(PastAssets::NoUser);
        }
        let Some(assets) = assets else { return Ok(PastAssets::TooMany) };
        let states = stream::iter(assets).map(async |asset| {
            let state = self.held_state(asset, at, user).await?;
            Ok::<_, StoreError>(state.map(|state| (asset, state)))
        });
        let states: Vec<_> = states.buffered(CONCURRENT_HISTORIES).try_collect().await?;
        let mut states: Vec<_> = states.into_iter().flatten().collect();
        states.sort_by_key(|(asset, state)| (Reverse(state.created_at()), *asset));
        let Page { items, total, request, unreadable } = Page::cut_from(states, request);
        Ok(PastAssets::Page(Page { items: self.past_assets(items, at).await?, total, request, unreadable }))
    }

    /// Also later: an import can claim that the user had the asset before. `None` if there are too many.
    async fn ever_assigned(&self, user: UserId) -> Result<Option<BTreeSet<AssetId>>, StoreError> {
        let indexed = async {
            let query = self.store.client.query().table_name(&self.store.table).index_name(keys::LIST_INDEX);
            let query = query
                .key_condition_expression("#pk = :pk AND begins_with(#ls, :user)")
                .expression_attribute_names("#pk", PK)
                .expression_attribute_names("#ls", LS)
                .expression_attribute_values(":pk", self.keys.partition())
                .expression_attribute_values(":user", Keys::assignments(user))
                .limit(MAX_ASSIGNMENTS + 1);
            // At most 300 KB, so one page.
            Ok(query.send().await?.items.unwrap_or_default())
        };
        let (indexed, recent) = tokio::try_join!(indexed, self.recently_assigned(user))?;
        if i32::try_from(indexed.len()).is_ok_and(|count| count > MAX_ASSIGNMENTS) {
            return Ok(None);
        }
        let assets = indexed.iter().filter_map(|item| Keys::assigned_asset(item.get(LS)?));
        Ok(Some(assets.chain(recent).collect()))
    }

    /// The assets that the index may lack, because they were assigned lately.
    async fn recently_assigned(&self, user: UserId) -> Result<Vec<AssetId>, StoreError> {
        let since = self.store.now().plus(-max_secondary_index_delay());
        let mut assets = Vec::new();
        let assigned = |entry: &HistoryEntry| {
            let event = ChangeEvent::parse(&entry.text).ok()?.ok()?;
            let assigned_to = event.new_text("assigned_to").and_then(|id| id.parse::<UserId>().ok());
            (event.kind == Kind::Asset && assigned_to == Some(user)).then(|| AssetId::from_uuid(event.record_id))
        };
        self.each_page_of_entries(since, |entries| assets.extend(entries.iter().filter_map(assigned))).await?;
        Ok(assets)
    }
}
