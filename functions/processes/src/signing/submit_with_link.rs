//! A submission together with its signing link: both change in one transaction.

use super::session::Session;
use super::session_wire::SessionView;
use crate::subject::Subject;
use crate::subject::advance::{AdvanceInputs, AdvanceSubject};
use crate::subject::submission::value_error;
use serde_json::{Map, Value};
use shared::auth::{Command, Principal};
use shared::domain::processes::instance::Instance;
use shared::domain::processes::process::Step;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::signing::link::{Link, LinkStatus};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::LinkId;
use shared::domain::values::signature_image::DATA_URL_PREFIX;
use shared::http::error::ApiError;
use shared::http::responses::{Data, Success};
use shared::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};

pub(super) struct SubmitWithLink {
    pub(super) submitted: AdvanceSubject,
    pub(super) link: LinkId,
    pub(super) session: Session,
}

impl SubmitWithLink {
    pub(super) fn view(&self, (subject, link): &(Subject, Stored<Link>)) -> Result<SessionView, ApiError> {
        self.session.view(&link.value, subject)
    }

    async fn read_link(&self, reads: &TenantStore) -> Result<Stored<Link>, ApiError> {
        reads.get::<Link>(self.link).await?.ok_or(ApiError::BadLink(None))
    }
}

impl Command for SubmitWithLink {
    type Inputs = (AdvanceInputs, Stored<Link>);
    type Outcome = (Subject, Stored<Link>);

    async fn read(&self, reads: &TenantStore) -> Result<Self::Inputs, ApiError> {
        tokio::try_join!(self.submitted.read(reads), self.read_link(reads))
    }

    async fn reread(&self, (previous, _): Self::Inputs, principal: &Principal) -> Result<Self::Inputs, ApiError> {
        tokio::try_join!(self.submitted.reread(previous, principal), self.read_link(&principal.store))
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        (inputs, link): &Self::Inputs,
    ) -> Result<Self::Outcome, CommitFailure<ApiError>> {
        let (submission, now) = (&self.submitted.submission, principal.context.at);
        let status = link.value.status(now, inputs.subject.position());
        if status != LinkStatus::Open {
            return Err(ApiError::BadLink(Some(status)).into());
        }
        let instance = &inputs.subject.representative()?.value;
        let last = submission.last_step(instance).ok_or(ApiError::BadLink(Some(LinkStatus::Ended)))?;
        let next = link.value.submitted(last, now);
        let link = if next == link.value {
            // It must not have been revoked.
            unit.expect(link);
            link.clone()
        } else {
            unit.update(link, next)?
        };
        let outcome = self.submitted.decide(principal, unit, inputs)?;
        // Last: what is wrong with the submission itself is more to the point.
        let unsigned = unsigned(instance, last, &submission.data);
        if unsigned.is_empty() { Ok((outcome, link)) } else { Err(ApiError::Invalid(unsigned).into()) }
    }

    fn stored_response(&self, outcome: &Self::Outcome) -> Result<StoredResponse, StoreError> {
        Data { data: self.view(outcome).map_err(StoreError::broken)? }.to_stored(Vec::new())
    }

    fn classify_failure(&self, error: WriteError, (outcome, _): &Self::Outcome) -> CommitFailure<ApiError> {
        self.submitted.classify_failure(error, outcome)
    }
}

/// An error for each signature step up to the step `last` that has a value which is not in `data`: a value that others have
/// stored ahead must not count as the signer's.
fn unsigned(instance: &Instance, last: usize, data: &Map<String, Value>) -> Vec<FieldError> {
    let steps = instance.steps.as_slice().iter().take(last + 1).skip(instance.current_step());
    let is_sent = |step: &Step| match data.get(&step.key) {
        Some(Value::String(text)) => text.starts_with(DATA_URL_PREFIX),
        Some(_) => true,
        None => !instance.step_values.as_map().contains_key(&step.key),
    };
    let unsigned = steps.filter(|step| step.is_signature() && !is_sent(step));
    unsigned.map(|step| value_error(&step.key, "must be the image of your own signature: a stored one does not count")).collect()
}
