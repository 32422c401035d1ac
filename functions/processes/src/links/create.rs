//! The creation of a signing link.

use crate::links::wire::{LinkView, NewLink, created};
use crate::subject::Subject;
use crate::subject::error::{part_of_movement, process_error};
use serde_json::Value;
use shared::auth::{Command, Principal};
use shared::domain::keys::api_key::SecretHash;
use shared::domain::processes::instance::{InstanceStatus, ProcessError};
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::processes::subject::SubjectId;
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::signing::link::{DEFAULT_SECONDS, Link, LinkSteps, MAX_LINKS, Signer};
use shared::domain::user::User;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::slots::choose;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::responses::Success;
use shared::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};

pub(crate) struct CreateLink {
    pub(crate) subject: SubjectId,
    pub(crate) body: NewLink,
    /// Errors of the body that are known already.
    pub(crate) errors: Vec<FieldError>,
    pub(crate) hash: SecretHash,
}

pub(crate) struct Inputs {
    pub(crate) subject: Subject,
    user: Option<Stored<User>>,
    free_slots: Vec<u8>,
}

impl Inputs {
    pub(crate) async fn read(reads: &TenantStore, id: SubjectId, body: &NewLink) -> Result<Self, ApiError> {
        let user = async {
            match body.signer.user_id {
                Some(id) => Ok(reads.get::<User>(id).await?),
                None => Ok(None),
            }
        };
        let free_slots = async { Ok(reads.free_link_slots(id.uuid()).await?) };
        let (subject, user, free_slots) = tokio::try_join!(Subject::read(reads, id), user, free_slots)?;
        Ok(Self { subject, user, free_slots })
    }
}

impl CreateLink {
    fn signer(&self, user: Option<&User>) -> Result<Signer, FieldError> {
        let NewLink { signer, .. } = &self.body;
        match (user, &signer.name, signer.user_id) {
            (Some(user), ..) if user.erased_at.is_some() => {
                Err(FieldError::within("signer", "/user_id", "must not be an erased user"))
            }
            (Some(user), ..) => Ok(Signer { user_id: Some(user.id), name: user.display_name.clone(), email: None }),
            (None, Some(name), None) => Ok(Signer { user_id: None, name: name.clone(), email: signer.email.clone() }),
            _ => Err(unknown_user()),
        }
    }
}

fn too_many() -> ApiError {
    let detail = format!("The limit of {MAX_LINKS} links is reached.");
    ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
}

fn unknown_user() -> FieldError {
    FieldError::within("signer", "/user_id", "does not exist in this tenant")
}

/// From the step `first` to that with the key `until`. By default to the next signature, and to the `complete` step right after
/// it, so that the signature finishes a handover.
fn link_steps(steps: &[Step], first: usize, until: Option<&str>) -> Result<LinkSteps, FieldError> {
    let position = match until {
        Some(key) => steps.iter().position(|step| step.key == key),
        None => {
            let signature = steps.iter().skip(first).position(Step::is_signature).map(|position| first + position);
            let completing = |last: usize| steps.iter().skip(last + 1).take_while(|step| step.kind == StepKind::Complete).count();
            signature.map(|last| last + completing(last)).or(steps.len().checked_sub(1))
        }
    };
    let open = || steps.iter().skip(first).map(|step| step.key.as_str()).collect::<Vec<_>>().join(", ");
    let last = position.filter(|last| *last >= first);
    let last = last.and_then(|last| Some((last, steps.get(last)?)));
    let (last, step) =
        last.ok_or_else(|| FieldError::field("until", format!("must be the key of a step that is still open: {}", open())))?;
    Ok(LinkSteps { first, last, until: step.key.clone() })
}

impl Command for CreateLink {
    type Inputs = Inputs;
    type Outcome = Stored<Link>;

    async fn read(&self, reads: &TenantStore) -> Result<Inputs, ApiError> {
        Inputs::read(reads, self.subject, &self.body).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Inputs,
    ) -> Result<Stored<Link>, CommitFailure<ApiError>> {
        let at = principal.context.at;
        let id = principal.store.new_id(at)?;
        let slot = choose(&inputs.free_slots, id).ok_or_else(too_many)?;
        let subject = &inputs.subject;
        let (instance, (status, open)) = (subject.representative()?, subject.position());
        let mut errors = self.errors.clone();
        let mut noted = |error: FieldError| errors.push(error);
        let signer = self.signer(inputs.user.as_ref().map(|user| &user.value)).map_err(&mut noted);
        let is_open = subject.part_of().is_none() && status == InstanceStatus::InProgress;
        // Of an instance that has ended, that is what there is to say.
        let steps =
            if is_open { link_steps(subject.steps(), open, self.body.until.as_deref()).map_err(&mut noted).ok() } else { None };
        let (Ok(signer), true) = (signer, errors.is_empty()) else { return Err(ApiError::Invalid(errors).into()) };
        if let Some(movement) = subject.part_of() {
            return Err(part_of_movement(movement, "Make a link for the movement instead.").into());
        }
        let Some(steps) = steps else { return Err(process_error(ProcessError::Closed(status)).into()) };
        let link = Link {
            id,
            subject: self.subject,
            signer,
            steps,
            hash: self.hash.clone(),
            expires_at: at.plus_seconds(self.body.expires_in.as_ref().map_or(DEFAULT_SECONDS, |seconds| seconds.0)),
            created_by: principal.context.actor.key_id,
            opened_at: None,
            used_at: None,
            revoked_at: None,
            slot,
        };
        // The link is made for the steps that are open now.
        unit.expect(instance);
        // Its name is still the user's: nobody has erased it meanwhile.
        if let Some(user) = &inputs.user {
            unit.expect(user);
        }
        Ok(unit.create(link)?)
    }

    /// The stored response must not have the secret.
    fn stored_response(&self, link: &Stored<Link>) -> Result<StoredResponse, StoreError> {
        let open = (InstanceStatus::InProgress, link.value.steps.first);
        let view = LinkView::new(link.clone(), link.created_at, open);
        created(self.subject, link.value.id, view).to_stored(Vec::new())
    }

    fn classify_failure(&self, error: WriteError, _: &Stored<Link>) -> CommitFailure<ApiError> {
        match error {
            // Another creation has taken the slot: the next attempt takes one that is left.
            WriteError::Duplicate(..) => CommitFailure::Outdated(WriteError::Stale),
            error => error.into(),
        }
    }
}
