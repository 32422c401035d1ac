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
    facts: Vec<(&'static str, Vec<Run>)>,
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
    by: Vec<Run>,
}

/// A part of a text. What people have named is isolated from the rest, so that its direction changes nothing around it.
enum Run {
    Text(String),
    Name(String),
}

/// A submitted value, as the page shows it.
enum StepText {
    Plain(Vec<Run>),
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

fn text(text: impl Into<String>) -> Run {
    Run::Text(text.into())
}

fn name(text: impl Into<String>) -> Run {
    Run::Name(text.into())
}

fn person(actor: &Actor) -> Vec<Run> {
    let key = name(&actor.key_name);
    match &actor.user_name {
        Some(user) => vec![name(user), text(" (key "), key, text(")")],
        None => vec![text("key "), key],
    }
}

/// Returns what was submitted to a step.
fn text_of(step: &ReceiptStep, images: &Images) -> StepText {
    let runs = match (&step.value, &step.step.kind) {
        (Value::Null, _) => vec![text("–")],
        (Value::Bool(true), _) => vec![text("yes")],
        (signed, StepKind::Signature) => return signature(&step.step.key, signed, images),
        (Value::String(id), StepKind::UserPicker) => {
            vec![name(step.user_name.as_deref().unwrap_or_default()), text(format!(" ({id})"))]
        }
        (Value::String(value), _) => vec![name(value)],
        (Value::Array(entries), _) => {
            entries.iter().filter_map(Value::as_str).flat_map(|entry| [name(entry), text("\n")]).collect()
        }
        (other, _) => vec![text(other.to_string())],
    };
    StepText::Plain(runs)
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
fn submission(step: &ReceiptStep) -> Vec<Run> {
    let mut runs = vec![text(format!("{}\n", step.submitted_at))];
    runs.extend(person(&step.submitted_by));
    if step.submitted_at != step.closed_at {
        runs.push(text(format!("\nstep closed {}\n", step.closed_at)));
        runs.extend(person(&step.closed_by));
    }
    runs
}

/// Returns the whole page.
///
/// # Errors
///
/// Returns the template's error, which writing to memory never causes.
pub(crate) fn render(signed: &SignedReceipt, images: &Images) -> askama::Result<String> {
    let Receipt { asset, process, started_at, started_by, completed_at, .. } = &signed.receipt;
    let mut facts = vec![("Asset", vec![text(format!("{} ", asset.asset_tag)), name(&*asset.name)])];
    let texts = [("Manufacturer", &asset.manufacturer), ("Model", &asset.model), ("Serial number", &asset.serial_number)];
    facts.extend(texts.into_iter().filter_map(|(field, value)| Some((field, vec![name(value.clone()?)]))));
    facts.push(("Status afterwards", vec![text(process.target_status.to_string())]));
    facts.push(("Started", [vec![text(format!("{started_at} by "))], person(started_by)].into_iter().flatten().collect()));
    facts.push(("Completed", vec![text(completed_at.to_string())]));
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
