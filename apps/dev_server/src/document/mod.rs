//! The OpenAPI document of the whole API, merged from the functions' parts, with the request to webhooks in `webhooks`.

mod examples;
mod shape;

use crate::api::descriptions;
pub use examples::Examples;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shape::reference;
use shared::domain::webhooks::TEST_EVENT;
use shared::http::openapi::{conflicts, schemas, schemes};
use shared::http::routes::BASE;
use utoipa::openapi::info::{ContactBuilder, InfoBuilder, LicenseBuilder};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{OpenApi, RefOr, Server};

const DESCRIPTION: &str = "\
Manages an organization's assets, the people they are assigned to, and processes such as handovers: ordered steps, the last of \
which changes the asset.

**Keys.** Send an API key as `Authorization: Bearer <API_KEY>`. A key only accesses its own tenant's data. Each operation \
names the scopes that the key needs.

**Errors** are problem documents (RFC 9457). `code` is for programs, `detail` for people. Send `request_id` along when you \
report a problem.

**Conflicts.** Each 409 names the codes that the operation can return:
{conflicts}

**Retries.** With an `Idempotency-Key`, a POST can be repeated without taking effect twice. With `If-Match`, or with \
`updated_at` in a PATCH, a change is only made if the resource hasn't changed since.

**Headers.** Every response has `X-Request-Id`, which identifies the request in the log, and `Cache-Control: no-store`. Responses \
to a valid key also have `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, which say how many requests the \
key has left in this minute.

**Times** are in UTC, with milliseconds: `2026-11-21T08:30:00.000Z`.

The software is under the Apache License 2.0, without warranty. The operator of a deployment sets its terms of use.";

/// The tags in the order of the document: name and description.
const TAGS: [(&str, &str); 11] = [
    ("assets", "The asset inventory."),
    (
        "processes",
        "Process definitions, process instances, and movements: sets of instances that advance together, one per asset.",
    ),
    ("signing", "Signing links, which let people without an API key submit steps and sign on a page."),
    ("webhooks", "Receivers of events, and the outcome of each delivery."),
    ("users", "The people that assets are assigned to."),
    ("catalog", "Asset types, manufacturers and models."),
    ("reports", "Statistics of the inventory and of process instances."),
    ("settings", "Settings of the tenant."),
    ("keys", "API keys."),
    ("events", "The audit trail: every change in the tenant."),
    ("meta", "Endpoints that need no API key."),
];

/// Members are serialized in this order.
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

/// Builds the document of the whole API (OpenAPI 3.1), with these examples. The API serves docs/openapi.json, which a test
/// compares with this document.
///
/// # Errors
///
/// Returns an error if an operation's description can't be written as JSON.
pub fn document(examples: Examples) -> serde_json::Result<Document> {
    let mut document = merged();
    shape::add_headers(&mut document);
    let mut value = serde_json::to_value(&document)?;
    add_webhooks(&mut value);
    shape::shape(&mut value);
    examples.add_to(&mut value);
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
        .description(Some("A stage deployed to AWS. The stack's outputs contain its URL."))
        .parameter("api_id", variable("abcde12345", "ID of the API in API Gateway"))
        .parameter("region", variable("eu-central-1", "AWS Region of the stack"));
    let local = ServerBuilder::new().url("http://127.0.0.1:3000/v1").description(Some("The dev server"));
    // Relative to the document's address (OpenAPI 3.1, "Server Object").
    let own = ServerBuilder::new().url(BASE).description(Some("The service that this document comes from"));
    vec![own.build(), local.build(), deployed.build()]
}

/// The schema for the body of every delivery.
const BODY: &str = "WebhookEvent";
/// The only described response, because all others count as failures.
const TAKEN: &str = "WebhookTaken";
const TAKEN_TEXT: &str = "Accepted. If this response doesn't arrive within 15 seconds, the delivery is retried up to nine times \
    over about three days. Redirects are not followed. 410 disables the webhook.";
const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

fn add_webhooks(document: &mut Value) {
    document["webhooks"] = json!({"event": {"post": webhook_request()}});
    let components = &mut document["components"];
    components["schemas"][BODY] = json!({
        "type": "object",
        "description": "An event, as delivered to webhooks.",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"type": "string", "description": "Type of the event. Ignore types that you don't know."},
            "timestamp": {"description": "Time of the event.", "$ref": "#/components/schemas/Timestamp"},
            "data": {"description": "The change, in the same format as in the feed.", "$ref": "#/components/schemas/FeedEvent"}
        }
    });
    add(&mut components["responses"], [(TAKEN, json!({"description": TAKEN_TEXT}))]);
    add(&mut components["parameters"], HEADERS.into_iter().zip(webhook_headers()));
}

fn add(section: &mut Value, parts: impl IntoIterator<Item = (&'static str, Value)>) {
    if section.is_null() {
        *section = json!({});
    }
    parts.into_iter().for_each(|(name, part)| section[name] = part);
}

fn webhook_request() -> Value {
    json!({
        "tags": ["webhooks"],
        "summary": "Receive an event",
        "description": format!(
            "An event of one of the webhook's types, or a `{TEST_EVENT}`. Events of all types have the same format."
        ),
        "operationId": "receive_event",
        "security": [],
        "parameters": HEADERS.map(|name| reference("parameters", name)),
        "requestBody": {"required": true, "content": {"application/json": {"schema": reference("schemas", BODY)}}},
        "responses": {"2XX": reference("responses", TAKEN)}
    })
}

/// Returns the headers that Standard Webhooks specifies.
fn webhook_headers() -> [Value; 3] {
    let header = |name: &str, schema: Value, text: &str| json!({"name": name, "in": "header", "required": true, "schema": schema, "description": text});
    let [id, timestamp, signature] = HEADERS;
    [
        header(id, json!({"type": "string", "format": "uuid"}), "ID of the event, the same for every attempt."),
        header(timestamp, json!({"type": "integer"}), "Unix time of the attempt, in seconds."),
        header(
            signature,
            json!({"type": "string", "pattern": "^v1,[^ ]+( v1,[^ ]+)*$"}),
            "HMAC-SHA256 of the ID, the timestamp and the body, joined by `.`, in Base64. One signature per active secret, \
             separated by spaces.",
        ),
    ]
}
