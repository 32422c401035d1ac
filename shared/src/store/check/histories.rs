//! Compares records, tombstones and stored responses with the events, and assets, process instances, movements and signature
//! images with each other.

use super::repair::DerivedItems;
use super::scan::{InstanceFacts, ScannedChain};
use super::{RecordKey, TenantCheck, from_backup, item_from_backup, named};
use crate::domain::history::chain::{Contradiction, contradiction};
use crate::domain::processes::instance::{ImageName, InstanceStatus};
use crate::domain::record::Kind;
use crate::domain::values::id::{AssetId, Id, InstanceId, MovementId};
use crate::domain::values::time::Timestamp;
use crate::store::StoreError;
use crate::store::keys::{EXPIRES, Item, Key, PK, SIGNATURES, SK, STORED_RESPONSES, TOMBSTONES, deleted_record, history_entry};
use crate::store::table::stored_responses::{ENTRIES, FINGERPRINT};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct ResponseFacts {
    /// The item, without the response itself.
    item: Item,
    /// The records and versions whose history entries were written together with the response.
    entries: Vec<(Uuid, u64)>,
}

type Assets = BTreeMap<AssetId, Option<InstanceId>>;
type Instances<'a> = BTreeMap<InstanceId, &'a InstanceFacts>;
type Movements<'a> = BTreeMap<MovementId, &'a [InstanceId]>;

impl TenantCheck<'_> {
    /// Compares records, and tombstones of deleted records, with their histories.
    pub(super) async fn check_histories(&mut self) -> Result<(), StoreError> {
        let tenant = (Kind::Tenant, self.store.id().uuid());
        let mut tombstones = DerivedItems::new();
        let mut contradictory = HashSet::new();
        if !self.records.contains_key(&tenant) && !self.chains.contains_key(&tenant.1) {
            self.report(named(tenant), "its record and its history are lost", "restore the table to another point in time");
        }
        for (id, ScannedChain { kind, chain, last }) in std::mem::take(&mut self.chains) {
            let Some(kind) = kind else {
                self.unsettled.insert(id);
                self.report(format!("record {id}"), "its type is unknown", "use the release that wrote it");
                continue;
            };
            let record = (kind, id);
            let newest = last.as_ref().map_or(0, |last| last.chain.version);
            let head = self.records.get(&record).map(|facts| &facts.head);
            // The length of a history is known even if its chain is broken.
            self.history_lengths.insert(id, newest.max(head.map_or(0, |head| head.chain.version)));
            if self.unsettled.contains(&id) {
                // Unreadable records are already reported.
                continue;
            }
            let is_named = head.zip(last.as_ref()).is_none_or(|(head, last)| head.last_event == last.last_event);
            let is_deleted = chain.ends_with_deletion();
            let is_settled = head.map_or(is_deleted, |head| head.chain.version >= newest);
            let Some(found) = contradiction(chain, head.map(|head| &head.chain), is_named) else {
                let end = last.filter(|_| is_deleted).map(|head| self.store.tombstone(kind, id, &head));
                let end = end.and_then(|item| Some((Key::of(&item)?.sort().to_owned(), (record, item))));
                tombstones.extend(end);
                continue;
            };
            contradictory.insert(id);
            if !is_settled {
                self.unsettled.insert(id);
            }
            let key = self.store.keys.record(kind, id);
            let advice = match found {
                Contradiction::Broken(_) => from_backup(&format!("the entry or the item {key}")),
                _ => item_from_backup(&key),
            };
            self.report(named(record), found.to_string(), advice);
        }
        let may_stay = |key: &Key, _: &Item| match deleted_record(key) {
            Some((Some(_), id)) => contradictory.contains(&id) || self.unsettled.contains(&id),
            _ => true,
        };
        // There is no repair, because only the history and the tombstone show the length of the history, and neither can be
        // derived from the other.
        for difference in self.differences("tombstone", TOMBSTONES, tombstones, may_stay).await? {
            self.report(difference.subject, difference.problem, item_from_backup(&difference.key));
        }
        Ok(())
    }

    /// Reads the items of all stored responses that have not expired, without the responses themselves.
    pub(super) async fn scan_responses(&mut self) -> Result<(), StoreError> {
        let query = self.store.beginning(AttributeValue::S(STORED_RESPONSES.to_owned()));
        let query = query
            .projection_expression("#pk, #sk, #expires, #fingerprint, #entries")
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#fingerprint", FINGERPRINT)
            .expression_attribute_names("#entries", ENTRIES);
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            let items = page?.items.unwrap_or_default();
            self.responses.extend(items.into_iter().filter(|item| !has_expired(item, self.began)).map(response_facts));
        }
        Ok(())
    }

    /// Finds and removes stored responses of requests whose effect is lost, so that a retry of the request takes effect. Each row
    /// of an import has its own stored response, so only lost rows are executed again.
    ///
    /// The opposite, a lost response to a request whose effect exists, can't be detected: nothing else shows that a request had
    /// an idempotency key.
    pub(super) async fn check_responses(&mut self) -> Result<(), StoreError> {
        let is_lost = |(record, version): &(Uuid, u64)| {
            !self.unsettled.contains(record) && self.history_lengths.get(record).is_none_or(|length| length < version)
        };
        let lost: Vec<Item> =
            self.responses.iter().filter(|it| it.entries.iter().any(is_lost)).map(|it| it.item.clone()).collect();
        for item in lost {
            let Some(key) = Key::of(&item) else { continue };
            let change = self.change().remove(&item)?;
            let problem = "it is the response to a request whose effect is lost";
            let repair = "removes it, so that a retry of the request takes effect";
            self.repair(format!("stored response {}", key.sort()), problem, repair, change).await?;
        }
        Ok(())
    }

    pub(super) async fn check_processes(&mut self) -> Result<(), StoreError> {
        let (assets, instances, movements) = (self.assets().collect(), self.instances().collect(), self.movements().collect());
        let mut found = contradictions_of_movements(&movements, &instances);
        found.extend(contradictions_of_assets(&assets, &instances));
        for (record, problem) in found {
            self.report(named(record), problem, from_backup("the older of the two"));
        }
        self.check_images().await
    }

    /// Finds signatures whose image is lost.
    async fn check_images(&mut self) -> Result<(), StoreError> {
        let mut missing: BTreeMap<ImageName, InstanceId> = BTreeMap::new();
        for (id, InstanceFacts { images, .. }) in self.instances() {
            missing.extend(images.iter().map(|image| (image.clone(), id)));
        }
        let names: HashMap<Key, ImageName> = missing.keys().map(|name| (self.store.keys.signature(name), name.clone())).collect();
        let query = self.store.beginning(AttributeValue::S(SIGNATURES.to_owned())).projection_expression("#pk, #sk");
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            for key in page?.items.unwrap_or_default().iter().filter_map(Key::of) {
                names.get(&key).and_then(|name| missing.remove(name));
            }
        }
        for (image, instance) in missing {
            let problem = format!("the image of the signature of step {} is lost", image.step);
            let advice = item_from_backup(&self.store.keys.signature(&image));
            self.report(named((Kind::Instance, instance.uuid())), problem, advice);
        }
        Ok(())
    }
}

