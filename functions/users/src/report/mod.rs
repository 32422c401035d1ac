//! The endpoint that reports a person's data (docs/adr/0021-people.md).

mod page;
mod part;
mod records;
mod texts;
mod views;

use shared::auth::caller::UsersRead;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::keys::api_key::Role;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::id::{EventId, UserId};
use shared::http::openapi::ResourceErrors;
use shared::http::requests::params::{Path, Query};
use shared::http::responses::html::{self, AcceptedLanguage, Format, Printable, STYLE};
use shared::http::responses::{ApiError, ApiResponse, Data, Success, or_not_found};
use views::PersonReport;

shared::query! {
    /// Part and format of a report.
    pub struct ReportQuery {
        /// `next` from the previous part.
        from: EventId as EventId,
        /// `json`, or `html` for a printable page in the language that `Accept-Language` prefers (en, de, fr or es), or else in
        /// the language of the tenant's `locale`, or in English. Default `json`.
        format: Format as Format,
    }
}

/// Report on a person
///
/// All data about a user, even a deleted or erased one: resources, values in histories, actions, and data kept elsewhere. A
/// long report has several parts. Requires a key with the effective role `admin`.
#[utoipa::path(get, path = "/users/{id}/report", tag = "users", responses(ResourceErrors))]
pub async fn get_user_report(
    caller: Caller<UsersRead>,
    Query(query): Query<ReportQuery>,
    Path(id): Path<UserId>,
    language: AcceptedLanguage,
) -> Result<Printable<Data<PersonReport>>, ApiError> {
    let user = caller.store.get::<User>(id).await?;
    let caller = caller.verified().await?;
    caller.role.check_rank(Role::Admin)?;
    // Histories still name a deleted user.
    if user.is_none() && !caller.store.ever_existed::<User>(id).await? {
        return Err(ApiError::NotFound);
    }
    let report = part::report(&caller.store, id, user, query.from).await?;
    let response = match query.format {
        Some(Format::Html) => shown(&caller, &report, query.from.is_some(), language).await?,
        Some(Format::Json) | None => Data { data: report }.to_response()?,
    };
    Ok(response.into())
}

async fn shown(
    caller: &VerifiedCaller,
    report: &PersonReport,
    is_later: bool,
    language: AcceptedLanguage,
) -> Result<ApiResponse, ApiError> {
    let tenant = or_not_found(caller.store.get::<Tenant>(caller.store.id()).await?)?;
    let language = language.or_language_of(&tenant.value.locale);
    let now = caller.store.now();
    let page = page::render(report, is_later, &tenant.value, language, now);
    html::page(page.map_err(|error| ApiError::Internal(error.into()))?, STYLE)
}
