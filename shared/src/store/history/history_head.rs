//! The end of a record's history, as the record itself states it or, once it is deleted, the tombstone in its place.

use crate::domain::history::chain::{ChainHead, HistoryEntry};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::keys::{Item, Key, TYPE};
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item::{LAST_EVENT, LAST_HASH, VERSION};
use crate::store::table::transaction::{Purpose, TransactionItem};
use crate::store::table::transaction_items::NewEvent;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// The most reads of items that contradict each other. Reads of several items are not isolated from a
/// transaction: they may see one of its items before and another after it.
pub(in crate::store) const MAX_LOOKS: u32 = 5;
/// The pause before items are read again. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The end of a record's history, as the record or its tombstone states it.
#[derive(Debug, Clone)]
pub(in crate::store) struct HistoryHead {
    /// The number of entries, and the hash of the latest.
    pub(in crate::store) chain: ChainHead,
    /// The latest entry's event. Its id also says when the record changed or was deleted.
    pub(in crate::store) last_event: EventId,
}

impl HistoryHead {
    /// The attributes that [`HistoryHead::of`] needs, for a projection.
    pub(in crate::store) const ATTRIBUTES: [(&str, &str); 3] =
        [("#version", VERSION), ("#hash", LAST_HASH), ("#event", LAST_EVENT)];

    pub(in crate::store) fn after(version: u64, entry: &HistoryEntry) -> Self {
        Self { chain: ChainHead { version, last_hash: entry.hash.clone() }, last_event: entry.id }
    }

    pub(in crate::store) fn of(item: &Item) -> Result<Self, StoreError> {
        let text = |name| item.get(name)?.as_s().ok().cloned();
        let version = || item.get(VERSION)?.as_n().ok()?.parse().ok();
        let head = || {
            let chain = ChainHead { version: version()?, last_hash: text(LAST_HASH)? };
            Some(Self { chain, last_event: EventId::from_short(&text(LAST_EVENT)?)? })
        };
        head().ok_or_else(|| StoreError::broken("a record without the head of its history"))
    }
}

/// Other items of the transaction that wrote this event may not be visible yet.
pub(in crate::store) fn may_be_in_flight(event: EventId, now: Timestamp) -> bool {
    event.timestamp().plus(max_event_delay()) > now
}

/// Waits before items that contradict each other are read again: longer after each look.
pub(in crate::store) async fn pause_before_look(looks: u32) {
    tokio::time::sleep(FIRST_PAUSE * (1 << looks.saturating_sub(1).min(MAX_LOOKS))).await;
}

impl TenantStore {
    /// From the record or, if that is missing, from its tombstone.
    pub(in crate::store) async fn history_head(&self, kind: Kind, id: Uuid) -> Result<Option<HistoryHead>, StoreError> {
        // In this order, so that a deletion in between is not missed.
        match self.history_head_in(self.keys.record(kind, id)).await? {
            Some(head) => Ok(Some(head)),
            None => self.history_head_in(self.keys.tombstone(kind, id)).await,
        }
    }

    /// When records were deleted, by their IDs. Others are left out. Takes one round trip, and none without IDs.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] for a damaged
    /// tombstone.
    pub async fn deletions<T: Record>(&self, ids: impl Iterator<Item = T::Id>) -> Result<HashMap<Uuid, Timestamp>, StoreError> {
        let keys: HashMap<Key, Uuid> = ids.map(|id| (self.keys.tombstone(T::KIND, id.uuid()), id.uuid())).collect();
        let tombstones = self.items(&keys.keys().cloned().collect::<Vec<_>>()).await?;
        tombstones
            .iter()
            .filter_map(|(key, item)| Some((*keys.get(key)?, HistoryHead::of(item))))
            .map(|(id, head)| Ok((id, head?.last_event.timestamp())))
            .collect()
    }

    async fn history_head_in(&self, key: Key) -> Result<Option<HistoryHead>, StoreError> {
        let mut request = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        for (name, attribute) in HistoryHead::ATTRIBUTES {
            request = request.expression_attribute_names(name, attribute);
        }
        let request = request.consistent_read(true).projection_expression("#version, #hash, #event");
        request.send().await?.item.as_ref().map(HistoryHead::of).transpose()
    }

    /// `event` describes the deletion, which is the change to `version`.
    pub(in crate::store) fn tombstone_item(&self, kind: Kind, id: Uuid, version: u64, event: &NewEvent) -> TransactionItem {
        let chain = ChainHead { version, last_hash: event.hash.clone() };
        let item = self.tombstone(kind, id, &HistoryHead { chain, last_event: event.id });
        TransactionItem::put_new(Purpose::Invariant, item)
    }

    /// `head` is the end of the history.
    pub(in crate::store) fn tombstone(&self, kind: Kind, id: Uuid, head: &HistoryHead) -> Item {
        let mut item = self.keys.tombstone(kind, id).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("tombstone".to_owned()));
        item.insert(VERSION.to_owned(), AttributeValue::N(head.chain.version.to_string()));
        item.insert(LAST_HASH.to_owned(), AttributeValue::S(head.chain.last_hash.clone()));
        item.insert(LAST_EVENT.to_owned(), AttributeValue::S(head.last_event.short()));
        item
    }
}
