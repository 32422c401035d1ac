//! A submission together with its signing link: both change in one transaction.

use super::session::Session;
use super::session_wire::SessionView;
use crate::commands::{AdvanceInputs, AdvanceInstance};
use crate::link_subject::representative;
use crate::movement_commands::{AdvanceMovement, ChangedMovement, MovementInputs};
use crate::submission::{Submission, value_error};
use serde_json::{Map, Value};
use shared::auth::{Command, Requester};
use shared::domain::processes::instance::Instance;
use shared::domain::processes::movement::position;
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::signing::link::{Link, LinkStatus};
use shared::domain::signing::signature_image::DATA_URL_PREFIX;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::LinkId;
use shared::http::error::ApiError;
use shared::http::response::{Data, Success};
use shared::store::{AttemptError, PointReads, StoreError, UnitOfWork, WriteError};

/// The submission of steps, of one instance or of a movement's.
pub(super) trait Submitting: Command {
    /// Returns what is submitted.
    fn submission(&self) -> &Submission;

    /// Returns the instances as they were read.
    fn before(inputs: &Self::Inputs) -> &[Stored<Instance>];

    /// Returns the instances as they are afterwards.
    fn after(outcome: &Self::Outcome) -> &[Stored<Instance>];
}

impl Submitting for AdvanceInstance {
    fn submission(&self) -> &Submission {
        &self.submission
    }

    fn before(inputs: &AdvanceInputs) -> &[Stored<Instance>] {
        std::slice::from_ref(&inputs.instance)
    }

    fn after(instance: &Stored<Instance>) -> &[Stored<Instance>] {
        std::slice::from_ref(instance)
    }
}

impl Submitting for AdvanceMovement {
    fn submission(&self) -> &Submission {
        &self.submission
    }

    fn before(inputs: &MovementInputs) -> &[Stored<Instance>] {
        &inputs.instances
    }

    fn after((_, instances): &ChangedMovement) -> &[Stored<Instance>] {
        instances
    }
}

/// A submission with a signing link.
pub(super) struct ThroughLink<C> {
    pub(super) submitted: C,
    pub(super) link: LinkId,
    /// What the response shows besides the link and the instances.
    pub(super) session: Session,
}

impl<C: Submitting> ThroughLink<C> {
    /// Returns the session after the submission.
    pub(super) fn view(&self, (outcome, link): &(C::Outcome, Stored<Link>)) -> Result<SessionView, ApiError> {
        self.session.view(&link.value, C::after(outcome))
    }

    async fn read_link(&self, reads: &PointReads) -> Result<Stored<Link>, ApiError> {
        reads.get::<Link>(self.link).await?.ok_or(ApiError::BadLink(None))
    }
}

impl<C: Submitting + Send> Command for ThroughLink<C>
where
    C::Inputs: Sync,
    C::Outcome: Sync,
{
    type Inputs = (C::Inputs, Stored<Link>);
    type Outcome = (C::Outcome, Stored<Link>);

    async fn read(&self, reads: &PointReads) -> Result<Self::Inputs, ApiError> {
        tokio::try_join!(self.submitted.read(reads), self.read_link(reads))
    }

    async fn reread(&self, (previous, _): Self::Inputs, reads: &PointReads) -> Result<Self::Inputs, ApiError> {
        tokio::try_join!(self.submitted.reread(previous, reads), self.read_link(reads))
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        (inputs, link): &Self::Inputs,
    ) -> Result<Self::Outcome, AttemptError<ApiError>> {
        let (instances, now) = (C::before(inputs), requester.context.at);
        let status = link.value.status(now, position(instances));
        if status != LinkStatus::Open {
            return Err(ApiError::BadLink(Some(status)).into());
        }
        let (submission, instance) = (self.submitted.submission(), &representative(instances)?.value);
        let last = submission.last_step(instance).ok_or(ApiError::BadLink(Some(LinkStatus::Ended)))?;
        let next = link.value.submitted(last, now);
        let link = if next == link.value {
            // It must not have been revoked.
            unit.expect(link)?;
            link.clone()
        } else {
            unit.update(link, next)?
        };
        let outcome = self.submitted.decide(requester, unit, inputs)?;
        // Last: what is wrong with the submission itself is more to the point.
        let unsigned = unsigned(instance, last, &submission.data);
        if unsigned.is_empty() { Ok((outcome, link)) } else { Err(ApiError::Invalid(unsigned).into()) }
    }

    fn stored_response(&self, outcome: &Self::Outcome) -> Result<StoredResponse, StoreError> {
        Data { data: self.view(outcome).map_err(StoreError::broken)? }.to_stored(Vec::new())
    }

    fn judge(&self, error: WriteError, (outcome, _): &Self::Outcome) -> AttemptError<ApiError> {
        self.submitted.judge(error, outcome)
    }
}

/// Returns an error for each signature step up to the step `last` that has a value which is not in `data`: what others have
/// stored there ahead must not count as the signer's.
fn unsigned(instance: &Instance, last: usize, data: &Map<String, Value>) -> Vec<FieldError> {
    let steps = instance.steps.as_slice().iter().take(last + 1).skip(instance.current_step());
    let is_sent = |step: &Step| match data.get(&step.key) {
        Some(Value::String(text)) => text.starts_with(DATA_URL_PREFIX),
        Some(_) => true,
        None => !instance.step_values.as_map().contains_key(&step.key),
    };
    let unsigned = steps.filter(|step| step.kind == StepKind::Signature && !is_sent(step));
    unsigned.map(|step| value_error(&step.key, "must be the image of your own signature: a stored one does not count")).collect()
}
