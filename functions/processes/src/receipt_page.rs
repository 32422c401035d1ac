//! A receipt as a page to print. The template escapes every text.

use askama::Template;
use base64_simd::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use shared::domain::event::Actor;
use shared::domain::hex;
use shared::domain::id::{InstanceId, TenantId};
use shared::domain::process::StepKind;
use shared::domain::receipt::{Receipt, ReceiptEvent, ReceiptStep};
use shared::domain::signature_image::data_url;
use shared::domain::signed_receipt::SignedReceipt;
use std::collections::HashMap;

/// The page's style. The response's Content-Security-Policy permits this text and no other.
const STYLE: &str = "body{font:11pt/1.4 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111}\
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{border:1px solid #999;padding:.35em .5em;text-align:left;\
vertical-align:top;overflow-wrap:anywhere}img{max-width:20em;max-height:10em;background:#fff}\
code{font-size:9pt;overflow-wrap:anywhere}td{white-space:pre-line}tr{break-inside:avoid}";

/// Returns the style's hash, as a Content-Security-Policy has it (CSP 3 §2.3.1).
pub(crate) fn style_hash() -> String {
    format!("sha256-{}", STANDARD.encode_to_string(Sha256::digest(STYLE)))
}

/// The images of signatures by step key, and the paths of those that the page has no room for.
pub(crate) struct Images {
    pub(crate) images: HashMap<String, Vec<u8>>,
    pub(crate) paths: HashMap<String, String>,
}

#[derive(Template)]
#[template(path = "receipt.html")]
struct ReceiptPage<'a> {
    title: &'a str,
    style: &'a str,
    facts: Vec<(&'static str, String)>,
    instance_id: InstanceId,
    tenant_id: TenantId,
    steps: Vec<StepRow<'a>>,
    events: &'a [ReceiptEvent],
    kid: &'a str,
    signature: &'a str,
}

struct StepRow<'a> {
    label: &'a str,
    value: StepText,
    by: String,
}

/// A submitted value, as the page shows it.
enum StepText {
    Plain(String),
    Signature { picture: Picture, hash: String },
}

enum Picture {
    /// The data URL of the image.
    Image(String),
    /// The path of an image that the page has no room for.
    Path(String),
    /// There is no image with the signed hash.
    Missing,
}

fn person(actor: &Actor) -> String {
    match &actor.user_name {
        Some(name) => format!("{name} (key {})", actor.key_name),
        None => format!("key {}", actor.key_name),
    }
}

/// Returns what was submitted to a step.
fn text_of(step: &ReceiptStep, images: &Images) -> StepText {
    let text = match (&step.value, &step.step.kind) {
        (Value::Null, _) => "–".to_owned(),
        (Value::Bool(true), _) => "yes".to_owned(),
        (signed, StepKind::Signature) => return signature(&step.step.key, signed, images),
        (Value::String(text), StepKind::UserPicker) => {
            format!("{} ({text})", step.user_name.as_deref().unwrap_or_default())
        }
        (Value::String(text), _) => text.clone(),
        (Value::Array(entries), _) => entries.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        (other, _) => other.to_string(),
    };
    StepText::Plain(text)
}

/// Returns the image that was signed for, if its hash is still the signed one.
fn signature(key: &str, signed: &Value, images: &Images) -> StepText {
    let hash = signed["sha256"].as_str().unwrap_or_default();
    let has_signed_hash = |image: &&Vec<u8>| hex::sha256(image) == hash;
    let picture = match (images.images.get(key).filter(has_signed_hash), images.paths.get(key)) {
        (Some(image), _) => Picture::Image(data_url(image)),
        (None, Some(path)) => Picture::Path(path.clone()),
        (None, None) => Picture::Missing,
    };
    StepText::Signature { picture, hash: hash.to_owned() }
}

/// Returns when and by whom a step was submitted, and closed if that was another time.
fn submission(step: &ReceiptStep) -> String {
    let submitted = format!("{}\n{}", step.submitted_at, person(&step.submitted_by));
    if step.submitted_at == step.closed_at {
        return submitted;
    }
    format!("{submitted}\nstep closed {}\n{}", step.closed_at, person(&step.closed_by))
}

/// Returns the whole page.
///
/// # Errors
///
/// Returns the template's error, which writing to memory never causes.
pub(crate) fn render(signed: &SignedReceipt, images: &Images) -> askama::Result<String> {
    let Receipt { asset, process, started_at, started_by, completed_at, .. } = &signed.receipt;
    let mut facts = vec![("Asset", format!("{} {}", asset.asset_tag, asset.name))];
    let texts = [("Manufacturer", &asset.manufacturer), ("Model", &asset.model), ("Serial number", &asset.serial_number)];
    facts.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    facts.push(("Status afterwards", process.target_status.to_string()));
    facts.push(("Started", format!("{started_at} by {}", person(started_by))));
    facts.push(("Completed", completed_at.to_string()));
    let steps = signed.receipt.steps.iter().map(|step| StepRow {
        label: &step.step.label,
        value: text_of(step, images),
        by: submission(step),
    });
    let page = ReceiptPage {
        title: &process.name,
        style: STYLE,
        facts,
        instance_id: signed.receipt.instance_id,
        tenant_id: signed.receipt.tenant_id,
        steps: steps.collect(),
        events: &signed.receipt.events,
        kid: &signed.signature.kid,
        signature: &signed.signature.value,
    };
    page.render()
}
