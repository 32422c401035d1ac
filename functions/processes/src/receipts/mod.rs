//! The endpoints for receipts (docs/adr/0009), which are built from complete histories.

mod page;
mod texts;

use crate::subject::{self, Subject};
use futures_util::future::try_join_all;
use page::Images;
use serde::Serialize;
use serde_json::{Value, json};
use shared::auth::caller::ProcessesRead;
use shared::auth::{Caller, Principal};
use shared::domain::assets::asset::Asset;
use shared::domain::history::chain::HistoryEntry;
use shared::domain::processes::instance::{Instance, InstanceStatus, SubjectId};
use shared::domain::processes::movement::Movement;
use shared::domain::receipts::key::{Signature, SignedMovementReceipt, SignedReceipt, SigningKey};
use shared::domain::receipts::receipt::{InstancePart, MovementReceipt, Receipt, ReceiptError};
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::{Language, Tenant};
use shared::domain::user::User;
use shared::domain::values::id::{InstanceId, MovementId, UserId};
use shared::http::openapi::{ReceiptConflict, ResourceErrors};
use shared::http::requests::params::{Path, Query};
use shared::http::responses::html::{self, AcceptedLanguage, Format, Printable, STYLE};
use shared::http::responses::{ApiError, ApiResponse, ConflictCode, Json, Success};
use shared::store::{Reader, StoreError};
use std::collections::BTreeMap;

/// Number of instances whose histories are read at once for a movement's receipt. Each history is dropped once its part is built.
const HISTORIES_AT_ONCE: usize = 10;

shared::query! {
    /// Format of the receipt.
    pub struct ReceiptQuery {
        /// `json`, or `html` for a printable page with all signatures, in the language that `Accept-Language` prefers (en, de, fr
        /// or es), or else in the language of the tenant's `locale`, or in English. Default `json`.
        format: Format as Format,
    }
}

/// Get a receipt
///
/// Who did what and when in a completed process instance, signed with a key of the tenant. `signature.value` is an
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
/// One receipt for all instances of the movement: the steps once, and each asset with its history. Signed like the receipt of an
/// instance. Available once no instance is in progress and at least one is completed.
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
            let receipt = receipt(principal, instance).await?;
            let signed = |receipt, signature| SignedReceipt { receipt, signature };
            sign(principal, instance, (format, language), receipt, signed, page::render).await
        }
        Some(movement) => {
            let completed = completed_instance(subject)?;
            let receipt = movement_receipt(principal, movement, &subject.instances, completed).await?;
            let signed = |receipt, signature| SignedMovementReceipt { receipt, signature };
            sign(principal, completed, (format, language), receipt, signed, page::render_movement).await
        }
    }
}

/// Signs a receipt, and renders it as JSON or as a page. The page shows the images of `instance`, which all instances of a
/// movement share.
async fn sign<R: Serialize, S: Serialize>(
    principal: &Principal,
    instance: &Stored<Instance>,
    (format, language): (Option<Format>, AcceptedLanguage),
    receipt: R,
    signed: impl FnOnce(R, Signature) -> S,
    render: impl FnOnce(&S, &Images, &Tenant, Language) -> askama::Result<String>,
) -> Result<ApiResponse, ApiError> {
    let key = signing_key(principal).await?;
    let signature = Signature::of(&receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    let signed = signed(receipt, signature);
    if format != Some(Format::Html) {
        return Json(signed).to_response();
    }
    let (images, tenant) = tokio::try_join!(images(principal, instance), tenant(principal))?;
    let language = language.or_language_of(&tenant.locale);
    let page = render(&signed, &images, &tenant, language).map_err(|error| ApiError::Internal(error.into()))?;
    html::page(page, STYLE)
}

/// Returns the first completed instance. Fails unless the movement is completed.
fn completed_instance(subject: &Subject) -> Result<&Stored<Instance>, ApiError> {
    let (status, _) = subject.position();
    let mut completed = subject.instances.iter().filter(|instance| instance.value.status() == InstanceStatus::Completed);
    match completed.next() {
        Some(instance) if status == InstanceStatus::Completed => Ok(instance),
        _ => {
            let detail = format!("The movement is {status}. Only completed movements have a receipt.");
            Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"instance_status": status})))
        }
    }
}

