//! The endpoint of receipts (docs/adr/0009).

use crate::receipt_page::{self, Images};
use crate::views;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::asset::Asset;
use shared::domain::field_error::ValueError;
use shared::domain::id::InstanceId;
use shared::domain::instance::{Instance, InstanceStatus};
use shared::domain::receipt::{Receipt, ReceiptError};
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::signed_receipt::SignedReceipt;
use shared::domain::user::User;
use shared::http::describe::{Describe, Schemas, add_response, reference};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::extract::{PathId, QueryParams};
use shared::http::openapi::ReceiptErrors;
use shared::http::params::FromParam;
use shared::http::response::{ApiResponse, Json, Success, found};
use std::collections::BTreeMap;
use utoipa::openapi::path::Operation;
use utoipa::{PartialSchema, ToSchema};

/// The format of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
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
pub enum ReceiptResponse {
    /// The signed data and its signature.
    Json(Box<SignedReceipt>),
    /// A page to print.
    Html(String),
}

impl Success for ReceiptResponse {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        match self {
            Self::Json(receipt) => Json(receipt).to_response(),
            Self::Html(page) => html(page.clone()),
        }
    }
}

impl IntoResponse for ReceiptResponse {
    fn into_response(self) -> Response {
        self.to_response().into_response()
    }
}

impl Describe for ReceiptResponse {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let contents = [("application/json", reference::<SignedReceipt>(schemas)), ("text/html", String::schema())];
        add_response(operation, "200", "The receipt", contents);
    }
}

/// Get a receipt
///
/// Says who did what and when in a completed process instance, signed with a key of the tenant. `signature.value` is an
/// Ed25519 signature of the canonical JSON (RFC 8785) of `receipt`. `/v1/.well-known/receipt-keys` returns the public
/// keys.
#[utoipa::path(get, path = "/processes/instances/{id}/receipt", tag = "processes", security(("api_key" = ["processes:read"])), responses(ReceiptErrors))]
pub async fn get_receipt(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<ReceiptQuery>,
) -> Result<ReceiptResponse, ApiError> {
    let (caller, (format, instance)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok((query.format, found(store.get::<Instance>(id.parse()?).await?)?))
        })
        .await?;
    let receipt = receipt(&caller, &instance).await?;
    let key_encryption = caller.app.key_encryption().ok_or_else(|| {
        let detail = "Receipts are not available: the operator has not configured an encryption key for their signing keys.";
        ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
    })?;
    let key = caller.store.signing_key(key_encryption, &caller.context).await?;
    let signed = SignedReceipt::new(receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    if format != Some(Format::Html) {
        return Ok(ReceiptResponse::Json(Box::new(signed)));
    }
    let shown = views::shown_images(std::slice::from_ref(&instance))?;
    let left_out = instance.value.signatures().map(|(name, _)| name).filter(|name| !shown.contains(name));
    let paths = left_out.map(|name| (name.step.clone(), instance.value.signature_path(&name.step))).collect();
    let images = caller.store.signature_images(shown).await?;
    let images = images.into_iter().map(|(name, image)| (name.step, image)).collect();
    let page = receipt_page::render(&signed, &Images { images, paths });
    Ok(ReceiptResponse::Html(page.map_err(|error| ApiError::Internal(error.into()))?))
}

/// Reads what a receipt is made from, and makes it.
async fn receipt(caller: &Caller, instance: &Stored<Instance>) -> Result<Receipt, ApiError> {
    let (store, value) = (&caller.store, &instance.value);
    if value.status() != InstanceStatus::Completed {
        return Err(receipt_error(ReceiptError::NotCompleted(value.status())));
    }
    let users = async {
        let mut users = BTreeMap::new();
        for user in value.picked_users() {
            users.insert(user, store.whole_history::<User>(user).await?.unwrap_or_default());
        }
        Ok(users)
    };
    let (history, asset) = (store.whole_history::<Instance>(value.id), store.whole_history::<Asset>(value.asset_id));
    let (history, asset, users) = tokio::try_join!(history, asset, users)?;
    let (history, asset) = (history.unwrap_or_default(), asset.unwrap_or_default());
    Receipt::new(store.id(), instance, &history, &asset, &users).map_err(receipt_error)
}

fn receipt_error(error: ReceiptError) -> ApiError {
    let (detail, context) = match error {
        ReceiptError::NotCompleted(status) => {
            let detail = format!("The instance is {status}. Only completed instances have a receipt.");
            (detail, json!({"instance_status": status}))
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

/// Returns a page that loads nothing, runs nothing and can't be framed.
fn html(page: String) -> Result<ApiResponse, ApiError> {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        receipt_page::style_hash()
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| ApiError::Internal(error.into()))?;
    let referrer = (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    Ok(ApiResponse::new("text/html; charset=utf-8", page)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(referrer.0, referrer.1)
        .with_header(header::CONTENT_SECURITY_POLICY, policy))
}
