//! Submits steps to a subject, which is a single process instance or a movement with all its instances, and cancels subjects. All
//! instances in progress change in one transaction, with their assets and images. Also bodies, views and stored responses.

pub(crate) mod start;

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::auth::caller::ProcessesWrite;
use shared::auth::{Caller, Principal};
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{
    AdvanceOutcome, ImageName, Instance, InstanceStatus, ProcessError, Signed, State, SubjectId, candidate_users,
    data_for_instance, overall_status, position,
};
use shared::domain::processes::movement::{AssetIds, Movement};
use shared::domain::processes::process::Step;
use shared::domain::record::{RecordVersion, Stored, StoredResponse};
use shared::domain::tenants::tenant::Language;
use shared::domain::user::User;
use shared::domain::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token};
use shared::domain::values::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId, UserId};
use shared::domain::values::json;
use shared::domain::values::signature_image::{DecodedImages, SignatureImage, data_url};
use shared::domain::values::text::{Name, Notes};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::either;
use shared::http::requests::body::{BoundedInteger, JsonBody, OptionalJsonBody, StepData};
use shared::http::requests::params::FromParam;
use shared::http::responses::{ApiError, ConflictCode, Created, Data, Success, Versioned, or_not_found};
use shared::store::{BatchGet, BatchResult, CommitFailure, MAX_BODY_BEFORE_OMISSION, Reader, StoreError, UnitOfWork, WriteError};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// A single process instance, or a movement with its instances.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) movement: Option<Stored<Movement>>,
    pub(crate) instances: Vec<Stored<Instance>>,
}

impl From<Stored<Instance>> for Subject {
    fn from(instance: Stored<Instance>) -> Self {
        Self { movement: None, instances: vec![instance] }
    }
}

impl Subject {
    pub(crate) async fn read(reads: &Reader, id: SubjectId) -> Result<Self, ApiError> {
        Ok(Self::read_with(reads, id, BatchGet::new()).await?.0)
    }

    /// Also reads `others`, in the batch that reads the instances.
    pub(crate) async fn read_with(reads: &Reader, id: SubjectId, others: BatchGet) -> Result<(Self, BatchResult), ApiError> {
        let movement = match id {
            SubjectId::Instance(_) => None,
            SubjectId::Movement(id) => Some(or_not_found(reads.get::<Movement>(id).await?)?),
        };
        let ids = movement.iter().flat_map(|movement| &movement.value.instance_ids).copied().chain(id.instance());
        let batch = reads.batch_get(others.with_all::<Instance>(ids.clone())).await?;
        let instances = batch.get_all::<Instance>(ids)?;
        if movement.is_none() && instances.is_empty() {
            return Err(ApiError::NotFound);
        }
        Ok((Self { movement, instances }, batch))
    }

    pub(crate) fn position(&self) -> (InstanceStatus, usize) {
        position(&self.instances)
    }

    /// Returns the step that is open in all instances in progress. Fails if it is no longer `first_read`, the step open at the
    /// first read.
    pub(crate) fn open_step(&self, first_read: Option<usize>) -> Result<usize, ProcessError> {
        Err(match (self.position(), first_read) {
            ((InstanceStatus::InProgress, step), None) => return Ok(step),
            ((InstanceStatus::InProgress, step), Some(first)) if step == first => return Ok(step),
            ((InstanceStatus::InProgress | InstanceStatus::Completed, step), Some(_)) => ProcessError::Moved(step),
            ((status, _), _) => ProcessError::Closed(status),
        })
    }

    pub(crate) fn open_instances(&self) -> impl Iterator<Item = &Stored<Instance>> {
        self.instances.iter().filter(|instance| instance.value.status() == InstanceStatus::InProgress)
    }

    /// Returns the first instance in progress, or else the first instance. All instances have the same steps, and all instances
    /// in progress the same values.
    pub(crate) fn representative(&self) -> Result<&Stored<Instance>, ApiError> {
        let instance = self.open_instances().next().or(self.instances.first());
        instance.ok_or_else(|| ApiError::Internal("a movement without instances".into()))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        self.instances.first().map(|it| it.value.steps.as_slice()).unwrap_or_default()
    }

