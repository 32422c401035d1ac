//! The request that webhooks get, in the document's `webhooks`: one for all events.

use super::shape::reference;
use serde_json::{Value, json};
use shared::domain::webhooks::TEST_EVENT;

/// The body of every delivery.
const BODY: &str = "WebhookEvent";
/// The only response that is described: all others count as failures.
const TAKEN: &str = "WebhookTaken";
const TAKEN_TEXT: &str = "Taken, within 15 seconds. After any other response, the delivery is sent again, up to nine times in about \
    three days. Redirects are not followed. 410 disables the webhook.";
const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/// Adds the request and the components that it refers to.
pub(super) fn add_to(document: &mut Value) {
    document["webhooks"] = json!({"event": {"post": request()}});
    let components = &mut document["components"];
    components["schemas"][BODY] = json!({
        "type": "object",
        "description": "An event, as webhooks get it.",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"type": "string", "description": "Type of the event. Ignore types that you don't know."},
            "timestamp": {"description": "Time of the event.", "$ref": "#/components/schemas/Timestamp"},
            "data": {"description": "The change, as the feed has it.", "$ref": "#/components/schemas/FeedEvent"}
        }
    });
    add(&mut components["responses"], [(TAKEN, json!({"description": TAKEN_TEXT}))]);
    add(&mut components["parameters"], HEADERS.into_iter().zip(headers()));
}

fn add(section: &mut Value, parts: impl IntoIterator<Item = (&'static str, Value)>) {
    if section.is_null() {
        *section = json!({});
    }
    parts.into_iter().for_each(|(name, part)| section[name] = part);
}

fn request() -> Value {
    json!({
        "tags": ["webhooks"],
        "summary": "Receive an event",
        "description": format!("Of a type that the webhook names, or `{TEST_EVENT}`. All types have the same form."),
        "operationId": "receive_event",
        "security": [],
        "parameters": HEADERS.map(|name| reference("parameters", name)),
        "requestBody": {"required": true, "content": {"application/json": {"schema": reference("schemas", BODY)}}},
        "responses": {"2XX": reference("responses", TAKEN)}
    })
}

/// Of Standard Webhooks.
fn headers() -> [Value; 3] {
    let header = |name: &str, schema: Value, text: &str| json!({"name": name, "in": "header", "required": true, "schema": schema, "description": text});
    let [id, timestamp, signature] = HEADERS;
    [
        header(id, json!({"type": "string", "format": "uuid"}), "ID of the event: the same at every attempt."),
        header(timestamp, json!({"type": "integer"}), "Unix time of the attempt, in seconds."),
        header(
            signature,
            json!({"type": "string", "pattern": "^v1,[^ ]+( v1,[^ ]+)*$"}),
            "HMAC-SHA256 of ID, timestamp and body, joined by `.`, in Base64: one for each secret in force.",
        ),
    ]
}
