//! The views of instances and movements, and their stored form for a repetition of the request.

use super::Subject;
use crate::subject::wire::{InstanceOrMovement, InstanceView, MovementView};
use shared::domain::processes::instance::{ImageName, Instance};
use shared::domain::processes::movement::Movement;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::json;
use shared::http::error::ApiError;
use shared::http::responses::{Created, Data, Success, Versioned};
use shared::store::{MAX_BODY_BEFORE_OMISSION, StoreError, TenantStore};
use std::collections::BTreeSet;

/// A response that shows a process instance on its own, a movement, or either.
pub(crate) trait SubjectResponse: Success + Sized {
    /// `movement` is `None` for a single instance. Returns `None` if the response is of the other kind.
    fn new(movement: Option<Stored<Movement>>, instances: Vec<InstanceView>) -> Option<Self>;
}

impl SubjectResponse for Versioned<InstanceView> {
    fn new(movement: Option<Stored<Movement>>, mut instances: Vec<InstanceView>) -> Option<Self> {
        let view = instances.pop().filter(|_| movement.is_none())?;
        Some(Self { version: view.version, data: view })
    }
}

impl SubjectResponse for Data<MovementView> {
    fn new(movement: Option<Stored<Movement>>, instances: Vec<InstanceView>) -> Option<Self> {
        Some(Self { data: MovementView::new(movement?, instances) })
    }
}

impl SubjectResponse for Created<InstanceOrMovement> {
    fn new(movement: Option<Stored<Movement>>, mut instances: Vec<InstanceView>) -> Option<Self> {
        if let Some(movement) = movement {
            let view = MovementView::new(movement, instances);
            return Some(Self::new("movements", view.id, InstanceOrMovement::Movement(Box::new(view))));
        }
        let view = instances.pop()?;
        Some(Self::new("processes/instances", view.id, InstanceOrMovement::Instance(Box::new(view))))
    }
}

fn not_shown() -> StoreError {
    StoreError::broken("a response that can't show what it is about")
}

/// The others are shown as paths.
pub(crate) fn shown_images(instances: &[Stored<Instance>]) -> Result<BTreeSet<ImageName>, StoreError> {
    let without_images = |instance: &Stored<Instance>| {
        serde_json::to_vec(&InstanceView::new(instance.clone(), |_| None)).map(|text| json::escaped_len(&text))
    };
    let mut bytes: usize = instances.iter().map(without_images).sum::<Result<_, _>>().map_err(StoreError::broken)?;
    let mut shown = BTreeSet::new();
    for (name, length) in instances.iter().flat_map(|instance| instance.value.signatures()) {
        bytes += length;
        if bytes <= MAX_BODY_BEFORE_OMISSION {
            shown.insert(name);
        }
    }
    Ok(shown)
}

/// With as many signatures as a response can hold.
pub(crate) async fn views(
    store: &TenantStore,
    instances: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, StoreError> {
    let shown = if omit_signatures { BTreeSet::new() } else { shown_images(&instances)? };
    let images = store.signature_images(shown).await?;
    let view = |instance| InstanceView::new(instance, |name| images.get(name).cloned());
    Ok(instances.into_iter().map(view).collect())
}

/// With as many signatures as a response can hold.
pub(crate) async fn respond<R: SubjectResponse>(
    store: &TenantStore,
    subject: impl Into<Subject>,
    omit_signatures: bool,
) -> Result<R, ApiError> {
    let Subject { movement, instances } = subject.into();
    Ok(R::new(movement, views(store, instances, omit_signatures).await?).ok_or_else(not_shown)?)
}

/// The stored form of [`Versioned`] for an instance, and of [`Data`] for a movement.
pub(crate) fn stored_change(subject: &Subject) -> Result<StoredResponse, StoreError> {
    match subject.movement {
        None => stored::<Versioned<InstanceView>>(subject),
        Some(_) => stored::<Data<MovementView>>(subject),
    }
}

/// It names images and steps instead of containing them, since the table has them already.
pub(crate) fn stored<R: SubjectResponse>(subject: &Subject) -> Result<StoredResponse, StoreError> {
    let instances = &subject.instances;
    let shown = shown_images(instances)?;
    let images = instances.iter().flat_map(|instance| {
        let names = instance.value.signatures().map(|(name, _)| name).filter(|name| shown.contains(name));
        names.map(|name| (instance.value.signature_path(&name.step), name))
    });
    let views = instances.iter().map(|instance| InstanceView::new(instance.clone(), |_| None)).collect();
    let stored = R::new(subject.movement.clone(), views).ok_or_else(not_shown)?.to_stored(images.collect())?;
    // The instances of a movement are started together, with the same steps.
    Ok(match instances.first() {
        Some(instance) => stored.naming(&instance.value.steps),
        None => stored,
    })
}
