//! Signing links: created with an API key, used by the signer.

use super::client::{Client, Reply};
use super::processes::{create_process, start};
use serde_json::{Value, json};
use shared::domain::keys::api_key::{LinkToken, Secret};
use shared::domain::values::id::{LinkId, TenantId};

#[derive(Debug)]
pub struct Link {
    pub id: String,
    pub path: String,
    /// The secret in the fragment of the link's URL.
    pub secret: String,
}

impl Link {
    /// Creates a link for the instance or movement with this path.
    pub async fn create(client: &Client, path: &str, body: Value) -> Self {
        Self::of(path, &client.post(&format!("{path}/links"), body).await)
    }

    /// Creates a link for "Grace Hopper", who isn't a user.
    pub async fn for_guest(client: &Client, path: &str) -> Self {
        Self::create(client, path, signer_named("Grace Hopper")).await
    }

    #[track_caller]
    pub fn of(path: &str, reply: &Reply) -> Self {
        assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
        let url = reply.data()["url"].as_str().expect("a URL").to_owned();
        let secret = url.split_once('#').expect("a fragment").1.to_owned();
        let id = reply.id();
        Self { path: format!("{path}/links/{id}"), id, secret }
    }

    /// Returns a client that sends the link's secret instead of an API key.
    pub fn signer(&self, client: &Client) -> Client {
        client.with_key(&self.secret)
    }

    pub async fn shown(&self, client: &Client) -> Value {
        client.get(&self.path).await.data()
    }
}

impl Client {
    pub async fn session(&self) -> Value {
        self.get("/sign/session").await.data()
    }

    pub async fn sign(&self, body: Value) -> Reply {
        self.post("/sign/advance", body).await
    }

    pub async fn sign_once(&self, body: &Value, key: &str) -> Reply {
        self.send_json("POST", "/sign/advance", &body.to_string(), ("idempotency-key", key)).await
    }
}

/// Returns the body of a new link for someone who isn't a user.
pub fn signer_named(name: &str) -> Value {
    json!({"signer": {"name": name}})
}

pub fn step(step_type: &str, key: &str) -> Value {
    json!({"type": step_type, "key": key, "label": key})
}

pub fn signature_step() -> Value {
    json!({"type": "signature", "key": "sign", "label": "Sign here", "required": true})
}

/// Adds the default statement, as responses do.
pub fn stated(step: &Value) -> Value {
    let mut step = step.clone();
    step["statement"] = json!("I confirm what is stated above.");
    step
}

/// Starts a process with these steps on a new asset. Returns the instance's path.
pub async fn started(client: &Client, steps: Value) -> String {
    let asset = client.asset(json!({"name": "Laptop", "serial_number": "S-1", "manufacturer": "Dell", "model": "XPS"})).await;
    format!("/processes/instances/{}", start(client, &create_process(client, steps).await, &asset).await)
}

pub fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Fails unless the response is a 401 for a link that no longer works. Returns the link's status.
#[track_caller]
pub fn link_status(reply: &Reply) -> String {
    let problem = reply.problem(401, "UNAUTHORIZED");
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    problem["link_status"].as_str().unwrap_or_else(|| panic!("no link_status: {problem}")).to_owned()
}

pub fn forged(link: &str, tenant: TenantId, secret: [u8; 32]) -> String {
    LinkToken::new(tenant, link.parse::<LinkId>().unwrap(), Secret::new(secret)).expose()
}
