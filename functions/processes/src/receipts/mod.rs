//! The endpoints of receipts (docs/adr/0009).

mod make;
mod page;
mod texts;

use crate::subject::Subject;
use page::Images;
use serde::Serialize;
use shared::auth::scopes::ProcessesRead;
use shared::auth::{Caller, Principal};
use shared::domain::processes::instance::Instance;
use shared::domain::processes::subject::SubjectId;
use shared::domain::receipts::signed::{Signature, SignedMovementReceipt, SignedReceipt};
use shared::domain::record::Stored;
use shared::domain::tenants::locale::Language;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::values::id::{InstanceId, MovementId};
use shared::http::error::ApiError;
use shared::http::openapi::{ReceiptConflict, ResourceErrors};
use shared::http::requests::extract::{Path, Query};
use shared::http::responses::html::{self, AcceptedLanguage, Format, Printable, STYLE};
use shared::http::responses::{ApiResponse, Json, Success};

shared::query! {
    /// The form of the receipt.
    pub struct ReceiptQuery {
        /// `json`, or `html` for a page to print that shows each signature, in the language that `Accept-Language` prefers: en, de,
        /// fr or es. Without one of them, that of the tenant's `locale`, or else English. Default `json`.
        format: Format as Format,
    }
}

/// Get a receipt
///
/// Says who did what and when in a completed process instance, signed with a key of the tenant. `signature.value` is an
/// Ed25519 signature of the canonical JSON (RFC 8785) of `receipt`. `/v1/.well-known/receipt-keys` returns the public
/// keys.
#[utoipa::path(get, path = "/processes/instances/{id}/receipt", tag = "processes", responses(ResourceErrors, ReceiptConflict))]
pub async fn get_receipt(
    caller: Caller<ProcessesRead>,
    Query(query): Query<ReceiptQuery>,
    Path(id): Path<InstanceId>,
    language: AcceptedLanguage,
) -> Result<Printable<Json<SignedReceipt>>, ApiError> {
    Ok(get(caller, id.into(), query, language).await?.into())
}

/// Get a movement's receipt
///
/// One receipt for all its instances: the steps once, and each asset with its history. Signed as the receipt of an
/// instance is. Available once no instance is in progress and at least one is completed.
#[utoipa::path(get, path = "/movements/{id}/receipt", tag = "processes", responses(ResourceErrors, ReceiptConflict))]
pub async fn get_movement_receipt(
    caller: Caller<ProcessesRead>,
    Query(query): Query<ReceiptQuery>,
    Path(id): Path<MovementId>,
    language: AcceptedLanguage,
) -> Result<Printable<Json<SignedMovementReceipt>>, ApiError> {
    Ok(get(caller, id.into(), query, language).await?.into())
}

async fn get(
    caller: Caller<ProcessesRead>,
    id: SubjectId,
    query: ReceiptQuery,
    language: AcceptedLanguage,
) -> Result<ApiResponse, ApiError> {
    let subject = Subject::read(&caller.store, id).await?;
    respond(&*caller.verified().await?, &subject, query.format, language).await
}

pub(crate) async fn respond(
    principal: &Principal,
    subject: &Subject,
    format: Option<Format>,
    language: AcceptedLanguage,
) -> Result<ApiResponse, ApiError> {
    match &subject.movement {
        None => {
            let instance = subject.representative()?;
            let receipt = make::receipt(principal, instance).await?;
            let signed = |receipt, signature| SignedReceipt { receipt, signature };
            sign(principal, instance, (format, language), receipt, signed, page::render).await
        }
        Some(movement) => {
            let completed = make::completed_instance(subject)?;
            let receipt = make::movement_receipt(principal, movement, &subject.instances, completed).await?;
            let signed = |receipt, signature| SignedMovementReceipt { receipt, signature };
            sign(principal, completed, (format, language), receipt, signed, page::render_movement).await
        }
    }
}

/// Signs a receipt, and shows it in its format. A page has the images of `instance`: those of a movement share them.
async fn sign<R: Serialize, S: Serialize>(
    principal: &Principal,
    instance: &Stored<Instance>,
    (format, language): (Option<Format>, AcceptedLanguage),
    receipt: R,
    signed: impl FnOnce(R, Signature) -> S,
    render: impl FnOnce(&S, &Images, &Tenant, Language) -> askama::Result<String>,
) -> Result<ApiResponse, ApiError> {
    let key = make::signing_key(principal).await?;
    let signature = Signature::of(&receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    let signed = signed(receipt, signature);
    if format != Some(Format::Html) {
        return Json(signed).to_response();
    }
    let (images, tenant) = tokio::try_join!(make::images(principal, instance), make::tenant(principal))?;
    let language = language.or_language_of(&tenant.locale);
    let page = render(&signed, &images, &tenant, language).map_err(|error| ApiError::Internal(error.into()))?;
    html::page(page, STYLE)
}
