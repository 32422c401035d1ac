//! The endpoint for scans during stock-taking.

use crate::lookup::{Identifier, Lookup, Match};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, Principal, VerifiedCaller};
use shared::domain::assets::asset::{Asset, RowTag, Status};
use shared::domain::assets::code::AssetKey;
use shared::domain::assets::seen::{SeenOutcome, fault_of_time};
use shared::domain::record::{Stored, StoredResponse};
use shared::domain::values::field_error::{ErrorCode, ErrorLocation, FieldError, ValueError};
use shared::domain::values::id::{AssetId, UserId};
use shared::domain::values::json;
use shared::domain::values::text::{Location, Name, SerialNumber};
use shared::domain::values::time::Timestamp;
use shared::http::base_url::BaseUrl;
use shared::http::openapi::{InputErrors, RequestConflict};
use shared::http::requests::body::{Fields, FromJson, JsonBody, field_schema};
use shared::http::responses::{ApiError, Dependency, Json};
use shared::store::{StoreError, UnitOfWork, WriteError};
use std::collections::{BTreeSet, HashMap};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

const MAX_ITEMS: usize = 100;
/// Maximum number of assets listed for an ambiguous serial number. Others are left out.
const MAX_CANDIDATES: usize = 20;
const SEEN_ITEM: &str = "SeenItem";
const CODE: &str = "What a scanner typed: the tag, serial number or ID of an asset, the URL of its label, or one of these with what \
    scanners add, such as an AIM identifier. An address at an unknown host that ends with `/by-tag/<tag>` doesn't move its asset.";
const AT: &str = "When this item was seen. Same limits as for the request. Default: the request's `at`.";
const ONE_OF: &str = "must have one of tag, serial_number, id and code";

shared::body! {
    /// Assets that were seen.
    pub struct SeenAssets {
        /// Where the assets were seen.
        nullable location: Location,
        /// When the assets were seen: not later than now, and at most 7 days ago. Default: now.
        nullable at: Timestamp,
        /// Whether assets that are neither at `location` nor below it are moved to it. Default false.
        nullable r#move: bool,
        /// The assets, 1 to 100.
        required items: SeenItems,
    }
    read_only: &[]
}

#[derive(Debug, Clone)]
struct SeenItem {
    identifier: Identifier,
    /// Time of the scan. Default: the request's.
    at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct SeenItems(Vec<SeenItem>);

impl SeenItem {
    fn parse(text: &str) -> Result<Self, Vec<FieldError>> {
        let mut fields = Fields::parse(text.as_bytes()).map_err(|error| match error {
            ApiError::Invalid(errors) => errors,
            error => vec![FieldError::whole(error.to_string())],
        })?;
        let tag = fields.optional::<RowTag>("tag").map(|tag| Identifier::Key(AssetKey::tag(&tag)));
        let serial = fields.optional::<SerialNumber>("serial_number").map(|serial| Identifier::Key(AssetKey::serial(&serial)));
        let id = fields.optional::<AssetId>("id").map(|id| Identifier::Key(AssetKey::Id(id)));
        let code = fields.optional::<String>("code").map(Identifier::Code);
        let at = fields.nullable::<Timestamp>("at").or(None);
        let mut errors = fields.finish(&[]);
        let mut given = [tag, serial, id, code].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(identifier), None) if errors.is_empty() => return Ok(Self { identifier, at }),
            _ if !errors.is_empty() => {}
            _ => errors.push(FieldError { location: ErrorLocation::Pointer(String::new()), reason: ONE_OF.into() }),
        }
        Err(errors)
    }
}

impl FromJson for SeenItems {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::form("must be a list of items"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let bounds = || vec![(String::new(), ValueError::form(format!("must be a list of 1 to {MAX_ITEMS} items")))];
        let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| bounds())?;
        if !(1..=MAX_ITEMS).contains(&entries.len()) {
            return Err(bounds());
        }
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        for (index, entry) in entries.into_iter().enumerate() {
            match SeenItem::parse(entry.get()) {
                Ok(item) => items.push(item),
                Err(more) => errors.extend(more.into_iter().filter_map(|error| match error.location {
                    ErrorLocation::Pointer(pointer) => Some((format!("/{index}{pointer}"), error.reason)),
                    _ => None,
                })),
            }
        }
        if errors.is_empty() { Ok(Self(items)) } else { Err(errors) }
    }
}

