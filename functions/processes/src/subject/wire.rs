//! Bodies and views of process instances and movements, and the stored form of their responses.

use super::Subject;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::domain::processes::instance::{ImageName, Instance, InstanceStatus, State};
use shared::domain::processes::movement::{AssetIds, Movement, overall_status};
use shared::domain::processes::process::Step;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId};
use shared::domain::values::json;
use shared::domain::values::signature_image::data_url;
use shared::domain::values::text::{Name, Notes};
use shared::domain::values::time::Timestamp;
use shared::http::error::ApiError;
use shared::http::openapi::either;
use shared::http::requests::body::{BoundedInteger, StepData};
use shared::http::requests::params::FromParam;
use shared::http::responses::{Created, Data, Success, Versioned};
use shared::store::{MAX_BODY_BEFORE_OMISSION, StoreError, TenantStore};
use std::borrow::Cow;
use std::collections::BTreeSet;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// Index of a step, from zero.
pub(crate) type StepIndex = BoundedInteger<0, 49>;

shared::body! {
    /// Exactly one of `asset_id` and `asset_ids`.
    pub struct Start as ProcessStart {
        /// Asset without an instance in progress.
        optional asset_id: AssetId,
        /// 2 to 20 assets without an instance in progress, for a movement. All instances start, or none.
        optional asset_ids: AssetIds,
        /// Values by step key. Stored until their steps are submitted.
        optional step_data: StepData,
        /// Key of a step. All steps up to and including it are submitted with the start.
        optional through: String,
    }
    read_only: &[]
}

shared::body! {
    /// Step data to submit.
    pub struct Advance as StepSubmission {
        /// Values by step key: the open step's, and optionally values of later steps, which are stored until then. Values of
        /// earlier steps can be sent again if unchanged.
        required step_data: StepData,
        /// Index of the step that you expect to be open. If another step is open, nothing is submitted.
        optional current_step: StepIndex,
        /// Key of the open step or a later one. Submits all steps up to and including it. Default: the open step.
        optional through: String,
    }
    read_only: &[]
}

shared::body! {
    /// Options for cancelling.
    pub struct Cancel as Cancellation {
        /// Reason for the cancellation.
        nullable reason: Notes,
    }
    read_only: &[]
}

/// Data to omit from a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = OmittedField)]
pub enum Omit {
    /// Images of signatures. Their paths are returned instead.
    Signatures,
}

impl FromParam for Omit {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "signatures" { Ok(Self::Signatures) } else { Err(ValueError::new("must be signatures")) }
    }
}

shared::query! {
    /// How to show a process instance.
    pub struct ShowQuery {
        /// `signatures` returns their paths instead of their images.
        omit: Omit as Omit,
    }
}

/// A process instance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProcessInstance)]
pub struct InstanceView {
    /// The version in the `ETag`.
    #[serde(skip)]
    pub(crate) version: u64,
    /// ID.
    pub(crate) id: InstanceId,
    /// Process definition.
    process_id: ProcessId,
    /// Asset.
    asset_id: AssetId,
    /// Movement that the instance is part of.
    #[schema(required)]
    movement_id: Option<MovementId>,
    /// Status.
    pub(crate) status: InstanceStatus,
    /// Index of the open step, from zero. After completion, index of the last step.
    pub(crate) current_step: usize,
    /// Submitted values by step key.
    #[schema(value_type = StepData)]
    step_data: Map<String, Value>,
    /// Name of the process at the start.
    process_name: Name,
    /// Name of the asset at the start.
    asset_name: Name,
    /// Asset tag.
    asset_tag: String,
    /// API key that started it.
    #[schema(required)]
    started_by: Option<ApiKeyId>,
    /// Name of the key's user, or else of the key.
    started_by_name: String,
    /// Time of the start.
    started_at: Timestamp,
    /// Time of completion.
    #[schema(required)]
    completed_at: Option<Timestamp>,
    /// Time of cancellation.
    #[schema(required)]
    cancelled_at: Option<Timestamp>,
    /// Reason for the cancellation.
    #[schema(required)]
    cancel_reason: Option<Notes>,
    /// Steps that the instance was started with.
    steps: Vec<Step>,
}

