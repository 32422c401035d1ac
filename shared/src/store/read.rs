//! Reads of one tenant. All are strongly consistent: each decides something, or follows a write.

use super::TenantStore;
use super::error::StoreError;
use super::item;
use super::keys::{Item, Key, Keys, PK, SK};
use crate::domain::id::Id;
use crate::domain::record::{Kind, Record, Stored};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use futures_util::future::try_join_all;
use std::collections::{HashMap, HashSet};

/// DynamoDB's limit for a BatchGetItem.
const BATCH: usize = 100;
/// How often keys that a batch left out are asked for again.
const ROUNDS: u32 = 5;

/// The keys of a batch, and what is to be asked of each.
#[derive(Debug, Default)]
pub struct BatchGet(HashSet<Key>);

impl BatchGet {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a thing, if there is an id.
    #[must_use]
    pub fn with<T: Record>(mut self, store: &TenantStore, id: Option<T::Id>) -> Self {
        self.0.extend(id.map(|id| store.keys.record(T::KIND, id.uuid())));
        self
    }
}

/// What a batch found.
#[derive(Debug, Default)]
pub struct BatchResult {
    items: HashMap<Key, Item>,
}

impl BatchResult {
    /// The thing that was asked for; `None` if the tenant has none such.
    ///
    /// # Errors
    ///
    /// The item is broken.
    pub fn get<T: Record>(&self, store: &TenantStore, id: Option<T::Id>) -> Result<Option<Stored<T>>, StoreError> {
        let found = id.and_then(|id| self.items.get(&store.keys.record(T::KIND, id.uuid())));
        found.cloned().map(item::read).transpose()
    }
}

impl TenantStore {
    /// Reads one thing: half a millisecond and, up to 4 KB, one read unit.
    ///
    /// # Errors
    ///
    /// The table does not answer, or the item is broken.
    pub async fn get<T: Record>(&self, id: T::Id) -> Result<Option<Stored<T>>, StoreError> {
        self.item(&self.keys.record(T::KIND, id.uuid())).await?.map(item::read).transpose()
    }

    /// The item of a key.
    pub(super) async fn item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let request = self.store.client.get_item().table_name(&self.store.table);
        Ok(request.set_key(Some(key.item())).consistent_read(true).send().await?.item)
    }

    /// Reads several things in one round trip; none at all costs none.
    ///
    /// # Errors
    ///
    /// The table does not answer, or leaves keys out time and again.
    pub async fn batch(&self, wanted: BatchGet) -> Result<BatchResult, StoreError> {
        let keys: Vec<Key> = wanted.0.into_iter().collect();
        Ok(BatchResult { items: self.items(&keys).await? })
    }

    /// The items of these keys, a hundred a call, the calls together.
    pub(super) async fn items(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, StoreError> {
        let parts = try_join_all(keys.chunks(BATCH).map(|chunk| self.batch_of(chunk))).await?;
        Ok(parts.into_iter().flatten().collect())
    }

    async fn batch_of(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, StoreError> {
        let mut found = HashMap::new();
        let mut left: Vec<Item> = keys.iter().map(Key::item).collect();
        for round in 0..ROUNDS {
            let ask = KeysAndAttributes::builder().set_keys(Some(left)).consistent_read(true).build();
            let ask = ask.map_err(StoreError::broken)?;
            let answer = self.store.client.batch_get_item().request_items(&self.store.table, ask).send().await?;
            let items = answer.responses.into_iter().flat_map(HashMap::into_values).flatten();
            found.extend(items.filter_map(|item| Some((Key::of(&item)?, item))));
            let unprocessed = answer.unprocessed_keys.into_iter().flat_map(HashMap::into_values);
            left = unprocessed.flat_map(|keys| keys.keys).collect();
            if left.is_empty() {
                return Ok(found);
            }
            super::pause(round).await;
        }
        Err(StoreError::Unavailable("a batch left keys out time and again".into()))
    }

    /// Reads every thing of a kind, page after page.
    ///
    /// # Errors
    ///
    /// The table does not answer, or an item is broken.
    pub async fn all<T: Record>(&self) -> Result<Vec<Stored<T>>, StoreError> {
        self.every(self.of_kind(T::KIND)).await?.into_iter().map(item::read).collect()
    }

    /// Asks for every item of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> QueryFluentBuilder {
        self.beginning(Keys::prefix(kind))
    }

    /// Asks for every item whose sort key begins so.
    pub(super) fn beginning(&self, prefix: AttributeValue) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).consistent_read(true);
        query
            .key_condition_expression("#pk = :pk AND begins_with(#sk, :sk)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":sk", prefix)
    }

    /// All items that a query finds.
    pub(super) async fn every(&self, query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        let mut pages = query.into_paginator().send();
        let mut items = Vec::new();
        while let Some(page) = pages.next().await {
            items.extend(page?.items.unwrap_or_default());
        }
        Ok(items)
    }
}
