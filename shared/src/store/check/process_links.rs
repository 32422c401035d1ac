//! Disagreements between assets, process instances and movements.

use super::facts::InstanceFacts;
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::values::id::{AssetId, InstanceId, MovementId};
use std::collections::{BTreeMap, BTreeSet};

/// A fault of the instance that an asset names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssetProblem {
    Ended(AssetId, InstanceId),
    /// The instance does not exist, or is on another asset.
    Unknown(AssetId, InstanceId),
}

/// A fault of an instance in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceProblem {
    /// Its asset names none.
    NotNamed(AssetId, InstanceId),
    /// Its asset names another, or is missing.
    Displaced(AssetId, InstanceId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MovementProblem {
    /// It is missing, and these are its instances.
    Missing(MovementId, Vec<InstanceId>),
    /// It has these instances, and names others.
    OtherInstances(MovementId, Vec<InstanceId>),
    /// The first instance has not taken the steps that the second has.
    Behind(InstanceId, InstanceId),
}

pub(super) fn asset_problems(
    assets: impl Iterator<Item = (AssetId, Option<InstanceId>)>,
    instances: &BTreeMap<InstanceId, &InstanceFacts>,
) -> Vec<AssetProblem> {
    let problem = |(asset, named): (AssetId, Option<InstanceId>)| {
        let named = named?;
        match instances.get(&named) {
            Some(instance) if instance.asset != asset => Some(AssetProblem::Unknown(asset, named)),
            Some(instance) if instance.status == InstanceStatus::InProgress => None,
            Some(_) => Some(AssetProblem::Ended(asset, named)),
            None => Some(AssetProblem::Unknown(asset, named)),
        }
    };
    assets.filter_map(problem).collect()
}

/// Of several on one asset, only the newest can be named.
pub(super) fn instance_problems(
    assets: &BTreeMap<AssetId, Option<InstanceId>>,
    instances: &BTreeMap<InstanceId, &InstanceFacts>,
) -> Vec<InstanceProblem> {
    let mut free: BTreeSet<AssetId> = assets.iter().filter(|(_, named)| named.is_none()).map(|(asset, _)| *asset).collect();
    let in_progress = instances.iter().rev().filter(|(_, instance)| instance.status == InstanceStatus::InProgress);
    let problem = |(id, instance): (&InstanceId, &&InstanceFacts)| match assets.get(&instance.asset) {
        Some(Some(named)) if named == id => None,
        Some(None) if free.remove(&instance.asset) => Some(InstanceProblem::NotNamed(instance.asset, *id)),
        _ => Some(InstanceProblem::Displaced(instance.asset, *id)),
    };
    in_progress.filter_map(problem).collect()
}

/// Instances differ from those that name the movement, or from one another in their progress.
pub(super) fn movement_problems(
    movements: &BTreeMap<MovementId, Vec<InstanceId>>,
    instances: &BTreeMap<InstanceId, &InstanceFacts>,
) -> Vec<MovementProblem> {
    let mut members: BTreeMap<MovementId, Vec<InstanceId>> = movements.keys().map(|id| (*id, Vec::new())).collect();
    for (id, instance) in instances {
        if let Some(movement) = instance.movement {
            members.entry(movement).or_default().push(*id);
        }
    }
    let mut problems = Vec::new();
    for (movement, members) in members {
        match movements.get(&movement) {
            None => problems.push(MovementProblem::Missing(movement, members.clone())),
            Some(named) if named.iter().collect::<BTreeSet<_>>() != members.iter().collect() => {
                // Known ones keep their order.
                let kept = named.iter().filter(|id| members.contains(id));
                let added = members.iter().filter(|id| !named.contains(id));
                problems.push(MovementProblem::OtherInstances(movement, kept.chain(added).copied().collect()));
            }
            Some(_) => {}
        }
        let position = |id: &InstanceId| instances.get(id).and_then(|instance| position(instance));
        let Some((leader, furthest)) = members.iter().filter_map(|id| Some((id, position(id)?))).max_by_key(|(_, it)| *it) else {
            continue;
        };
        let behind = members.iter().filter(|id| position(id).is_some_and(|position| position < furthest));
        problems.extend(behind.map(|id| MovementProblem::Behind(*id, *leader)));
    }
    problems
}

/// For comparison; `None` for a cancelled one. Instances can be cancelled one by one.
fn position(instance: &InstanceFacts) -> Option<(bool, usize)> {
    match instance.status {
        InstanceStatus::InProgress => Some((false, instance.step)),
        InstanceStatus::Completed => Some((true, 0)),
        InstanceStatus::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::Id;
    use uuid::Uuid;

    fn id<I: Id>(number: u128) -> I {
        I::from_uuid(Uuid::from_u128(number))
    }

    fn instance(asset: u128, movement: Option<u128>, status: InstanceStatus, step: usize) -> InstanceFacts {
        InstanceFacts { asset: id(asset), movement: movement.map(id), status, step, images: Vec::new() }
    }

    use InstanceStatus::{Cancelled, Completed, InProgress};

    #[test]
    fn an_asset_names_an_instance_in_progress_on_itself() {
        let facts = [instance(1, None, InProgress, 0), instance(2, None, Completed, 1), instance(9, None, InProgress, 0)];
        let instances = (1..).map(id).zip(&facts).collect();
        let assets = [(id(1), Some(id(1))), (id(2), Some(id(2))), (id(3), Some(id(3))), (id(4), Some(id(4))), (id(5), None)];
        let expected =
            [AssetProblem::Ended(id(2), id(2)), AssetProblem::Unknown(id(3), id(3)), AssetProblem::Unknown(id(4), id(4))];
        assert_eq!(asset_problems(assets.into_iter(), &instances), expected);
    }

    #[test]
    fn an_instance_in_progress_is_named_by_its_asset() {
        let on = |asset| instance(asset, None, InProgress, 0);
        let facts = [on(1), on(2), on(2), on(3), on(4), instance(2, None, Cancelled, 0)];
        let instances = (1..).map(id).zip(&facts).collect();
        let assets = BTreeMap::from([(id(1), Some(id(1))), (id(2), None), (id(3), Some(id(9)))]);
        let expected = [
            InstanceProblem::Displaced(id(4), id(5)),
            InstanceProblem::Displaced(id(3), id(4)),
            InstanceProblem::NotNamed(id(2), id(3)),
            InstanceProblem::Displaced(id(2), id(2)),
        ];
        assert_eq!(instance_problems(&assets, &instances), expected);
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
        let instances = (1..).map(id).zip(&facts).collect();
        let movements = BTreeMap::from([(id(1), vec![id(3), id(1), id(2)]), (id(2), vec![id(4), id(8)])]);
        let expected = [
            MovementProblem::Behind(id(2), id(1)),
            MovementProblem::OtherInstances(id(2), vec![id(4), id(5)]),
            MovementProblem::Behind(id(4), id(5)),
            MovementProblem::Missing(id(3), vec![id(6)]),
        ];
        assert_eq!(movement_problems(&movements, &instances), expected);
    }
}
