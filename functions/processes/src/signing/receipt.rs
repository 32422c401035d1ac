//! The endpoint for a signer's receipt.

use crate::receipts::{self, ReceiptQuery};
use crate::subject::Subject;
use shared::auth::Signer;
use shared::domain::receipts::key::{SignedMovementReceipt, SignedReceipt};
use shared::domain::signing::LinkStatus;
use shared::http::openapi::{InputErrors, ReceiptConflict, Schemas, add_schema, schema_or_reference};
use shared::http::requests::params::Query;
use shared::http::responses::html::{AcceptedLanguage, Printable};
use shared::http::responses::{ApiError, Json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A schema only, without values.
pub enum SigningReceipt {}

// `anyOf`, not `oneOf`: a validator can't tell the two kinds of receipt apart by their members alone.
impl PartialSchema for SigningReceipt {
    fn schema() -> RefOr<Schema> {
        let any = AnyOfBuilder::new().description(Some("The receipt of a process instance, or of a movement."));
        any.item(schema_or_reference::<SignedReceipt>()).item(schema_or_reference::<SignedMovementReceipt>()).into()
    }
}

impl ToSchema for SigningReceipt {
    fn schemas(schemas: &mut Schemas) {
        add_schema::<SignedReceipt>(schemas);
        add_schema::<SignedMovementReceipt>(schemas);
    }
}

/// Get the receipt as the signer
///
/// The receipt of the process instance or movement, available from the end of the process until 24 hours after the link's last
/// submitted step. Send the link's secret as a bearer token.
#[utoipa::path(get, path = "/sign/receipt", tag = "signing", security(("signing_link" = [])), responses(InputErrors, ReceiptConflict))]
pub async fn get_signing_receipt(
    signer: Signer,
    Query(query): Query<ReceiptQuery>,
    language: AcceptedLanguage,
) -> Result<Printable<Json<SigningReceipt>>, ApiError> {
    let subject = Subject::read(&signer.store, signer.link.value.subject).await?;
    let principal = signer.verified().await?;
    if signer.link.value.status(principal.context.at, subject.position(), true) == LinkStatus::Ended {
        return Err(ApiError::BadLink(Some(LinkStatus::Ended)));
    }
    Ok(receipts::respond(&principal, &subject, query.format, language).await?.into())
}
