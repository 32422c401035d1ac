//! The endpoint that suggests how to import a file of users.

use shared::auth::Caller;
use shared::auth::caller::UsersWrite;
use shared::domain::import::Kind;
use shared::domain::import::parameters::Reading;
use shared::domain::import::suggestion::{Decided, LookedUp};
use shared::http::bulk::import::{Received, RowsBody, UserMatch};
use shared::http::bulk::suggest::{ImportSuggestion, suggestion, survey};
use shared::http::openapi::ImportErrors;
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Data};

shared::query! {
    /// What is known about the import already.
    pub struct UserSuggestQuery {
        /// Field that identifies the user to update. Default: a field that the file has.
        r#match: UserMatch as UserMatch,
        /// Whether a row whose matched column is empty creates a user.
        create_unmatched: bool as bool,
        ..reading: Reading,
    }
}

/// Suggest how to import a file of users
///
/// Takes the beginning of a file, up to 1 MiB, and returns the parameters of an import, as for assets. Nothing is stored.
#[utoipa::path(post, path = "/users/import/suggest", tag = "users", responses(ImportErrors))]
pub async fn suggest_user_import(
    caller: Caller<UsersWrite>,
    Query(query): Query<UserSuggestQuery>,
    body: RowsBody,
) -> Result<Data<ImportSuggestion>, ApiError> {
    let Received { bytes, format, query } = body.read(&caller, query)?;
    let matched = query.r#match.and_then(UserMatch::field);
    let given = Decided { reading: query.reading, matched, create_unmatched: query.create_unmatched.unwrap_or_default() };
    let survey = survey(&bytes, format, Kind::Users, given)?;
    caller.verified().await?.refuse_precondition()?;
    Ok(Data { data: suggestion(survey, &LookedUp::default()) })
}
