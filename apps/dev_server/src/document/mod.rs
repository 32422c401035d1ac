//! The OpenAPI document of the whole API, made from the functions' parts of it.

mod examples;
mod headers;
mod shape;
mod webhooks;

use crate::api::descriptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::http::endpoints::BASE;
use shared::http::openapi::{conflicts, schemas, schemes};
use utoipa::openapi::info::{ContactBuilder, InfoBuilder, LicenseBuilder};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{OpenApi, RefOr, Server};

const DESCRIPTION: &str = "\
Manages an organization's assets, the people who have them, and the processes that hand them over: ordered steps that end by \
changing the asset.

**Keys.** Send an API key as `Authorization: Bearer <API_KEY>`. A key accesses the data of its own tenant only. Each operation \
names the scopes that the key needs.

**Errors** are problem documents (RFC 9457). `code` is for programs, `detail` for people. Send `request_id` along when you \
report a problem.

**Conflicts.** Each 409 names the codes that the operation can return:
{conflicts}

**Repeating requests.** With an `Idempotency-Key`, a POST can be sent again without taking effect twice. With `If-Match`, a change \
is made only if nobody else has changed the resource since.

**Headers.** Every response has `X-Request-Id`, which identifies the request in the log, and `Cache-Control: no-store`. Responses \
to a valid key also have `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, which say how many requests the \
key has left in this minute.

**Times** are in UTC, with milliseconds: `2026-11-21T08:30:00.000Z`.

The software comes under the Apache License 2.0, without warranty. Whoever operates it decides on the terms of its use.";

/// In the order of the document: name, name for people, and description.
const TAGS: [(&str, &str); 11] = [
    ("assets", "The asset inventory."),
    ("processes", "Process definitions, process instances, and movements, which are instances on several assets."),
    ("signing", "Signing links: people without an API key submit steps, and sign, on a page."),
    ("webhooks", "Addresses that events are sent to, and what became of each delivery."),
    ("users", "The people that assets are assigned to."),
    ("catalog", "Asset types, manufacturers and models."),
    ("reports", "Statistics of the inventory and of process instances."),
    ("settings", "Settings of the tenant."),
    ("keys", "API keys."),
    ("events", "The audit trail: every change in the tenant."),
    ("meta", "Endpoints that need no API key."),
];

/// Its members are written in this order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    openapi: Value,
    info: Value,
    servers: Value,
    tags: Value,
    paths: Value,
    webhooks: Value,
    components: Value,
}

/// OpenAPI 3.1, for the whole API. The API serves docs/openapi.json, which a test compares with this.
///
/// # Errors
///
/// Returns an error if the description of an operation can't be written as JSON.
pub fn document() -> serde_json::Result<Document> {
    let mut document = merged();
    headers::add_to(&mut document);
    let mut value = serde_json::to_value(&document)?;
    webhooks::add_to(&mut value);
    shape::shape(&mut value);
    examples::add_to(&mut value);
    serde_json::from_value(value)
}

fn merged() -> OpenApi {
    let merged = descriptions().reduce(|mut all, other| {
        all.merge(other);
        all
    });
    let mut document = merged.unwrap_or_default();
    document.info = InfoBuilder::new()
        .title("Asset and Process Lifecycle Service")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION.replace("{conflicts}", &conflicts())))
        .contact(Some(ContactBuilder::new().name(Some("Asset and Process Lifecycle Service")).build()))
        .license(Some(LicenseBuilder::new().name("Apache License 2.0").identifier(Some("Apache-2.0")).build()))
        .build();
    document.servers = Some(servers());
    document.tags = Some(TAGS.map(|(name, text)| TagBuilder::new().name(name).description(Some(text)).build()).into());
    let components = document.components.get_or_insert_default();
    components.security_schemes.extend(schemes().map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme))));
    components.schemas.extend(schemas());
    document
}

fn servers() -> Vec<Server> {
    let variable =
        |default: &str, description: &str| ServerVariableBuilder::new().default_value(default).description(Some(description));
    let deployed = ServerBuilder::new()
        .url("https://{api_id}.execute-api.{region}.amazonaws.com/v1")
        .description(Some("A stage deployed to AWS. The stack's output has its address."))
        .parameter("api_id", variable("abcde12345", "ID of the API in API Gateway"))
        .parameter("region", variable("eu-central-1", "AWS Region of the stack"));
    let local = ServerBuilder::new().url("http://127.0.0.1:3000/v1").description(Some("The dev server"));
    // Relative to where the document is (OpenAPI 3.1, "Server Object").
    let own = ServerBuilder::new().url(BASE).description(Some("The service that this document comes from"));
    vec![own.build(), local.build(), deployed.build()]
}
