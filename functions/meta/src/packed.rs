//! Files compressed at build time.

use axum::http::{HeaderMap, HeaderValue, header};
use flate2::read::GzDecoder;
use shared::http::responses::{ApiError, ApiResponse, html};
use std::io::Read;

/// Builds a response with a file whose path changes with its content. `content` is compressed with gzip, and decompressed here
/// for clients that don't accept gzip.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] if the content can't be decompressed, which never happens.
pub fn response(headers: &HeaderMap, content_type: &'static str, content: &'static [u8]) -> Result<ApiResponse, ApiError> {
    let response = if html::takes_gzip(headers) {
        ApiResponse::new(content_type, content).with_header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
    } else {
        let mut plain = Vec::new();
        GzDecoder::new(content).read_to_end(&mut plain).map_err(|error| ApiError::Internal(error.into()))?;
        ApiResponse::new(content_type, plain)
    };
    Ok(response
        .with_header(header::VARY, HeaderValue::from_static("accept-encoding"))
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"))
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
}
