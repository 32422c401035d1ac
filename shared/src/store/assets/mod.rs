//! Finds assets by past assignments and by serial number, and numbers asset tags and movements. Each tag pattern has a counter.
//!
//! An event that assigns an asset to a user is also in the index `list_index`, by user and asset. So finding the assets that a
//! user had at an earlier time doesn't require reading all of the tenant's events.
//!
//! Serial numbers are compared by their [key](serial_number::key), and need not be unique. Even so, concurrent upserts of the
//! same serial number create at most one asset: the transaction that creates the asset also writes a claim, an item with the
//! hashed serial number in its key. Claims expire after a day, long after the asset has appeared in the list index.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::history::chain::HistoryEntry;
use crate::domain::record::{Kind, Stored};
use crate::domain::tenants::tenant::{NumberRange, TagPrefix, TagRange, TagTemplate};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id, UserId};
use crate::domain::values::time::Timestamp;
use crate::store::history::of_record::CONCURRENT_HISTORIES;
use crate::store::keys::{self, COUNTERS, EXPIRES, Item, Key, Keys, LS, PK, TYPE};
use crate::store::lists::indexed_lists::{Page, PageRequest};
use crate::store::lists::list_index::{AssetColumns, AssetIndex, ChangeEvent, Freshness, SortedRows};
use crate::store::table::read::{BatchGet, OWNER, UNREADABLE, seconds};
use crate::store::table::unit_of_work::{Condition, Purpose, TransactionItem, UnitOfWork, Write};
use crate::store::{Reader, StoreError, UnreadableRecord, Writer, max_secondary_index_delay};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use fields::serial_number;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// With more assignments of a user, past assets are refused ([`PastAssets::TooMany`]), because the whole history of each asset is
/// read.
pub const MAX_ASSIGNMENTS: i32 = 1_000;
const CLAIM_SECONDS: i64 = 24 * 60 * 60;

/// The assets that a user had at an earlier time, each with its catalog names at that time. If only an import shows that the user
/// had an asset, the asset's state is from after that import.
#[derive(Debug)]
pub enum PastAssets {
    /// The user never existed.
    NoUser,
    /// The user was assigned assets more than [`MAX_ASSIGNMENTS`] times.
    TooMany,
    /// Newest first.
    Page(Page<(Stored<Asset>, CatalogNames)>),
}

/// The assets with a serial number, and the existing claim, which the creation of a further asset must replace.
#[derive(Debug, Clone, Default)]
pub struct SerialMatch {
    /// Ordered by ID.
    pub assets: Vec<Stored<Asset>>,
    /// An asset that probably has the serial number, but can't be read.
    pub unreadable: Option<UnreadableRecord>,
    claim: Option<Claim>,
}

#[derive(Debug, Clone)]
struct Claim {
    asset: AssetId,
    /// `None` if the asset was not found: it was deleted, or its creation is not fully visible yet.
    version: Option<u64>,
}