async fn signing_key(principal: &Principal) -> Result<SigningKey, ApiError> {
    let key_encryption = principal.app.key_encryption().ok_or_else(|| {
        let detail = "Receipts are not available: the operator has not configured an encryption key for their signing keys.";
        ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
    })?;
    Ok(principal.store.signing_key(key_encryption, &principal.context).await?)
}

async fn tenant(principal: &Principal) -> Result<Tenant, ApiError> {
    let tenant = principal.store.get::<Tenant>(principal.store.id()).await?;
    tenant.map(|tenant| tenant.value).ok_or_else(|| ApiError::Internal("the key's tenant has no record".into()))
}

/// Reads as many images as fit on a page, and returns the paths of the others.
async fn images(principal: &Principal, instance: &Stored<Instance>) -> Result<Images, ApiError> {
    let shown = subject::shown_images(std::slice::from_ref(instance))?;
    let left_out = instance.value.signatures().map(|(name, _)| name).filter(|name| !shown.contains(name));
    let paths = left_out.map(|name| (name.step.clone(), instance.value.signature_path(&name.step))).collect();
    let images = principal.store.signature_images(shown).await?;
    Ok(Images { images: images.into_iter().map(|(name, image)| (name.step, image)).collect(), paths })
}

async fn user_histories(store: &Reader, instance: &Instance) -> Result<BTreeMap<UserId, Vec<HistoryEntry>>, StoreError> {
    let mut users = BTreeMap::new();
    for user in instance.picked_users() {
        users.insert(user, store.whole_history::<User>(user).await?.unwrap_or_default());
    }
    Ok(users)
}

async fn receipt(principal: &Principal, instance: &Stored<Instance>) -> Result<Receipt, ApiError> {
    let (store, value) = (&principal.store, &instance.value);
    if value.status() != InstanceStatus::Completed {
        return Err(receipt_error(ReceiptError::NotCompleted(value.status())));
    }
    let (history, asset) = (store.whole_history::<Instance>(value.id), store.whole_history::<Asset>(value.asset_id));
    let (history, asset, users) = tokio::try_join!(history, asset, user_histories(store, value))?;
    let (history, asset) = (history.unwrap_or_default(), asset.unwrap_or_default());
    Receipt::new(store.id(), instance, &history, &asset, &users).map_err(receipt_error)
}

/// Reads the picked users' histories once, because all completed instances have the same users.
async fn movement_receipt(
    principal: &Principal,
    movement: &Stored<Movement>,
    instances: &[Stored<Instance>],
    completed: &Stored<Instance>,
) -> Result<MovementReceipt, ApiError> {
    let store = &principal.store;
    let history = store.whole_history::<Movement>(movement.value.id);
    let (history, users) = tokio::try_join!(history, user_histories(store, &completed.value))?;
    let part = async |instance: &Stored<Instance>| {
        let (id, asset) = (instance.value.id, instance.value.asset_id);
        let (history, asset) = tokio::try_join!(store.whole_history::<Instance>(id), store.whole_history::<Asset>(asset))?;
        let (history, asset) = (history.unwrap_or_default(), asset.unwrap_or_default());
        InstancePart::new(store.id(), instance, &history, &asset, &users).map_err(receipt_error)
    };
    let mut parts = Vec::new();
    for instances in instances.chunks(HISTORIES_AT_ONCE) {
        parts.extend(try_join_all(instances.iter().map(&part)).await?);
    }
    MovementReceipt::new(store.id(), movement, &history.unwrap_or_default(), parts).map_err(receipt_error)
}

fn receipt_error(error: ReceiptError) -> ApiError {
    let (detail, context) = match error {
        ReceiptError::NotCompleted(status) => {
            let detail = format!("The instance is {status}. Only completed instances have a receipt.");
            (detail, json!({"instance_status": status}))
        }
        ReceiptError::Differs => {
            let detail = "The instances of the movement were completed with different values. Get the receipt of each instance.";
            (detail.to_owned(), Value::Null)
        }
        ReceiptError::BrokenLink(broken) => {
            tracing::error!(event_id = ?broken.event_id, version = broken.version, reason = %broken.reason, "the history of a receipt is broken");
            let detail = "The history behind the receipt is broken. For details, get the history with verify=true.";
            (detail.to_owned(), json!({"broken": broken}))
        }
    };
    ApiError::conflict(ConflictCode::Conflict, detail, context)
}
