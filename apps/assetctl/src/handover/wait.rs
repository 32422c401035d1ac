//! Waiting for a signature.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::request::{get_endlessly, unreadable};
use crate::lookup::text;
use crate::progress::duration;
use serde_json::Value;
use std::time::Duration;
use terminal::print_note;

/// The first pause between two looks at the link. Each is longer than the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// `path` is that of the instance or movement, `seconds` the longest wait.
///
/// # Errors
///
/// Nobody signs in time, or the link is revoked or has expired.
pub async fn until_signed(client: &Client, path: &str, link: &Value, seconds: u64) -> Result<()> {
    print_note("Waiting for the signature. Ctrl-C ends the wait, and the link stays valid.");
    let limit = Duration::from_secs(seconds);
    let Ok(status) = tokio::time::timeout(limit, status_of_ended(client, path, link)).await else {
        let limit = duration(limit);
        return Err(CliError::Failed(format!("not signed within {limit}; the link stays valid. To go on, repeat the command.")));
    };
    match status?.as_str() {
        "used" | "ended" => Ok(()),
        other => Err(CliError::Failed(format!("not signed: the link is {other}; for another one, repeat the command"))),
    }
}

/// Looks at the link until it is not open any more.
async fn status_of_ended(client: &Client, path: &str, link: &Value) -> Result<String> {
    let url = client.url(&format!("{path}/links/{}", text(&link["id"])), &[] as &[(&str, &str)])?;
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = pause.mul_f64(1.3).min(MAX_PAUSE);
        let body = get_endlessly(client, &url, false, "The link stays valid.").await?;
        let link: Value = serde_json::from_slice(&body).unwrap_or_default();
        match link["data"]["status"].as_str() {
            Some("open") => {}
            Some(status) => return Ok(status.to_owned()),
            None => return Err(unreadable()),
        }
    }
}