impl Reader {
    /// Lists the assets that the user had at the time `at`, newest first.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::asset_as_of`].
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
        let Page { items, total, request, unreadable, .. } = Page::cut_from(states, request);
        Ok(PastAssets::Page(Page::new(self.past_assets(items, at).await?, total, request, unreadable)))
    }

    /// Returns the assets that were assigned to the user at any time, even later, because an import can backdate an assignment.
    /// Returns `None` if there are more than [`MAX_ASSIGNMENTS`] assignments.
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
            // These items take at most 300 KB, and a page of a query can have 1 MB.
            Ok(Box::pin(query.send()).await?.items.unwrap_or_default())
        };
        let (indexed, recent) = tokio::try_join!(indexed, self.recently_assigned(user))?;
        if i32::try_from(indexed.len()).is_ok_and(|count| count > MAX_ASSIGNMENTS) {
            return Ok(None);
        }
        let assets = indexed.iter().filter_map(|item| Keys::assigned_asset(item.get(LS)?));
        Ok(Some(assets.chain(recent).collect()))
    }

    /// Returns recently assigned assets, which may still be missing from the index.
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

    /// Finds assets by serial number. `serials` are [keys](serial_number::key). Includes every write that was acknowledged before
    /// the call. Takes two round trips, or more if the list index isn't in memory.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn assets_by_serial(&self, serials: &BTreeSet<String>) -> Result<HashMap<String, SerialMatch>, StoreError> {
        if serials.is_empty() {
            return Ok(HashMap::new());
        }
        let keys: Vec<_> = serials.iter().map(|serial| self.keys.serial_claim(serial)).collect();
        let (found, claims) = tokio::try_join!(self.ids_by_serial(serials), self.items(&keys))?;
        let claimed = |serial: &str| {
            let owner = claims.get(&self.keys.serial_claim(serial))?.get(OWNER)?.as_s().ok()?;
            keys::record_id_of_sort_key(Kind::Asset, owner).map(AssetId::from_uuid)
        };
        let candidates = found.into_iter().chain(serials.iter().filter_map(|serial| Some((serial.clone(), claimed(serial)?))));
        let candidates: BTreeSet<(String, AssetId)> = candidates.collect();
        let records = self.batch_get(BatchGet::new().with_all::<Asset>(candidates.iter().map(|(_, id)| *id))).await?;
        let mut matches: HashMap<String, SerialMatch> =
            serials.iter().map(|serial| (serial.clone(), SerialMatch::default())).collect();
        for (serial, id) in candidates {
            let Some(matched) = matches.get_mut(&serial) else { continue };
            let asset = match records.get::<Asset>(Some(id)) {
                Err(StoreError::Unreadable(record)) => {
                    matched.unreadable = Some(record);
                    continue;
                }
                read => read?,
            };
            if claimed(&serial) == Some(id) {
                matched.claim = Some(Claim { asset: id, version: asset.as_ref().map(|asset| asset.version) });
            }
            // The table decides, because an asset found in the list index may have a different serial number by now.
            let has_serial = |asset: &Stored<Asset>| {
                asset.value.details.serial_number.as_deref().map(serial_number::key).as_ref() == Some(&serial)
            };
            matched.assets.extend(asset.filter(has_serial));
        }
        Ok(matches)
    }

    async fn ids_by_serial(&self, serials: &BTreeSet<String>) -> Result<Vec<(String, AssetId)>, StoreError> {
        let select = |index: &AssetIndex| ids_of(&index.assets, serials);
        Ok(self.with_list_index(Freshness::Refreshed, select).await?.0)
    }
}

fn ids_of(rows: &SortedRows<AssetColumns>, serials: &BTreeSet<String>) -> Vec<(String, AssetId)> {
    let column = AssetColumns::compared("serial_number");
    let with_serial = rows.iter().filter_map(|row| Some((row.exact_text(column?)?, row.sort_key.id())));
    let wanted = with_serial.filter(|(serial, _)| serials.contains(*serial));
    wanted.map(|(serial, id)| (serial.to_owned(), AssetId::from_uuid(id))).collect()
}

impl UnitOfWork<'_> {
    /// Requires that no other upsert has created an asset with this serial number since `matched` was read. Otherwise, the commit
    /// fails with [`WriteError::Stale`](crate::store::WriteError::Stale). `serial` is a [key](serial_number::key).
    pub fn claim_serial(&mut self, serial: &str, matched: &SerialMatch, asset: AssetId) {
        let expires = seconds(self.store.store.now()) + CLAIM_SECONDS;
        let mut claim: Item = self.store.keys.serial_claim(serial).item();
        claim.insert(TYPE.to_owned(), AttributeValue::S("serial_claim".to_owned()));
        claim.insert(OWNER.to_owned(), AttributeValue::S(self.store.keys.record(Kind::Asset, asset.uuid()).sort().to_owned()));
        claim.insert(EXPIRES.to_owned(), AttributeValue::N(expires.to_string()));
        let mut condition = Condition::MISSING;
        if let Some(previous) = &matched.claim {
            let owner = self.store.keys.record(Kind::Asset, previous.asset.uuid());
            condition = Condition::is(OWNER, AttributeValue::S(owner.sort().to_owned()));
            // Reads of several items can see a transaction's claim before its asset. The version check sees both, or fails.
            self.add(self.store.version_check(owner, previous.version));
        }
        self.add(TransactionItem { purpose: Purpose::RecordState, condition, write: Write::Put(claim) });
    }
}

