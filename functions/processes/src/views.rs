//! How runs and movements are shown, and what is kept of that for when a request comes again.

use crate::instance_wire::{InstanceView, MovementView};
use shared::domain::instance::{ImageName, Instance};
use shared::domain::movement::Movement;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::http::Answer;
use shared::http::error::ApiError;
use shared::http::response;
use shared::store::{LARGEST_ANSWER, StoreError, TenantStore};
use std::collections::BTreeSet;

/// The signatures that an answer about these runs can show as images.
pub(crate) fn shown(runs: &[Stored<Instance>]) -> Result<BTreeSet<ImageName>, StoreError> {
    let bare = |run: &Stored<Instance>| {
        serde_json::to_vec(&InstanceView::new(run.clone(), |_| None)).map(|text| response::weight(&text))
    };
    let mut weight: usize = runs.iter().map(bare).sum::<Result<_, _>>().map_err(StoreError::broken)?;
    let mut shown = BTreeSet::new();
    for (name, length) in runs.iter().flat_map(|run| run.value.signatures()) {
        weight += length;
        if weight <= LARGEST_ANSWER {
            shown.insert(name);
        }
    }
    Ok(shown)
}

/// The views of runs, with as many signatures as an answer can hold.
pub(crate) async fn views(
    store: &TenantStore,
    runs: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, ApiError> {
    let wanted = if omit_signatures { BTreeSet::new() } else { shown(&runs)? };
    let images = store.signature_images(wanted).await?;
    Ok(runs.into_iter().map(|run| InstanceView::new(run, |name| images.get(name).cloned())).collect())
}

/// The view of one run.
pub(crate) async fn view(store: &TenantStore, run: Stored<Instance>, omit_signatures: bool) -> Result<InstanceView, ApiError> {
    let mut views = views(store, vec![run], omit_signatures).await?;
    views.pop().ok_or_else(|| ApiError::Internal("a view for a run".into()))
}

/// The view of a movement.
pub(crate) async fn movement(
    store: &TenantStore,
    movement: Stored<Movement>,
    runs: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<MovementView, ApiError> {
    Ok(MovementView::new(movement, views(store, runs, omit_signatures).await?))
}

/// What is kept of the answer that `reply` makes of a run: without its images, which are in the table already.
pub(crate) fn kept(run: &Stored<Instance>, reply: impl FnOnce(InstanceView) -> Answer) -> Result<StoredResponse, StoreError> {
    let reply = reply(InstanceView::new(run.clone(), |_| None)).map_err(StoreError::broken)?;
    reply.kept(images(std::slice::from_ref(run))?)
}

/// What is kept of the answer that `reply` makes of a movement.
pub(crate) fn kept_movement(
    movement: &Stored<Movement>,
    runs: &[Stored<Instance>],
    reply: impl FnOnce(MovementView) -> Answer,
) -> Result<StoredResponse, StoreError> {
    let views = runs.iter().map(|run| InstanceView::new(run.clone(), |_| None)).collect();
    reply(MovementView::new(movement.clone(), views)).map_err(StoreError::broken)?.kept(images(runs)?)
}

/// The path of each image that the answer shows, and the image's name.
fn images(runs: &[Stored<Instance>]) -> Result<Vec<(String, ImageName)>, StoreError> {
    let shown = shown(runs)?;
    let of = |run: &Stored<Instance>| {
        let names = run.value.signatures().map(|(name, _)| name).filter(|name| shown.contains(name));
        names.map(|name| (run.value.signature_path(&name.step), name)).collect::<Vec<_>>()
    };
    Ok(runs.iter().flat_map(of).collect())
}
