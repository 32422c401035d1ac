//! A response, with the checks of every one.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use shared::domain::values::json::parse;

/// A response that was read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub fn json(&self) -> Value {
        // Not by serde_json, which does not take every name of a member as data.
        parse(self.text()).unwrap_or_else(|_| panic!("not JSON: {:?}", self.text()))
    }

    /// An empty text without the header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The request must have succeeded.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        self.json()["data"].clone()
    }

    /// The request must have succeeded.
    #[track_caller]
    pub fn id(&self) -> String {
        self.data()["id"].as_str().expect("an id").to_owned()
    }

    /// The body must be a problem document with this status and code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["title"]);
        assert_eq!(problem["type"], format!("urn:problem:{}", code.to_lowercase().replace('_', "-")));
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        problem
    }

    /// The response must be a 422. Returns the sorted locations of its errors: JSON Pointers, and names of parameters, headers
    /// and columns.
    #[track_caller]
    pub fn field_errors(&self) -> Vec<String> {
        let problem = self.problem(422, "VALIDATION_ERROR");
        let location = |error: &Value| {
            let names = ["pointer", "parameter", "header", "column"];
            names.iter().find_map(|name| error[*name].as_str()).unwrap_or_default().to_owned()
        };
        let mut locations: Vec<String> = problem["errors"].as_array().unwrap().iter().map(location).collect();
        locations.sort();
        locations
    }
}
