//! The endpoint of the assets of a user, now or at an earlier time.

use assets::AssetView;
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::user::User;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::UserId;
use shared::domain::values::time::Timestamp;
use shared::http::error::ApiError;
use shared::http::openapi::ResourceErrors;
use shared::http::requests::extract::{PathId, QueryParams};
use shared::http::requests::params::{self, Limit, PageNumber};
use shared::http::responses::or_not_found;
use shared::store::{AssetFilter, Assignee, MAX_ASSIGNMENTS, Page, PastAssets};

shared::query! {
    /// Assets of a user to list.
    pub struct UserAssetQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Lists the assets that the user had at this time, as they were.
        as_of: Timestamp as Timestamp,
    }
}

/// List a user's assets
///
/// Newest first. With `as_of`, the assets that the user had at that time, as they were, even if they or the user have been
/// deleted since.
#[utoipa::path(get, path = "/users/{id}/assets", tag = "users", security(("api_key" = ["assets:read"])), responses(ResourceErrors))]
pub async fn list_user_assets(
    request: UnverifiedRequest,
    id: PathId<UserId>,
    query: QueryParams<UserAssetQuery>,
) -> Result<Page<AssetView>, ApiError> {
    let (_, page) = request
        .authorize_with_query(Scope::AssetsRead, query, async |store, query| {
            let (id, request) = (id.parse()?, params::page(query.page, query.limit));
            let Some(at) = query.as_of else {
                let filter = AssetFilter { assigned_to: Some(Assignee::User(id)), ..AssetFilter::default() };
                let (user, page) = tokio::try_join!(store.get::<User>(id), store.list_assets(&filter, request))?;
                or_not_found(user)?;
                return Ok(page);
            };
            params::check_past("as_of", at, store.store().now())?;
            match store.assets_of_user_as_of(id, at, request).await? {
                PastAssets::NoUser => Err(ApiError::NotFound),
                PastAssets::TooMany => Err(too_many()),
                PastAssets::Page(page) => Ok(page),
            }
        })
        .await?;
    Ok(page.map(|(asset, names)| AssetView::new(asset, names)))
}

fn too_many() -> ApiError {
    let detail = format!(
        "can't be used for a user who was assigned assets more than {MAX_ASSIGNMENTS} times; ask for each asset by GET /assets/{{id}}?as_of="
    );
    ApiError::Invalid(vec![FieldError::parameter("as_of", detail)])
}
