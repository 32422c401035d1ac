//! The endpoints for signing links, for clients with an API key. `signing` has the endpoints for the signing page.

use crate::subject::{Subject, part_of_movement, process_error};
use serde::Serialize;
use serde_json::Value;
use shared::auth::caller::{ProcessesRead, ProcessesWrite};
use shared::auth::{Caller, Principal};
use shared::domain::keys::api_key::{LinkToken, Secret, SecretHash};
use shared::domain::processes::instance::{InstanceStatus, ProcessError, SubjectId};
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::record::{Stored, StoredResponse};
use shared::domain::signing::{DEFAULT_SECONDS, Link, LinkStatus, LinkSteps, MAX_LINKS, MAX_SECONDS, MIN_SECONDS, Signer};
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use shared::domain::values::id::{ApiKeyId, InstanceId, LinkId, MovementId, UserId, choose_slot};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::base_url::BaseUrl;
use shared::http::openapi::{CancellationConflict, ChangeConflict, ChangeErrors, ResourceErrors};
use shared::http::requests::body::{BoundedInteger, FromJson, JsonBody, read_nested};
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Created, CreatedSecret, Data, Success, Versioned, or_not_found};
use shared::request::Assigned;
use shared::store::{BatchGet, CommitFailure, Page, Reader, StoreError, UnitOfWork, WriteError};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// Create a signing link for a process instance
///
/// Lets a person without an API key submit steps, from the open step up to `until`. The link's URL is returned only once, in this
/// response.
#[utoipa::path(post, path = "/processes/instances/{id}/links", tag = "signing", responses(ResourceErrors, CancellationConflict))]
pub async fn create_instance_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(caller, id.into(), base, body).await
}

/// Create a signing link for a movement
///
/// Lets a person without an API key submit steps of all the movement's instances, from the open step up to `until`. The link's
/// URL is returned only once, in this response.
#[utoipa::path(post, path = "/movements/{id}/links", tag = "signing", responses(ResourceErrors, CancellationConflict))]
pub async fn create_movement_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    create(caller, id.into(), base, body).await
}

async fn create(
    caller: Caller<ProcessesWrite>,
    subject: SubjectId,
    base: BaseUrl,
    body: JsonBody<NewLink>,
) -> Result<CreatedSecret<NewLinkView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    let inputs = Inputs::read(&caller.store, subject, &body).await?;
    let caller = caller.verified().await?;
    let secret = Secret::new(caller.store.random()?);
    let command = CreateLink { subject, body, errors, hash: secret.hash() };
    let position = inputs.subject.position();
    let stored = command.execute(&caller, inputs).await?;
    let token = LinkToken::new(caller.store.id(), stored.value.id, secret).expose();
    let url = caller.assign(format!("{}/v1/sign#{token}", base.as_str()));
    let link = LinkView::new(stored, caller.context.at, position, true);
    Ok(created(subject, link.id, NewLinkView { url, link }))
}

/// List the signing links of a process instance
///
/// Newest first, without secrets.
#[utoipa::path(get, path = "/processes/instances/{id}/links", tag = "signing", responses(ResourceErrors))]
pub async fn list_instance_links(
    caller: Caller<ProcessesRead>,
    Query(query): Query<LinkQuery>,
    Path(id): Path<InstanceId>,
) -> Result<Page<LinkView>, ApiError> {
    list(caller, id.into(), query).await
}

/// List the signing links of a movement
///
/// Newest first, without secrets.
#[utoipa::path(get, path = "/movements/{id}/links", tag = "signing", responses(ResourceErrors))]
pub async fn list_movement_links(
    caller: Caller<ProcessesRead>,
    Query(query): Query<LinkQuery>,
    Path(id): Path<MovementId>,
) -> Result<Page<LinkView>, ApiError> {
    list(caller, id.into(), query).await
}

async fn list(caller: Caller<ProcessesRead>, id: SubjectId, query: LinkQuery) -> Result<Page<LinkView>, ApiError> {
    let (store, now) = (&caller.store, caller.store.now());
    let subject = Subject::read(store, id).await?;
    let links = store.list_links(id.uuid(), params::page(query.page, query.limit)).await?;
    let signers = Signers::read(store, links.items.iter().map(|link| &link.value)).await?;
    Ok(links.map(|link| {
        let has_signer = signers.include(&link.value);
        LinkView::new(link, now, subject.position(), has_signer)
    }))
}

