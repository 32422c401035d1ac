//! A signer's session: only what the signer needs to know about the organization, the assets and the steps.

use crate::subject::Subject;
use serde::Serialize;
use serde_json::Value;
use shared::auth::Signer;
use shared::domain::assets::asset::{Asset, Status};
use shared::domain::processes::instance::{Instance, InstanceStatus, is_typed, read_statement};
use shared::domain::processes::process::{Step, StepKind};
use shared::domain::signing::{Link, LinkStatus};
use shared::domain::tenants::tenant::{Language, Locale, Tenant};
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, LinkId, TenantId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeConflict, InputErrors};
use shared::http::responses::html::AcceptedLanguage;
use shared::http::responses::{ApiError, Data};
use shared::store::{BatchGet, Reader};
use std::collections::{BTreeSet, HashMap};
use utoipa::ToSchema;

/// The records shown in a session, besides the link.
pub(super) struct Session {
    pub(super) subject: Subject,
    organization: Name,
    locale: Locale,
    /// Language of the statements shown to the signer.
    pub(super) language: Language,
    assets: HashMap<AssetId, Asset>,
    user_names: HashMap<UserId, Name>,
    /// `None` unless the signer is an active user.
    signer: Option<UserId>,
    /// The active users among those picked.
    active: BTreeSet<UserId>,
}

impl Session {
    pub(super) async fn read(reads: &Reader, link: &Link, accepted: AcceptedLanguage) -> Result<Self, ApiError> {
        let subject = Subject::read(reads, link.subject).await?;
        let assets = subject.instances.iter().map(|it| it.value.asset_id);
        let picked = subject.instances.iter().flat_map(|it| it.value.picked_users());
        let users: Vec<UserId> = picked.chain(link.signer.user_id).collect();
        let tenant: TenantId = reads.id();
        let batch = BatchGet::new().with::<Tenant>(Some(tenant)).with_all::<Asset>(assets.clone());
        let batch = reads.batch_get(batch.with_all::<User>(users.iter().copied())).await?;
        let tenant = batch.get::<Tenant>(Some(tenant))?;
        let tenant = tenant.ok_or_else(|| ApiError::Internal("the link's tenant has no record".into()))?.value;
        let signer = batch.get_readable::<User>(link.signer.user_id)?;
        if signer.is_none() && link.signer.user_id.is_some() {
            return Err(ApiError::BadLink(Some(LinkStatus::Ended)));
        }
        let signer = signer.filter(|user| user.value.is_active).map(|user| user.value.id);
        // Damaged assets are skipped, because assets are only shown.
        let mut found = HashMap::new();
        for id in assets {
            found.extend(batch.get_readable::<Asset>(Some(id))?.map(|asset| (id, asset.value)));
        }
        let (organization, locale) = (tenant.name, tenant.locale);
        let language = accepted.or_language_of(&locale);
        let mut session = Self {
            subject,
            organization,
            locale,
            language,
            assets: found,
            user_names: HashMap::new(),
            signer,
            active: BTreeSet::new(),
        };
        for id in users {
            if let Some(user) = batch.get_readable::<User>(Some(id))? {
                session.learn(&user.value);
                session.active.extend(user.value.is_active.then_some(id));
            }
        }
        Ok(session)
    }

    pub(super) fn learn(&mut self, user: &User) {
        self.user_names.insert(user.id, user.display_name.clone());
    }

    pub(super) fn knows(&self, user: UserId) -> bool {
        self.user_names.contains_key(&user)
    }

    /// Builds the view. `link` and `subject` can be newer than the session.
    pub(super) fn view(&self, link: &Link, subject: &Subject) -> Result<SessionView, ApiError> {
        let instance = subject.representative()?;
        let (status, open) = subject.position();
        // Assets of cancelled instances are not handed over with the rest of a movement.
        let is_cancelled = status == InstanceStatus::Cancelled;
        let handled = subject.instances.iter().filter(|it| is_cancelled || it.value.status() != InstanceStatus::Cancelled);
        let count = instance.value.steps.as_slice().len();
        // For a used link, only the receipt shows the values.
        let submitted = if link.used_at.is_some() { 0 } else { open };
        let is_open = |index: &usize| status == InstanceStatus::InProgress && link.steps.contains(*index);
        Ok(SessionView {
            link_id: link.id,
            organization: self.organization.clone(),
            locale: self.locale.clone(),
            process_name: instance.value.process_name.clone(),
            target_status: instance.value.target_status,
            movement_number: subject.movement.as_ref().map(|movement| movement.value.number.clone()),
            assets: handled.map(|instance| self.asset(&instance.value)).collect(),
            signer: SessionSigner { name: link.signer.name.clone(), user_id: self.signer },
            status: if link.used_at.is_some() { LinkStatus::Used } else { LinkStatus::Open },
            ends_at: link.ends_at(),
            submitted: (0..submitted).map(|index| self.step(&instance.value, index, false)).collect(),
            steps: (open..count).filter(is_open).map(|index| self.step(&instance.value, index, true)).collect(),
            is_completed: status == InstanceStatus::Completed,
            is_cancelled,
        })
    }

    /// Returns the current asset or, if it was deleted, the data in its instance.
    fn asset(&self, instance: &Instance) -> SessionAsset {
        let asset = self.assets.get(&instance.asset_id);
        let text = |field: fn(&Asset) -> Option<&str>| asset.and_then(|asset| Some(field(asset)?.to_owned()));
        SessionAsset {
            asset_tag: instance.asset_tag.clone(),
            name: asset.map_or_else(|| instance.asset_name.to_string(), |asset| asset.name.to_string()),
            manufacturer: text(|asset| asset.manufacturer.as_deref()),
            model: text(|asset| asset.model.as_deref()),
            serial_number: text(|asset| asset.details.serial_number.as_deref()),
            location: text(|asset| asset.details.location.as_deref()),
        }
    }

