//! Objects stored by key, outside the table: snapshots of list indexes (docs/adr/0013). For an S3 bucket, GET, PUT and DELETE are
//! signed and sent with components of the SDK's DynamoDB client, because the SDK's S3 client would add more code to every
//! function.

use crate::environment::Environment;
use aws_sdk_dynamodb::config::{Credentials, Region};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use domain::values::time::Timestamp;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// The store did not respond in time, the connection failed, or the request could not be built.
    #[error("the object store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    #[error("the object store responded with {0}")]
    Status(u16),
}

impl ObjectStoreError {
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(cause.into())
    }
}

/// A store of whole objects by key: `list-index/<table>/<tenant>/<kind>`.
pub trait ObjectStore: Send + Sync {
    /// Reads at most `max_bytes` of an object; `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be read.
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>>;

    /// Writes an object atomically: readers get either the whole new object or the old one.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be written.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>>;

    /// Deletes an object. Succeeds if the object doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be deleted.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>>;
}

/// After this timeout, a list still has enough time to load its index from the table instead.
const GET_TIMEOUT: Duration = Duration::from_secs(4);
const PUT_TIMEOUT: Duration = Duration::from_secs(60);

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// An S3 bucket, or a bucket of a server with the same API.
pub struct S3 {
    url: String,
    region: Region,
    credentials: Credentials,
    connector: SharedHttpConnector,
    clock: Clock,
}

impl S3 {
    /// Creates a client for the bucket at `url`: `https://<bucket>.s3.<region>.amazonaws.com`, or a URL whose path is the bucket.
    #[must_use]
    pub fn new(url: &str, environment: &Environment, clock: Clock) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            region: environment.region.clone(),
            credentials: environment.credentials.clone(),
            connector: environment.connector.clone(),
            clock,
        }
    }

    /// Creates a signed request. The signature covers the body, even over HTTPS.
    fn request(&self, method: &str, key: &str, range: Option<String>, body: Vec<u8>) -> Result<HttpRequest, ObjectStoreError> {
        let uri = format!("{}/{key}", self.url);
        let mut settings = SigningSettings::default();
        // Unlike most services, S3 expects paths encoded once and not normalized. Keys contain no characters that need encoding.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let identity = self.credentials.clone().into();
        let now = Duration::from_millis((self.clock)().millis().unsigned_abs());
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region.as_ref())
            .name("s3")
            .time(SystemTime::UNIX_EPOCH + now)
            .settings(settings)
            .build()
            .map_err(ObjectStoreError::unavailable)?
            .into();
        let headers = range.iter().map(|range| ("range", range.as_str()));
        let signable = SignableRequest::new(method, uri.as_str(), headers, SignableBody::Bytes(&body));
        let signed =
            sign(signable.map_err(ObjectStoreError::unavailable)?, &parameters).map_err(ObjectStoreError::unavailable)?;
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method(method).map_err(ObjectStoreError::unavailable)?;
        request.set_uri(uri).map_err(ObjectStoreError::unavailable)?;
        for (name, value) in signed.output().headers() {
            request.headers_mut().insert(name.to_owned(), value.to_owned());
        }
        if let Some(range) = range {
            request.headers_mut().insert("range", range);
        }
        Ok(request)
    }

    /// Returns the status and the first `max_bytes` of the body.
    async fn send(&self, request: HttpRequest, max_bytes: usize) -> Result<(u16, Vec<u8>), ObjectStoreError> {
        let response = self.connector.call(request).await.map_err(ObjectStoreError::unavailable)?;
        let status = response.status().as_u16();
        let length = response.headers().get("content-length").and_then(|length| length.parse().ok());
        let mut body = response.into_body();
        let mut bytes = Vec::with_capacity(length.unwrap_or(0).min(max_bytes));
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(ObjectStoreError::unavailable)?.into_data() {
                bytes.extend_from_slice(data.get(..data.len().min(max_bytes - bytes.len())).unwrap_or_default());
            }
        }
        Ok((status, bytes))
    }
}

async fn within<T>(timeout: Duration, result: impl Future<Output = Result<T, ObjectStoreError>>) -> Result<T, ObjectStoreError> {
    tokio::time::timeout(timeout, result).await.unwrap_or_else(|elapsed| Err(ObjectStoreError::unavailable(elapsed)))
}

impl ObjectStore for S3 {
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>> {
        Box::pin(within(GET_TIMEOUT, async move {
            let range = format!("bytes=0-{}", max_bytes.saturating_sub(1));
            match self.send(self.request("GET", key, Some(range), Vec::new())?, max_bytes).await? {
                (200 | 206, bytes) => Ok(Some(bytes)),
                (404, _) => Ok(None),
                (status, _) => Err(ObjectStoreError::Status(status)),
            }
        }))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(within(PUT_TIMEOUT, async move {
            match self.send(self.request("PUT", key, None, bytes)?, 0).await? {
                (200, _) => Ok(()),
                (status, _) => Err(ObjectStoreError::Status(status)),
            }
        }))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(within(GET_TIMEOUT, async move {
            match self.send(self.request("DELETE", key, None, Vec::new())?, 0).await? {
                (200 | 204 | 404, _) => Ok(()),
                (status, _) => Err(ObjectStoreError::Status(status)),
            }
        }))
    }
}