pub(in crate::store) const LAST_NUMBER: &str = "last_number";
pub(in crate::store) const WIDTH: &str = "width";

/// Further ranges are omitted. A tag template that contains the month has twelve ranges per year and asset type.
const MAX_RANGES: usize = 10_000;

impl Reader {
    /// Returns the used ranges of asset tags, ordered by pattern, at most 10,000. Omits unreadable counters, and logs them.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counters can't be read from the table.
    pub async fn number_ranges(&self) -> Result<Vec<NumberRange>, StoreError> {
        let mut pages = self.beginning(AttributeValue::S(COUNTERS.to_owned())).into_paginator().send();
        let mut ranges = Vec::new();
        while ranges.len() < MAX_RANGES
            && let Some(page) = pages.next().await
        {
            for item in page?.items.unwrap_or_default() {
                match number_range(&item) {
                    Some(range) => ranges.push(range),
                    None => {
                        tracing::error!(metric = UNREADABLE, kind = "counter", tenant_id = %self.id, "a counter of asset tags can't be read")
                    }
                }
            }
        }
        ranges.truncate(MAX_RANGES);
        Ok(ranges)
    }
}

impl Writer {
    /// Reserves the number that is `step` above the last one; 1 reserves the next number.
    ///
    /// A number is reserved only once. If its asset is not created, a gap remains. A dry run reserves nothing, and gets a number
    /// that no asset has.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counter can't be updated.
    pub async fn next_number(&self, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        self.increment(self.keys.counter(&range.counter()), range, step).await
    }

    /// Reserves the next movement number. Gaps are possible, as with asset tags.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counter can't be updated.
    pub async fn next_movement_number(&self, template: &TagTemplate) -> Result<String, StoreError> {
        let range = template.range(&TagPrefix::default(), None, self.store.now());
        Ok(range.tag(self.increment(self.keys.movement_counter(), &range, 1).await?))
    }

    async fn increment(&self, counter: Key, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        if let Some(dry_run) = &self.dry_run {
            return dry_run.reserve_numbers(step, self.store.random()?);
        }
        let update = self.store.client.update_item().table_name(&self.store.table).set_key(Some(counter.item()));
        let update = update
            // A missing counter counts as zero. The second part of the condition fails if the attribute is not a number.
            .condition_expression("attribute_not_exists(#last) OR #last >= :zero")
            .update_expression("ADD #last :step SET #width = :width, #type = :type")
            .expression_attribute_names("#last", LAST_NUMBER)
            .expression_attribute_names("#width", WIDTH)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":zero", AttributeValue::N("0".into()))
            .expression_attribute_values(":step", AttributeValue::N(step.to_string()))
            .expression_attribute_values(":width", AttributeValue::N(range.width().to_string()))
            .expression_attribute_values(":type", AttributeValue::S("counter".into()))
            .return_values(ReturnValue::UpdatedNew);
        let response = Box::pin(update.send()).await?;
        let number = response.attributes.as_ref().and_then(|item| item.get(LAST_NUMBER)?.as_n().ok()?.parse().ok());
        number.ok_or_else(|| StoreError::broken("a counter without a number"))
    }
}

fn number_range(item: &Item) -> Option<NumberRange> {
    let number = |name| item.get(name)?.as_n().ok()?.parse().ok();
    let pattern = Key::of(item)?.sort().strip_prefix(COUNTERS)?.to_owned();
    Some(NumberRange { pattern, last_number: number(LAST_NUMBER)?, width: number(WIDTH)? })
}