    /// Reads the users who are picked in the instances in progress, and returns the active ones. `known` is a user that was read
    /// already.
    pub(crate) async fn active_picked_users<'a>(
        &self,
        reads: &Reader,
        known: impl IntoIterator<Item = &'a Stored<User>>,
    ) -> Result<BTreeSet<UserId>, ApiError> {
        let mut ids: BTreeSet<UserId> = self.open_instances().flat_map(|instance| instance.value.picked_users()).collect();
        let mut users: Vec<Stored<User>> = known.into_iter().filter(|user| ids.remove(&user.value.id)).cloned().collect();
        if !ids.is_empty() {
            let batch = reads.batch_get(BatchGet::new().with_all::<User>(ids.iter().copied())).await?;
            users.extend(batch.get_all::<User>(ids)?);
        }
        Ok(users.into_iter().filter(|user| user.value.is_active).map(|user| user.value.id).collect())
    }

    /// Fails if a picked user of an instance in progress isn't among the `active` ones.
    pub(crate) fn check_picked_users(&self, active: &BTreeSet<UserId>) -> Result<(), ApiError> {
        self.open_instances().try_for_each(|instance| instance.value.check_picked(active)).map_err(process_error)
    }

    /// Returns the movement, if the subject is just one of its instances.
    pub(crate) fn part_of(&self) -> Option<MovementId> {
        let instance = self.instances.first().filter(|_| self.movement.is_none());
        instance.and_then(|instance| instance.value.movement_id)
    }
}

/// The assets of the instances in progress.
pub(crate) struct OpenAssets(HashMap<AssetId, Stored<Asset>>);

impl OpenAssets {
    pub(crate) async fn read(reads: &Reader, subject: &Subject) -> Result<Self, ApiError> {
        let ids: Vec<AssetId> = subject.open_instances().map(|instance| instance.value.asset_id).collect();
        let batch = reads.batch_get(BatchGet::new().with_all::<Asset>(ids.iter().copied())).await?;
        Ok(Self(batch.get_all::<Asset>(ids)?.into_iter().map(|asset| (asset.value.id, asset)).collect()))
    }

    /// Returns the asset of an instance in progress. Such an asset can't be deleted, so if it is missing, the instance has just
    /// ended.
    pub(crate) fn of(&self, instance: &Instance) -> Result<&Stored<Asset>, CommitFailure<ApiError>> {
        self.0.get(&instance.asset_id).ok_or(CommitFailure::Outdated(WriteError::Stale))
    }
}

pub(crate) fn process_error(error: ProcessError) -> ApiError {
    let (code, detail) = (ConflictCode::from(&error), error.to_string());
    let context = match error {
        ProcessError::Invalid(errors) => return ApiError::Invalid(errors),
        ProcessError::Inactive => json!({}),
        ProcessError::Running(asset, instance) => json!({"instance_id": instance, "asset_id": asset}),
        ProcessError::WrongStatus { asset, actual, required } => {
            json!({"asset_id": asset, "status_of_asset": actual, "trigger_status": required})
        }
        ProcessError::Closed(status) => json!({"instance_status": status}),
        ProcessError::Moved(step) => json!({"current_step": step}),
        ProcessError::Submitted(key) => json!({"step": key}),
        ProcessError::InactiveUser(user) => json!({"user_id": user}),
    };
    ApiError::conflict(code, detail, context)
}

pub(crate) fn part_of_movement(movement: MovementId, advice: &str) -> ApiError {
    let detail = format!("The instance is part of a movement. {advice}");
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement}))
}

pub(crate) async fn advance<R: SubjectResponse>(
    caller: Caller<ProcessesWrite>,
    id: SubjectId,
    body: JsonBody<Advance>,
) -> Result<R, ApiError> {
    let submission = Submission::from(body.parse_with_errors(&caller)?);
    let command = AdvanceSubject { id, submission };
    let inputs = command.read(&caller.store).await?;
    let caller = caller.verified().await?;
    let subject = command.execute(&caller, inputs).await?;
    respond(&caller.store, subject, false).await
}

/// Submits the open step, and maybe following steps, in all instances in progress.
pub(crate) struct AdvanceSubject {
    pub(crate) id: SubjectId,
    pub(crate) submission: Submission,
}

pub(crate) struct AdvanceInputs {
    pub(crate) subject: Subject,
    /// `None` unless the submission completes the instances.
    assets: Option<OpenAssets>,
    /// The active users among those in the step data and those picked before.
    active: BTreeSet<UserId>,
    pub(crate) step_at_first_read: Option<usize>,
}