    /// Shows the statement that an earlier signer read or, for an open step, the statement for this signer.
    fn step(&self, instance: &Instance, index: usize, is_open: bool) -> SessionStep {
        let step = instance.steps.as_slice()[index].clone();
        let stored = instance.step_values.as_map().get(&step.key);
        let statement = if is_open { step.translated_statement(self.language) } else { stored.and_then(read_statement) };
        let step = match statement {
            Some(statement) => step.with_statement(statement),
            None => step,
        };
        let value = stored.filter(|_| !step.is_signature()).cloned().unwrap_or_default();
        let user = value.as_str().filter(|_| step.kind == StepKind::UserPicker).and_then(|id| id.parse::<UserId>().ok());
        let user_name = user.and_then(|id| self.user_names.get(&id)).cloned();
        let (is_stored, is_typed) = (stored.is_some(), stored.is_some_and(is_typed));
        let signed = instance.signed.get(&step.key);
        let (signed_by, signed_at) = (signed.map(|signed| signed.by.clone()), signed.map(|signed| signed.at));
        SessionStep { index, step, value, user_name, is_stored, is_typed, signed_by, signed_at }
    }
}

/// Get the session of a signing link
///
/// What the signer needs to know: the organization, the assets, the submitted values, and the remaining steps. A signature's
/// default statement is in the language that `Accept-Language` prefers (en, de, fr or es), or else in the language of the
/// tenant's `locale`, or in English. Send the link's secret, which is the fragment of its URL, as a bearer token. The first
/// call sets the link's `opened_at`. If a picked user is no longer active, the response is a 409.
#[utoipa::path(get, path = "/sign/session", tag = "signing", security(("signing_link" = [])), responses(InputErrors, ChangeConflict))]
pub async fn get_signing_session(signer: Signer, language: AcceptedLanguage) -> Result<Data<SessionView>, ApiError> {
    let (link, session) = (&signer.link, Session::read(&signer.store, &signer.link.value, language).await?);
    let principal = signer.verified().await?;
    let now = principal.context.at;
    match link.value.status(now, session.subject.position(), true) {
        LinkStatus::Ended => return Err(ApiError::BadLink(Some(LinkStatus::Ended))),
        LinkStatus::Open => session.subject.check_picked_users(&session.active)?,
        _ => {}
    }
    if link.value.opened_at.is_none() {
        let opened =
            |link: &Link| link.end_reason(now).map_or_else(|| Ok(link.opened(now)), |over| Err(ApiError::BadLink(Some(over))));
        match principal.update(link.clone(), opened).await {
            Err(error @ ApiError::BadLink(_)) => return Err(error),
            // A failure to record the opening must not keep the signer from signing.
            Err(error) => {
                tracing::warn!(error = %error, link_id = %link.value.id, "could not record that a link was opened");
            }
            Ok(_) => {}
        }
    }
    Ok(Data { data: session.view(&link.value, &session.subject)? })
}

/// The session of a signing link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningSession)]
pub struct SessionView {
    /// ID of the link.
    link_id: LinkId,
    /// Name of the organization.
    organization: Name,
    /// The organization's locale, which the signing page uses if it supports none of the signer's languages.
    locale: Locale,
    /// Name of the process.
    process_name: Name,
    /// Status of the assets after completion.
    target_status: Status,
    /// Number of the movement, if the process runs on several assets at once.
    #[schema(required)]
    movement_number: Option<String>,
    /// Assets.
    assets: Vec<SessionAsset>,
    /// The signer.
    signer: SessionSigner,
    /// `open`, or `used` once all steps of the link are submitted.
    status: LinkStatus,
    /// Time until which the link works. For a used link, 24 hours after its last step.
    ends_at: Timestamp,
    /// Submitted steps, in order. Empty for a used link.
    submitted: Vec<SessionStep>,
    /// Remaining steps of the link, in order.
    steps: Vec<SessionStep>,
    /// Whether the process is completed and has a receipt.
    is_completed: bool,
    /// Whether the process was cancelled after the link was used. There will be no receipt.
    is_cancelled: bool,
}

/// An asset of a signing session.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionAsset {
    /// Asset tag.
    asset_tag: String,
    /// Name.
    name: String,
    /// Manufacturer.
    #[schema(required)]
    manufacturer: Option<String>,
    /// Model.
    #[schema(required)]
    model: Option<String>,
    /// Serial number.
    #[schema(required)]
    serial_number: Option<String>,
    /// Location.
    #[schema(required)]
    location: Option<String>,
}

/// The signer.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionSigner {
    /// Name.
    name: Name,
    /// The signer's user ID, for `user_picker` steps. Null if the signer is inactive or isn't a user.
    #[schema(required)]
    user_id: Option<UserId>,
}

/// A submitted step, for the signer to read, or a step to submit.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionStep {
    /// Index of the step, from zero.
    index: usize,
    /// The step.
    step: Step,
    /// Value submitted or sent in advance. Null if there is none, and for a signature.
    #[schema(required, value_type = Option<Value>)]
    value: Value,
    /// Name of the picked user. Null if no user was picked, or if the user was deleted.
    #[schema(required)]
    user_name: Option<Name>,
    /// Whether a value or a signature is stored.
    is_stored: bool,
    /// Whether the signature's image shows a typed name.
    is_typed: bool,
    /// Who signed: the signer, or else the API key's user, or else the key. Null if there is no signature.
    #[schema(required)]
    signed_by: Option<String>,
    /// Time of the signature.
    #[schema(required)]
    signed_at: Option<Timestamp>,
}
