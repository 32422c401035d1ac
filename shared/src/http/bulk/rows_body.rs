//! The body of an import, not yet read.

use super::rows::{self, Row, RowFormat};
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas};
use crate::http::requests::unread::{Unread, VerifiedSender};
use fields::Column;
use utoipa::PartialSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{Content, RefOr, Required};

/// CSV or NDJSON.
pub type RowsBody = Unread<InRows>;

pub struct InRows;

impl RowsBody {
    /// On behalf of a verified sender.
    ///
    /// # Errors
    ///
    /// As `JsonBody::parse_with_errors`, for the content types `text/csv` and `application/x-ndjson`, and as [`rows::parse`].
    pub fn parse(&self, _: &impl VerifiedSender, columns: &[Column], matched: Option<&str>) -> Result<Vec<Row>, ApiError> {
        let (bytes, media_type) = self.received.whole_body("A body is required: CSV or NDJSON.")?;
        let format = match media_type.to_ascii_lowercase().as_str() {
            "text/csv" => RowFormat::Csv,
            "application/x-ndjson" => RowFormat::Ndjson,
            _ => return Err(ApiError::UnsupportedMediaType("text/csv or application/x-ndjson")),
        };
        let charset =
            self.received.content_type.as_deref().and_then(|kind| {
                kind.to_ascii_lowercase().split_once("charset=").map(|(_, name)| name.trim_matches('"').to_owned())
            });
        if charset.is_some_and(|name| !name.starts_with("utf-8") && !name.starts_with("us-ascii")) {
            return Err(ApiError::UnsupportedMediaType("text/csv; charset=utf-8"));
        }
        rows::parse(bytes, format, columns, matched)
    }
}

impl Describe for RowsBody {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let body = ["text/csv", "application/x-ndjson"]
            .into_iter()
            .fold(RequestBodyBuilder::new(), |body, kind| body.content(kind, Content::new(Some(String::schema()))));
        operation.request_body = Some(RefOr::T(body.required(Some(Required::True)).build()));
    }
}