impl AdvanceSubject {
    /// Adds the changes to all instances in progress. Returns the changed subject.
    fn add(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &AdvanceInputs,
        through: Option<&str>,
    ) -> Result<Subject, CommitFailure<ApiError>> {
        let Subject { movement, instances: before } = &inputs.subject;
        let by = Signed::new(&principal.context.actor, principal.context.at);
        let (mut instances, mut has_images) = (Vec::new(), false);
        for instance in before {
            if instance.value.status() != InstanceStatus::InProgress {
                instances.push(instance.clone());
                continue;
            }
            // The transaction is already too large and will be refused, so skip the rest.
            if !unit.fits() {
                break;
            }
            let own_data = data_for_instance(&instance.value, before, &self.submission.data);
            let next = self.submission.advance(&instance.value, &own_data, through, &inputs.active, &by)?;
            if next.instance.status() == InstanceStatus::Completed {
                let assets = inputs.assets.as_ref().ok_or(CommitFailure::Outdated(WriteError::Stale))?;
                change_asset(unit, assets.of(&instance.value)?, Vec::new(), &next.instance)?;
            }
            // All instances share the images, so only the first instance adds them.
            if !std::mem::replace(&mut has_images, true) {
                put_images(unit, &next.instance, &next.signatures);
            }
            instances.push(unit.update_in_steps(instance, next.versions())?);
        }
        Ok(Subject { movement: movement.clone(), instances })
    }

    async fn execute(&self, principal: &Principal, inputs: AdvanceInputs) -> Result<Subject, ApiError> {
        let step_at_first_read = inputs.step_at_first_read;
        let read = || self.read_again(&principal.store, step_at_first_read);
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let subject = self.decide(principal, &mut unit, &inputs)?;
            let committed = unit.commit_with(|| stored_change(&subject)).await;
            committed.map_err(|error| self.submission.classify_failure(error, &subject)).map(|()| subject)
        };
        principal.retry(inputs, read, attempt).await
    }

    pub(crate) async fn read(&self, reads: &Reader) -> Result<AdvanceInputs, ApiError> {
        let (subject, batch) = Subject::read_with(reads, self.id, self.submission.with_users(BatchGet::new())).await?;
        let sent = self.submission.users(&batch)?;
        let mut active = subject.active_picked_users(reads, &sent).await?;
        active.extend(sent.iter().filter(|user| user.value.is_active).map(|user| user.value.id));
        let completes = subject.open_instances().any(|instance| self.submission.completes(&instance.value));
        let assets = if completes { Some(OpenAssets::read(reads, &subject).await?) } else { None };
        let step_at_first_read = subject.open_step(None).ok();
        Ok(AdvanceInputs { subject, assets, active, step_at_first_read })
    }

    /// Reads after a write conflict. If another step is open than at the first read, the submission is refused.
    pub(crate) async fn read_again(&self, reads: &Reader, step_at_first_read: Option<usize>) -> Result<AdvanceInputs, ApiError> {
        Ok(AdvanceInputs { step_at_first_read, ..self.read(reads).await? })
    }

    pub(crate) fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &AdvanceInputs,
    ) -> Result<Subject, CommitFailure<ApiError>> {
        let (submission, subject) = (&self.submission, &inputs.subject);
        if let Some(movement) = subject.part_of().filter(|_| submission.errors.is_empty()) {
            return Err(part_of_movement(movement, "Advance the movement instead.").into());
        }
        let open_step = subject.open_step(inputs.step_at_first_read);
        let open_step = open_step.or_else(|error| submission.result(Err(error)))?;
        let empty = unit.trial();
        let advanced = self.add(principal, unit, inputs, submission.through.as_deref())?;
        if !unit.fits() {
            let fits = |through: &str| {
                let mut trial = empty.trial();
                self.add(principal, &mut trial, inputs, Some(through)).is_ok() && trial.fits()
            };
            let instance = &subject.representative()?.value;
            return Err(too_many_steps(submission.steps_through(instance, open_step), fits).into());
        }
        Ok(advanced)
    }
}

pub(crate) async fn cancel<R: SubjectResponse>(
    caller: Caller<ProcessesWrite>,
    id: SubjectId,
    body: OptionalJsonBody<Cancel>,
) -> Result<R, ApiError> {
    let command = CancelSubject { id, reason: None };
    let inputs = command.read(&caller.store).await?;
    let reason = body.parse(&caller)?.and_then(|body| body.reason.or(None));
    let caller = caller.verified().await?;
    let subject = CancelSubject { reason, ..command }.execute(&caller, inputs).await?;
    respond(&caller.store, subject, false).await
}

