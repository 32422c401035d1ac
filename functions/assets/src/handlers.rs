//! The endpoints of assets.

use crate::changes::{self, AssetWrite, Target};
use crate::expand::{Expand, ExpandedUsers, without_users};
use crate::query::{AssetQuery, OneAssetQuery};
use crate::records::AssetRecords;
use crate::wire::{AssetPatch, AssetView, DELETED, DeletedAsset, NewAsset};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::assets::asset::{Asset, CatalogNames};
use shared::domain::keys::scope::Scope;
use shared::domain::record::Stored;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::http::error::ApiError;
use shared::http::openapi::{AssetConflict, AssetDeletionConflict, ChangeErrors, DuplicateConflict, InputErrors, ResourceErrors};
use shared::http::requests::extract::{JsonBody, PathId, PathTag, QueryParams};
use shared::http::requests::params;
use shared::http::responses::{Created, Json, Versioned, or_not_found};
use shared::store::{AssetFilter, Page, TenantStore};

/// List assets
///
/// Newest first by default. A list includes every write that was acknowledged before the request.
#[utoipa::path(get, path = "/assets", tag = "assets", security(("api_key" = ["assets:read"])), responses(InputErrors))]
pub async fn list_assets(request: UnverifiedRequest, query: QueryParams<AssetQuery>) -> Result<Page<AssetView>, ApiError> {
    let (caller, (page, expand)) = request
        .authorize_with_query(Scope::AssetsRead, query, async |store, query| {
            let (page, expand) = (params::page(query.page, query.limit), query.expand);
            let filter = AssetFilter { sort: query.sort.unwrap_or_default(), ..query.filter.into() };
            Ok((store.list_assets(&filter, page).await?, expand))
        })
        .await?;
    let mut page = page.map(|(asset, names)| AssetView::new(asset, names));
    let users = ExpandedUsers::read(&caller, page.items.iter().filter_map(|asset| asset.assigned_to), expand).await?;
    for asset in &mut page.items {
        asset.assigned_user = users.of(asset.assigned_to)?;
    }
    Ok(page)
}

/// Create an asset
///
/// Unless the body has an `asset_tag`, the service generates one from the tenant's template.
#[utoipa::path(post, path = "/assets", tag = "assets", security(("api_key" = ["assets:write"])), responses(InputErrors, DuplicateConflict))]
pub async fn create_asset(request: UnverifiedRequest, body: JsonBody<NewAsset>) -> Result<Created<AssetView>, ApiError> {
    let (caller, (write, records)) = request
        .authorize_and_read(Scope::AssetsWrite, async |store| {
            let (body, errors) = body.parse_with_errors(&store)?;
            let write = AssetWrite::new(body, errors);
            let records = AssetRecords::of_one(&store, &Target::New, Some(&write.change)).await?;
            Ok((write, records))
        })
        .await?;
    Ok(changes::create(&caller, write, records).await?.created())
}

/// Get an asset
///
/// With `as_of`, as it was at that time, even if it has been deleted since.
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:read"])), responses(ResourceErrors))]
pub async fn get_asset(
    request: UnverifiedRequest,
    id: PathId<AssetId>,
    query: QueryParams<OneAssetQuery>,
) -> Result<Versioned<AssetView>, ApiError> {
    let read = async |store, query| read_asset(&store, id.parse()?, query).await;
    let (caller, found) = request.authorize_with_query(Scope::AssetsRead, query, read).await?;
    show(&caller, found).await
}

/// Get the asset with a tag
///
/// Looks up an asset by its label. Tags are case-insensitive. A browser without a key is sent to the inventory's page.
#[utoipa::path(get, path = "/assets/by-tag/{tag}", tag = "assets", security(("api_key" = ["assets:read"])), responses(ResourceErrors, (status = 302, description = "For `Accept: text/html` without a key: `Location` is the inventory's page at this tag.")))]
pub async fn get_asset_by_tag(
    request: UnverifiedRequest,
    tag: PathTag,
    query: QueryParams<OneAssetQuery>,
) -> Result<Versioned<AssetView>, ApiError> {
    let read = async |store: TenantStore, query| {
        let owners = store.owners::<Asset>(&[Asset::unique_tag(&tag.parse()?)]).await?;
        read_asset(&store, or_not_found(owners.into_values().next())?, query).await
    };
    let (caller, found) = request.authorize_with_query(Scope::AssetsRead, query, read).await?;
    show(&caller, found).await
}

