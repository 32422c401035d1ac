//! The endpoint that suggests how to import a file of assets.

use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::catalog::AssetType;
use shared::domain::import::Kind;
use shared::domain::import::parameters::Reading;
use shared::domain::import::suggestion::{Given, Known, Survey};
use shared::domain::keys::api_key::Scope;
use shared::domain::record::Unique;
use shared::domain::user::{Email, User};
use shared::http::bulk::import::{AssetMatch, Received, RowsBody};
use shared::http::bulk::suggest::{ImportSuggestion, suggestion, survey};
use shared::http::openapi::ImportErrors;
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Data};
use shared::store::StoreError;
use std::collections::{BTreeSet, HashMap};

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
    let matched = query.r#match.filter(|matching| *matching != AssetMatch::None).map(|matching| matching.as_str().to_owned());
    let given = Given { reading: query.reading, matched, create_unmatched: query.create_unmatched.unwrap_or_default() };
    let survey = survey(&bytes, format, Kind::Assets, given)?;
    let caller = caller.verified().await?;
    caller.refuse_precondition()?;
    let known = known(&caller, &survey).await?;
    Ok(Data { data: suggestion(survey, &known) })
}

/// Reads what the caller may know about the values of the file.
async fn known(caller: &VerifiedCaller, survey: &Survey) -> Result<Known, StoreError> {
    let wanted = survey.wanted();
    let may = |scope| caller.check_scope(scope).is_ok();
    let types = async { if may(Scope::CatalogRead) { caller.store.all::<AssetType>().await.map(Some) } else { Ok(None) } };
    let places =
        async { if wanted.has_places && may(Scope::AssetsRead) { caller.store.locations().await.map(Some) } else { Ok(None) } };
    let addresses: HashMap<String, &String> =
        wanted.addresses.iter().filter_map(|address| Some((address.parse::<Email>().ok()?.folded(), address))).collect();
    let emails: Vec<Unique> =
        addresses.keys().map(|value| Unique { field: "email", value: value.clone(), reserved_after_deletion: false }).collect();
    let people = async {
        if !may(Scope::UsersRead) {
            return Ok(None);
        }
        let (found, called) = tokio::try_join!(caller.store.owners::<User>(&emails), caller.store.users_called(&wanted.names))?;
        let is_known = |address: &&String| !found.keys().any(|known| addresses.get(known).is_some_and(|it| it == address));
        let unknown = wanted.addresses.iter().filter(is_known).cloned();
        let unnamed = called.into_iter().filter(|(_, user)| user.is_err()).map(|(name, _)| name);
        Ok(Some(unknown.chain(unnamed).collect::<BTreeSet<String>>().into_iter().collect()))
    };
    let (types, places, unknown_people) = tokio::try_join!(types, places, people)?;
    let fields = |schema: &serde_json::Value| {
        let properties = schema["properties"].as_object().map(|fields| fields.keys().cloned().collect::<Vec<String>>());
        properties.unwrap_or_default()
    };
    let schemas = types.iter().flatten().filter_map(|stored| stored.value.custom_fields_schema.as_ref());
    let custom_fields: BTreeSet<String> = schemas.flat_map(|schema| fields(schema.as_value())).collect();
    let named = |types: Vec<shared::domain::record::Stored<AssetType>>| {
        types.into_iter().map(|stored| (stored.value.code.as_str().to_owned(), String::from(stored.value.name))).collect()
    };
    Ok(Known { types: types.map(named), custom_fields: custom_fields.into_iter().collect(), unknown_people, places })
}
