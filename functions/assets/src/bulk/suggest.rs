//! The endpoint that suggests how to import a file of assets.

use super::row::unique;
use serde_json::Map;
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::catalog::AssetType;
use shared::domain::import::Kind;
use shared::domain::import::parameters::Reading;
use shared::domain::import::suggestion::{Decided, LookedUp, Lookups};
use shared::domain::keys::api_key::Scope;
use shared::domain::user::{Email, User};
use shared::http::bulk::import::{AssetMatch, Received, RowsBody};
use shared::http::bulk::suggest::{ImportSuggestion, suggestion, survey};
use shared::http::openapi::ImportErrors;
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Data};
use shared::store::{Reader, StoreError};
use std::collections::BTreeSet;

shared::query! {
    /// What is known about the import already.
    pub struct AssetSuggestQuery {
        /// Field that identifies the asset to update. Default: a field that the file has.
        r#match: AssetMatch as AssetMatch,
        /// Whether a row creates an asset if its matched column is empty or its asset tag is unknown.
        create_unmatched: bool as bool,
        ..reading: Reading,
    }
}

/// Suggest how to import a file of assets
///
/// Takes the beginning of a file, up to 1 MiB, of which it looks at 1,000 rows and 200 columns, and returns the parameters of an
/// import: which field each column is, by its heading and its values, and what its values mean. What isn't sure is told in words.
/// Nothing is stored. Uses the catalog with the scope `catalog:read`, users with `users:read`, and places with `assets:read`.
#[utoipa::path(post, path = "/assets/import/suggest", tag = "assets", responses(ImportErrors))]
pub async fn suggest_asset_import(
    caller: Caller<AssetsWrite>,
    Query(query): Query<AssetSuggestQuery>,
    body: RowsBody,
) -> Result<Data<ImportSuggestion>, ApiError> {
    let Received { bytes, format, query } = body.read(&caller, query)?;
    let matched = query.r#match.and_then(AssetMatch::field);
    let given = Decided { reading: query.reading, matched, create_unmatched: query.create_unmatched.unwrap_or_default() };
    let survey = survey(&bytes, format, Kind::Assets, given)?;
    let caller = caller.verified().await?;
    caller.refuse_precondition()?;
    let found = look_up(&caller, &survey.lookups()).await?;
    Ok(Data { data: suggestion(survey, &found) })
}

/// Looks up what the caller may know about the values of the file.
async fn look_up(caller: &VerifiedCaller, lookups: &Lookups) -> Result<LookedUp, StoreError> {
    let may = |scope| caller.check_scope(scope).is_ok();
    let types = async { if may(Scope::CatalogRead) { caller.store.all::<AssetType>().await.map(Some) } else { Ok(None) } };
    let places =
        async { if lookups.has_places && may(Scope::AssetsRead) { caller.store.locations().await.map(Some) } else { Ok(None) } };
    let people = async { if may(Scope::UsersRead) { unknown_people(&caller.store, lookups).await.map(Some) } else { Ok(None) } };
    let (types, places, unknown_people) = tokio::try_join!(types, places, people)?;
    let types = types.map(|types| types.into_iter().map(|stored| stored.value).collect::<Vec<_>>());
    let schemas = types.iter().flatten().filter_map(|asset_type| asset_type.custom_fields_schema.as_ref());
    let fields = schemas.filter_map(|schema| schema.as_value()["properties"].as_object()).flat_map(Map::keys);
    let custom_fields = fields.cloned().collect::<BTreeSet<String>>().into_iter().collect();
    let named = |AssetType { code, name, .. }: AssetType| (code.as_str().to_owned(), String::from(name));
    let types = types.map(|types| types.into_iter().map(named).collect());
    Ok(LookedUp { types, custom_fields, unknown_people, places })
}

/// Returns the addresses and names that mean no single user.
async fn unknown_people(store: &Reader, lookups: &Lookups) -> Result<Vec<String>, StoreError> {
    let folded = |address: &String| address.parse::<Email>().ok().map(|email| email.folded());
    let emails = unique("email", &lookups.addresses.iter().filter_map(folded).collect());
    let (found, called) = tokio::try_join!(store.owners::<User>(&emails), store.users_called(&lookups.names))?;
    let is_user = |address: &&String| folded(address).is_some_and(|email| found.contains_key(&email));
    let addresses = lookups.addresses.iter().filter(|address| !is_user(address)).cloned();
    let names = lookups.names.iter().filter(|name| called.get(*name).is_none_or(Result::is_err)).cloned();
    Ok(addresses.chain(names).collect::<BTreeSet<_>>().into_iter().collect())
}
