//! One hostile request, and how a person repeats it.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request};
use std::fmt::{Display, Formatter};

/// How many bytes of a body are printed.
const MAX_PRINTED_BYTES: usize = 400;

/// Whose key a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A key with every scope.
    Admin,
    /// A key that can only read assets.
    Reader,
    /// A key whose requests of this minute are used up.
    Exhausted,
    /// A well-formed key that doesn't exist, of the tenant that is attacked.
    Stranger,
    /// The secret of a signing link instead of a key.
    Signer,
    /// No key.
    Nobody,
}

impl Sender {
    pub const ALL: [Self; 6] = [Self::Admin, Self::Reader, Self::Exhausted, Self::Stranger, Self::Signer, Self::Nobody];
}

/// A request without its key.
#[derive(Debug, Clone)]
pub struct Attack {
    pub method: &'static str,
    /// Path and query, from `/v1` on.
    pub path: String,
    pub headers: Vec<(&'static str, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Attack {
    /// Creates a request with a JSON body, which may be empty.
    pub fn new(method: &'static str, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", b"application/json".to_vec())];
        Self { method, path: path.into(), headers, body: body.into() }
    }

    /// Adds a header, beside one of the same name.
    pub fn with_header(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the HTTP request; `None` if no server would hand it to the service, because its head is not HTTP.
    pub fn request(&self, api_key: Option<&str>) -> Option<Request<Body>> {
        let mut request = Request::builder().method(self.method).uri(self.path.as_str());
        if let Some(key) = api_key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in &self.headers {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_bytes(value).ok()?);
        }
        request.body(Body::from(self.body.clone())).ok()
    }
}

impl Display for Attack {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(f, "\n    {name}: {}", value.escape_ascii())?;
        }
        let shown = self.body.get(..MAX_PRINTED_BYTES).unwrap_or(&self.body);
        write!(f, "\n    body of {} bytes: {}", self.body.len(), shown.escape_ascii())
    }
}
