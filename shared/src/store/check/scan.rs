//! Reads all items of a tenant, page by page. Keeps a few hundred bytes per record.

use super::{RecordKey, TenantCheck, from_backup, item_from_backup, named};
use crate::domain::assets::asset::Asset;
use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::history::chain::{Chain, ChainHead, HistoryEntry, subject};
use crate::domain::keys::api_key::ApiKey;
use crate::domain::processes::instance::{ImageName, Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::processes::process::Process;
use crate::domain::receipts::key::ReceiptKeys;
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::signing::Link;
use crate::domain::tenants::tenant::Tenant;
use crate::domain::user::User;
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{AssetId, Id, InstanceId, MovementId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::Webhook;
use crate::store::history::of_record::HistoryHead;
use crate::store::keys::{self, Item, Key, LS, TYPE};
use crate::store::table::blobs::{BlobKind, blob_of, fill_in};
use crate::store::table::read;
use crate::store::table::unit_of_work::from_record;
use crate::store::{Reader, StoreError, UnreadableRecord};
use aws_sdk_dynamodb::types::AttributeValue;
use std::any::Any;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct RecordFacts {
    pub(super) head: HistoryHead,
    pub(super) references: Vec<(Kind, Uuid)>,
    pub(super) unique: Vec<Unique>,
    /// The record's reference item without references; `None` if nothing can refer to its kind.
    pub(super) reference_item: Option<Item>,
    pub(super) role: Role,
}

/// Facts about a record that are compared with other records.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Asset { running: Option<InstanceId> },
    Instance(InstanceFacts),
    Movement { instances: Vec<InstanceId> },
    ErasedUser,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstanceFacts {
    pub(super) asset: AssetId,
    pub(super) movement: Option<MovementId>,
    pub(super) status: InstanceStatus,
    pub(super) step: usize,
    pub(super) images: Vec<ImageName>,
}

#[derive(Debug, Default)]
pub(super) struct ScannedChain {
    /// `None` if the kind is unknown to this version of the service.
    pub(super) kind: Option<Kind>,
    pub(super) chain: Chain,
    /// The event with the highest version.
    pub(super) last: Option<HistoryHead>,
}

impl RecordFacts {
    fn of<T: Record>(store: &Reader, stored: &Stored<T>) -> Self {
        let references = stored.value.references().into_iter().map(|reference| (reference.kind, reference.id)).collect();
        let chain = ChainHead { version: stored.version, last_hash: stored.last_hash.clone() };
        Self {
            head: HistoryHead { chain, last_event: stored.last_event },
            references,
            unique: stored.value.unique(),
            reference_item: store.reference_item(&stored.value, 0),
            role: role(&stored.value),
        }
    }
}

fn role<T: Record>(value: &T) -> Role {
    let value: &dyn Any = value;
    if let Some(asset) = value.downcast_ref::<Asset>() {
        return Role::Asset { running: asset.running_instance_id };
    }
    if let Some(instance) = value.downcast_ref::<Instance>() {
        return Role::Instance(InstanceFacts {
            asset: instance.asset_id,
            movement: instance.movement_id,
            status: instance.status(),
            step: instance.current_step(),
            images: instance.signatures().map(|(name, _)| name).collect(),
        });
    }
    if value.downcast_ref::<User>().is_some_and(|user| user.erased_at.is_some()) {
        return Role::ErasedUser;
    }
    match value.downcast_ref::<Movement>() {
        Some(movement) => Role::Movement { instances: movement.instance_ids.clone() },
        None => Role::Other,
    }
}

/// Returns the first error in an asset type's stored schema under today's rules, with its JSON Pointer.
fn refused_schema<T: Record>(value: &T) -> Option<(String, ValueError)> {
    let asset_type = (value as &dyn Any).downcast_ref::<AssetType>()?;
    asset_type.custom_fields_schema.as_ref()?.errors().into_iter().next()
}

impl TenantCheck<'_> {
    /// Reads all blobs, about as many as there are process definitions and asset types.
    pub(super) async fn scan_blobs(&mut self) -> Result<(), StoreError> {
        for (blob, prefix) in [(BlobKind::Steps, keys::STEPS), (BlobKind::Schema, keys::SCHEMAS)] {
            let mut pages = self.store.beginning(AttributeValue::S(prefix.to_owned())).into_paginator().send();
            while let Some(page) = pages.next().await {
                for item in page?.items.unwrap_or_default() {
                    let Some(key) = Key::of(&item) else { continue };
                    let text = item.get(blob.attribute()).and_then(|text| text.as_s().ok()).cloned().unwrap_or_default();
                    let name = (blob, blob.hash(&text));
                    if key == self.store.blob_key(&name) {
                        self.blobs.insert(name, text);
                    } else {
                        let subject = format!("{} item {}", blob.noun(), key.sort());
                        self.report(subject, "its text doesn't match its hash", item_from_backup(&key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads all records. Must precede reading the events, so that the events contain all changes of each record.
    pub(super) async fn scan_records(&mut self) -> Result<(), StoreError> {
        for kind in Kind::ALL {
            match kind {
                Kind::Tenant => self.scan_kind::<Tenant>().await?,
                Kind::ApiKey => self.scan_kind::<ApiKey>().await?,
                Kind::Asset => self.scan_kind::<Asset>().await?,
                Kind::User => self.scan_kind::<User>().await?,
                Kind::AssetType => self.scan_kind::<AssetType>().await?,
                Kind::Manufacturer => self.scan_kind::<Manufacturer>().await?,
                Kind::Model => self.scan_kind::<Model>().await?,
                Kind::Process => self.scan_kind::<Process>().await?,
                Kind::Instance => self.scan_kind::<Instance>().await?,
                Kind::Movement => self.scan_kind::<Movement>().await?,
                Kind::ReceiptKeys => self.scan_kind::<ReceiptKeys>().await?,
                Kind::Link => self.scan_kind::<Link>().await?,
                Kind::Webhook => self.scan_kind::<Webhook>().await?,
            }
        }
        Ok(())
    }

    async fn scan_kind<T: Record>(&mut self) -> Result<(), StoreError> {
        let mut pages = self.store.of_kind(T::KIND).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                self.scan_record::<T>(item).await?;
            }
        }
        Ok(())
    }

    async fn scan_record<T: Record>(&mut self, item: Item) -> Result<(), StoreError> {
        let key = Key::of(&item).ok_or_else(|| StoreError::broken("an item without a key"))?;
        let stored = match read::read::<T>(self.with_blob(item.clone())) {
            Ok(stored) => stored,
            Err(StoreError::Unreadable(UnreadableRecord { id, cause, .. })) => {
                // Some kinds have only one record per tenant, without an ID in its key.
                let own_id = || item.get("id").and_then(|id| id.as_s().ok()?.parse::<Uuid>().ok());
                let (id, blob) = (id.or_else(own_id), blob_of(&item).filter(|name| !self.blobs.contains_key(name)));
                self.unsettled.insert(id.unwrap_or_default());
                let subject = id.map_or_else(|| format!("{} at {}", T::KIND.as_str(), key.sort()), |id| named((T::KIND, id)));
                let mut advice = match blob {
                    Some(name) => from_backup(&format!("the item {} or the item {key}", self.store.blob_key(&name))),
                    None => item_from_backup(&key),
                };
                if T::KIND != Kind::Tenant {
                    advice.push_str("; or remove it with `admin record remove`");
                }
                self.report(subject, format!("it can't be read: {cause}"), advice);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let record: RecordKey = (T::KIND, stored.value.id().uuid());
        let facts = RecordFacts::of(self.store, &stored);
        if let Some((pointer, error)) = refused_schema(&stored.value) {
            let problem = format!("its custom_fields_schema is no longer permitted: {pointer} {error}");
            self.report(
                named(record),
                problem,
                "change the schema; until then, no asset of the type can be created and no custom fields can change",
            );
        }
        let chain = Chain::new(Some(facts.head.chain.clone()));
        self.chains.insert(record.1, ScannedChain { kind: Some(T::KIND), chain, ..ScannedChain::default() });
        self.records.insert(record, facts);
        let (expected, _) = from_record(&self.store.keys, &stored)?;
        let mut repaired = item.clone();
        repaired.extend(expected.into_iter().filter(|(name, _)| [TYPE, LS].contains(&name.as_str())));
        if repaired != item {
            let change = self.change().replace(&item, repaired);
            let problem = "its item has missing or wrong attributes for the list index";
            self.repair(named(record), problem, "writes these attributes", change).await?;
        }
        Ok(())
    }

    fn with_blob(&self, mut item: Item) -> Item {
        if let Some(name) = blob_of(&item)
            && let Some(text) = self.blobs.get(&name)
        {
            fill_in(&mut item, name.0, text);
        }
        item
    }

    pub(super) async fn scan_events(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), StoreError> {
        let store = self.store;
        let add = |entries: Vec<HistoryEntry>| {
            for entry in entries {
                self.events += 1;
                self.look_for_erased_people(&entry);
                let Some(((kind, id), version)) = subject(&entry.text) else {
                    let advice = item_from_backup(&store.keys.event(entry.id));
                    self.report(format!("event {}", entry.id), "it can't be read", advice);
                    continue;
                };
                let scanned = self.chains.entry(id).or_default();
                scanned.kind = scanned.kind.or(kind);
                scanned.chain.add(version, &entry);
                if scanned.last.as_ref().is_none_or(|last| last.chain.version < version) {
                    scanned.last = Some(HistoryHead::after(version, &entry));
                }
            }
            progress(self.events);
        };
        store.each_page_of_entries(Timestamp::from_millis(0), add).await
    }

    pub(super) fn assets(&self) -> impl Iterator<Item = (AssetId, Option<InstanceId>)> {
        self.of_kind(Kind::Asset).filter_map(|(id, facts)| match facts.role {
            Role::Asset { running } => Some((AssetId::from_uuid(id), running)),
            _ => None,
        })
    }

    pub(super) fn instances(&self) -> impl Iterator<Item = (InstanceId, &InstanceFacts)> {
        self.of_kind(Kind::Instance).filter_map(|(id, facts)| match &facts.role {
            Role::Instance(instance) => Some((InstanceId::from_uuid(id), instance)),
            _ => None,
        })
    }

    pub(super) fn movements(&self) -> impl Iterator<Item = (MovementId, &[InstanceId])> {
        self.of_kind(Kind::Movement).filter_map(|(id, facts)| match &facts.role {
            Role::Movement { instances } => Some((MovementId::from_uuid(id), instances.as_slice())),
            _ => None,
        })
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (Uuid, &RecordFacts)> {
        let all = (kind, Uuid::nil())..=(kind, Uuid::max());
        self.records.range(all).map(|((_, id), facts)| (*id, facts))
    }
}