impl PartialSchema for SeenItems {
    fn schema() -> RefOr<Schema> {
        let item = Ref::from_schema_name(SEEN_ITEM);
        ArrayBuilder::new().items(item).min_items(Some(1)).max_items(Some(MAX_ITEMS)).into()
    }
}

impl ToSchema for SeenItems {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let text = |description: &str| {
            let text = ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::String);
            text.description(Some(description.to_owned()))
        };
        let item = ObjectBuilder::new()
            .description(Some("A scanned item, identified by exactly one of `tag`, `serial_number`, `id` and `code`."))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .property("tag", text("Asset tag."))
            .property("serial_number", text("Serial number."))
            .property("id", text("ID."))
            .property("code", text(CODE))
            .property("at", field_schema::<Timestamp>(true, AT));
        schemas.push((SEEN_ITEM.to_owned(), item.into()));
    }
}

/// An asset with an ambiguous serial number.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SeenCandidate {
    /// ID.
    id: AssetId,
    /// Asset tag.
    asset_tag: String,
    /// Display name.
    name: Name,
    /// Location.
    #[schema(required)]
    location: Option<Location>,
}

/// What was found for a scanned item.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SeenAsset {
    /// Zero-based position of the item in the request.
    index: usize,
    /// Outcome.
    outcome: SeenOutcome,
    /// ID of the asset. Null if no asset was found.
    #[schema(required)]
    id: Option<AssetId>,
    /// Asset tag.
    #[schema(required)]
    asset_tag: Option<String>,
    /// Display name.
    #[schema(required)]
    name: Option<Name>,
    /// Status.
    #[schema(required)]
    status: Option<Status>,
    /// Location after the scan.
    #[schema(required)]
    location: Option<Location>,
    /// Assigned user.
    #[schema(required)]
    assigned_to: Option<UserId>,
    /// Assets with the ambiguous serial number, at most 20. Absent for other items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    candidates: Vec<SeenCandidate>,
}

/// Number of distinct items by outcome.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct SeenCounts {
    /// All items of the request. The other counts exclude duplicates.
    items: usize,
    /// Items whose asset was seen, and neither moved nor elsewhere.
    seen: usize,
    /// Items whose asset was seen and moved to `location`.
    moved: usize,
    /// Items whose asset was seen, but has a different location.
    elsewhere: usize,
    /// Items without a matching asset.
    unknown: usize,
    /// Items with several matching assets.
    ambiguous: usize,
}

/// What was found for each scanned item, with counts.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeenResult {
    /// The items, in the order of the request.
    data: Vec<SeenAsset>,
    /// Number of items by outcome.
    meta: SeenCounts,
}

enum SeenMatch {
    Asset(Box<Stored<Asset>>),
    /// A duplicate of the item at this index, or of its asset.
    SameAs(usize),
    Several(Vec<SeenCandidate>),
    Nothing,
}

struct Scan {
    index: usize,
    found: SeenMatch,
    location: Option<Location>,
    /// Time of the scan, as sent.
    at: Option<Timestamp>,
    moves: bool,
}

/// The stored form of an item's response.
#[derive(Debug, Serialize, Deserialize)]
struct ScanResponse {
    entry: SeenAsset,
    same_as: Option<usize>,
}

impl Scan {
    /// Merges a later item for the same asset: the latest time counts, and one that may move the asset moves it.
    fn repeat(&mut self, other: &Self) {
        self.at = self.at.zip(other.at).map(|(at, other)| at.max(other));
        self.moves |= other.moves;
    }

