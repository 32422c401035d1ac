//! The view of a signing session: what the signer needs to know, and no more.

use serde::Serialize;
use serde_json::Value;
use shared::domain::assets::asset::Status;
use shared::domain::processes::process::Step;
use shared::domain::signing::link::LinkStatus;
use shared::domain::tenants::locale::Locale;
use shared::domain::values::id::{LinkId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use utoipa::ToSchema;

/// What a signing link opens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningSession)]
pub struct SessionView {
    /// ID of the link.
    pub(super) link_id: LinkId,
    /// Name of the organization.
    pub(super) organization: Name,
    /// Its locale, for readers whose language a page doesn't have.
    pub(super) locale: Locale,
    /// Name of the process.
    pub(super) process_name: Name,
    /// Status of the assets when the process is completed.
    pub(super) target_status: Status,
    /// Number of the movement, if the process runs on several assets at once.
    #[schema(required)]
    pub(super) movement_number: Option<String>,
    /// Assets.
    pub(super) assets: Vec<SessionAsset>,
    /// Who is to sign.
    pub(super) signer: SessionSigner,
    /// `open`, or `used` once all its steps are submitted.
    pub(super) status: LinkStatus,
    /// Time until which the link answers. Of a used link, 24 hours after its last step.
    pub(super) ends_at: Timestamp,
    /// The steps that are submitted, in order. Empty for a used link.
    pub(super) submitted: Vec<SessionStep>,
    /// The link's steps that are still to be submitted, in order.
    pub(super) steps: Vec<SessionStep>,
    /// Whether the process is completed, so that there is a receipt.
    pub(super) is_completed: bool,
    /// Whether the process was cancelled after the link was used. There will be no receipt.
    pub(super) is_cancelled: bool,
}

/// An asset of a signing session.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionAsset {
    /// Asset tag.
    pub(super) asset_tag: String,
    /// Name.
    pub(super) name: String,
    /// Manufacturer.
    #[schema(required)]
    pub(super) manufacturer: Option<String>,
    /// Model.
    #[schema(required)]
    pub(super) model: Option<String>,
    /// Serial number.
    #[schema(required)]
    pub(super) serial_number: Option<String>,
    /// Where it is.
    #[schema(required)]
    pub(super) location: Option<String>,
}

/// Who is to sign.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionSigner {
    /// Name.
    pub(super) name: Name,
    /// User, whom a step can pick; null for an inactive user and for a person who is none.
    #[schema(required)]
    pub(super) user_id: Option<UserId>,
}

/// A step that is submitted, for the signer to read, or to be submitted.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionStep {
    /// Index of the step, from zero.
    pub(super) index: usize,
    /// The step.
    pub(super) step: Step,
    /// Value that was submitted, or sent ahead. Null if there is none, and for a signature.
    #[schema(required, value_type = Option<Value>)]
    pub(super) value: Value,
    /// Name of the user whom that value picks; null for a user who was deleted.
    #[schema(required)]
    pub(super) user_name: Option<Name>,
    /// Whether there is a value, if only a signature.
    pub(super) is_stored: bool,
    /// Whether the signature's image shows a typed name.
    pub(super) is_typed: bool,
    /// Who signed: the signer, else the user of the API key, else the key. Null without a signature.
    #[schema(required)]
    pub(super) signed_by: Option<String>,
    /// Time of the signature.
    #[schema(required)]
    pub(super) signed_at: Option<Timestamp>,
}
