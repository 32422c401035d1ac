//! A tenant's items at a moment, to go back to.

use crate::support::Api;
use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};
use shared::domain::values::id::TenantId;
use shared::store::keys::{Item, Key};
use std::collections::HashMap;

/// DynamoDB's limit.
const MAX_BATCH_ITEMS: usize = 25;

/// Every item of a tenant at a moment. Creating sample resources takes a hundred requests; going back to them takes two.
pub struct Snapshot {
    tenant: TenantId,
    items: HashMap<Key, Item>,
}

impl Snapshot {
    pub async fn of(api: &Api, tenant: TenantId) -> Self {
        let mut items = HashMap::new();
        for partition in api.store.tenant(tenant).partitions().await.unwrap() {
            let query = api.dynamo.query().table_name(&api.table).consistent_read(true).key_condition_expression("PK = :pk");
            let mut pages = query.expression_attribute_values(":pk", partition).into_paginator().send();
            while let Some(page) = pages.next().await {
                items.extend(page.unwrap().items.unwrap_or_default().into_iter().map(|item| (Key::of(&item).unwrap(), item)));
            }
        }
        Self { tenant, items }
    }

    pub fn events(&self) -> usize {
        self.items.keys().filter(|key| key.sort().starts_with("EVENT#")).count()
    }

    /// Brings the table back to this snapshot from the tenant's present items.
    pub async fn restore(&self, api: &Api, now: &Self) {
        assert_eq!(self.tenant, now.tenant);
        let added = now.items.keys().filter(|key| !self.items.contains_key(key));
        let deletions = added.map(|key| {
            let deletion = DeleteRequest::builder().set_key(Some(key.item())).build().unwrap();
            WriteRequest::builder().delete_request(deletion).build()
        });
        let lost = self.items.iter().filter(|(key, item)| now.items.get(key) != Some(item));
        let puts = lost.map(|(_, item)| {
            let put = PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        let writes: Vec<WriteRequest> = deletions.chain(puts).collect();
        for batch in writes.chunks(MAX_BATCH_ITEMS) {
            let written = api.dynamo.batch_write_item().request_items(&api.table, batch.to_vec()).send().await.unwrap();
            assert!(written.unprocessed_items().is_none_or(HashMap::is_empty), "the engine left items out");
        }
        api.store.forget_list_indexes();
    }
}
