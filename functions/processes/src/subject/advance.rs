//! Advancing: all instances in progress change in one transaction, and after their last step their assets as well.

use super::error::part_of_movement;
use super::submission::{Submission, change_asset, put_images, too_many_steps};
use super::views::{self, SubjectResponse};
use super::{OpenAssets, Subject};
use crate::subject::wire::Advance;
use shared::auth::scopes::ProcessesWrite;
use shared::auth::{Caller, Command, Principal};
use shared::domain::processes::instance::{InstanceStatus, Signed};
use shared::domain::processes::movement::data_for_instance;
use shared::domain::processes::subject::SubjectId;
use shared::domain::request::StoredResponse;
use shared::domain::values::id::UserId;
use shared::http::error::ApiError;
use shared::http::requests::extract::JsonBody;
use shared::store::{BatchGet, CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};
use std::collections::BTreeSet;

pub(crate) async fn advance<R: SubjectResponse>(
    caller: Caller<ProcessesWrite>,
    id: SubjectId,
    body: JsonBody<Advance>,
) -> Result<R, ApiError> {
    let submission = Submission::from(body.parse_with_errors(&caller)?);
    let subject = caller.execute(&AdvanceSubject { id, submission }).await?;
    views::respond(&caller.store, subject, false).await
}

/// The submission of the open step of all instances in progress, and perhaps of those that follow.
pub(crate) struct AdvanceSubject {
    pub(crate) id: SubjectId,
    pub(crate) submission: Submission,
}

pub(crate) struct AdvanceInputs {
    pub(crate) subject: Subject,
    /// `None` unless the submission completes the instances.
    assets: Option<OpenAssets>,
    /// Users of the step data who can be picked.
    active: BTreeSet<UserId>,
    /// The step that was open at the first read.
    step_at_first_read: Option<usize>,
}

impl AdvanceSubject {
    /// Adds the changes of all instances in progress. Returns all instances after them.
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
            // More than one transaction holds is refused, so the rest need not be made.
            if !unit.fits() {
                break;
            }
            let own_data = data_for_instance(&instance.value, before, &self.submission.data);
            let next = self.submission.advance(&instance.value, &own_data, through, &inputs.active, &by)?;
            if next.instance.status() == InstanceStatus::Completed {
                let assets = inputs.assets.as_ref().ok_or(CommitFailure::Outdated(WriteError::Stale))?;
                change_asset(unit, assets.of(&instance.value)?, Vec::new(), &next.instance)?;
            }
            // All instances share the images, so only the first one adds them.
            if !std::mem::replace(&mut has_images, true) {
                put_images(principal, unit, &next.instance, &next.signatures);
            }
            instances.push(unit.update_in_steps(instance, next.versions())?);
        }
        Ok(Subject { movement: movement.clone(), instances })
    }
}

impl Command for AdvanceSubject {
    type Inputs = AdvanceInputs;
    type Outcome = Subject;

    async fn read(&self, reads: &TenantStore) -> Result<AdvanceInputs, ApiError> {
        let (subject, batch) = Subject::read_with(reads, self.id, self.submission.with_users(BatchGet::new())).await?;
        let active = self.submission.active_users(&batch)?;
        let completes = subject.open_instances().any(|instance| self.submission.completes(&instance.value));
        let assets = if completes { Some(OpenAssets::read(reads, &subject).await?) } else { None };
        let step_at_first_read = subject.open_step(None).ok();
        Ok(AdvanceInputs { subject, assets, active, step_at_first_read })
    }

    async fn reread(&self, previous: AdvanceInputs, principal: &Principal) -> Result<AdvanceInputs, ApiError> {
        Ok(AdvanceInputs { step_at_first_read: previous.step_at_first_read, ..self.read(&principal.store).await? })
    }

    fn decide(
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

    fn stored_response(&self, subject: &Subject) -> Result<StoredResponse, StoreError> {
        views::stored_change(subject)
    }

    fn classify_failure(&self, error: WriteError, subject: &Subject) -> CommitFailure<ApiError> {
        self.submission.classify_failure(error, subject)
    }
}