impl InstanceView {
    /// `image` returns a signature's image. If it returns `None`, the view has the image's path.
    pub(crate) fn new(stored: Stored<Instance>, image: impl Fn(&ImageName) -> Option<Vec<u8>>) -> Self {
        let instance = stored.value;
        let mut step_data = instance.step_values.as_map().clone();
        for (name, _) in instance.signatures() {
            let shown = image(&name).map_or_else(|| instance.signature_path(&name.step), |bytes| data_url(&bytes));
            step_data.insert(name.step, json!(shown));
        }
        let (status, current_step) = (instance.status(), instance.current_step());
        let (completed_at, cancelled_at, cancel_reason) = match instance.state {
            State::InProgress { .. } => (None, None, None),
            State::Completed { at } => (Some(at), None, None),
            State::Cancelled { at, reason, .. } => (None, Some(at), reason),
        };
        Self {
            version: stored.version,
            id: instance.id,
            process_id: instance.process_id,
            asset_id: instance.asset_id,
            movement_id: instance.movement_id,
            status,
            current_step,
            step_data,
            process_name: instance.process_name,
            asset_name: instance.asset_name,
            asset_tag: instance.asset_tag,
            started_by: instance.started_by,
            started_by_name: instance.started_by_name,
            started_at: stored.created_at,
            completed_at,
            cancelled_at,
            cancel_reason,
            steps: instance.steps.as_slice().to_vec(),
        }
    }
}

/// A movement: one process on several assets at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Movement)]
pub struct MovementView {
    /// ID.
    pub(crate) id: MovementId,
    /// Movement number.
    #[schema(examples("MOV-000001"))]
    number: String,
    /// Process definition.
    process_id: ProcessId,
    /// Name of the process at the start.
    process_name: Name,
    /// `in_progress` while any instance is, else `completed` if any instance is, else `cancelled`.
    status: InstanceStatus,
    /// Index of the open step, from zero. After completion, index of the last step.
    current_step: usize,
    /// One instance for each asset.
    instances: Vec<InstanceView>,
    /// API key that started it.
    #[schema(required)]
    started_by: Option<ApiKeyId>,
    /// Name of the key's user, or else of the key.
    started_by_name: String,
    /// Time of the start.
    started_at: Timestamp,
}

impl MovementView {
    pub(crate) fn new(stored: Stored<Movement>, instances: Vec<InstanceView>) -> Self {
        let Movement { id, number, process_id, process_name, started_by, started_by_name, .. } = stored.value;
        let (status, current_step) = overall_status(instances.iter().map(|instance| (instance.status, instance.current_step)));
        let started_at = stored.created_at;
        Self { id, number, process_id, process_name, status, current_step, instances, started_by, started_by_name, started_at }
    }
}

/// The new instance, for `asset_id`, or the new movement, for `asset_ids`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum InstanceOrMovement {
    Instance(Box<InstanceView>),
    Movement(Box<MovementView>),
}

impl PartialSchema for InstanceOrMovement {
    fn schema() -> RefOr<Schema> {
        let text = "The new process instance, for `asset_id`, or the new movement, for `asset_ids`, with all fields.";
        either::<InstanceView, MovementView>(text).into()
    }
}

impl ToSchema for InstanceOrMovement {
    fn name() -> Cow<'static, str> {
        "StartedProcess".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        MovementView::schemas(schemas);
    }
}

/// A response that shows an instance, a movement, or either.
pub(crate) trait SubjectResponse: Success + Sized {
    /// `movement` is `None` for a single instance. Returns `None` if the response is of the other kind.
    fn new(movement: Option<Stored<Movement>>, instances: Vec<InstanceView>) -> Option<Self>;
}

