//! The endpoint for a user's assets, now or at an earlier time.

use assets::AssetView;
use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::user::User;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::UserId;
use shared::domain::values::time::Timestamp;
use shared::http::openapi::ResourceErrors;
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, or_not_found};
use shared::store::{AssetFilter, Assignee, MAX_ASSIGNMENTS, Page, PastAssets};

shared::query! {
    /// Assets of a user to list.
    pub struct UserAssetQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Lists the assets that the user had at this time, in their state at the time.
        as_of: Timestamp as Timestamp,
    }
}

/// List a user's assets
///
/// Newest first. With `as_of`, lists the assets that the user had at that time, in their state at the time, even if the assets or
/// the user have since been deleted.
#[utoipa::path(get, path = "/users/{id}/assets", tag = "users", responses(ResourceErrors))]
pub async fn list_user_assets(
    caller: Caller<AssetsRead>,
    Query(query): Query<UserAssetQuery>,
    Path(id): Path<UserId>,
) -> Result<Page<AssetView>, ApiError> {
    let (store, page) = (&caller.store, params::page(query.page, query.limit));
    let page = match query.as_of {
        None => {
            let filter = AssetFilter { assigned_to: Some(Assignee::User(id)), ..AssetFilter::default() };
            let (user, page) = tokio::try_join!(store.get::<User>(id), store.list_assets(&filter, page))?;
            or_not_found(user)?;
            page
        }
        Some(at) => {
            params::check_past("as_of", at, store.now())?;
            match store.assets_of_user_as_of(id, at, page).await? {
                PastAssets::NoUser => return Err(ApiError::NotFound),
                PastAssets::TooMany => return Err(too_many()),
                PastAssets::Page(page) => page,
            }
        }
    };
    Ok(page.map(|(asset, names)| AssetView::new(asset, names)))
}

fn too_many() -> ApiError {
    let detail = format!(
        "can't be used for a user who was assigned assets more than {MAX_ASSIGNMENTS} times; use GET /assets/{{id}}?as_of="
    );
    ApiError::Invalid(vec![FieldError::parameter("as_of", detail)])
}
