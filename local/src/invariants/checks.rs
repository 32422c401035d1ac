//! The checks of references, unique markers, process instances, the list index and counters.

use super::{Snapshot, number, string};
use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::custom_fields::schema_hash;
use shared::domain::processes::instance::{Instance, InstanceStatus};
use shared::domain::record::Stored;
use shared::domain::values::hex::sha256;
use shared::domain::values::id::Id;
use shared::store::keys::{Item, Key};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Attributes that each row of the GSI `list_index` must have with the record's values.
const PROJECTED: [&str; 4] = ["version", "updated_at", "status", "name"];

impl Snapshot {
    pub(super) fn check_references(&mut self) {
        let is_reference_item = |item: &&Item| string(item, "type") == Some("references");
        let mut found: HashMap<Key, &Item> =
            self.items.iter().filter(is_reference_item).filter_map(|item| Some((Key::of(item)?, item))).collect();
        let mut references = std::mem::take(&mut self.references);
        for (record, mut expected) in std::mem::take(&mut self.reference_items) {
            let count = references.remove(&record).unwrap_or(0);
            expected.insert("uses".to_owned(), AttributeValue::N(count.to_string()));
            let item = Key::of(&expected).and_then(|key| found.remove(&key));
            if item != Some(&expected) {
                self.violations.push(format!("{record:?} has the reference item {item:?} instead of {expected:?}"));
            }
        }
        self.violations.extend(references.into_keys().map(|record| format!("{record:?} is missing, and referred to")));
        self.violations.extend(found.into_keys().map(|key| format!("the record of {key:?} is missing")));
    }

    pub(super) fn check_content(&mut self) {
        let mut stored = HashSet::new();
        for item in &self.items {
            let (key, hash) = match string(item, "type") {
                Some("steps") => {
                    let hash = sha256(string(item, "steps").unwrap_or_default());
                    (self.keys.steps(&hash), hash)
                }
                Some("schema") => {
                    let hash = schema_hash(string(item, "custom_fields_schema").unwrap_or_default());
                    (self.keys.schema(&hash), hash)
                }
                _ => continue,
            };
            if Key::of(item).as_ref() == Some(&key) {
                stored.insert(hash);
            } else {
                self.violations.push(format!("the text of {:?} has another hash", Key::of(item)));
            }
        }
        for item in &self.items {
            let named = ["steps_hash", "custom_fields_schema_hash"].into_iter().find_map(|name| string(item, name));
            if named.is_some_and(|hash| !stored.contains(hash)) {
                self.violations.push(format!("{:?} has no steps or no schema", Key::of(item)));
            }
        }
    }

    pub(super) fn check_unique_markers(&mut self) {
        let mut missing = std::mem::take(&mut self.unique_markers);
        for item in self.items.iter().filter(|item| string(item, "type") == Some("marker")) {
            let key = Key::of(item);
            let owner = key.as_ref().and_then(|key| missing.remove(key));
            let outlives_record = key.as_ref().is_some_and(|key| key.sort().contains(".asset_tag#"));
            let stored_owner = string(item, "owner");
            if owner.as_ref().map(Key::sort) != stored_owner && !(owner.is_none() && outlives_record) {
                self.violations.push(format!("the unique marker {key:?} names {stored_owner:?} instead of {owner:?}"));
            }
        }
        let missing = missing.into_iter().map(|(marker, owner)| format!("{owner:?} has no unique marker {marker:?}"));
        self.violations.extend(missing);
    }

    pub(super) fn check_running_instances(&mut self, assets: &[Stored<Asset>], instances: &[Stored<Instance>]) {
        let mut running: HashMap<Uuid, Uuid> = HashMap::new();
        for instance in instances.iter().filter(|instance| instance.value.status() == InstanceStatus::InProgress) {
            if running.insert(instance.value.asset_id.uuid(), instance.value.id.uuid()).is_some() {
                self.violations.push(format!("asset {} has two running instances", instance.value.asset_id));
            }
        }
        for asset in assets {
            let named = asset.value.running_instance_id.map(Id::uuid);
            let actual = running.remove(&asset.value.id.uuid());
            if named != actual {
                self.violations.push(format!("asset {} names instance {named:?}, but {actual:?} is running", asset.value.id));
            }
        }
        let orphans = running.into_iter();
        self.violations.extend(orphans.map(|(asset, instance)| format!("instance {instance} runs on {asset}, which is missing")));
    }

    pub(super) fn check_list_index(&mut self, rows: &[Item]) {
        for instance in self.items.iter().filter(|item| Key::of(item).is_some_and(|key| key.sort().starts_with("INSTANCE#"))) {
            let text = |name: &str| instance.get(name).and_then(|value| value.as_s().ok());
            let section = if text("status").is_some_and(|status| status == "in_progress") { 'I' } else { 'J' };
            if !text("LS").is_some_and(|key| key.starts_with(section)) {
                self.violations.push(format!("the instance {:?} is in the wrong section of the list index", text("id")));
            }
        }
        let listed = self.items.iter().filter(|item| item.contains_key("LS"));
        let mut missing: HashMap<Key, &Item> = listed.filter_map(|item| Some((Key::of(item)?, item))).collect();
        for row in rows {
            let item = Key::of(row).and_then(|key| missing.remove(&key));
            let is_equal = |item: &&Item| PROJECTED.iter().all(|name| row.get(*name) == item.get(*name));
            if item.filter(is_equal).is_none() {
                self.violations.push(format!("the list index differs from the record {:?}", Key::of(row)));
            }
        }
        self.violations.extend(missing.into_keys().map(|key| format!("the list index has no row for {key:?}")));
    }

    /// Checks the tags that end with their number: the counter of `AST-000123` is `AST-{N}`.
    pub(super) fn check_counters<'a>(&mut self, tags: impl Iterator<Item = &'a str>) {
        let mut counters: HashMap<String, u64> = HashMap::new();
        for item in &self.items {
            let Some(key) = Key::of(item) else { continue };
            let counter = match key.sort().strip_prefix("SEQUENCE#") {
                Some(counter) => counter.to_owned(),
                None if key.sort().starts_with("NUMBER#") => "MOV-{N}".to_owned(),
                None => continue,
            };
            counters.insert(counter, number(item, "last_number").unwrap_or(0));
        }
        for tag in tags {
            let prefix = tag.trim_end_matches(|c: char| c.is_ascii_digit());
            let counter = counters.get(&format!("{prefix}{{N}}"));
            if let (Some(counter), Ok(number)) = (counter, tag[prefix.len()..].parse::<u64>())
                && number > *counter
            {
                self.violations.push(format!("{tag} is above its counter, {counter}"));
            }
        }
    }
}