/// Whether the table can delete the item at any time.
fn has_expired(item: &Item, now: Timestamp) -> bool {
    let expires: Option<i64> = item.get(EXPIRES).and_then(|seconds| seconds.as_n().ok()?.parse().ok());
    expires.is_some_and(|seconds| seconds * 1000 <= now.millis())
}

fn response_facts(item: Item) -> ResponseFacts {
    let entries = item.get(ENTRIES).and_then(|entries| entries.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    let entries = entries.iter().filter_map(history_entry).collect();
    ResponseFacts {
        entries,
        item: item.into_iter().filter(|(name, _)| [PK, SK, EXPIRES, FINGERPRINT].contains(&name.as_str())).collect(),
    }
}

/// Finds assets and instances in progress that don't name each other.
fn contradictions_of_assets(assets: &Assets, instances: &Instances) -> Vec<(RecordKey, String)> {
    let mut found = Vec::new();
    for (asset, named) in assets.iter().filter_map(|(asset, named)| Some((asset, (*named)?))) {
        let problem = match instances.get(&named) {
            Some(instance) if instance.asset != *asset => "is on a different asset".to_owned(),
            Some(instance) if instance.status == InstanceStatus::InProgress => continue,
            Some(instance) => format!("is {}", instance.status),
            None => "does not exist or can't be read".to_owned(),
        };
        found.push(((Kind::Asset, asset.uuid()), format!("it names instance {named}, which {problem}")));
    }
    for (id, instance) in instances.iter().filter(|(_, instance)| instance.status == InstanceStatus::InProgress) {
        match assets.get(&instance.asset) {
            Some(Some(named)) if named == id => {}
            Some(None) => {
                let problem = format!("it does not name instance {id}, which is in progress on it");
                found.push(((Kind::Asset, instance.asset.uuid()), problem));
            }
            _ => {
                let problem = "it is in progress, but its asset is missing or names a different instance";
                found.push(((Kind::Instance, id.uuid()), problem.to_owned()));
            }
        }
    }
    found
}

/// Finds movements and instances that don't name each other, and instances at a different step than other instances of their
/// movement.
fn contradictions_of_movements(movements: &Movements, instances: &Instances) -> Vec<(RecordKey, String)> {
    let mut members: BTreeMap<MovementId, BTreeSet<InstanceId>> = movements.keys().map(|id| (*id, BTreeSet::new())).collect();
    for (id, instance) in instances {
        if let Some(movement) = instance.movement {
            members.entry(movement).or_default().insert(*id);
        }
    }
    let mut found = Vec::new();
    for (movement, members) in members {
        let problem = match movements.get(&movement) {
            None => Some("instances refer to it, but it does not exist or can't be read"),
            Some(named) if named.iter().copied().collect::<BTreeSet<_>>() != members => {
                Some("its list of instances differs from the instances that refer to it")
            }
            Some(_) => None,
        };
        found.extend(problem.map(|problem| ((Kind::Movement, movement.uuid()), problem.to_owned())));
        let positions = || members.iter().filter_map(|id| Some((id, position(instances.get(id)?)?)));
        let furthest = positions().map(|(_, position)| position).max();
        let behind = positions().filter(|(_, position)| Some(*position) < furthest);
        let problem = "it is behind the other instances of its movement";
        found.extend(behind.map(|(id, _)| ((Kind::Instance, id.uuid()), problem.to_owned())));
    }
    found
}

/// Returns the instance's progress, for comparison; `None` if it was cancelled, because instances of a movement can be cancelled
/// individually.
fn position(instance: &InstanceFacts) -> Option<(bool, usize)> {
    match instance.status {
        InstanceStatus::InProgress => Some((false, instance.step)),
        InstanceStatus::Completed => Some((true, 0)),
        InstanceStatus::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::InstanceStatus::{Cancelled, Completed, InProgress};
    use super::*;

    fn id<I: Id>(number: u128) -> I {
        I::from_uuid(Uuid::from_u128(number))
    }

    fn instance(asset: u128, movement: Option<u128>, status: InstanceStatus, step: usize) -> InstanceFacts {
        InstanceFacts { asset: id(asset), movement: movement.map(id), status, step, images: Vec::new() }
    }

    /// Indexes the instances by the IDs 1, 2 and so on.
    fn instances(facts: &[InstanceFacts]) -> Instances<'_> {
        (1..).map(id).zip(facts).collect()
    }

    /// Returns the kinds and numbers of the records, with their problems.
    fn found(contradictions: &[(RecordKey, String)]) -> Vec<(Kind, u128, &str)> {
        contradictions.iter().map(|((kind, id), problem)| (*kind, id.as_u128(), problem.as_str())).collect()
    }

    #[test]
    fn an_asset_names_an_instance_in_progress_on_it() {
        let facts = [instance(1, None, InProgress, 0), instance(2, None, Completed, 0), instance(7, None, Cancelled, 0)];
        let names = [(1, Some(1)), (2, Some(2)), (3, Some(3)), (4, Some(9)), (5, None)];
        let assets = BTreeMap::from(names.map(|(asset, named)| (id(asset), named.map(id))));
        let id = |number| Uuid::from_u128(number);
        let expected = [
            (Kind::Asset, 2, format!("it names instance {}, which is completed", id(2))),
            (Kind::Asset, 3, format!("it names instance {}, which is on a different asset", id(3))),
            (Kind::Asset, 4, format!("it names instance {}, which does not exist or can't be read", id(9))),
        ];
        let contradictions = contradictions_of_assets(&assets, &instances(&facts));
        assert_eq!(found(&contradictions), expected.each_ref().map(|(kind, id, problem)| (*kind, *id, problem.as_str())));
    }

    #[test]
    fn an_instance_in_progress_is_named_by_its_asset() {
        let on = |asset| instance(asset, None, InProgress, 0);
        let facts = [on(1), on(2), on(3), on(4), instance(2, None, Cancelled, 0)];
        // The third asset names an instance on the first.
        let assets = BTreeMap::from([(id(1), Some(id(1))), (id(2), None), (id(3), Some(id(1)))]);
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (elsewhere, unnamed) = (
            format!("it names instance {first}, which is on a different asset"),
            format!("it does not name instance {second}, which is in progress on it"),
        );
        let displaced = "it is in progress, but its asset is missing or names a different instance";
        let expected = [
            (Kind::Asset, 3, elsewhere.as_str()),
            (Kind::Asset, 2, unnamed.as_str()),
            (Kind::Instance, 3, displaced),
            (Kind::Instance, 4, displaced),
        ];
        assert_eq!(found(&contradictions_of_assets(&assets, &instances(&facts))), expected);
    }

    #[test]
    fn a_movement_and_its_instances_name_each_other_and_stay_together() {
        let of = |movement, status, step| instance(1, Some(movement), status, step);
        let facts = [
            of(1, InProgress, 1),
            of(1, InProgress, 0),
            of(1, Cancelled, 0),
            of(2, InProgress, 2),
            of(2, Completed, 0),
            of(3, InProgress, 0),
        ];
        let named = [vec![id(3), id(1), id(2)], vec![id(4), id(8)]];
        let movements = (1..).map(id).zip(named.iter().map(Vec::as_slice)).collect();
        let behind = "it is behind the other instances of its movement";
        let expected = [
            (Kind::Instance, 2, behind),
            (Kind::Movement, 2, "its list of instances differs from the instances that refer to it"),
            (Kind::Instance, 4, behind),
            (Kind::Movement, 3, "instances refer to it, but it does not exist or can't be read"),
        ];
        assert_eq!(found(&contradictions_of_movements(&movements, &instances(&facts))), expected);
    }
}