/// Get a signing link of a process instance
///
/// Returns the link without its secret.
#[utoipa::path(get, path = "/processes/instances/{id}/links/{link_id}", tag = "signing", responses(ResourceErrors))]
pub async fn get_instance_link(
    caller: Caller<ProcessesRead>,
    Path(id): Path<InstanceId>,
    Path(link): Path<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(caller, id.into(), link).await
}

/// Get a signing link of a movement
///
/// Returns the link without its secret.
#[utoipa::path(get, path = "/movements/{id}/links/{link_id}", tag = "signing", responses(ResourceErrors))]
pub async fn get_movement_link(
    caller: Caller<ProcessesRead>,
    Path(id): Path<MovementId>,
    Path(link): Path<LinkId>,
) -> Result<Versioned<LinkView>, ApiError> {
    get(caller, id.into(), link).await
}

async fn get(caller: Caller<ProcessesRead>, of: SubjectId, link: LinkId) -> Result<Versioned<LinkView>, ApiError> {
    let now = caller.store.now();
    let (link, subject) = tokio::try_join!(read_link(&caller.store, of, link), Subject::read(&caller.store, of))?;
    let has_signer = Signers::read(&caller.store, [&link.value]).await?.include(&link.value);
    Ok(Versioned { version: link.tag_version(), data: LinkView::new(link, now, subject.position(), has_signer) })
}

pub(crate) async fn read_link(store: &Reader, of: SubjectId, id: LinkId) -> Result<Stored<Link>, ApiError> {
    let link = store.get::<Link>(id).await?;
    or_not_found(link.filter(|link| link.value.subject == of))
}

/// The signers of links who are users and weren't deleted.
struct Signers(BTreeSet<UserId>);

impl Signers {
    async fn read<'a>(store: &Reader, links: impl IntoIterator<Item = &'a Link>) -> Result<Self, ApiError> {
        let ids: BTreeSet<UserId> = links.into_iter().filter_map(|link| link.signer.user_id).collect();
        if ids.is_empty() {
            return Ok(Self(ids));
        }
        let users = store.batch_get(BatchGet::new().with_all::<User>(ids.iter().copied())).await?;
        let mut present = BTreeSet::new();
        for id in ids {
            present.extend(users.get_readable::<User>(Some(id))?.map(|user| user.value.id));
        }
        Ok(Self(present))
    }

    /// Whether the link still has its signer.
    fn include(&self, link: &Link) -> bool {
        link.signer.user_id.is_none_or(|user| self.0.contains(&user))
    }
}

/// Revoke a signing link of a process instance
///
/// The link stops working with the next request. Revoking it again changes nothing.
#[utoipa::path(
    delete,
    path = "/processes/instances/{id}/links/{link_id}",
    tag = "signing",
    responses(ChangeErrors, ChangeConflict)
)]
pub async fn revoke_instance_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    Path(link): Path<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(caller, id.into(), link).await
}

/// Revoke a signing link of a movement
///
/// The link stops working with the next request. Revoking it again changes nothing.
#[utoipa::path(delete, path = "/movements/{id}/links/{link_id}", tag = "signing", responses(ChangeErrors, ChangeConflict))]
pub async fn revoke_movement_link(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<MovementId>,
    Path(link): Path<LinkId>,
) -> Result<Data<LinkView>, ApiError> {
    revoke(caller, id.into(), link).await
}

async fn revoke(caller: Caller<ProcessesWrite>, of: SubjectId, link: LinkId) -> Result<Data<LinkView>, ApiError> {
    let (link, subject) = tokio::try_join!(read_link(&caller.store, of, link), Subject::read(&caller.store, of))?;
    let caller = caller.verified().await?;
    let now = caller.context.at;
    let revoked = caller.update(link, |link| Ok(link.revoked(now))).await?;
    Ok(Data { data: LinkView::new(revoked, now, subject.position(), true) })
}

/// In seconds.
type Lifetime = BoundedInteger<MIN_SECONDS, MAX_SECONDS>;