/// Cancels all instances in progress, which frees their assets.
pub(crate) struct CancelSubject {
    pub(crate) id: SubjectId,
    pub(crate) reason: Option<Notes>,
}

impl CancelSubject {
    pub(crate) async fn execute(&self, principal: &Principal, inputs: (Subject, OpenAssets)) -> Result<Subject, ApiError> {
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let subject = self.decide(principal, &mut unit, &inputs)?;
            unit.commit_with(|| stored_change(&subject)).await?;
            Ok(subject)
        };
        principal.retry(inputs, || self.read(&principal.store), attempt).await
    }

    pub(crate) async fn read(&self, reads: &Reader) -> Result<(Subject, OpenAssets), ApiError> {
        let subject = Subject::read(reads, self.id).await?;
        let assets = OpenAssets::read(reads, &subject).await?;
        Ok((subject, assets))
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        (subject, assets): &(Subject, OpenAssets),
    ) -> Result<Subject, CommitFailure<ApiError>> {
        subject.open_step(None).map_err(process_error)?;
        let mut cancelled = subject.clone();
        for instance in cancelled.instances.iter_mut().filter(|it| it.value.status() == InstanceStatus::InProgress) {
            let asset = assets.of(&instance.value)?;
            let next = instance.value.cancelled(self.reason.clone(), principal.context.at).map_err(process_error)?;
            unit.update(asset, next.asset_after(&asset.value))?;
            *instance = unit.update(instance, next)?;
        }
        Ok(cancelled)
    }
}

pub(crate) struct Submission {
    pub(crate) data: Map<String, Value>,
    /// The step that the client expects to be open.
    pub(crate) expected_step: Option<usize>,
    /// Key of the last step to submit. By default, an advance submits one step and a start none.
    pub(crate) through: Option<String>,
    /// Errors found in the request so far. Later errors are reported together with them.
    pub(crate) errors: Vec<FieldError>,
    pub(crate) images: DecodedImages,
    /// Language of the statements shown to a signer. `None` for an API key.
    pub(crate) language: Option<Language>,
}

impl From<(Advance, Vec<FieldError>)> for Submission {
    fn from((body, errors): (Advance, Vec<FieldError>)) -> Self {
        let expected_step = body.current_step.map(|step| step.0 as usize);
        Self { expected_step, ..Self::at_start(Some(body.step_data), body.through, errors) }
    }
}

pub(crate) struct Beginning {
    pub(crate) created: Instance,
    /// The instance after each step submitted with the start.
    pub(crate) later: Vec<Instance>,
    pub(crate) signatures: BTreeMap<String, SignatureImage>,
}

impl Beginning {
    /// Returns the instance after all submitted steps.
    pub(crate) fn last(&self) -> &Instance {
        self.later.last().unwrap_or(&self.created)
    }
}

impl Submission {
    pub(crate) fn at_start(step_data: Option<StepData>, through: Option<String>, errors: Vec<FieldError>) -> Self {
        let data = step_data.map(|data| data.0).unwrap_or_default();
        Self { data, expected_step: None, through, errors, images: DecodedImages::default(), language: None }
    }

    /// Marks the submission as made by a signer. `typed` has the keys of the signature steps whose images show a typed name.
    pub(crate) fn by_signer(self, typed: Vec<String>, language: Language) -> Self {
        Self { images: DecodedImages::with_typed(typed), language: Some(language), ..self }
    }

    /// Combines the errors of the decision with the errors found earlier.
    fn result<T>(&self, decided: Result<T, ProcessError>) -> Result<T, ApiError> {
        match decided {
            Err(ProcessError::Invalid(more)) => {
                // One error per field is enough.
                let more = more.into_iter().filter(|error| !self.errors.iter().any(|known| known.location == error.location));
                Err(ApiError::Invalid(self.errors.iter().cloned().chain(more).collect()))
            }
            _ if !self.errors.is_empty() => Err(ApiError::Invalid(self.errors.clone())),
            decided => decided.map_err(process_error),
        }
    }

