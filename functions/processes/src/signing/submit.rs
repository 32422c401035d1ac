//! The endpoint that submits steps as a signer. The subject and the signing link change in one transaction.

use super::session::{Session, SessionView};
use crate::subject::StepIndex;
use crate::subject::{AdvanceInputs, AdvanceSubject, Subject, Submission, value_error};
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};
use shared::auth::{Principal, Signer};
use shared::domain::processes::instance::Instance;
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::record::{Stored, StoredResponse};
use shared::domain::signing::{Link, LinkStatus, LinkSteps};
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use shared::domain::values::id::{LinkId, UserId};
use shared::domain::values::signature_image::DATA_URL_PREFIX;
use shared::http::openapi::{InputErrors, SubmissionConflict};
use shared::http::requests::body::{JsonBody, StepData, StepKeys};
use shared::http::responses::html::AcceptedLanguage;
use shared::http::responses::{ApiError, Data, Success};
use shared::store::{CommitFailure, Reader, StoreError, UnitOfWork};

shared::body! {
    /// Step data to submit with a signing link.
    pub struct SubmissionBody as SigningSubmission {
        /// Values by step key, for steps of the link. A `user_picker` also accepts the e-mail address of an active user.
        required step_data: StepData,
        /// Index of the step that you expect to be open. If another step is open, nothing is submitted.
        optional current_step: StepIndex,
        /// Key of the open step or of a later step of the link. Submits all steps up to and including this step. Default: the
        /// open step.
        optional through: String,
        /// Keys of signature steps whose image shows a typed name.
        optional typed_signatures: StepKeys,
    }
    read_only: &[]
}

/// Submit steps with a signing link
///
/// Submits the open step, and any following steps up to `through`, as the signer. Returns the resulting session.
#[utoipa::path(post, path = "/sign/advance", tag = "signing", security(("signing_link" = [])), responses(InputErrors, SubmissionConflict))]
pub async fn submit_with_link(
    signer: Signer,
    language: AcceptedLanguage,
    body: JsonBody<SubmissionBody>,
) -> Result<Data<SessionView>, ApiError> {
    let (store, link) = (&signer.store, &signer.link.value);
    let (body, mut errors) = body.parse_with_errors(&signer)?;
    // For a retry, the middleware replaces this error with the stored response.
    if link.own_status(store.now()) == LinkStatus::Used {
        return Err(ApiError::BadLink(Some(LinkStatus::Used)));
    }
    let mut session = Session::read(store, link, language).await?;
    errors.extend(not_opened(&link.steps, session.subject.steps(), &body));
    let SubmissionBody { step_data, current_step, through, typed_signatures } = body;
    let data = with_users(store, &mut session, &link.steps, step_data.0, &mut errors).await?;
    let typed = typed_signatures.map(|keys| keys.0).unwrap_or_default();
    let submission = Submission {
        expected_step: current_step.map(|step| step.0 as usize),
        ..Submission::at_start(Some(StepData(data)), through, errors)
    };
    let submission = submission.by_signer(typed, session.language);
    let submitted = AdvanceSubject { id: link.subject, submission };
    let command = SubmitWithLink { submitted, session, link: link.id };
    let inputs = tokio::try_join!(command.submitted.read(store), command.read_link(store))?;
    let outcome = command.execute(&signer.verified().await?, inputs).await?;
    Ok(Data { data: command.view(&outcome)? })
}

/// Returns an error for each submitted step outside the link.
fn not_opened(opened: &LinkSteps, steps: &[Step], body: &SubmissionBody) -> Vec<FieldError> {
    let is_opened = |key: &str| steps.iter().position(|step| step.key == key).is_some_and(|index| opened.contains(index));
    let keys: Vec<&str> = steps.iter().map(|step| step.key.as_str()).filter(|key| is_opened(key)).collect();
    let detail = format!("must be the key of a step of this link: {}", keys.join(", "));
    let through = body.through.as_deref().filter(|key| !is_opened(key)).map(|_| FieldError::field("through", detail.clone()));
    let values = body.step_data.0.keys().filter(|key| !is_opened(key));
    let typed = body.typed_signatures.iter().flat_map(|keys| &keys.0).enumerate().filter(|(_, key)| !is_opened(key));
    let typed = typed.map(|(place, _)| FieldError::within("typed_signatures", &format!("/{place}"), detail.clone()));
    values.map(|key| value_error(key, detail.clone())).chain(through).chain(typed).collect()
}