impl SubjectResponse for Versioned<InstanceView> {
    fn new(movement: Option<Stored<Movement>>, mut instances: Vec<InstanceView>) -> Option<Self> {
        let view = instances.pop().filter(|_| movement.is_none())?;
        Some(Self { version: view.version, data: view })
    }
}

impl SubjectResponse for Data<MovementView> {
    fn new(movement: Option<Stored<Movement>>, instances: Vec<InstanceView>) -> Option<Self> {
        Some(Self { data: MovementView::new(movement?, instances) })
    }
}

impl SubjectResponse for Created<InstanceOrMovement> {
    fn new(movement: Option<Stored<Movement>>, mut instances: Vec<InstanceView>) -> Option<Self> {
        if let Some(movement) = movement {
            let view = MovementView::new(movement, instances);
            return Some(Self::new("movements", view.id, InstanceOrMovement::Movement(Box::new(view))));
        }
        let view = instances.pop()?;
        Some(Self::new("processes/instances", view.id, InstanceOrMovement::Instance(Box::new(view))))
    }
}

fn not_shown() -> StoreError {
    StoreError::broken("a response of the wrong kind")
}

/// Returns the images that fit into a response. The others are shown as paths.
pub(crate) fn shown_images(instances: &[Stored<Instance>]) -> Result<BTreeSet<ImageName>, StoreError> {
    let without_images = |instance: &Stored<Instance>| {
        serde_json::to_vec(&InstanceView::new(instance.clone(), |_| None)).map(|text| json::escaped_len(&text))
    };
    let mut bytes: usize = instances.iter().map(without_images).sum::<Result<_, _>>().map_err(StoreError::broken)?;
    let mut shown = BTreeSet::new();
    for (name, length) in instances.iter().flat_map(|instance| instance.value.signatures()) {
        bytes += length;
        if bytes <= MAX_BODY_BEFORE_OMISSION {
            shown.insert(name);
        }
    }
    Ok(shown)
}

/// Includes as many signatures as fit into a response.
pub(crate) async fn views(
    store: &TenantStore,
    instances: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, StoreError> {
    let shown = if omit_signatures { BTreeSet::new() } else { shown_images(&instances)? };
    let images = store.signature_images(shown).await?;
    let view = |instance| InstanceView::new(instance, |name| images.get(name).cloned());
    Ok(instances.into_iter().map(view).collect())
}

/// Includes as many signatures as fit into a response.
pub(crate) async fn respond<R: SubjectResponse>(
    store: &TenantStore,
    subject: impl Into<Subject>,
    omit_signatures: bool,
) -> Result<R, ApiError> {
    let Subject { movement, instances } = subject.into();
    Ok(R::new(movement, views(store, instances, omit_signatures).await?).ok_or_else(not_shown)?)
}

/// The stored form of [`Versioned`] for an instance, and of [`Data`] for a movement.
pub(crate) fn stored_change(subject: &Subject) -> Result<StoredResponse, StoreError> {
    match subject.movement {
        None => stored::<Versioned<InstanceView>>(subject),
        Some(_) => stored::<Data<MovementView>>(subject),
    }
}

/// Builds the stored response. It refers to images and steps, which the table already has.
pub(crate) fn stored<R: SubjectResponse>(subject: &Subject) -> Result<StoredResponse, StoreError> {
    let instances = &subject.instances;
    let shown = shown_images(instances)?;
    let images = instances.iter().flat_map(|instance| {
        let names = instance.value.signatures().map(|(name, _)| name).filter(|name| shown.contains(name));
        names.map(|name| (instance.value.signature_path(&name.step), name))
    });
    let views = instances.iter().map(|instance| InstanceView::new(instance.clone(), |_| None)).collect();
    let stored = R::new(subject.movement.clone(), views).ok_or_else(not_shown)?.to_stored(images.collect())?;
    // The instances of a movement are started together, with the same steps.
    Ok(match instances.first() {
        Some(instance) => stored.naming(&instance.value.steps),
        None => stored,
    })
}
