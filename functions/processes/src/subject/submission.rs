//! Submitting step data, with a start or afterwards, and the changes of assets and images.

use super::Subject;
use super::error::process_error;
use crate::subject::wire::Advance;
use serde_json::{Map, Value, json};
use shared::auth::Principal;
use shared::domain::assets::asset::Asset;
use shared::domain::processes::instance::{AdvanceOutcome, Instance, InstanceStatus, ProcessError, Signed, candidate_users};
use shared::domain::processes::process::Step;
use shared::domain::record::Stored;
use shared::domain::tenants::locale::Language;
use shared::domain::user::User;
use shared::domain::values::field_error::{FieldError, pointer_token};
use shared::domain::values::id::UserId;
use shared::domain::values::signature_image::{DecodedImages, SignatureImage};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::requests::body::StepData;
use shared::store::{BatchGet, BatchResult, CommitFailure, StoreError, UnitOfWork, WriteError};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Submission {
    pub(crate) data: Map<String, Value>,
    /// The step that the client expects to be open.
    pub(crate) expected_step: Option<usize>,
    /// The key of the last step to submit. By default an advance submits one step, and a start none.
    pub(crate) through: Option<String>,
    /// Errors of the request that are known already. Those found later are reported together with them.
    pub(crate) errors: Vec<FieldError>,
    pub(crate) images: DecodedImages,
    /// In which a signer reads statements. `None` for an API key.
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
    /// The instance after each step that is submitted at once.
    pub(crate) later: Vec<Instance>,
    pub(crate) signatures: BTreeMap<String, SignatureImage>,
}

impl Beginning {
    /// The instance after all submitted steps.
    pub(crate) fn last(&self) -> &Instance {
        self.later.last().unwrap_or(&self.created)
    }
}

impl Submission {
    pub(crate) fn at_start(step_data: Option<StepData>, through: Option<String>, errors: Vec<FieldError>) -> Self {
        let data = step_data.map(|data| data.0).unwrap_or_default();
        Self { data, expected_step: None, through, errors, images: DecodedImages::default(), language: None }
    }

    /// `typed` are the keys of the signature steps whose image shows a typed name.
    pub(crate) fn by_signer(self, typed: Vec<String>, language: Language) -> Self {
        Self { images: DecodedImages::with_typed(typed), language: Some(language), ..self }
    }

    /// Reports all errors of the request together.
    pub(crate) fn result<T>(&self, decided: Result<T, ProcessError>) -> Result<T, ApiError> {
        match decided {
            Err(ProcessError::Invalid(more)) => {
                // One error is enough for each field.
                let more = more.into_iter().filter(|error| !self.errors.iter().any(|known| known.location == error.location));
                Err(ApiError::Invalid(self.errors.iter().cloned().chain(more).collect()))
            }
            _ if !self.errors.is_empty() => Err(ApiError::Invalid(self.errors.clone())),
            decided => decided.map_err(process_error),
        }
    }

    /// Submits `data` to an instance: the open step, or all steps up to `through`.
    pub(crate) fn advance(
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

    /// Submits the data with the start of an instance: all steps up to `through`. Without it, the values are only kept.
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

    /// Adds the users whom the data may pick. Only the instance has the steps that pick users; this way both are read together.
    pub(crate) fn with_users(&self, batch: BatchGet) -> BatchGet {
        batch.with_all::<User>(candidate_users(&self.data))
    }

    pub(crate) fn active_users(&self, batch: &BatchResult) -> Result<BTreeSet<UserId>, StoreError> {
        let users = batch.get_all::<User>(candidate_users(&self.data))?;
        Ok(users.iter().filter(|user| user.value.is_active).map(|user| user.value.id).collect())
    }

    /// The submission would complete an instance in progress, and so change its asset.
    pub(crate) fn completes(&self, instance: &Instance) -> bool {
        self.last_step(instance).is_some_and(|last| last + 1 == instance.steps.as_slice().len())
    }

    /// The index of the last step that the submission would close; `None` for an instance that has ended.
    pub(crate) fn last_step(&self, instance: &Instance) -> Option<usize> {
        let last = self.through.as_deref().and_then(|key| instance.index_of(key));
        instance.open_step().ok().map(|open| open.max(last.unwrap_or(open)))
    }

    pub(crate) fn steps_through<'a>(&self, instance: &'a Instance, first: usize) -> &'a [Step] {
        let last = self.through.as_deref().and_then(|key| instance.index_of(key));
        last.and_then(|last| instance.steps.as_slice().get(first..=last)).unwrap_or_default()
    }

    /// The meaning of a failed commit: another attempt, or an error. `subject` is as it would have been.
    pub(crate) fn classify_failure(&self, error: WriteError, subject: &Subject) -> CommitFailure<ApiError> {
        let too_large = |field, detail: &str| invalid(field, detail.to_owned()).into();
        match error {
            WriteError::MissingReference("assigned_to") => {
                let completed = subject.instances.iter().find(|it| it.value.status() == InstanceStatus::Completed);
                recipient_inactive(completed.and_then(|instance| instance.value.recipient())).into()
            }
            WriteError::TooLarge if self.through.is_some() => {
                too_large("through", "makes the changes too large for one transaction; submit fewer steps at once")
            }
            WriteError::TooLarge if subject.movement.is_some() => too_large(
                "step_data",
                "makes all instances together too large for one transaction; send less with this step, or cancel some instances",
            ),
            WriteError::TooLarge => too_large("step_data", "is too large for one transaction; send less at once"),
            error => error.into(),
        }
    }
}

pub(crate) fn invalid(field: &str, detail: String) -> ApiError {
    ApiError::Invalid(vec![FieldError::field(field, detail)])
}

pub(crate) fn value_error(key: &str, detail: impl Into<String>) -> FieldError {
    FieldError::within("step_data", &format!("/{}", pointer_token(key)), detail)
}

/// One transaction does not hold all `steps`. `fits` tells whether those up to one with this key fit.
pub(crate) fn too_many_steps(steps: &[Step], fits: impl Fn(&str) -> bool) -> ApiError {
    if steps.is_empty() {
        let detail = "has too many users and signatures for one transaction; send less at once";
        return invalid("step_data", detail.to_owned());
    }
    let most = steps.partition_point(|step| fits(&step.key));
    let fitting = match most.checked_sub(1).and_then(|last| steps.get(last)) {
        Some(last) if most == 1 => format!("the first one fits, {}", last.key),
        Some(last) => format!("the first {most} fit, up to {}", last.key),
        None => "not even one fits, so submit them later".to_owned(),
    };
    let count = if steps.len() == 1 { "1 step, which is".to_owned() } else { format!("{} steps, which are", steps.len()) };
    invalid("through", format!("makes {count} too many changes for one transaction; {fitting}"))
}

/// Changes the asset of an instance: to each of `versions`, and to its state after the completed instance. The recipient must be
/// active, even if the asset is assigned to them already.
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

pub(crate) fn put_images(
    principal: &Principal,
    unit: &mut UnitOfWork<'_>,
    instance: &Instance,
    signatures: &BTreeMap<String, SignatureImage>,
) {
    for (step, image) in signatures {
        unit.put_signature_image(&principal.store, &instance.image_name(step, image.hash()), image);
    }
}

/// The recipient of the last step has become inactive.
fn recipient_inactive(user: Option<UserId>) -> ApiError {
    let detail = "The picked user is no longer active. Activate the user, or cancel the instance.";
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"user_id": user}))
}