/// Replaces e-mail addresses with user IDs, because the signer can't list users. Adds the names of all picked users to the
/// session.
async fn with_users(
    reads: &Reader,
    session: &mut Session,
    opened: &LinkSteps,
    mut data: Map<String, Value>,
    errors: &mut Vec<FieldError>,
) -> Result<Map<String, Value>, ApiError> {
    // Steps outside the link must not reveal whether an address is known.
    let steps = session.subject.steps().iter().enumerate().filter(|(index, _)| opened.contains(*index));
    let pickers = steps.filter(|(_, step)| step.kind == StepKind::UserPicker);
    let picked = pickers.filter_map(|(_, step)| Some((step.key.clone(), data.get(&step.key)?.as_str()?)));
    let found = try_join_all(picked.map(async |(key, text)| match text.parse::<UserId>() {
        Ok(id) if session.knows(id) => Ok(None),
        Ok(id) => {
            let user = StoreError::tolerate_unreadable(reads.get::<User>(id).await)?;
            Ok::<_, ApiError>(Some((key, user.filter(|user| user.value.is_active))))
        }
        // Values that aren't addresses are reported as invalid IDs.
        Err(_) if !text.contains('@') => Ok(None),
        Err(_) => {
            let user = match text.parse::<Email>() {
                Ok(email) => reads.user_by_email(&email).await?,
                Err(_) => None,
            };
            Ok(Some((key, user.filter(|user| user.value.is_active))))
        }
    }));
    for (key, user) in found.await?.into_iter().flatten() {
        match user {
            Some(user) => {
                session.learn(&user.value);
                data.insert(key, json!(user.value.id));
            }
            None => {
                let text = "must be the e-mail address or the ID of an active user of this organization";
                errors.push(value_error(&key, ValueError::coded(ErrorCode::UnknownReference, text)));
            }
        }
    }
    Ok(data)
}

type SubmitInputs = (AdvanceInputs, Stored<Link>);

struct SubmitWithLink {
    submitted: AdvanceSubject,
    link: LinkId,
    session: Session,
}

impl SubmitWithLink {
    fn view(&self, (subject, link): &(Subject, Stored<Link>)) -> Result<SessionView, ApiError> {
        self.session.view(&link.value, subject)
    }

    async fn read_link(&self, reads: &Reader) -> Result<Stored<Link>, ApiError> {
        reads.get::<Link>(self.link).await?.ok_or(ApiError::BadLink(None))
    }

    async fn execute(&self, principal: &Principal, inputs: SubmitInputs) -> Result<(Subject, Stored<Link>), ApiError> {
        let step_at_first_read = inputs.0.step_at_first_read;
        let store = &principal.store;
        let read =
            || async move { tokio::try_join!(self.submitted.read_again(store, step_at_first_read), self.read_link(store)) };
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let outcome = self.decide(principal, &mut unit, &inputs)?;
            let committed = unit.commit_with(|| self.stored_response(&outcome)).await;
            committed.map_err(|error| self.submitted.submission.classify_failure(error, &outcome.0)).map(|()| outcome)
        };
        principal.retry(inputs, read, attempt).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        (inputs, link): &SubmitInputs,
    ) -> Result<(Subject, Stored<Link>), CommitFailure<ApiError>> {
        let (submission, now) = (&self.submitted.submission, principal.context.at);
        let status = link.value.status(now, inputs.subject.position(), true);
        if status != LinkStatus::Open {
            return Err(ApiError::BadLink(Some(status)).into());
        }
        let instance = &inputs.subject.representative()?.value;
        let last = submission.last_step(instance).ok_or(ApiError::BadLink(Some(LinkStatus::Ended)))?;
        let next = link.value.submitted(last, now);
        let link = if next == link.value {
            // Fails if the link has been revoked since it was read.
            unit.expect(link);
            link.clone()
        } else {
            unit.update(link, next)?
        };
        let outcome = self.submitted.decide(principal, unit, inputs)?;
        // Checked last: the submission's own errors are more helpful.
        let unsigned = unsigned(instance, last, &submission.data);
        if unsigned.is_empty() { Ok((outcome, link)) } else { Err(ApiError::Invalid(unsigned).into()) }
    }

    fn stored_response(&self, outcome: &(Subject, Stored<Link>)) -> Result<StoredResponse, StoreError> {
        Data { data: self.view(outcome).map_err(StoreError::broken)? }.to_stored(Vec::new())
    }
}

/// Returns an error for each signature step, up to the step `last`, that has no value in `data`: a signature that someone else
/// stored in advance must not count as the signer's.
fn unsigned(instance: &Instance, last: usize, data: &Map<String, Value>) -> Vec<FieldError> {
    let steps = instance.steps.as_slice().iter().take(last + 1).skip(instance.current_step());
    let is_sent = |step: &Step| match data.get(&step.key) {
        Some(Value::String(text)) => text.starts_with(DATA_URL_PREFIX),
        Some(_) => true,
        None => !instance.step_values.as_map().contains_key(&step.key),
    };
    let unsigned = steps.filter(|step| step.is_signature() && !is_sent(step));
    unsigned
        .map(|step| value_error(&step.key, "must be the image of your own signature, not a signature that is already stored"))
        .collect()
}
