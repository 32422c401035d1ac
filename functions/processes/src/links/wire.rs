//! Bodies, queries and views of signing links.

use serde::Serialize;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::processes::subject::SubjectId;
use shared::domain::record::Stored;
use shared::domain::signing::link::{Link, LinkStatus, MAX_SECONDS, MIN_SECONDS};
use shared::domain::user::Email;
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{ApiKeyId, InstanceId, LinkId, MovementId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::requests::body::{BoundedInteger, FromJson, read_nested};
use shared::http::requests::params::{Limit, PageNumber};
use shared::http::responses::{Created, CreatedSecret};
use utoipa::ToSchema;

/// In seconds.
type Lifetime = BoundedInteger<MIN_SECONDS, MAX_SECONDS>;

shared::body! {
    /// Whom a signing link is for: a user, or the name of a person who is none.
    pub struct SignerBody as NewSigner {
        /// User. May be inactive: who leaves signs for what is given back.
        optional user_id: UserId,
        /// Name of a person who is no user.
        optional name: Name,
        /// E-mail address of that person, for your own use.
        optional email: Email,
    }
    read_only: &[]
}

impl FromJson for SignerBody {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        Self::from_json_with_locations(text).map_err(|_| ValueError::new("must have a user_id, or a name"))
    }

    fn from_json_with_locations(text: &str) -> Result<Self, Vec<(String, String)>> {
        let signer: Self = read_nested(text)?;
        if let Some(Err(error)) = signer.email.as_ref().map(Email::check_free) {
            return Err(vec![("/email".to_owned(), error.to_string())]);
        }
        let error = match &signer {
            Self { user_id: Some(_), name: Some(_), .. } => ("/name", "must not be sent together with user_id"),
            Self { user_id: Some(_), email: Some(_), .. } => ("/email", "must not be sent together with user_id"),
            Self { user_id: None, name: None, .. } => ("/user_id", "is required, or name"),
            _ => return Ok(signer),
        };
        Err(vec![(error.0.to_owned(), error.1.to_owned())])
    }
}

shared::body! {
    /// A new signing link.
    pub struct NewLink as NewSigningLink {
        /// Whom the link is for.
        required signer: SignerBody,
        /// Key of the last step that the link opens. Default: the next signature step from the open step on and, if
        /// it follows at once, the `complete` step; without a signature, the last step.
        optional until: String,
        /// How many seconds the link lasts. Default 259200 (3 days), maximum 2592000 (30 days).
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

/// Whom a signing link is for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Signer)]
pub struct SignerView {
    /// User; null for a person who is none.
    #[schema(required)]
    user_id: Option<UserId>,
    /// Name: of a user, the display name when the link was made.
    name: Name,
    /// E-mail address of a person who is no user.
    #[schema(required)]
    email: Option<Email>,
}

/// A signing link, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningLink)]
pub struct LinkView {
    /// ID.
    pub(crate) id: LinkId,
    /// Process instance that it opens.
    #[schema(required)]
    instance_id: Option<InstanceId>,
    /// Movement that it opens.
    #[schema(required)]
    movement_id: Option<MovementId>,
    /// Whom it is for.
    signer: SignerView,
    /// Key of the last step that it opens.
    until: String,
    /// What can be done with it.
    status: LinkStatus,
    /// Time at which it ends.
    expires_at: Timestamp,
    /// Time at which it was first opened.
    #[schema(required)]
    opened_at: Option<Timestamp>,
    /// Time at which its last step was submitted with it.
    #[schema(required)]
    used_at: Option<Timestamp>,
    /// Time at which it was revoked.
    #[schema(required)]
    revoked_at: Option<Timestamp>,
    /// Time of creation.
    created_at: Timestamp,
    /// API key that made it.
    #[schema(required)]
    created_by: Option<ApiKeyId>,
}

/// A signing link, with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningLinkWithUrl)]
pub struct NewLinkView {
    /// Address to send to the signer. Its fragment is the link's secret. Shown only in this response, and not when the
    /// response is replayed for an `Idempotency-Key`. Null in a dry run.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) url: String,
    /// The link without its secret.
    #[serde(flatten)]
    pub(crate) link: LinkView,
}

impl LinkView {
    /// `process` is the status and the current step of the process instance or movement.
    pub(crate) fn new(stored: Stored<Link>, now: Timestamp, process: (InstanceStatus, usize)) -> Self {
        let status = stored.value.status(now, process);
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

pub(crate) fn created<T>(subject: SubjectId, id: LinkId, view: T) -> CreatedSecret<T> {
    Created::new(&collection(subject), id, view).with_secret()
}

/// The path of the links, without the prefix of every path.
fn collection(subject: SubjectId) -> String {
    match subject {
        SubjectId::Instance(id) => format!("processes/instances/{id}/links"),
        SubjectId::Movement(id) => format!("movements/{id}/links"),
    }
}