shared::body! {
    /// The signer of a link: a user, or the name of someone who isn't a user.
    pub struct SignerBody as NewSigner {
        /// User. Can be inactive, unless picked in the process: people who leave the organization sign when they return assets.
        optional user_id: UserId,
        /// Name of someone who isn't a user.
        optional name: Name,
        /// E-mail address of someone who isn't a user, for your own reference.
        optional email: Email,
    }
    read_only: &[]
}

impl FromJson for SignerBody {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::form("must have a user_id, or a name"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let signer: Self = read_nested(text)?;
        if let Some(Err(error)) = signer.email.as_ref().map(Email::check_free) {
            return Err(vec![("/email".to_owned(), error)]);
        }
        let error = match &signer {
            Self { user_id: Some(_), name: Some(_), .. } => ("/name", "must not be sent together with user_id"),
            Self { user_id: Some(_), email: Some(_), .. } => ("/email", "must not be sent together with user_id"),
            Self { user_id: None, name: None, .. } => {
                return Err(vec![("/user_id".to_owned(), ValueError::coded(ErrorCode::Required, "is required, or name"))]);
            }
            _ => return Ok(signer),
        };
        Err(vec![(error.0.to_owned(), error.1.into())])
    }
}

shared::body! {
    /// A new signing link.
    pub struct NewLink as NewSigningLink {
        /// The signer.
        required signer: SignerBody,
        /// Key of the last step to submit with the link. Default: the next signature step, including a `complete` step directly
        /// after it; without a signature step, the last step.
        optional until: String,
        /// Lifetime of the link in seconds. Default 259200 (3 days), maximum 2592000 (30 days).
        optional expires_in: Lifetime,
    }
    read_only: &[]
}