    fn respond(&self, outcome: SeenOutcome, asset: Option<&Asset>) -> ScanResponse {
        let (same_as, candidates) = match &self.found {
            SeenMatch::SameAs(index) => (Some(*index), Vec::new()),
            SeenMatch::Several(candidates) => (None, candidates.clone()),
            SeenMatch::Asset(_) | SeenMatch::Nothing => (None, Vec::new()),
        };
        let entry = SeenAsset {
            index: self.index,
            outcome,
            id: asset.map(|asset| asset.id),
            asset_tag: asset.map(|asset| asset.asset_tag.clone()),
            name: asset.map(|asset| asset.name.clone()),
            status: asset.map(|asset| asset.status),
            location: asset.and_then(|asset| asset.details.location.clone()),
            assigned_to: asset.and_then(|asset| asset.assigned_to),
            candidates,
        };
        ScanResponse { entry, same_as }
    }

    fn asset(&self) -> Option<&Stored<Asset>> {
        if let SeenMatch::Asset(asset) = &self.found { Some(asset) } else { None }
    }

    /// Decides what the scan changes, from the asset as it was just read.
    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        asset: Option<&Stored<Asset>>,
    ) -> Result<ScanResponse, ApiError> {
        let Some(old) = asset else {
            let is_ambiguous = matches!(self.found, SeenMatch::Several(_));
            let outcome = if is_ambiguous { SeenOutcome::Ambiguous } else { SeenOutcome::Unknown };
            return Ok(self.respond(outcome, None));
        };
        let at = self.at.unwrap_or_else(|| old.value.time_of_scan(principal.context.at));
        let (next, outcome) = old.value.seen(at, self.location.as_ref(), self.moves);
        let seen = unit.update_seen(old, next)?;
        Ok(self.respond(outcome, Some(&seen.value)))
    }

    /// Commits the scan. Reads the asset again if `inputs` is `None`.
    async fn commit(
        &self,
        principal: &Principal,
        inputs: Option<Result<Option<Stored<Asset>>, ApiError>>,
    ) -> Result<StoredResponse, ApiError> {
        let read = || async move {
            match self.asset() {
                Some(asset) => Ok(principal.store.get::<Asset>(asset.value.id).await?),
                None => Ok(None),
            }
        };
        let inputs = match inputs {
            Some(inputs) => inputs?,
            None => read().await?,
        };
        let attempt = |asset: Option<Stored<Asset>>| async move {
            let mut unit = principal.unit();
            let response = self.decide(principal, &mut unit, asset.as_ref())?.stored()?;
            unit.commit_with(|| Ok(response.clone())).await?;
            Ok(response)
        };
        principal.retry(inputs, read, attempt).await
    }
}

impl ScanResponse {
    fn stored(&self) -> Result<StoredResponse, StoreError> {
        let body = serde_json::to_string(self).map_err(StoreError::broken)?;
        Ok(StoredResponse { is_nameless: true, ..StoredResponse::new(200, body) })
    }
}