    /// Submits `data` to an instance: the open step, or all steps up to `through`.
    fn advance(
        &self,
        instance: &Instance,
        data: &Map<String, Value>,
        through: Option<&str>,
        active: &BTreeSet<UserId>,
        by: &Signed,
    ) -> Result<AdvanceOutcome, ApiError> {
        let next = self.result(instance.advance(through, data, self.expected_step, active, &self.images, by.at))?;
        let next = next.signed(instance, by);
        Ok(match self.language {
            Some(language) => next.stated(language),
            None => next,
        })
    }

    /// Submits all steps up to `through` with the start of an instance. Without `through`, only stores the values.
    pub(crate) fn begin(
        &self,
        instance: Instance,
        through: Option<&str>,
        active: &BTreeSet<UserId>,
        by: &Signed,
    ) -> Result<Beginning, ApiError> {
        if through.is_some() {
            let next = self.advance(&instance, &self.data, through, active, by)?;
            return Ok(Beginning { created: instance, later: next.versions(), signatures: next.signatures });
        }
        let kept = self.result(instance.clone().with_values(&self.data, active, &self.images))?;
        let AdvanceOutcome { instance: created, signatures, .. } = kept.signed(&instance, by);
        Ok(Beginning { created, later: Vec::new(), signatures })
    }

    /// Adds all users that the data could pick, so that they are read together with the instance: only the instance shows which
    /// steps pick users.
    pub(crate) fn with_users(&self, batch: BatchGet) -> BatchGet {
        batch.with_all::<User>(candidate_users(&self.data))
    }

    fn users(&self, batch: &BatchResult) -> Result<Vec<Stored<User>>, StoreError> {
        batch.get_all::<User>(candidate_users(&self.data))
    }

    pub(crate) fn active_users(&self, batch: &BatchResult) -> Result<BTreeSet<UserId>, StoreError> {
        let users = self.users(batch)?.into_iter();
        Ok(users.filter(|user| user.value.is_active).map(|user| user.value.id).collect())
    }

    fn completes(&self, instance: &Instance) -> bool {
        self.last_step(instance).is_some_and(|last| last + 1 == instance.steps.as_slice().len())
    }

    /// Returns the index of the last step that the submission would close, or `None` for an instance that has ended.
    pub(crate) fn last_step(&self, instance: &Instance) -> Option<usize> {
        let last = self.through.as_deref().and_then(|key| instance.index_of(key));
        instance.open_step().ok().map(|open| open.max(last.unwrap_or(open)))
    }

    pub(crate) fn steps_through<'a>(&self, instance: &'a Instance, first: usize) -> &'a [Step] {
        let last = self.through.as_deref().and_then(|key| instance.index_of(key));
        last.and_then(|last| instance.steps.as_slice().get(first..=last)).unwrap_or_default()
    }

    /// Takes the uncommitted result as `subject`.
    pub(crate) fn classify_failure(&self, error: WriteError, subject: &Subject) -> CommitFailure<ApiError> {
        match error {
            error @ WriteError::MissingReference("assigned_to") => {
                let completed = subject.instances.iter().find(|it| it.value.status() == InstanceStatus::Completed);
                let recipient = completed.and_then(|instance| instance.value.recipient());
                recipient.map_or(error.into(), |user| process_error(ProcessError::InactiveUser(user)).into())
            }
            WriteError::TooLarge if self.through.is_some() => {
                too_much("through", "makes the changes too large for one transaction; submit fewer steps at once").into()
            }
            WriteError::TooLarge if subject.movement.is_some() => too_much(
                "step_data",
                "makes all instances together too large for one transaction; send less with this step, or cancel some instances",
            )
            .into(),
            WriteError::TooLarge => too_much("step_data", "is too large for one transaction; send less at once").into(),
            error => error.into(),
        }
    }
}

pub(crate) fn too_much(field: &str, text: impl Into<String>) -> ApiError {
    ApiError::Invalid(vec![FieldError::field(field, ValueError::coded(ErrorCode::TooMuch, text))])
}

pub(crate) fn value_error(key: &str, reason: impl Into<ValueError>) -> FieldError {
    FieldError::within("step_data", &format!("/{}", pointer_token(key)), reason)
}

