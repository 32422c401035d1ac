//! The facts that the check keeps of each record: a few hundred bytes.

use crate::domain::assets::asset::Asset;
use crate::domain::history::chain::ChainHead;
use crate::domain::processes::instance::{ImageName, Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::user::User;
use crate::domain::values::id::{AssetId, Id, InstanceId, MovementId};
use crate::store::TenantStore;
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::Item;
use std::any::Any;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct RecordFacts {
    pub(super) head: HistoryHead,
    pub(super) references: Vec<(Kind, Uuid)>,
    pub(super) unique: Vec<Unique>,
    /// Its reference item without references; `None` if nothing can refer to its kind.
    pub(super) reference_item: Option<Item>,
    pub(super) role: Role,
}

/// The facts about a record that matter to others.
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

impl RecordFacts {
    pub(super) fn of<T: Record>(store: &TenantStore, stored: &Stored<T>) -> Self {
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

impl super::TenantCheck<'_> {
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
