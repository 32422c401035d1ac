//! Removes unreadable records, and finds personal data left after an erasure: a restore may have brought some of it back, or the
//! erasure is incomplete.

use super::repair::Change;
use super::scan::{RecordFacts, Role};
use super::{TenantCheck, named};
use crate::domain::assets::asset::Asset;
use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::history::chain::{Chain, ChainHead, HistoryEntry, subject};
use crate::domain::history::event::{Event, Verb};
use crate::domain::history::past::{HistoryFields, replay};
use crate::domain::keys::api_key::ApiKey;
use crate::domain::people::{Person, Removed, personal_fields};
use crate::domain::processes::instance::Instance;
use crate::domain::processes::movement::Movement;
use crate::domain::processes::process::Process;
use crate::domain::receipts::key::ReceiptKeys;
use crate::domain::record::{Kind, changes};
use crate::domain::signing::Link;
use crate::domain::tenants::tenant::Tenant;
use crate::domain::user::User;
use crate::domain::values::id::{EventId, Id, UserId};
use crate::domain::webhooks::Webhook;
use crate::store::history::of_record::HistoryHead;
use crate::store::keys::{Item, LAST_VERSION};
use crate::store::people::PartAbout;
use crate::store::table::read;
use crate::store::table::unit_of_work::ChangeContext;
use crate::store::table::unit_of_work::RecordChange;
use crate::store::{Reader, StoreError, WriteError, Writer, max_secondary_index_delay};
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Removed,
    Missing,
    /// The record is readable, so it must be deleted like any other record.
    Readable,
    /// The record is the tenant itself, which can't be removed.
    Tenant,
    /// Another writer changed the record during the removal.
    Changing,
}

impl Reader {
    /// Adds the entry for the deletion and the tombstone, unless the history is broken or already ends with a deletion.
    async fn end_history(&self, change: Change, kind: Kind, id: Uuid) -> Result<Change, StoreError> {
        let entries = self.all_entries(id).await?;
        let (mut chain, mut events) = (Chain::new(None), Vec::new());
        for (version, entry) in &entries {
            chain.add(*version, entry);
            events.extend(serde_json::from_str::<Event>(&entry.text));
        }
        let Some((last, entry)) = entries.last_key_value().filter(|_| chain.ends_open()) else { return Ok(change) };
        let version = last + 1;
        let described = RecordChange {
            event_id: EventId::new(self.store.now(), self.store.random()?),
            record: (kind, id),
            verb: Verb::Deleted,
            version,
            changes: changes(&replay(&events), &HistoryFields::new()),
            personal_fields: personal_fields(kind),
            previous_hash: Some(&entry.hash),
        };
        let event = self.event_item(&ChangeContext::operator(self.store.now()), described)?;
        let head = HistoryHead { chain: ChainHead { version, last_hash: event.hash }, last_event: event.id };
        Ok(change.insert(event.item).insert(self.tombstone(kind, id, &head)))
    }

    /// Returns all entries of a history by version, including recent entries that the index `history` may still lack.
    async fn all_entries(&self, record: Uuid) -> Result<BTreeMap<u64, HistoryEntry>, StoreError> {
        let rows = self.history_rows(record, 0..=LAST_VERSION, None).await?;
        let mut entries = self.entries_of(&rows).await?;
        let of_record = |entry: HistoryEntry| {
            let ((_, id), version) = subject(&entry.text)?;
            (id == record).then_some((version, entry))
        };
        let since = self.store.now().plus(-max_secondary_index_delay());
        self.each_page_of_entries(since, |page| entries.extend(page.into_iter().filter_map(of_record))).await?;
        Ok(entries)
    }
}

impl Writer {
    /// Removes an unreadable record, and ends its history with an entry by the operator. [`Writer::check_items`] handles the
    /// references to the record and its derived items. A dry run removes nothing.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read or written.
    pub async fn remove_unreadable(&self, kind: Kind, id: Uuid) -> Result<Removal, StoreError> {
        if kind == Kind::Tenant {
            return Ok(Removal::Tenant);
        }
        let Some(item) = self.item(&self.keys.record(kind, id)).await? else { return Ok(Removal::Missing) };
        let mut filled = [item.clone()];
        self.fill_in_blobs(&mut filled).await?;
        let [filled] = filled;
        if is_readable(kind, filled) {
            return Ok(Removal::Readable);
        }
        if self.is_dry_run() {
            return Ok(Removal::Removed);
        }
        let change = self.end_history(Change::new(&self.store).remove(&item)?, kind, id).await?;
        Ok(if change.commit().await? { Removal::Removed } else { Removal::Changing })
    }
}

fn is_readable(kind: Kind, item: Item) -> bool {
    match kind {
        Kind::Tenant => read::read::<Tenant>(item).is_ok(),
        Kind::ApiKey => read::read::<ApiKey>(item).is_ok(),
        Kind::Asset => read::read::<Asset>(item).is_ok(),
        Kind::User => read::read::<User>(item).is_ok(),
        Kind::AssetType => read::read::<AssetType>(item).is_ok(),
        Kind::Manufacturer => read::read::<Manufacturer>(item).is_ok(),
        Kind::Model => read::read::<Model>(item).is_ok(),
        Kind::Process => read::read::<Process>(item).is_ok(),
        Kind::Instance => read::read::<Instance>(item).is_ok(),
        Kind::Movement => read::read::<Movement>(item).is_ok(),
        Kind::ReceiptKeys => read::read::<ReceiptKeys>(item).is_ok(),
        Kind::Link => read::read::<Link>(item).is_ok(),
        Kind::Webhook => read::read::<Webhook>(item).is_ok(),
    }
}

impl TenantCheck<'_> {
    /// Collects people whose record is erased or whose erasure has started.
    pub(super) async fn know_erased_people(&mut self) -> Result<(), StoreError> {
        let begun = self.store.erasures().await?.into_iter().map(|erasure| erasure.person);
        let is_erased = |(_, facts): &(_, &RecordFacts)| matches!(facts.role, Role::ErasedUser);
        let erased = self.of_kind(Kind::User).filter(is_erased).map(|(id, _)| Person::User(UserId::from_uuid(id)));
        self.erased = erased.chain(begun).map(|person| (person, PartAbout::new(person))).collect();
        Ok(())
    }

    pub(super) fn look_for_erased_people(&mut self, entry: &HistoryEntry) {
        for found in self.erased.values_mut() {
            found.add(entry);
        }
    }

    /// Reports the data that a dry run of each erasure still finds.
    pub(super) async fn check_people(&mut self) -> Result<(), StoreError> {
        for (person, found) in std::mem::take(&mut self.erased) {
            let problem = match self.store.remains_in(person, &found).await {
                Ok(remains) if remains == Removed::default() => continue,
                Ok(Removed { resources, entries, signatures, responses, addresses }) => format!(
                    "the person was erased, but is still named in {resources} records, {entries} history entries, {signatures} \
                     images, {responses} stored responses and {addresses} addresses of links"
                ),
                Err(WriteError::Store(error @ StoreError::Unavailable(_))) => return Err(error),
                Err(error) => format!("the person was erased, but the search for remaining data failed: {error}"),
            };
            let (kind, id) = person.record();
            let advice = format!("erase the person again: `admin erase --tenant {} --{} {id}`", self.store.id(), kind.as_str());
            self.report(named((kind, id)), problem, advice);
        }
        Ok(())
    }
}
