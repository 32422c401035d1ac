//! The operations in the OpenAPI document. Tests that iterate over them cover new routes automatically.

use super::client::{Client, Reply};
use super::document::{BASE, served_document, with_components};
use super::samples::{OPEN_PATHS, Samples, content_type};
use serde_json::Value;
use shared::http::openapi::SIGNING_LINK;
use std::sync::LazyLock;

/// Deletions come last, so that the other methods find the sample resources.
pub const METHODS: [&str; 5] = ["GET", "PATCH", "PUT", "POST", "DELETE"];
pub const WRITE_METHODS: [&str; 4] = ["PATCH", "PUT", "POST", "DELETE"];

pub struct Operation {
    pub method: String,
    pub path: String,
    pub needs_key: bool,
    /// Scopes that the key needs; none if every key is sufficient or no key is needed.
    pub scopes: Vec<String>,
    pub description: Value,
}

impl Operation {
    /// Sends the operation for the sample resources, with a valid body.
    pub async fn send(&self, client: &Client, samples: &Samples) -> Reply {
        self.send_to(client, samples, str::to_owned).await
    }

    pub async fn send_dry_run(&self, client: &Client, samples: &Samples) -> Reply {
        self.send_to(client, samples, dry_run).await
    }

    async fn send_to(&self, client: &Client, samples: &Samples, target: fn(&str) -> String) -> Reply {
        let (path, body) = samples.request(&self.method, &self.path);
        client.send(&self.method, &target(&path), Some(content_type(&self.path)), body).await
    }

    /// Whether the operation is a write that needs an API key.
    pub fn is_write(&self) -> bool {
        self.method != "GET" && self.needs_key
    }
}

/// Prints only method and path, because the description is long.
impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

pub fn dry_run(path: &str) -> String {
    format!("{path}{}dry_run=true", if path.contains('?') { '&' } else { '?' })
}

/// Returns the OpenAPI document and its operations, except operations for signing links. Paths start with `/v1`.
pub fn operations() -> (&'static Value, &'static [Operation]) {
    static READ: LazyLock<(Value, Vec<Operation>)> = LazyLock::new(|| {
        let document = served_document();
        let operations = read(&document);
        (document, operations)
    });
    (&READ.0, &READ.1)
}

fn read(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = format!("{BASE}{path}");
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, value)| value.get("responses").is_some()) {
            // Separate tests cover the operations for signing links.
            if operation["security"][0].get(SIGNING_LINK).is_some() {
                continue;
            }
            let required = operation["security"][0]["api_key"].as_array();
            let scopes: Vec<String> = required.into_iter().flatten().map(|scope| scope.as_str().unwrap().to_owned()).collect();
            let needs_key = required.is_some();
            assert_eq!(!needs_key, OPEN_PATHS.contains(&path.as_str()), "{method} {path} needs a key");
            assert!(!scopes.is_empty() || !needs_key || path == "/v1/me", "{method} {path} needs a scope");
            operations.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                needs_key,
                scopes,
                description: with_components(document, operation),
            });
        }
    }
    assert!(operations.len() >= 30, "only {} operations", operations.len());
    operations
}

/// Returns the methods and paths of the operations for signing links.
pub fn for_links(document: &Value) -> Vec<String> {
    let takes_link = |operation: &Value| operation["security"][0].get(SIGNING_LINK).is_some();
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, it)| (method, path, it)));
    all.filter(|(.., operation)| takes_link(operation)).map(|(method, path, _)| format!("{method} {path}")).collect()
}

pub fn by_method<'a>(operations: &'a [Operation], methods: &'a [&str]) -> impl Iterator<Item = &'a Operation> {
    methods.iter().flat_map(|method| operations.iter().filter(move |operation| operation.method == *method))
}
