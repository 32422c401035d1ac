//! A receipt as a page to print. Every text of it comes from somebody: all of them are escaped.

use base64_simd::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use shared::domain::event::Actor;
use shared::domain::hex;
use shared::domain::process::StepKind;
use shared::domain::receipt::{Receipt, ReceiptStep};
use shared::domain::signature_image::data_url;
use shared::domain::signed_receipt::SignedReceipt;
use std::collections::HashMap;
use std::fmt::Write;

/// How the page looks. The policy of the answer permits this text and no other.
const STYLE: &str = "body{font:11pt/1.4 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111}\
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{border:1px solid #999;padding:.35em .5em;text-align:left;\
vertical-align:top;overflow-wrap:anywhere}img{max-width:20em;max-height:10em;background:#fff}\
code{font-size:9pt;overflow-wrap:anywhere}td{white-space:pre-line}tr{break-inside:avoid}";

/// The style's hash, as a policy has it (CSP 3 §2.3.1).
pub(crate) fn style_hash() -> String {
    format!("sha256-{}", STANDARD.encode_to_string(Sha256::digest(STYLE)))
}

/// The images of signatures by step key, and the paths of those that the page has no room for.
pub(crate) struct Pictures {
    pub(crate) images: HashMap<String, Vec<u8>>,
    pub(crate) paths: HashMap<String, String>,
}

/// A text that shows itself wherever it stands in HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn person(actor: &Actor) -> String {
    match &actor.user_name {
        Some(name) => format!("{name} (key {})", actor.key_name),
        None => format!("key {}", actor.key_name),
    }
}

/// What was submitted, in HTML.
fn value(step: &ReceiptStep, pictures: &Pictures) -> String {
    let lines = |entries: &[Value]| entries.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    let text = match (&step.value, &step.step.kind) {
        (Value::Null, _) => "–".to_owned(),
        (Value::Bool(true), _) => "yes".to_owned(),
        (signed, StepKind::Signature) => return signature(&step.step.key, signed, pictures),
        (Value::String(text), StepKind::UserPicker) => {
            format!("{} ({text})", step.user_name.as_deref().unwrap_or_default())
        }
        (Value::String(text), _) => text.clone(),
        (Value::Array(entries), _) => lines(entries),
        (other, _) => other.to_string(),
    };
    escaped(&text)
}

/// The image that was signed for, if it is still that image.
fn signature(key: &str, signed: &Value, pictures: &Pictures) -> String {
    let hash = signed["sha256"].as_str().unwrap_or_default();
    let is_it = |image: &&Vec<u8>| hex::sha256(image) == hash;
    let picture = match (pictures.images.get(key).filter(is_it), pictures.paths.get(key)) {
        (Some(image), _) => format!(r#"<img alt="Signature" src="{}">"#, data_url(image)),
        (None, Some(path)) => format!("Too large for this page beside the others: {}", escaped(path)),
        (None, None) => "The image is gone, or is another one now.".to_owned(),
    };
    format!("{picture}\nSHA-256 <code>{}</code>", escaped(hash))
}

fn row(out: &mut String, name: &str, value: &str) {
    // Writing to a string can't fail.
    let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{value}</td></tr>", escaped(name));
}

/// The whole page.
pub(crate) fn write(signed: &SignedReceipt, pictures: &Pictures) -> String {
    let Receipt { tenant_id, instance_id, asset, process, started_at, started_by, completed_at, steps, events, .. } =
        &signed.receipt;
    let mut facts = String::new();
    row(&mut facts, "Asset", &escaped(&format!("{} {}", asset.asset_tag, asset.name)));
    for (name, text) in [("Manufacturer", &asset.manufacturer), ("Model", &asset.model), ("Serial number", &asset.serial_number)]
    {
        if let Some(text) = text {
            row(&mut facts, name, &escaped(text));
        }
    }
    row(&mut facts, "Status afterwards", &escaped(process.target_status.as_str()));
    row(&mut facts, "InstanceOrMovement", &escaped(&format!("{started_at} by {}", person(started_by))));
    row(&mut facts, "Completed", &escaped(&completed_at.to_string()));
    row(&mut facts, "Run", &format!("<code>{instance_id}</code>"));
    row(&mut facts, "Tenant", &format!("<code>{tenant_id}</code>"));
    let mut done = String::new();
    for step in steps {
        let mut by = format!("{}\n{}", step.submitted_at, person(&step.submitted_by));
        if step.submitted_at != step.closed_at {
            by.push_str(&format!("\nstep closed {}\n{}", step.closed_at, person(&step.closed_by)));
        }
        let by = escaped(&by);
        let _ = write!(
            done,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{by}</td></tr>",
            escaped(&step.step.label),
            value(step, pictures)
        );
    }
    let mut chain = String::new();
    for event in events {
        row(&mut chain, &format!("{} {}", event.version, event.event_type), &format!("<code>{}</code>", escaped(&event.hash)));
    }
    let title = escaped(&process.name);
    let (kid, proof) = (escaped(&signed.signature.kid), escaped(&signed.signature.value));
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Receipt: {title}</title>\
         <style>{STYLE}</style></head><body><h1>Receipt: {title}</h1><table>{facts}</table>\
         <h2>Steps</h2><table>{done}</table><h2>History</h2><table>{chain}</table>\
         <h2>Signature</h2><p>Ed25519 over the receipt's canonical JSON (RFC 8785), which the same address without \
         <code>format=html</code> gives. Key <code>{kid}</code>, signature <code>{proof}</code>.</p></body></html>"
    )
}
