//! The endpoints of receipts (docs/adr/0009).

use crate::movement_commands::MovementInputs;
use crate::receipt_page::{self, Images, STYLE};
use crate::views;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use serde::Serialize;
use serde_json::{Value, json};
use shared::auth::{Requester, UnverifiedRequest};
use shared::domain::assets::asset::Asset;
use shared::domain::history::chain::HistoryEntry;
use shared::domain::keys::scope::Scope;
use shared::domain::processes::instance::{Instance, InstanceStatus};
use shared::domain::processes::movement::{Movement, position};
use shared::domain::receipts::key::SigningKey;
use shared::domain::receipts::receipt::{InstancePart, MovementReceipt, Receipt, ReceiptError};
use shared::domain::receipts::signed::{SignedMovementReceipt, SignedReceipt};
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{InstanceId, MovementId, UserId};
use shared::http::describe::{Describe, Schemas, add_response, reference};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::extract::{PathId, QueryParams};
use shared::http::html;
use shared::http::openapi::{GetErrors, ReceiptConflict};
use shared::http::params::FromParam;
use shared::http::response::{ApiResponse, Json, Success, found};
use shared::store::{StoreError, TenantStore};
use std::collections::BTreeMap;
use utoipa::openapi::path::Operation;
use utoipa::{PartialSchema, ToSchema};

/// How many instances' histories are read at once for a movement's receipt. They are kept only until its part is made.
const HISTORIES_AT_ONCE: usize = 10;

/// The format of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ReceiptFormat)]
pub enum Format {
    /// The signed data and its signature.
    Json,
    /// A page to print.
    Html,
}

impl FromParam for Format {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        match text {
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Html),
            _ => Err(ValueError::new("must be json or html")),
        }
    }
}

shared::query! {
    /// The form of the receipt.
    pub struct ReceiptQuery {
        /// `json`, or `html` for a page to print that shows each signature. Default `json`.
        format: Format as Format,
    }
}

/// A receipt, in either format.
pub enum ReceiptResponse<R> {
    /// The signed data and its signature.
    Json(Box<R>),
    /// A page to print.
    Html(String),
}

impl<R> ReceiptResponse<R> {
    /// Returns the same response with what `wrap` makes of the receipt.
    pub(crate) fn map<S>(self, wrap: impl FnOnce(Box<R>) -> S) -> ReceiptResponse<S> {
        match self {
            Self::Json(receipt) => ReceiptResponse::Json(Box::new(wrap(receipt))),
            Self::Html(page) => ReceiptResponse::Html(page),
        }
    }
}

impl<R: Serialize> Success for ReceiptResponse<R> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        match self {
            Self::Json(receipt) => Json(receipt).to_response(),
            Self::Html(page) => html::page(page.clone(), STYLE),
        }
    }
}

impl<R: Serialize> IntoResponse for ReceiptResponse<R> {
    fn into_response(self) -> Response {
        self.to_response().into_response()
    }
}

impl<R: ToSchema> Describe for ReceiptResponse<R> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let contents = [("application/json", reference::<R>(schemas)), ("text/html", String::schema())];
        add_response(operation, "200", "The receipt", contents);
    }
}

/// Get a receipt
///
/// Says who did what and when in a completed process instance, signed with a key of the tenant. `signature.value` is an
/// Ed25519 signature of the canonical JSON (RFC 8785) of `receipt`. `/v1/.well-known/receipt-keys` returns the public
/// keys.
#[utoipa::path(get, path = "/processes/instances/{id}/receipt", tag = "processes", security(("api_key" = ["processes:read"])), responses(GetErrors, ReceiptConflict))]
pub async fn get_receipt(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<ReceiptQuery>,
) -> Result<ReceiptResponse<SignedReceipt>, ApiError> {
    let (caller, (format, instance)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok((query.format, found(store.get::<Instance>(id.parse()?).await?)?))
        })
        .await?;
    of_instance(&caller, &instance, format).await
}

/// Returns the receipt of an instance.
pub(crate) async fn of_instance(
    requester: &Requester,
    instance: &Stored<Instance>,
    format: Option<Format>,
) -> Result<ReceiptResponse<SignedReceipt>, ApiError> {
    let receipt = receipt(requester, instance).await?;
    let key = signing_key(requester).await?;
    let signed = SignedReceipt::new(receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    if format != Some(Format::Html) {
        return Ok(ReceiptResponse::Json(Box::new(signed)));
    }
    let (images, tenant) = tokio::try_join!(images(requester, instance), tenant(requester))?;
    page(receipt_page::render(&signed, &images, &tenant))
}

/// Get a movement's receipt
///
/// One receipt for all its instances: the steps once, and each asset with its history. Signed as the receipt of an
/// instance is. Available once no instance is in progress and at least one is completed.
#[utoipa::path(get, path = "/movements/{id}/receipt", tag = "processes", security(("api_key" = ["processes:read"])), responses(GetErrors, ReceiptConflict))]
pub async fn get_movement_receipt(
    request: UnverifiedRequest,
    id: PathId<MovementId>,
    query: QueryParams<ReceiptQuery>,
) -> Result<ReceiptResponse<SignedMovementReceipt>, ApiError> {
    let (caller, (format, inputs)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok((query.format, MovementInputs::read(&store, id.parse()?, None).await?))
        })
        .await?;
    of_movement(&caller, &inputs.movement, &inputs.instances, format).await
}

