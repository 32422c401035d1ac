//! What a response must be, however hostile its request.

use super::attack::{Attack, Sender};
use crate::usage::Usage;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most processor time that a request may take: beyond it, people wait and invoices grow.
const MAX_CPU_TIME: Duration = Duration::from_secs(2);
/// The most time that a request may take, with whatever it waits for. A busy machine must not fail it.
const MAX_ELAPSED: Duration = Duration::from_secs(10);
/// The most memory that a request may take. The functions have 256 MB.
const MAX_MEMORY_BYTES: u64 = 128 * 1024 * 1024;
/// The paths that need no key.
const OPEN_PATHS: [&str; 7] =
    ["/", "/v1", "/v1/docs", "/v1/health", "/v1/openapi.json", "/v1/.well-known/receipt-keys", "/v1/sign"];

/// A response that has been read.
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Counts responses and collects the faults of all of them.
pub struct Judge {
    /// A text that only the other tenant's data contains.
    marker: String,
    pub requests: u64,
    pub statuses: BTreeMap<u16, u64>,
    pub most_cpu_time: Duration,
    pub most_memory_bytes: u64,
    pub faults: Vec<String>,
}

impl Judge {
    pub fn new(marker: &str) -> Self {
        Self {
            marker: marker.to_owned(),
            requests: 0,
            statuses: BTreeMap::new(),
            most_cpu_time: Duration::ZERO,
            most_memory_bytes: 0,
            faults: Vec::new(),
        }
    }

    /// Judges a response.
    pub fn add(&mut self, sender: Sender, attack: &Attack, reply: &Reply, usage: Usage) {
        self.requests += 1;
        *self.statuses.entry(reply.status.as_u16()).or_default() += 1;
        self.most_cpu_time = self.most_cpu_time.max(usage.cpu_time);
        self.most_memory_bytes = self.most_memory_bytes.max(usage.memory_bytes);
        let faults = self.faults_of(sender, attack, reply, usage);
        let body = String::from_utf8_lossy(reply.body.get(..1000).unwrap_or(&reply.body)).into_owned();
        self.faults.extend(faults.into_iter().map(|fault| format!("{fault}\n  {sender:?} sent {attack}\n  {body}")));
    }

    fn faults_of(&self, sender: Sender, attack: &Attack, reply: &Reply, usage: Usage) -> Vec<String> {
        let status = reply.status;
        let mut faults = Vec::new();
        if status.is_server_error() {
            faults.push(format!("status {status}"));
        }
        if usage.cpu_time > MAX_CPU_TIME {
            faults.push(format!("{} ms of processor time", usage.cpu_time.as_millis()));
        }
        if usage.elapsed > MAX_ELAPSED {
            faults.push(format!("{} ms", usage.elapsed.as_millis()));
        }
        if usage.memory_bytes > MAX_MEMORY_BYTES {
            faults.push(format!("{} MB of memory", usage.memory_bytes / 1_000_000));
        }
        let marker = self.marker.as_bytes();
        let discloses = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker);
        if discloses(&reply.body) || reply.headers.values().any(|value| discloses(value.as_bytes())) {
            faults.push("data of another tenant".to_owned());
        }
        let path = attack.path.split('?').next().unwrap_or_default();
        let without_key = match sender {
            Sender::Stranger | Sender::Nobody | Sender::Exhausted => true,
            // A link's secret is no key, and a key is no link's secret.
            Sender::Signer => !path.starts_with("/v1/sign/"),
            Sender::Admin | Sender::Reader => path.starts_with("/v1/sign/"),
        };
        if without_key && status.is_success() && attack.method != "OPTIONS" && !OPEN_PATHS.contains(&path) {
            faults.push(format!("status {status} without a usable key"));
        }
        let is_error = status.is_client_error() || status.is_server_error();
        if is_error && attack.method != "HEAD" && reply.json()["code"].as_str().is_none() {
            faults.push(format!("status {status} without a problem document"));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(sender: Sender, status: u16, body: &str, usage: Usage) -> Vec<String> {
        let reply =
            Reply { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), body: body.as_bytes().to_vec() };
        Judge::new("marker").faults_of(sender, &Attack::new("GET", "/v1/assets?q=a", ""), &reply, usage)
    }

    const LITTLE: Usage = Usage { elapsed: Duration::ZERO, cpu_time: Duration::ZERO, memory_bytes: 0 };

    #[test]
    fn each_fault_is_found() {
        let problem = r#"{"code":"X"}"#;
        assert_eq!(faults(Sender::Admin, 200, "{}", LITTLE), [""; 0]);
        assert_eq!(faults(Sender::Stranger, 401, problem, LITTLE), [""; 0]);
        assert_eq!(faults(Sender::Admin, 500, problem, LITTLE), ["status 500 Internal Server Error"]);
        assert_eq!(faults(Sender::Admin, 200, "a marker here", LITTLE), ["data of another tenant"]);
        assert_eq!(faults(Sender::Stranger, 200, "{}", LITTLE), ["status 200 OK without a usable key"]);
        assert_eq!(faults(Sender::Signer, 200, "{}", LITTLE), ["status 200 OK without a usable key"]);
        assert_eq!(faults(Sender::Admin, 404, "not found", LITTLE), ["status 404 Not Found without a problem document"]);
        let slow = Usage { elapsed: Duration::from_secs(11), cpu_time: Duration::from_millis(2001), memory_bytes: 200_000_000 };
        assert_eq!(faults(Sender::Admin, 200, "{}", slow), ["2001 ms of processor time", "11000 ms", "200 MB of memory"]);
    }
}
