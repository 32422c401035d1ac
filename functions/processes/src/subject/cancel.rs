//! Cancelling: every instance in progress ends before its last step and frees its asset.

use super::error::process_error;
use super::views::{self, SubjectResponse};
use super::{OpenAssets, Subject};
use crate::subject::wire::Cancel;
use shared::auth::scopes::ProcessesWrite;
use shared::auth::{Caller, Command, Principal};
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::processes::subject::SubjectId;
use shared::domain::request::StoredResponse;
use shared::domain::values::text::Notes;
use shared::http::error::ApiError;
use shared::http::requests::extract::OptionalJsonBody;
use shared::store::{CommitFailure, StoreError, TenantStore, UnitOfWork};

pub(crate) async fn cancel<R: SubjectResponse>(
    caller: Caller<ProcessesWrite>,
    id: SubjectId,
    body: OptionalJsonBody<Cancel>,
) -> Result<R, ApiError> {
    let command = CancelSubject { id, reason: None };
    let inputs = command.read(&caller.store).await?;
    let reason = body.parse(&caller)?.and_then(|body| body.reason.or(None));
    let subject = caller.verified().await?.execute(&CancelSubject { reason, ..command }, inputs).await?;
    views::respond(&caller.store, subject, false).await
}

pub(crate) struct CancelSubject {
    pub(crate) id: SubjectId,
    pub(crate) reason: Option<Notes>,
}

impl Command for CancelSubject {
    type Inputs = (Subject, OpenAssets);
    type Outcome = Subject;

    async fn read(&self, reads: &TenantStore) -> Result<Self::Inputs, ApiError> {
        let subject = Subject::read(reads, self.id).await?;
        let assets = OpenAssets::read(reads, &subject).await?;
        Ok((subject, assets))
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        (subject, assets): &Self::Inputs,
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

    fn stored_response(&self, subject: &Subject) -> Result<StoredResponse, StoreError> {
        views::stored_change(subject)
    }
}
