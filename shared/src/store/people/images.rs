//! Images of signatures of a person.

use super::held::Held;
use crate::domain::history::event::Event;
use crate::domain::processes::instance::{ImageName, Instance};
use crate::domain::processes::movement::Movement;
use crate::domain::values::id::{EventId, Id, MovementId};
use crate::store::keys::{Key, SIGNATURES, TYPE};
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::{BatchGet, TenantStore};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use uuid::Uuid;

impl TenantStore {
    /// Deletes the images of the signatures that the entries of an instance say are about the person. The instances of a movement
    /// share theirs, so these are in `images` once.
    pub(super) async fn erase_images<T>(
        &self,
        id: Uuid,
        held: &Held<T>,
        images: &mut BTreeSet<ImageName>,
    ) -> Result<(), StoreError> {
        let owner = held.entries.iter().find_map(|(_, event, _)| movement(event)).unwrap_or(id);
        let named = |all: bool| {
            let signed = held
                .entries
                .iter()
                .flat_map(move |(_, event, about)| signed(event, if all { None } else { Some(about.as_slice()) }));
            signed.map(|(step, hash)| ImageName { owner, step, hash }).collect::<BTreeSet<_>>()
        };
        let mut names = named(false);
        let erased: BTreeSet<&str> = held.entries.iter().flat_map(|(_, event, about)| erased_steps(event, about)).collect();
        if !erased.is_empty() {
            // After a restore, there can be images that no entry names any more.
            let named = named(true);
            let present = self.images_of(owner).await?.into_iter();
            let unnamed = present.filter(|name| erased.contains(name.step.as_str()) && !named.contains(name)).collect();
            names.extend(if owner == id { unnamed } else { self.unused_by_movement(owner, unnamed).await? });
        }
        let present = self.signature_images(names).await?;
        if !self.is_dry_run() {
            for name in present.keys() {
                let delete = self.store.client.delete_item().table_name(&self.store.table);
                let delete = delete.set_key(Some(self.keys.signature(name).item()));
                let delete = delete.condition_expression("#type = :type").expression_attribute_names("#type", TYPE);
                let deleted = delete.expression_attribute_values(":type", AttributeValue::S("signature".to_owned())).send().await;
                // It fails if another request was faster.
                unless_condition_failed(deleted)?;
            }
        }
        images.extend(present.into_keys());
        Ok(())
    }

    /// The images that no instance of the movement has.
    async fn unused_by_movement(&self, id: Uuid, mut images: BTreeSet<ImageName>) -> Result<BTreeSet<ImageName>, StoreError> {
        if images.is_empty() {
            return Ok(images);
        }
        let Some(movement) = self.get::<Movement>(MovementId::from_uuid(id)).await? else { return Ok(BTreeSet::new()) };
        let ids = movement.value.instance_ids;
        let batch = self.batch_get(BatchGet::new().with_all::<Instance>(ids.iter().copied())).await?;
        for id in ids {
            let instance = batch.get::<Instance>(Some(id))?;
            for (name, _) in instance.iter().flat_map(|instance| instance.value.signatures()) {
                images.remove(&name);
            }
        }
        Ok(images)
    }

    async fn images_of(&self, owner: Uuid) -> Result<Vec<ImageName>, StoreError> {
        let prefix = format!("{SIGNATURES}{}#", EventId::from_uuid(owner).short());
        let query = self.beginning(AttributeValue::S(prefix.clone())).projection_expression("#pk, #sk");
        let name = |key: Key| {
            let (step, hash) = key.sort().strip_prefix(&prefix)?.split_once('#')?;
            Some(ImageName { owner, step: step.to_owned(), hash: hash.to_owned() })
        };
        Ok(self.every(query).await?.iter().filter_map(Key::of).filter_map(name).collect())
    }
}

fn values<'a>(event: &'a Event, side: &str) -> Option<&'a Map<String, Value>> {
    event.changes.get("step_data")?.get(side)?.as_object()
}

/// The steps and hashes of an event's signatures, all or those at these pointers.
fn signed(event: &Event, about: Option<&[String]>) -> Vec<(String, String)> {
    let sides = ["old", "new"].into_iter().filter_map(|side| Some((side, values(event, side)?)));
    let signed = sides.flat_map(|(side, values)| values.iter().map(move |(step, value)| (side, step, value)));
    let is_about =
        |side: &str, step: &str| about.is_none_or(|about| about.contains(&format!("/changes/step_data/{side}/{step}")));
    signed
        .filter(|(side, step, _)| is_about(side, step))
        .filter_map(|(_, step, value)| Some((step.clone(), value["sha256"].as_str()?.to_owned())))
        .collect()
}

/// The steps with a text at these pointers, which may have been signatures.
fn erased_steps<'a>(event: &'a Event, about: &[String]) -> Vec<&'a str> {
    let texts = values(event, "new").into_iter().flatten().filter(|(_, value)| value.is_string());
    texts.map(|(step, _)| step.as_str()).filter(|step| about.contains(&format!("/changes/step_data/new/{step}"))).collect()
}

/// The movement that an instance is part of: the first event says so.
fn movement(event: &Event) -> Option<Uuid> {
    event.changes.get("movement_id")?["new"].as_str()?.parse().ok()
}
