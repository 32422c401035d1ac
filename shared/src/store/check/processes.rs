//! Movements, their process instances, and the assets that name them.

use super::facts::InstanceFacts;
use super::process_links::{
    AssetProblem, InstanceProblem, MovementProblem, asset_problems, instance_problems, movement_problems,
};
use super::record_repair::Present;
use super::{TenantCheck, named};
use crate::domain::assets::asset::Asset;
use crate::domain::assets::tag::{TagPrefix, TagTemplate};
use crate::domain::history::event::Verb;
use crate::domain::processes::instance::{ImageName, Instance, InstanceStatus};
use crate::domain::processes::movement::{Movement, NUMBER_TEMPLATE};
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::restore::{HistoryFields, Origin, canonical, restore};
use crate::domain::values::id::{AssetId, Id, InstanceId, MovementId};
use crate::store::keys::{Key, SIGNATURES};
use crate::store::table::error::StoreError;
use crate::store::table::item::OWNER;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The fields of an asset that the end of an instance changes.
const CHANGED_BY_PROCESSES: [&str; 4] = ["running_instance_id", "status", "assigned_to", "assigned_since"];

impl TenantCheck<'_> {
    /// Repairs movements, instances, assets and signatures that contradict one another.
    pub(super) async fn check_processes(&mut self) -> Result<(), StoreError> {
        let movements = self.movements().map(|(id, instances)| (id, instances.to_vec())).collect();
        for problem in movement_problems(&movements, &self.instances().collect()) {
            match problem {
                MovementProblem::Missing(movement, instances) => self.restore_movement(movement, &instances).await?,
                MovementProblem::OtherInstances(movement, instances) => self.rename_instances(movement, instances).await?,
                MovementProblem::Behind(instance, leader) => self.catch_up_with_leader(instance, leader).await?,
            }
        }
        for problem in asset_problems(self.assets(), &self.instances().collect()) {
            match problem {
                AssetProblem::Ended(asset, instance) => self.end_on_asset(asset, instance).await?,
                AssetProblem::Unknown(asset, instance) => self.free_asset(asset, instance).await?,
            }
        }
        for problem in instance_problems(&self.assets().collect(), &self.instances().collect()) {
            match problem {
                InstanceProblem::NotNamed(asset, instance) => self.name_instance(asset, instance).await?,
                InstanceProblem::Displaced(_, instance) => self.cancel(instance).await?,
            }
        }
        self.check_images().await
    }

    /// Makes a lost movement again from its instances. Its number is that of the unique marker that names it.
    async fn restore_movement(&mut self, id: MovementId, instances: &[InstanceId]) -> Result<(), StoreError> {
        if self.history_lengths.contains_key(&id.uuid()) {
            let problem = "its instances name it, but its history says that it was deleted";
            self.report(named((Kind::Movement, id.uuid())), problem, "cancel its instances that are in progress");
            return Ok(());
        }
        let mut present = None;
        for instance in instances {
            present = present.or(self.present::<Instance>(instance.uuid()).await?);
        }
        let Some(instance) = present.map(|present| present.stored.value) else { return Ok(()) };
        let key = self.store.keys.record(Kind::Movement, id.uuid());
        let number = match self.number_of(&key).await? {
            Some(number) => number,
            None => self.next_free_number(),
        };
        let movement = Movement {
            id,
            number,
            process_id: instance.process_id,
            process_name: instance.process_name,
            instance_ids: instances.to_vec(),
            started_by: instance.started_by,
            started_by_name: instance.started_by_name,
        };
        let record = (Kind::Movement, id.uuid());
        let changed = (&HistoryFields::new(), &movement.history_fields());
        let (change, head) = self.add_entry(self.change(), record, (Verb::Created, 1), changed, None)?;
        let at = id.timestamp();
        let repair = format!("makes it again from its instances, with the number {}", movement.number);
        let stored = Stored {
            value: movement,
            version: 1,
            created_at: at,
            updated_at: at,
            last_hash: head.chain.last_hash,
            last_event: head.last_event,
        };
        self.write(change, None, &stored, "its instances name it, but it is lost", repair).await.map(drop)
    }

    async fn number_of(&self, movement: &Key) -> Result<Option<String>, StoreError> {
        let unique = Unique { field: "number", value: String::new(), reserved_after_deletion: true };
        let prefix = self.store.keys.unique(Kind::Movement, &unique);
        let markers = self.store.every(self.store.beginning(AttributeValue::S(prefix.sort().to_owned()))).await?;
        let owned =
            markers.iter().find(|marker| marker.get(OWNER).and_then(|it| it.as_s().ok()).is_some_and(|it| it == movement.sort()));
        let number = owned.and_then(Key::of).and_then(|key| key.sort().strip_prefix(prefix.sort()).map(str::to_owned));
        Ok(number)
    }

    async fn rename_instances(&mut self, id: MovementId, instances: Vec<InstanceId>) -> Result<(), StoreError> {
        let problem = "it names other instances than those that belong to it";
        let next = |movement: &Movement| Some(Movement { instance_ids: instances, ..movement.clone() });
        self.update(id.uuid(), problem, "names those that belong to it", next).await
    }

    /// Repeats the submissions of another instance of the movement. All instances of a movement get the same.
    async fn catch_up_with_leader(&mut self, id: InstanceId, leader: InstanceId) -> Result<(), StoreError> {
        let Some(leader) = self.present::<Instance>(leader.uuid()).await? else { return Ok(()) };
        let leader = leader.stored.value;
        let repair = format!("brings it to the step of instance {}", leader.id);
        let Instance { state, step_values, signed, .. } = leader;
        let next = |instance: &Instance| Some(Instance { state, step_values, signed, ..instance.clone() });
        self.update(id.uuid(), "it is behind the other instances of its movement", repair, next).await
    }

    /// Gives an ended instance its effect on its asset.
    async fn end_on_asset(&mut self, asset: AssetId, instance: InstanceId) -> Result<(), StoreError> {
        let Some(ended) = self.present::<Instance>(instance.uuid()).await? else { return Ok(()) };
        let ended = ended.stored.value;
        let problem = format!("it names instance {instance}, which is {}", ended.status());
        let repair = "gives it the state that the end of the instance leads to";
        self.update(asset.uuid(), problem, repair, |asset| Some(ended.asset_after(asset))).await
    }

    /// The instance does not exist.
    async fn free_asset(&mut self, asset: AssetId, instance: InstanceId) -> Result<(), StoreError> {
        let problem = format!("it names instance {instance}, which does not exist");
        let next = |asset: &Asset| Some(Asset { running_instance_id: None, ..asset.clone() });
        self.update(asset.uuid(), problem, "frees it: the start did not take effect", next).await
    }

    /// Makes an asset name its instance in progress. If the instance had been named and then ended, the end is lost: the asset
    /// goes back to its earlier state, so that the last step can be submitted again.
    async fn name_instance(&mut self, asset: AssetId, instance: InstanceId) -> Result<(), StoreError> {
        let Some(present) = self.present::<Asset>(asset.uuid()).await? else { return Ok(()) };
        let fields = canonical(&present.stored.value.history_fields());
        let id = Value::String(instance.to_string());
        let events = self.past(asset.uuid()).await?.map(|past| past.events).unwrap_or_default();
        let ends = |changes: &HistoryFields| changes.get("running_instance_id").is_some_and(|change| change["old"] == id);
        let end = events.iter().rfind(|event| ends(&event.changes));
        let mut next_fields = fields.clone();
        for name in CHANGED_BY_PROCESSES {
            let change = end.and_then(|end| end.changes.get(name));
            if let Some(change) = change.filter(|change| Some(&change["new"]) == fields.get(name)) {
                next_fields.insert(name.to_owned(), change["old"].clone());
            }
        }
        next_fields.insert("running_instance_id".to_owned(), id);
        let actor = self.context().actor;
        let origin = Origin { old: Some(&present.stored.value), ..Origin::unknown(&actor) };
        let problem = format!("it does not name instance {instance}, which is in progress on it");
        let repair = match end {
            Some(_) => {
                "goes back to before the end of the instance, which is lost: submit the last step or the cancellation again"
            }
            None => "names the instance",
        };
        match restore(asset, &next_fields, &origin) {
            Ok(next) => self.update(asset.uuid(), problem, repair, |_| Some(next)).await,
            Err(error) => {
                self.report(named((Kind::Asset, asset.uuid())), problem, error.to_string());
                Ok(())
            }
        }
    }

    async fn cancel(&mut self, id: InstanceId) -> Result<(), StoreError> {
        let reason = "The asset is missing or has another process in progress after a restore.".parse().ok();
        let (problem, at) = ("it is in progress, but its asset is missing or names another instance", self.context().at);
        self.update(id.uuid(), problem, "cancels it", |instance: &Instance| instance.cancelled(reason, at).ok()).await
    }

    /// Looks for signatures whose image is lost, and takes them back: the step must be signed again.
    async fn check_images(&mut self) -> Result<(), StoreError> {
        let mut missing: BTreeMap<ImageName, Vec<InstanceId>> = BTreeMap::new();
        for (id, InstanceFacts { images, .. }) in self.instances() {
            for image in images {
                missing.entry(image.clone()).or_default().push(id);
            }
        }
        let mut names: HashMap<Key, ImageName> =
            missing.keys().map(|name| (self.store.keys.signature(name), name.clone())).collect();
        let query = self.store.beginning(AttributeValue::S(SIGNATURES.to_owned())).projection_expression("#pk, #sk");
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            for key in page?.items.unwrap_or_default().iter().filter_map(Key::of) {
                names.remove(&key).and_then(|name| missing.remove(&name));
            }
        }
        for (image, instances) in missing {
            self.take_signature_back(&image, &instances).await?;
        }
        Ok(())
    }

    async fn take_signature_back(&mut self, image: &ImageName, instances: &[InstanceId]) -> Result<(), StoreError> {
        let (mut change, mut learned) = (self.change(), Vec::new());
        for id in instances {
            let Some(present): Option<Present<Instance>> = self.present(id.uuid()).await? else { continue };
            let next = present.stored.value.without_value(&image.step);
            let (next_change, stored) = self.add_update(change, &present, next)?;
            change = next_change;
            learned.push(stored);
        }
        let is_open = learned.iter().any(|stored| stored.value.status() == InstanceStatus::InProgress);
        let repair = match is_open {
            true => "takes the signature back: the step must be signed again",
            false => "takes the signature back; the instance has ended and stays as it is otherwise",
        };
        let subject = learned.first().map_or(String::new(), |stored| named((Kind::Instance, stored.value.id.uuid())));
        let problem = format!("the image of the signature of step {} is lost", image.step);
        if self.repair(subject, problem, repair, change).await? {
            learned.iter().for_each(|stored| self.learn(stored));
        }
        Ok(())
    }

    /// Above the numbers of all movements.
    fn next_free_number(&self) -> String {
        let taken = self.records.iter().filter(|((kind, _), _)| *kind == Kind::Movement).flat_map(|(_, facts)| &facts.unique);
        let digits = |unique: &Unique| unique.value.rsplit('-').next().and_then(|digits| digits.parse::<u64>().ok());
        let number = taken.filter_map(digits).max().unwrap_or(0) + 1;
        let template: Option<TagTemplate> = NUMBER_TEMPLATE.parse().ok();
        let range = template.map(|template| template.range(&TagPrefix::default(), None, self.began));
        range.map_or_else(|| number.to_string(), |range| range.tag(number))
    }
}