/// Record that assets were seen
///
/// Sets `last_seen_at` of up to 100 assets, each in a separate transaction with an event `asset.seen`. The response shows whether
/// each asset is at `location`, elsewhere or unknown; with `move`, assets elsewhere get the new location. Unless its location
/// changes, an asset keeps its `updated_at` and the version that `If-Match` compares. If `at` is before an asset's last scan, the
/// asset stays unchanged.
#[utoipa::path(post, path = "/assets/seen", tag = "assets", responses(InputErrors, RequestConflict))]
pub async fn see_assets(
    caller: Caller<AssetsWrite>,
    base_url: BaseUrl,
    body: JsonBody<SeenAssets>,
) -> Result<Json<SeenResult>, ApiError> {
    let SeenAssets { location, at, r#move, items: SeenItems(items) } = body.parse(&caller)?;
    let caller = caller.verified().await?;
    let (location, at, moves) = (location.or(None), at.or(None), r#move.or(None).unwrap_or_default());
    let now = caller.context.at;
    let mut errors: Vec<FieldError> =
        at.and_then(|at| Some(FieldError::field("at", fault_of_time(at, now)?))).into_iter().collect();
    let times = items.iter().enumerate().filter_map(|(index, item)| Some((index, fault_of_time(item.at?, now)?)));
    errors.extend(times.map(|(index, fault)| FieldError::within("items", &format!("/{index}/at"), fault)));
    if moves && location.is_none() {
        errors.push(FieldError::field("location", ValueError::coded(ErrorCode::Required, "is required with move")));
    }
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    caller.refuse_precondition()?;
    let identifiers: Vec<Identifier> = items.iter().map(|item| item.identifier.clone()).collect();
    let lookup = Lookup::read(&caller.store, &identifiers, base_url.as_str()).await?;
    let scan = |index, found, is_foreign: bool, item_at: Option<Timestamp>| Scan {
        index,
        found,
        location: location.clone(),
        at: item_at.or(at),
        moves: moves && !is_foreign,
    };
    let (mut scans, mut first) = (Vec::<Scan>::new(), HashMap::<Same<'_>, usize>::new());
    for (index, item) in items.iter().enumerate() {
        let (found, is_foreign) = match lookup.find(index)? {
            Match::Asset { asset, is_foreign } => (SeenMatch::Asset(asset), is_foreign),
            Match::Several(assets) => {
                (SeenMatch::Several(assets.into_iter().take(MAX_CANDIDATES).map(candidate).collect()), false)
            }
            Match::Nothing => (SeenMatch::Nothing, false),
        };
        let same =
            if let SeenMatch::Asset(asset) = &found { Same::Asset(asset.value.id) } else { Same::Identifier(&item.identifier) };
        let earlier = *first.entry(same).or_insert(index);
        let mut new = scan(index, found, is_foreign, item.at);
        if let Some(before) = scans.get_mut(earlier) {
            before.repeat(&new);
            new.found = SeenMatch::SameAs(earlier);
        }
        scans.push(new);
    }
    let mut responses = Vec::new();
    let rows = caller.rows(scans.len()).await?;
    // The scans of a request are all for different assets.
    let inputs = rows.left().into_iter().map(|index| (Ok(scans[index].asset().cloned()), BTreeSet::new())).collect();
    let scans = &scans;
    let write =
        |caller: VerifiedCaller, index: usize, inputs| async move { Box::pin(scans[index].commit(&caller, inputs)).await };
    for response in rows.write(inputs, write).await.responses {
        match response.status {
            ..300 => {}
            // Others scan the same asset, or the same request is still in progress.
            409 if json::parse(&response.body).is_ok_and(|problem| problem["code"] == "CONFLICT") => {
                return Err(WriteError::Stale.into());
            }
            409 => return Err(WriteError::InProgress.into()),
            _ => return Err(ApiError::Unavailable(Dependency::Table, "a scan was not stored".into())),
        }
        responses.push(serde_json::from_str::<ScanResponse>(&response.body).map_err(StoreError::broken)?);
    }
    Ok(Json(result(&responses)))
}

fn result(responses: &[ScanResponse]) -> SeenResult {
    let mut meta = SeenCounts { items: responses.len(), ..SeenCounts::default() };
    let entry = |response: &ScanResponse| {
        let first = response.same_as.and_then(|index| responses.get(index));
        match first {
            Some(first) => SeenAsset { index: response.entry.index, ..first.entry.clone() },
            None => response.entry.clone(),
        }
    };
    for response in responses.iter().filter(|response| response.same_as.is_none()) {
        let count = match response.entry.outcome {
            SeenOutcome::Seen => &mut meta.seen,
            SeenOutcome::Moved => &mut meta.moved,
            SeenOutcome::Elsewhere => &mut meta.elsewhere,
            SeenOutcome::Unknown => &mut meta.unknown,
            SeenOutcome::Ambiguous => &mut meta.ambiguous,
        };
        *count += 1;
    }
    SeenResult { data: responses.iter().map(entry).collect(), meta }
}

/// What makes items of a request the same.
#[derive(PartialEq, Eq, Hash)]
enum Same<'a> {
    Asset(AssetId),
    /// No asset, or several.
    Identifier(&'a Identifier),
}

fn candidate(asset: Stored<Asset>) -> SeenCandidate {
    let Asset { id, asset_tag, name, details, .. } = asset.value;
    SeenCandidate { id, asset_tag, name, location: details.location }
}
