//! The sample events of `events/`, and such as the gateway sends.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;

/// A sample event.
#[derive(Debug)]
pub struct Sample {
    /// The name of its file.
    pub name: String,
    /// The package of the function that it is for.
    pub function: String,
    /// The status that its name promises.
    pub status: u64,
    /// The event, with the key and the asset filled in.
    pub event: String,
}

/// Every sample event, in the order of their names, which is that in which they work.
///
/// # Errors
///
/// A file's name or content is not as it should be.
pub fn samples(api_key: &str, asset: &str) -> Result<Vec<Sample>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let mut samples = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("a file name")?.to_owned();
        let text = std::fs::read_to_string(&path)?;
        let event = text.replace("apl_REPLACE_WITH_YOUR_KEY", api_key).replace("REPLACE_WITH_AN_ASSET_ID", asset);
        let function = match name.split('-').next().unwrap_or_default() {
            "settings" | "keys" | "events" => "account",
            function => function,
        };
        let status = name.rsplit('-').next().and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("{name} does not end in a status"))?;
        samples.push(Sample { function: function.to_owned(), status, event, name });
    }
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(samples)
}

/// An event of the gateway for a request with a key.
#[must_use]
pub fn request(method: &str, path: &str, api_key: &str, body: Option<&Value>) -> String {
    json!({
        "version": "2.0", "routeKey": format!("{method} {path}"), "rawPath": path, "rawQueryString": "",
        "headers": {"authorization": format!("Bearer {api_key}"), "content-type": "application/json"},
        "requestContext": {
            "accountId": "123456789012", "apiId": "abc123", "stage": "$default", "requestId": "JKJaXmPLvHcESHA=",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "curl"},
            "time": "05/Mar/2026:10:00:00 +0000", "timeEpoch": 1_772_704_800_000_u64
        },
        "body": body.map(Value::to_string), "isBase64Encoded": false
    })
    .to_string()
}
