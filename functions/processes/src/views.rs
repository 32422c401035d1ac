//! How instances and movements are shown, and which part of that is stored for a repetition of the request.

use crate::instance_wire::{InstanceView, MovementView};
use shared::domain::processes::instance::{ImageName, Instance};
use shared::domain::processes::movement::Movement;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::json;
use shared::http::error::ApiError;
use shared::http::response::Success;
use shared::store::{MAX_BODY_BEFORE_OMISSION, StoreError, TenantStore};
use std::collections::BTreeSet;

/// Returns the signatures that a response about these instances shows as images. The others are shown as paths.
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

/// Returns the views of instances, with as many signatures as a response can hold.
pub(crate) async fn views(
    store: &TenantStore,
    instances: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, ApiError> {
    let shown = if omit_signatures { BTreeSet::new() } else { shown_images(&instances)? };
    let images = store.signature_images(shown).await?;
    let view = |instance| InstanceView::new(instance, |name| images.get(name).cloned());
    Ok(instances.into_iter().map(view).collect())
}

/// Returns the view of one instance.
pub(crate) async fn view(
    store: &TenantStore,
    instance: Stored<Instance>,
    omit_signatures: bool,
) -> Result<InstanceView, ApiError> {
    let mut views = views(store, vec![instance], omit_signatures).await?;
    views.pop().ok_or_else(|| ApiError::Internal("no view of an instance".into()))
}

/// Returns the view of a movement.
pub(crate) async fn movement(
    store: &TenantStore,
    movement: Stored<Movement>,
    instances: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<MovementView, ApiError> {
    Ok(MovementView::new(movement, views(store, instances, omit_signatures).await?))
}

/// Returns the stored form of the response that `respond` makes of an instance. It names images and steps instead of
/// containing them, since the table has them already.
pub(crate) fn stored_response<R: Success>(
    instance: &Stored<Instance>,
    respond: impl FnOnce(InstanceView) -> R,
) -> Result<StoredResponse, StoreError> {
    let stored = respond(InstanceView::new(instance.clone(), |_| None)).to_stored(images(std::slice::from_ref(instance))?)?;
    Ok(stored.naming(&instance.value.steps))
}

/// Returns the stored form of the response that `respond` makes of a movement.
pub(crate) fn stored_movement<R: Success>(
    movement: &Stored<Movement>,
    instances: &[Stored<Instance>],
    respond: impl FnOnce(MovementView) -> R,
) -> Result<StoredResponse, StoreError> {
    let views = instances.iter().map(|instance| InstanceView::new(instance.clone(), |_| None)).collect();
    let stored = respond(MovementView::new(movement.clone(), views)).to_stored(images(instances)?)?;
    // The instances of a movement are started together, with the same steps.
    Ok(match instances.first() {
        Some(instance) => stored.naming(&instance.value.steps),
        None => stored,
    })
}

/// Returns the path of each image that the response shows, and the image's name.
fn images(instances: &[Stored<Instance>]) -> Result<Vec<(String, ImageName)>, StoreError> {
    let shown = shown_images(instances)?;
    let of = |instance: &Stored<Instance>| {
        let names = instance.value.signatures().map(|(name, _)| name).filter(|name| shown.contains(name));
        names.map(|name| (instance.value.signature_path(&name.step), name)).collect::<Vec<_>>()
    };
    Ok(instances.iter().flat_map(of).collect())
}
