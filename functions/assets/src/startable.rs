//! The endpoint that shows which processes can be started on an asset, and why others can't.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::ProcessesRead;
use shared::domain::assets::asset::{Asset, Status};
use shared::domain::processes::instance::{ProcessError, check_startable};
use shared::domain::processes::process::{Process, Slug};
use shared::domain::values::id::{AssetId, InstanceId, ProcessId};
use shared::domain::values::text::Name;
use shared::http::openapi::ResourceErrors;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, or_not_found};
use shared::store::{Page, PageRequest};
use utoipa::ToSchema;

/// A process definition, and whether it can be started on an asset.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StartableProcess)]
pub struct AssetProcessView {
    /// ID of the process definition.
    id: ProcessId,
    /// Display name.
    name: Name,
    /// URL-safe name.
    slug: Slug,
    /// Status that the asset must have at the start.
    trigger_status: Status,
    /// Status of the asset after completion.
    target_status: Status,
    /// Whether the process can be started on the asset now.
    can_start: bool,
    /// Code of the error that a start would return.
    #[schema(required)]
    code: Option<&'static str>,
    /// Human-readable error.
    #[schema(required)]
    detail: Option<String>,
    /// Process instance that is in progress on the asset.
    #[schema(required)]
    instance_id: Option<InstanceId>,
}

impl AssetProcessView {
    fn new(process: Process, asset: &Asset) -> Self {
        let error = check_startable(&process, asset).err();
        Self {
            id: process.id,
            name: process.name,
            slug: process.slug,
            trigger_status: process.trigger_status,
            target_status: process.target_status,
            can_start: error.is_none(),
            code: error.as_ref().map(|error| ConflictCode::from(error).as_str()),
            detail: error.as_ref().map(ToString::to_string),
            instance_id: asset.running_instance_id.filter(|_| matches!(error, Some(ProcessError::Running(..)))),
        }
    }
}

/// List the processes for an asset
///
/// Lists all process definitions, with whether each can be started on the asset. Processes that can be started come first.
#[utoipa::path(get, path = "/assets/{id}/processes", tag = "assets", responses(ResourceErrors))]
pub async fn list_asset_processes(
    caller: Caller<ProcessesRead>,
    Path(id): Path<AssetId>,
) -> Result<Page<AssetProcessView>, ApiError> {
    let (asset, processes) = tokio::try_join!(caller.store.get::<Asset>(id), caller.store.all_without_blobs::<Process>())?;
    let asset = or_not_found(asset)?;
    let views = processes.into_iter().map(|process| AssetProcessView::new(process.value, &asset.value));
    let mut items: Vec<AssetProcessView> = views.collect();
    items.sort_by(|a, b| (!a.can_start, &*a.name).cmp(&(!b.can_start, &*b.name)));
    let (total, limit) = (items.len(), u32::try_from(items.len()).unwrap_or(u32::MAX).max(1));
    Ok(Page::new(items, total, PageRequest { number: 1, limit }, Vec::new()))
}
