//! The receipt of a completed run (docs/adr/0009).

use crate::receipt_page::{self, Pictures};
use crate::views;
use axum::http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::asset::Asset;
use shared::domain::field_error::ValueError;
use shared::domain::id::InstanceId;
use shared::domain::instance::{Instance, InstanceStatus};
use shared::domain::receipt::{Receipt, ReceiptError, picked};
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::signed_receipt::SignedReceipt;
use shared::domain::user::User;
use shared::http::Answer;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::openapi::ReceiptErrors;
use shared::http::params::FromParam;
use shared::http::response::{self, Reply, present};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a receipt is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Format {
    /// What is signed, and the signature.
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
    /// How to give the receipt.
    pub struct ReceiptQuery {
        /// `json` (the default) or `html`, a page to print that pictures each signature.
        format: Format as Format,
    }
}

/// Gets the receipt of a completed run: who did what when, signed by a key of the tenant.
///
/// `signature.value` is an Ed25519 signature over the canonical JSON (RFC 8785) of `receipt`.
/// `/v1/.well-known/receipt-keys` has the public keys.
#[utoipa::path(get, path = "/processes/instances/{id}/receipt", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), ReceiptQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The receipt", content((SignedReceipt = "application/json"), (String = "text/html"))),
        ReceiptErrors))]
pub async fn get_receipt(request: UnverifiedRequest) -> Answer {
    let (caller, (query, run)) = request
        .enter_list(Scope::ProcessesRead, async |store| {
            let id: InstanceId = request.id()?;
            let query: ReceiptQuery = request.query()?;
            Ok((query, present(store.get::<Instance>(id).await?)?))
        })
        .await?;
    let receipt = receipt(&caller, &run).await?;
    let key_encryption = caller.app.key_encryption().ok_or_else(|| {
        let detail = "Receipts are not set up in this service: its operator has named nothing to seal their keys with.";
        ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
    })?;
    let key = caller.store.signing_key(key_encryption, &caller.context).await?;
    let signed = SignedReceipt::new(receipt, &key).map_err(|error| ApiError::Internal(error.into()))?;
    if query.format != Some(Format::Html) {
        return response::json(&signed);
    }
    let pictured = views::shown(std::slice::from_ref(&run))?;
    let left_out = run.value.signatures().map(|(name, _)| name).filter(|name| !pictured.contains(name));
    let paths = left_out.map(|name| (name.step.clone(), run.value.signature_path(&name.step))).collect();
    let images = caller.store.signature_images(pictured).await?;
    let images = images.into_iter().map(|(name, image)| (name.step, image)).collect();
    page(receipt_page::write(&signed, &Pictures { images, paths }))
}

/// Reads what a receipt is made from, and makes it.
async fn receipt(caller: &Caller, run: &Stored<Instance>) -> Result<Receipt, ApiError> {
    let (store, instance) = (&caller.store, &run.value);
    if instance.status() != InstanceStatus::Completed {
        return Err(refused(ReceiptError::NotCompleted(instance.status())));
    }
    let users = async {
        let mut users = BTreeMap::new();
        for user in picked(instance) {
            users.insert(user, store.whole_history::<User>(user).await?.unwrap_or_default());
        }
        Ok(users)
    };
    let (history, asset) = (store.whole_history::<Instance>(instance.id), store.whole_history::<Asset>(instance.asset_id));
    let (history, asset, users) = tokio::try_join!(history, asset, users)?;
    let (history, asset) = (history.unwrap_or_default(), asset.unwrap_or_default());
    Receipt::of(store.id(), run, &history, &asset, &users).map_err(refused)
}

fn refused(refusal: ReceiptError) -> ApiError {
    let (detail, context) = match refusal {
        ReceiptError::NotCompleted(status) => {
            (format!("The run is {status}: only a completed one has a receipt."), json!({"instance_status": status}))
        }
        ReceiptError::BrokenLink(broken) => {
            tracing::error!(event_id = ?broken.event_id, version = broken.version, reason = %broken.reason, "a receipt's history does not hold");
            (
                "The history that the receipt would be made from does not hold; verify=true says where.".to_owned(),
                json!({"broken": broken}),
            )
        }
    };
    ApiError::conflict(ConflictCode::Conflict, detail, context)
}

/// 200 with a page that loads nothing, runs nothing and stands in no frame.
fn page(text: String) -> Answer {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        receipt_page::style_hash()
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| ApiError::Internal(error.into()))?;
    let referrer = (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    Ok(Reply::bytes("text/html; charset=utf-8", text)
        .with(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with(referrer.0, referrer.1)
        .with(header::CONTENT_SECURITY_POLICY, policy))
}