/// Returns the receipt of a movement.
pub(crate) async fn of_movement(
    requester: &Requester,
    movement: &Stored<Movement>,
    instances: &[Stored<Instance>],
    format: Option<Format>,
) -> Result<ReceiptResponse<SignedMovementReceipt>, ApiError> {
    let completed = completed_instance(instances)?;
    let receipt = movement_receipt(requester, movement, instances, completed).await?;
    let key = signing_key(requester).await?;
    let signed = SignedMovementReceipt::new(receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    if format != Some(Format::Html) {
        return Ok(ReceiptResponse::Json(Box::new(signed)));
    }
    // All instances share the images.
    let (images, tenant) = tokio::try_join!(images(requester, completed), tenant(requester))?;
    page(receipt_page::render_movement(&signed, &images, &tenant))
}

/// Returns the first completed instance of a movement that has ended.
fn completed_instance(instances: &[Stored<Instance>]) -> Result<&Stored<Instance>, ApiError> {
    let (status, _) = position(instances);
    let mut completed = instances.iter().filter(|instance| instance.value.status() == InstanceStatus::Completed);
    match completed.next() {
        Some(instance) if status == InstanceStatus::Completed => Ok(instance),
        _ => {
            let detail = format!("The movement is {status}. Only completed movements have a receipt.");
            Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"instance_status": status})))
        }
    }
}

/// Returns the key that signs the tenant's receipts.
async fn signing_key(requester: &Requester) -> Result<SigningKey, ApiError> {
    let key_encryption = requester.app.key_encryption().ok_or_else(|| {
        let detail = "Receipts are not available: the operator has not configured an encryption key for their signing keys.";
        ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
    })?;
    Ok(requester.store.signing_key(key_encryption, &requester.context).await?)
}

/// Returns the tenant, whose settings say how a page is shown.
pub(crate) async fn tenant(requester: &Requester) -> Result<Tenant, ApiError> {
    let tenant = requester.store.get::<Tenant>(requester.store.id()).await?;
    tenant.map(|tenant| tenant.value).ok_or_else(|| ApiError::Internal("a key of a tenant without a record".into()))
}

/// Returns the images of an instance's signatures, as many as a page has room for.
async fn images(requester: &Requester, instance: &Stored<Instance>) -> Result<Images, ApiError> {
    let shown = views::shown_images(std::slice::from_ref(instance))?;
    let left_out = instance.value.signatures().map(|(name, _)| name).filter(|name| !shown.contains(name));
    let paths = left_out.map(|name| (name.step.clone(), instance.value.signature_path(&name.step))).collect();
    let images = requester.store.signature_images(shown).await?;
    Ok(Images { images: images.into_iter().map(|(name, image)| (name.step, image)).collect(), paths })
}

fn page<R>(page: askama::Result<String>) -> Result<ReceiptResponse<R>, ApiError> {
    page.map(ReceiptResponse::Html).map_err(|error| ApiError::Internal(error.into()))
}

/// Reads the histories of the users whom an instance picked.
async fn user_histories(store: &TenantStore, instance: &Instance) -> Result<BTreeMap<UserId, Vec<HistoryEntry>>, StoreError> {
    let mut users = BTreeMap::new();
    for user in instance.picked_users() {
        users.insert(user, store.whole_history::<User>(user).await?.unwrap_or_default());
    }
    Ok(users)
}

/// Reads what a receipt is made from, and makes it.
async fn receipt(requester: &Requester, instance: &Stored<Instance>) -> Result<Receipt, ApiError> {
    let (store, value) = (&requester.store, &instance.value);
    if value.status() != InstanceStatus::Completed {
        return Err(receipt_error(ReceiptError::NotCompleted(value.status())));
    }
    let (history, asset) = (store.whole_history::<Instance>(value.id), store.whole_history::<Asset>(value.asset_id));
    let (history, asset, users) = tokio::try_join!(history, asset, user_histories(store, value))?;
    let (history, asset) = (history.unwrap_or_default(), asset.unwrap_or_default());
    Receipt::new(store.id(), instance, &history, &asset, &users).map_err(receipt_error)
}

/// Reads what a movement's receipt is made from, and makes it. All completed instances picked the same users.
async fn movement_receipt(
    requester: &Requester,
    movement: &Stored<Movement>,
    instances: &[Stored<Instance>],
    completed: &Stored<Instance>,
) -> Result<MovementReceipt, ApiError> {
    let store = &requester.store;
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
            let detail =
                "The history that the receipt would be made from is broken. Send verify=true to its history for details.";
            (detail.to_owned(), json!({"broken": broken}))
        }
    };
    ApiError::conflict(ConflictCode::Conflict, detail, context)
}
