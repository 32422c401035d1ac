//! Which processes can start on an asset now, and why the others can't, so that a client need not guess.

use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::asset::{Asset, Status};
use shared::domain::id::{InstanceId, ProcessId};
use shared::domain::instance::{ProcessError, check_startable};
use shared::domain::process::{Process, Slug};
use shared::domain::scope::Scope;
use shared::domain::text::Name;
use shared::http::Answer;
use shared::http::error::ConflictCode;
use shared::http::openapi::GetErrors;
use shared::http::response::{self, List, present};
use shared::store::{Page, PageRequest};
use utoipa::ToSchema;

/// A definition, as an asset sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssetProcessView {
    /// The definition.
    id: ProcessId,
    /// Display name.
    name: Name,
    /// Its name in URLs.
    slug: Slug,
    /// The status that an asset must have for it to start.
    trigger_status: Status,
    /// The status that the asset has once it is completed.
    target_status: Status,
    /// Whether it can start on the asset now.
    can_start: bool,
    /// The code of the 409 that a start would get.
    #[schema(required)]
    code: Option<&'static str>,
    /// The same in words.
    #[schema(required)]
    detail: Option<String>,
    /// The run that stands in the way.
    #[schema(required)]
    instance_id: Option<InstanceId>,
}

impl AssetProcessView {
    fn new(process: Process, asset: &Asset) -> Self {
        let refusal = check_startable(&process, asset).err();
        let code = refusal.as_ref().map(|refusal| match refusal {
            ProcessError::Inactive => ConflictCode::ProcessInactive,
            ProcessError::Running(..) => ConflictCode::ProcessRunning,
            _ => ConflictCode::WrongAssetStatus,
        });
        Self {
            id: process.id,
            name: process.name,
            slug: process.slug,
            trigger_status: process.trigger_status,
            target_status: process.target_status,
            can_start: refusal.is_none(),
            code: code.map(ConflictCode::as_str),
            detail: refusal.as_ref().map(ToString::to_string),
            instance_id: asset.running_instance_id.filter(|_| matches!(refusal, Some(ProcessError::Running(..)))),
        }
    }
}

/// Lists every process definition with whether it can start on the asset now, and why not; those that can come first.
#[utoipa::path(get, path = "/assets/{id}/processes", tag = "assets",
    params(("id" = shared::domain::id::AssetId, Path, description = "The asset")),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "Every definition", body = List<AssetProcessView>), GetErrors))]
pub async fn list_asset_processes(request: UnverifiedRequest) -> Answer {
    let (_, (asset, processes)) = request
        .enter(Scope::ProcessesRead, async |store| {
            let id = request.id()?;
            let (asset, processes) = tokio::try_join!(store.get::<Asset>(id), store.all::<Process>())?;
            Ok((present(asset)?, processes))
        })
        .await?;
    let views = processes.into_iter().map(|process| AssetProcessView::new(process.value, &asset.value));
    let mut items: Vec<AssetProcessView> = views.collect();
    items.sort_by(|a, b| (!a.can_start, &a.name).cmp(&(!b.can_start, &b.name)));
    let (total, limit) = (items.len(), u32::try_from(items.len()).unwrap_or(u32::MAX).max(1));
    response::list(Page { items, total, page: PageRequest { number: 1, limit } }, |view| view)
}
