//! The sample events in `events/`, and events in API Gateway's format.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Sample {
    /// The function and the name of the sample's file, without extension: `assets/get-200`.
    pub name: String,
    /// Package of the function that handles the event.
    pub function: String,
    /// The expected status, from the end of the file's name.
    pub status: u64,
    /// The event, with an API key and an asset ID inserted.
    pub event: String,
}

/// What the samples of a return refer to, from the responses to those before them.
#[derive(Debug, Default)]
pub struct Made(Vec<(&'static str, String)>);

impl Made {
    #[must_use]
    pub fn insert_into(&self, event: &str) -> String {
        self.0.iter().fold(event.to_owned(), |event, (placeholder, value)| event.replace(placeholder, value))
    }

    /// Keeps what later samples need of the response to the sample of this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the response lacks it.
    pub fn keep(&mut self, sample: &str, response: &Value) -> Result<()> {
        let (placeholder, member) = match sample {
            "processes/return-1-define-201" => ("REPLACE_WITH_A_PROCESS_ID", "id"),
            "processes/return-2-start-201" => ("REPLACE_WITH_AN_INSTANCE_ID", "id"),
            "processes/return-4-link-201" => ("sgn_REPLACE_WITH_YOUR_LINK", "url"),
            _ => return Ok(()),
        };
        let text = response["data"][member].as_str().with_context(|| format!("{sample}: {response} has no {member}"))?;
        // A link's secret follows the `#` of its URL.
        self.0.push((placeholder, text.split_once('#').map_or(text, |(_, secret)| secret).to_owned()));
        Ok(())
    }
}

/// Reads the samples, sorted by name; samples whose name begins with `x-` come last. In this order, each sample can build on the
/// effects of earlier ones.
///
/// # Errors
///
/// Returns an error if a file can't be read or its name doesn't end in a status.
pub fn samples(api_key: &str, asset_id: &str) -> Result<Vec<Sample>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let mut samples = Vec::new();
    for path in request_files(&folder)? {
        let file = path.strip_prefix(&folder)?.with_extension("");
        let name = file.to_str().context("a sample event's file name is not UTF-8")?.to_owned();
        let text = std::fs::read_to_string(&path)?;
        let event = text.replace("apl_REPLACE_WITH_YOUR_KEY", api_key).replace("REPLACE_WITH_AN_ASSET_ID", asset_id);
        let function = name.split('/').next().unwrap_or_default().to_owned();
        let status = name.rsplit('-').next().and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("the file name {name} doesn't end in a status"))?;
        samples.push(Sample { function, status, event, name });
    }
    // The asset is deleted last, after the samples of all functions.
    samples.sort_by_key(|sample| (sample.name.contains("/x-"), sample.name.clone()));
    Ok(samples)
}

/// Returns the files of the sample requests of all functions, without the background events.
fn request_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for function in std::fs::read_dir(folder)? {
        let function = function?.path();
        if !function.ends_with("background") {
            for file in std::fs::read_dir(function)? {
                files.push(file?.path());
            }
        }
    }
    Ok(files)
}

/// Builds a request in API Gateway's format, with a JSON body.
#[must_use]
pub fn request(method: &str, path: &str, api_key: &str, body: Option<&Value>) -> String {
    request_with_query(method, path, "", api_key, "application/json", body.map(Value::to_string))
}

/// Like [`request`], with a query and a body of any type.
#[must_use]
pub fn request_with_query(
    method: &str,
    path: &str,
    query: &str,
    api_key: &str,
    content_type: &str,
    body: Option<String>,
) -> String {
    json!({
        "version": "2.0", "routeKey": format!("{method} {path}"), "rawPath": path, "rawQueryString": query,
        "headers": {"authorization": format!("Bearer {api_key}"), "content-type": content_type},
        "requestContext": {
            "accountId": "123456789012", "apiId": "abc123", "stage": "$default", "requestId": "JKJaXmPLvHcESHA=",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "curl"},
            "time": "05/Mar/2026:10:00:00 +0000", "timeEpoch": 1_772_704_800_000_u64
        },
        "body": body, "isBase64Encoded": false
    })
    .to_string()
}