/// Returns the error for `steps` that don't fit into one transaction. `fits` returns whether the steps up to a key fit.
pub(crate) fn too_many_steps(steps: &[Step], fits: impl Fn(&str) -> bool) -> ApiError {
    if steps.is_empty() {
        let detail = "has too many users and signatures for one transaction; send less at once";
        return too_much("step_data", detail);
    }
    let most = steps.partition_point(|step| fits(&step.key));
    let fitting = match most.checked_sub(1).and_then(|last| steps.get(last)) {
        Some(last) if most == 1 => format!("the first one fits, {}", last.key),
        Some(last) => format!("the first {most} fit, up to {}", last.key),
        None => "not even one fits, so submit them later".to_owned(),
    };
    let count = if steps.len() == 1 { "1 step, which is".to_owned() } else { format!("{} steps, which are", steps.len()) };
    too_much("through", format!("makes {count} too many changes for one transaction; {fitting}"))
}

/// Changes the asset of an instance to each of `versions` and, if the instance is completed, to the state after completion. The
/// recipient must then be active, even if the asset is already assigned to the recipient.
pub(crate) fn change_asset(
    unit: &mut UnitOfWork<'_>,
    asset: &Stored<Asset>,
    mut versions: Vec<Asset>,
    instance: &Instance,
) -> Result<(), WriteError> {
    if instance.status() == InstanceStatus::Completed {
        if let Some(user) = instance.recipient() {
            unit.require(User::reference("assigned_to", user));
        }
        versions.push(instance.asset_after(versions.last().unwrap_or(&asset.value)));
    }
    unit.update_in_steps(asset, versions).map(|_| ())
}

pub(crate) fn put_images(unit: &mut UnitOfWork<'_>, instance: &Instance, signatures: &BTreeMap<String, SignatureImage>) {
    for (step, image) in signatures {
        unit.put_signature_image(&instance.image_name(step, image.hash()), image);
    }
}

/// Index of a step, from zero.
pub(crate) type StepIndex = BoundedInteger<0, 49>;

shared::body! {
    /// The assets to start a process on. Exactly one of `asset_id` and `asset_ids` is required.
    pub struct Start as ProcessStart {
        /// Asset without an instance in progress.
        optional asset_id: AssetId,
        /// 2 to 20 assets without an instance in progress, for a movement. All instances start, or none.
        optional asset_ids: AssetIds,
        /// Values by step key. Values of steps that are not submitted yet are stored as drafts.
        optional step_data: StepData,
        /// Key of a step. All steps up to and including it are submitted with the start.
        optional through: String,
    }
    read_only: &[]
}

shared::body! {
    /// Step data to submit.
    pub struct Advance as StepSubmission {
        /// Values by step key: the open step's, and optionally values for later steps, which are stored until those steps are
        /// submitted. Values of earlier steps can be sent again if unchanged.
        required step_data: StepData,
        /// Index of the step that you expect to be open. If another step is open, nothing is submitted.
        optional current_step: StepIndex,
        /// Key of the open step or of a later step. Submits all steps up to and including this step. Default: the open step.
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
        if text == "signatures" { Ok(Self::Signatures) } else { Err(ValueError::not_one_of(["signatures"])) }
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
    pub(crate) version: RecordVersion,
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
    /// API key that started the instance.
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
    /// Builds the view. `image` returns a signature's image; if it returns `None`, the view has the image's path.
    pub(crate) fn new(stored: Stored<Instance>, image: impl Fn(&ImageName) -> Option<Vec<u8>>) -> Self {
        let version = stored.tag_version();
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
            version,
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
    /// API key that started the movement.
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
    /// Builds the response. `movement` is `None` for a single instance. Returns `None` if the response can't show this kind.
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
    store: &Reader,
    instances: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, StoreError> {
    let shown = if omit_signatures { BTreeSet::new() } else { shown_images(&instances)? };
    let images = store.signature_images(shown).await?;
    let view = |instance| InstanceView::new(instance, |name| images.get(name).cloned());
    Ok(instances.into_iter().map(view).collect())
}

pub(crate) async fn respond<R: SubjectResponse>(
    store: &Reader,
    subject: impl Into<Subject>,
    omit_signatures: bool,
) -> Result<R, ApiError> {
    let Subject { movement, instances } = subject.into();
    Ok(R::new(movement, views(store, instances, omit_signatures).await?).ok_or_else(not_shown)?)
}

pub(crate) fn stored_change(subject: &Subject) -> Result<StoredResponse, StoreError> {
    match subject.movement {
        None => stored::<Versioned<InstanceView>>(subject),
        Some(_) => stored::<Data<MovementView>>(subject),
    }
}

/// Builds the stored response, which refers to images and steps that the table already has.
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
