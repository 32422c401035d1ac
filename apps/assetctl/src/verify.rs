//! `assetctl verify`: recomputes the history of an asset and verifies its receipts, or those in a file.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, JSON, Query, take, unreadable};
use crate::lookup::{self, items, tag_and_name, text};
use crate::output::{count, print_json};
use clap::Args;
use domain::history::chain::{Chain, ChainHead, HistoryEntry, Verification};
use domain::receipts::key::{self, Jwks};
use domain::values::json;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use terminal::{clean, print, record, time};

#[derive(Debug, Args)]
pub struct Verify {
    /// An asset (a tag, an ID or a serial number), or a file: a receipt, or a history as the API returns it
    #[arg(value_name = "TAG|FILE")]
    what: String,
    /// The public keys for a receipt, as the service publishes them; with this option, no request is sent
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

/// Verifies an asset's history and receipts, or a file. Connects only if that needs the service.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if something is not as the service recorded it.
pub async fn verify(options: &Verify, connect: impl FnOnce() -> Result<Connection>, is_json: bool) -> Result<u8> {
    let path = Path::new(&options.what);
    if !path.is_file() {
        if options.keys.is_some() {
            return Err(CliError::Usage(format!("--keys is for a receipt in a file, and {} is no file", options.what)));
        }
        return verify_asset(&Client::new(&connect()?)?, &options.what, is_json).await;
    }
    let text = read(path)?;
    let wrong = |detail: &str| CliError::Failed(format!("{} {detail}", path.display()));
    let content = json::parse(&text).map_err(|_| wrong("is not JSON"))?;
    if content.get("receipt").is_some() {
        let keys = match &options.keys {
            Some(keys) => jwks(&read(keys)?).ok_or_else(|| CliError::Failed(format!("{} has no public keys", keys.display())))?,
            None => published_keys(&Client::new(&connect()?)?, &content["receipt"]).await?,
        };
        let receipt = key::check(&text, &keys).map_err(|error| wrong(&error.to_string()))?;
        return show_receipt(&receipt, &content["signature"], is_json);
    }
    let entries = if content.is_array() { &content } else { &content["data"] };
    if items(entries).is_empty() {
        return Err(wrong("is neither a receipt nor a history"));
    }
    show_histories(path, items(entries), is_json)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| CliError::file(path, &error))
}

fn jwks(text: &str) -> Option<Jwks> {
    serde_json::from_str(text).ok()
}

/// Gets the public keys of the receipt's tenant.
async fn published_keys(client: &Client, receipt: &Value) -> Result<Jwks> {
    let url = client.url(".well-known/receipt-keys", &[("tenant", text(&receipt["tenant_id"]))])?;
    let reply = client.get(url, JSON).await?;
    jwks(&String::from_utf8_lossy(&reply.body)).ok_or_else(unreadable)
}

/// Recomputes histories from entries in any order, by record. An equal entry counts once: a change while the pages are read
/// shifts entries to the next page.
fn recomputed(entries: &[Value]) -> Result<BTreeMap<String, Verification>, String> {
    let (mut records, mut known) = (BTreeMap::<String, Vec<(u64, HistoryEntry)>>::new(), BTreeSet::new());
    for entry in entries.iter().filter(|entry| known.insert(entry.to_string())) {
        let read = HistoryEntry::read(entry).ok_or_else(|| format!("has an entry that can't be read: {}", text(&entry["id"])))?;
        records.entry(text(&entry["entity_id"]).to_owned()).or_default().push(read);
    }
    let verification = |entries: Vec<(u64, HistoryEntry)>| {
        let last = entries.iter().max_by_key(|(version, _)| *version);
        let mut chain = Chain::new(last.map(|(version, entry)| ChainHead { version: *version, last_hash: entry.hash.clone() }));
        entries.iter().for_each(|(version, entry)| chain.add(*version, entry));
        chain.finish()
    };
    Ok(records.into_iter().map(|(id, entries)| (id, verification(entries))).collect())
}

/// Returns the error for a broken history. `broken` has the `version` and the `reason`.
fn broken(of: &str, broken: &Value) -> CliError {
    let reason = text(&broken["reason"]).replace('_', " ");
    CliError::Failed(clean(&format!("the history of {of} is broken at version {}: {reason}", broken["version"])))
}

fn show_histories(path: &Path, entries: &[Value], is_json: bool) -> Result<u8> {
    let histories = recomputed(entries).map_err(|detail| CliError::Failed(clean(&format!("{} {detail}", path.display()))))?;
    let shown: Vec<Value> =
        histories.iter().map(|(id, verification)| json!({"entity_id": id, "verification": verification})).collect();
    if is_json {
        print_json(&json!({"histories": shown}))?;
    }
    if let Some(history) = shown.iter().find(|history| history["verification"]["valid"] != true) {
        return Err(broken(text(&history["entity_id"]), &history["verification"]["broken"]));
    }
    if !is_json {
        let entries = histories.values().map(|verification| verification.checked).sum();
        let of = count(histories.len() as u64, "record");
        print(&format!("The history is valid: {} of {of}, each with the hash of the one before", count(entries, "change")))?;
    }
    Ok(EXIT_SUCCESS)
}