shared::query! {
    /// Page of signing links.
    pub struct LinkQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// The signer of a link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Signer)]
pub struct SignerView {
    /// User. Null for someone who isn't a user.
    #[schema(required)]
    user_id: Option<UserId>,
    /// Name. For a user, the display name when the link was created.
    name: Name,
    /// E-mail address of someone who isn't a user.
    #[schema(required)]
    email: Option<Email>,
}

/// A signing link, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningLink)]
pub struct LinkView {
    /// ID.
    id: LinkId,
    /// Process instance that the link is for.
    #[schema(required)]
    instance_id: Option<InstanceId>,
    /// Movement that the link is for.
    #[schema(required)]
    movement_id: Option<MovementId>,
    /// The signer.
    signer: SignerView,
    /// Key of the last step to submit with the link.
    until: String,
    /// Status.
    status: LinkStatus,
    /// Time of expiry.
    expires_at: Timestamp,
    /// Time when the page was first loaded, perhaps by a mail scanner that runs scripts.
    #[schema(required)]
    opened_at: Option<Timestamp>,
    /// Time when the link's last step was submitted.
    #[schema(required)]
    used_at: Option<Timestamp>,
    /// Time of the revocation.
    #[schema(required)]
    revoked_at: Option<Timestamp>,
    /// Time of creation.
    created_at: Timestamp,
    /// API key that created the link.
    #[schema(required)]
    created_by: Option<ApiKeyId>,
}

/// A signing link, with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningLinkWithUrl)]
pub struct NewLinkView {
    /// URL to send to the signer. Its fragment is the link's secret. Returned only once; a replay by `Idempotency-Key`
    /// omits it. Null in a dry run.
    #[schema(required = false, value_type = Option<String>)]
    url: Assigned<String>,
    /// The link without its secret.
    #[serde(flatten)]
    link: LinkView,
}

impl LinkView {
    /// Takes the status and the current step of the process instance or movement as `process`. `has_signer` is false if the signer
    /// is a user who was deleted.
    fn new(stored: Stored<Link>, now: Timestamp, process: (InstanceStatus, usize), has_signer: bool) -> Self {
        let status = stored.value.status(now, process, has_signer);
        let Link { id, subject, signer, steps, expires_at, created_by, opened_at, used_at, revoked_at, hash: _, slot: _ } =
            stored.value;
        Self {
            id,
            instance_id: subject.instance(),
            movement_id: subject.movement(),
            signer: SignerView { user_id: signer.user_id, name: signer.name, email: signer.email },
            until: steps.until,
            status,
            expires_at,
            opened_at,
            used_at,
            revoked_at,
            created_at: stored.created_at,
            created_by,
        }
    }
}

fn created<T>(subject: SubjectId, id: LinkId, view: T) -> CreatedSecret<T> {
    Created::new(&collection(subject), id, view).with_secret()
}

/// Returns the path of the links, relative to `/v1`.
fn collection(subject: SubjectId) -> String {
    match subject {
        SubjectId::Instance(id) => format!("processes/instances/{id}/links"),
        SubjectId::Movement(id) => format!("movements/{id}/links"),
    }
}

struct CreateLink {
    subject: SubjectId,
    body: NewLink,
    errors: Vec<FieldError>,
    hash: SecretHash,
}

struct Inputs {
    subject: Subject,
    user: Option<Stored<User>>,
    /// The active users among those picked.
    active: BTreeSet<UserId>,
    free_slots: Vec<u8>,
}

impl Inputs {
    async fn read(reads: &Reader, id: SubjectId, body: &NewLink) -> Result<Self, ApiError> {
        let user = async {
            match body.signer.user_id {
                Some(id) => Ok(reads.get::<User>(id).await?),
                None => Ok(None),
            }
        };
        let free_slots = async { Ok(reads.free_link_slots(id.uuid()).await?) };
        let (subject, user, free_slots) = tokio::try_join!(Subject::read(reads, id), user, free_slots)?;
        let active = subject.active_picked_users(reads, user.as_ref()).await?;
        Ok(Self { subject, user, active, free_slots })
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
    FieldError::within("signer", "/user_id", ValueError::unknown_reference())
}

/// Returns the steps from `first` to the step with the key `until`. The default is the next signature, including a `complete`
/// step right after it, so that the signature finishes a handover.
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

impl CreateLink {
    async fn execute(&self, principal: &Principal, inputs: Inputs) -> Result<Stored<Link>, ApiError> {
        let read = || Inputs::read(&principal.store, self.subject, &self.body);
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let link = self.decide(principal, &mut unit, &inputs)?;
            match unit.commit_with(|| self.stored_response(&link)).await {
                Ok(()) => Ok(link),
                // A concurrent request took the slot. The next attempt takes a different slot.
                Err(WriteError::Duplicate(..)) => Err(CommitFailure::Outdated(WriteError::Stale)),
                Err(error) => Err(error.into()),
            }
        };
        principal.retry(inputs, read, attempt).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Inputs,
    ) -> Result<Stored<Link>, CommitFailure<ApiError>> {
        let at = principal.context.at;
        let id = principal.store.new_id(at)?;
        let slot = choose_slot(&inputs.free_slots, id).ok_or_else(too_many)?;
        let subject = &inputs.subject;
        let (instance, (status, open)) = (subject.representative()?, subject.position());
        let mut errors = self.errors.clone();
        let mut noted = |error: FieldError| errors.push(error);
        let signer = self.signer(inputs.user.as_ref().map(|user| &user.value)).map_err(&mut noted);
        let is_open = subject.part_of().is_none() && status == InstanceStatus::InProgress;
        // `until` is checked only if the subject can have a link.
        let steps =
            if is_open { link_steps(subject.steps(), open, self.body.until.as_deref()).map_err(&mut noted).ok() } else { None };
        let (Ok(signer), true) = (signer, errors.is_empty()) else { return Err(ApiError::Invalid(errors).into()) };
        if let Some(movement) = subject.part_of() {
            return Err(part_of_movement(movement, "Create a link for the movement instead.").into());
        }
        let Some(steps) = steps else { return Err(process_error(ProcessError::Closed(status)).into()) };
        subject.check_picked_users(&inputs.active)?;
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
        // The link's steps depend on the open step.
        unit.expect(instance);
        // If the user were erased concurrently, the link would keep the name.
        if let Some(user) = &inputs.user {
            unit.expect(user);
        }
        Ok(unit.create(link)?)
    }

    /// Builds the stored response, which must not contain the secret.
    fn stored_response(&self, link: &Stored<Link>) -> Result<StoredResponse, StoreError> {
        let open = (InstanceStatus::InProgress, link.value.steps.first);
        let view = LinkView::new(link.clone(), link.created_at, open, true);
        created(self.subject, link.value.id, view).to_stored(Vec::new())
    }
}