/// An asset, now or at an earlier time.
struct FoundAsset {
    asset: Stored<Asset>,
    /// The names of the catalog at an earlier time.
    names: Option<CatalogNames>,
    expand: Option<Expand>,
}

async fn read_asset(store: &TenantStore, id: AssetId, query: OneAssetQuery) -> Result<FoundAsset, ApiError> {
    let OneAssetQuery { as_of, expand } = query;
    let Some(at) = as_of else {
        return Ok(FoundAsset { asset: or_not_found(store.get::<Asset>(id).await?)?, names: None, expand });
    };
    params::check_past("as_of", at, store.store().now())?;
    if expand.is_some() {
        let detail = "can't be sent with as_of: it shows users as they are now";
        return Err(ApiError::Invalid(vec![FieldError::parameter("expand", detail)]));
    }
    let (asset, names) = or_not_found(store.asset_as_of(id, at).await?)?;
    Ok(FoundAsset { asset, names: Some(names), expand })
}

async fn show(caller: &Caller, found: FoundAsset) -> Result<Versioned<AssetView>, ApiError> {
    let FoundAsset { asset, names, expand } = found;
    let users = ExpandedUsers::read(caller, asset.value.assigned_to, expand);
    let view = async {
        match names {
            Some(names) => Ok(Versioned { version: asset.tag_version(), data: AssetView::new(asset.clone(), names) }),
            None => view(&caller.store, asset.clone()).await,
        }
    };
    let (mut view, users) = tokio::try_join!(view, users)?;
    view.data.assigned_user = users.of(view.data.assigned_to)?;
    Ok(view)
}

/// Update an asset
///
/// Changes the fields that are sent. Null clears a nullable field.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:write"])), responses(ChangeErrors, AssetConflict))]
pub async fn update_asset(
    request: UnverifiedRequest,
    id: PathId<AssetId>,
    body: JsonBody<AssetPatch>,
) -> Result<Versioned<AssetView>, ApiError> {
    let (caller, (id, write, records)) = request
        .authorize_and_read(Scope::AssetsWrite, async |store| {
            let id = id.parse()?;
            let (mut body, errors) = body.parse_with_errors(&store)?;
            let unchanged = without_users(std::mem::take(&mut body.unchanged));
            let mut write = AssetWrite::new(body, errors);
            let target = Target::Id(id);
            let records = AssetRecords::of_one(&store, &target, Some(&write.change)).await?;
            let asset = or_not_found(records.found(&target)?)?;
            if !unchanged.is_empty() {
                write.change.errors.extend(unchanged.errors(&view(&store, asset).await?.data)?);
            }
            Ok((id, write, records))
        })
        .await?;
    let changed = changes::change(&caller, id, write, records).await?;
    view(&caller.store, changed).await
}

async fn view(store: &TenantStore, asset: Stored<Asset>) -> Result<Versioned<AssetView>, ApiError> {
    let mut names = store.catalog_names(std::slice::from_ref(&asset)).await?;
    let names = names.pop().ok_or_else(|| ApiError::Internal("no catalog names for an asset".into()))?;
    Ok(Versioned { version: asset.tag_version(), data: AssetView::new(asset, names) })
}

/// Delete an asset
///
/// Removes the asset permanently; its history remains readable. Consider setting the status to `scrapped` instead.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:write"])), responses(ChangeErrors, AssetDeletionConflict))]
pub async fn delete_asset(request: UnverifiedRequest, id: PathId<AssetId>) -> Result<Json<DeletedAsset>, ApiError> {
    let read = async |store: TenantStore| or_not_found(store.get::<Asset>(id.parse()?).await?);
    let (caller, asset) = request.authorize_and_read(Scope::AssetsWrite, read).await?;
    changes::delete(&caller, asset).await?;
    Ok(Json(DELETED))
}