fn show_receipt(receipt: &Value, signature: &Value, is_json: bool) -> Result<u8> {
    if is_json {
        print_json(&json!({"valid": true, "receipt": receipt, "kid": signature["kid"]}))?;
        return Ok(EXIT_SUCCESS);
    }
    let of_movement = items(&receipt["instances"]).iter().map(|instance| &instance["asset"]);
    let assets: Vec<String> = of_movement.chain(receipt.get("asset")).map(tag_and_name).collect();
    let members = [
        ("Receipt", "is valid: signed by the service, and unchanged since".to_owned()),
        ("Process", text(&receipt["process"]["name"]).to_owned()),
        ("Assets", assets.join(", ")),
        ("Completed", time(text(&receipt["completed_at"])) + " UTC"),
        ("Key", text(&signature["kid"]).to_owned()),
    ];
    print(&record(members, terminal::width()))?;
    Ok(EXIT_SUCCESS)
}

/// Verifies an asset's history, as the service checks it and again on this computer, and the receipts of its processes.
async fn verify_asset(client: &Client, name: &str, is_json: bool) -> Result<u8> {
    let asset = lookup::asset(client, name).await?;
    let (id, path) = (text(&asset["id"]), format!("assets/{}/history", text(&asset["id"])));
    let (mut document, _) = client.document(&path, &[("verify", "true"), ("limit", "1")]).await?;
    let verification = take(&mut document, "verification");
    if verification["valid"] != true {
        return Err(broken(&tag_and_name(&asset), &verification["broken"]));
    }
    let entries = client.rows(&path, Query::new(), u64::MAX).await?.rows;
    let own = recomputed(&entries).map_err(|detail| CliError::Failed(clean(&format!("{} {detail}", tag_and_name(&asset)))))?;
    let own = own.into_values().next().ok_or_else(unreadable)?;
    if let Some(link) = &own.broken {
        return Err(broken(&tag_and_name(&asset), &json!(link)));
    }
    let receipts = receipts(client, id).await?;
    if is_json {
        print_json(&json!({"asset": asset, "verification": verification, "recomputed": own, "receipts": receipts}))?;
        return Ok(EXIT_SUCCESS);
    }
    let checked = format!("is valid: {}, each with the hash of the one before", count(own.checked, "change"));
    let valid = receipts.iter().filter(|receipt| receipt["valid"] == true).count() as u64;
    let others = receipts.iter().filter_map(|receipt| receipt["detail"].as_str()).map(clean).collect::<BTreeSet<_>>();
    let receipts = match (valid, others.is_empty()) {
        (0, true) => "none: no process was completed".to_owned(),
        (0, false) => String::new(),
        _ => format!("{} valid, with the published keys", count(valid, "receipt")),
    };
    let receipts = Some(receipts).filter(|receipts| !receipts.is_empty()).into_iter().chain(others);
    let receipts = receipts.collect::<Vec<_>>().join("; ");
    let members = [("Asset", tag_and_name(&asset)), ("History", checked), ("Receipts", receipts)];
    print(&record(members, terminal::width()))?;
    Ok(EXIT_SUCCESS)
}

/// Verifies the receipts of the asset's completed processes. Returns the `path` of each, and whether it is `valid`: null, with the
/// service's `detail`, if there is no receipt yet.
async fn receipts(client: &Client, asset: &str) -> Result<Vec<Value>> {
    let query = [("asset_id", asset), ("status", "completed"), ("omit", "signatures")];
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let instances = client.rows("processes/instances", query, u64::MAX).await?.rows;
    let path = |instance: &Value| match instance["movement_id"].as_str() {
        Some(movement) => format!("movements/{movement}/receipt"),
        None => format!("processes/instances/{}/receipt", text(&instance["id"])),
    };
    let (paths, mut keys, mut receipts) = (instances.iter().map(path).collect::<BTreeSet<_>>(), None, Vec::new());
    for path in paths {
        let url = client.url(&path, &[] as &[(&str, &str)])?;
        let signed = match client.get(url, JSON).await {
            Err(error) if error.is_conflict() => {
                receipts.push(json!({"path": path, "valid": null, "detail": error.to_string()}));
                continue;
            }
            reply => String::from_utf8_lossy(&reply?.body).into_owned(),
        };
        if keys.is_none() {
            let receipt = json::parse(&signed).map_err(|_| unreadable())?;
            keys = Some(published_keys(client, &receipt["receipt"]).await?);
        }
        let check = key::check(&signed, keys.as_ref().ok_or_else(unreadable)?);
        check.map_err(|error| CliError::Failed(clean(&format!("the receipt {path} {error}"))))?;
        receipts.push(json!({"path": path, "valid": true}));
    }
    Ok(receipts)
}
