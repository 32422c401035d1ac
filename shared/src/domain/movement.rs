//! Movements: one process on several assets at once, with one picker, one checklist, one signature for all of them
//! (one handover of a laptop, a dock and two screens).

use super::asset::Asset;
use super::field_error::ValueError;
use super::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId};
use super::instance::{Instance, InstanceStatus};
use super::process::{Process, StepKind};
use super::record::{Kind, Record, Stored, Unique};
use super::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How many assets a movement may have.
pub const ASSETS: std::ops::RangeInclusive<usize> = 2..=20;
/// How movements are numbered.
pub const NUMBERS: &str = "MOV-NNNNNN";
/// How many items a transaction may have (AWS: TransactWriteItems).
const ITEMS: usize = 100;

/// The assets of a movement, as a request names them: 2 to 20, each once.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = Vec<AssetId>, min_items = 2, max_items = 20)]
pub struct AssetIds(Vec<AssetId>);

impl AssetIds {
    /// The ids, in the order of the request.
    #[must_use]
    pub fn as_slice(&self) -> &[AssetId] {
        &self.0
    }

    /// Reads the JSON text of a list of ids.
    ///
    /// # Errors
    ///
    /// Says what an acceptable list is.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let wrong = || ValueError::new("must be a list of 2 to 20 different asset ids");
        let ids: Vec<AssetId> = serde_json::from_str(text).map_err(|_| wrong())?;
        let distinct: BTreeSet<AssetId> = ids.iter().copied().collect();
        if ASSETS.contains(&ids.len()) && distinct.len() == ids.len() { Ok(Self(ids)) } else { Err(wrong()) }
    }
}

/// One process on several assets. Its runs know how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Movement {
    /// Which one.
    pub id: MovementId,
    /// For people: `MOV-000001`.
    pub number: String,
    /// Which definition.
    pub process_id: ProcessId,
    /// Its name at the start.
    pub process_name: Name,
    /// One run for each asset.
    pub runs: Vec<InstanceId>,
    /// The key that started it.
    pub started_by: Option<ApiKeyId>,
    /// Whoever that was.
    pub started_by_name: String,
}

/// Whether the last advance of such a movement would fit into one transaction: for each asset two things and two
/// events, one item for the definition, for each user who loses or gets an asset and for each signature, and the answer that is
/// kept for when the request comes again.
#[must_use]
pub fn fits(process: &Process, assets: &[Stored<Asset>]) -> bool {
    let users: BTreeSet<_> = assets.iter().filter_map(|asset| asset.value.assigned_to).collect();
    let asking = |kind: StepKind| process.steps.as_slice().iter().filter(|step| step.kind == kind).count();
    let (pickers, signatures) = (asking(StepKind::UserPicker), asking(StepKind::Signature));
    let losers = if pickers > 0 || process.target_status.is_nobodys() { users.len() } else { 0 };
    4 * assets.len() + 2 + losers + pickers + signatures <= ITEMS
}

/// Where a movement stands, by its runs' status and step: in progress while any is, else completed if any was.
pub fn standing(runs: impl IntoIterator<Item = (InstanceStatus, usize)>) -> (InstanceStatus, usize) {
    let rank = |status: InstanceStatus| match status {
        InstanceStatus::InProgress => 0,
        InstanceStatus::Completed => 1,
        InstanceStatus::Cancelled => 2,
    };
    runs.into_iter().min_by_key(|(status, _)| rank(*status)).unwrap_or((InstanceStatus::Cancelled, 0))
}

/// What `data` says to `run`. A signature may come back as the path that any of the movement's runs shows, and is then
/// the run's own path, if both show the same image.
#[must_use]
pub fn said_to<'a>(run: &Instance, runs: &[Stored<Instance>], data: &'a Map<String, Value>) -> Cow<'a, Map<String, Value>> {
    let mut said = Cow::Borrowed(data);
    for (image, _) in run.signatures() {
        let shows = |other: &&Stored<Instance>| data.get(&image.step) == Some(&json!(other.value.signature_path(&image.step)));
        let other = runs.iter().find(shows);
        if other.is_some_and(|other| other.value.signatures().any(|(theirs, _)| theirs == image)) {
            said.to_mut().insert(image.step.clone(), json!(run.signature_path(&image.step)));
        }
    }
    said
}

impl Record for Movement {
    const KIND: Kind = Kind::Movement;
    type Id = MovementId;

    fn id(&self) -> MovementId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        Map::from_iter([
            ("number".to_owned(), json!(self.number)),
            ("process_id".to_owned(), json!(self.process_id)),
            ("instances".to_owned(), json!(self.runs)),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "number", value: self.number.clone(), kept: true }]
    }
}
