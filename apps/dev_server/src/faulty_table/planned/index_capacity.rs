//! The capacity of the index `list_index`: pages of less than 1 MB, and only so many a second.

use super::{Faults, response};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

#[derive(Debug, Default)]
struct Pages {
    rows: Option<usize>,
    /// Pages before the index throttles.
    left: Option<f64>,
    /// More pages each second.
    per_second: f64,
    refilled_at: Option<Instant>,
    delivered: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct IndexCapacity(Arc<Mutex<Pages>>);

impl Faults {
    /// Cuts the pages of the index `list_index` after so many rows.
    pub fn cut_index_pages(&self, rows: usize) {
        self.index_capacity.0.lock().unwrap().rows = Some(rows);
    }

    /// Throttles the index `list_index` after so many pages, of which `per_second` are added each second; `None` ends it.
    pub fn limit_index_pages(&self, pages: Option<usize>, per_second: usize) {
        let mut capacity = self.index_capacity.0.lock().unwrap();
        (capacity.left, capacity.per_second) = (pages.map(|pages| pages as f64), per_second as f64);
        capacity.refilled_at = Some(Instant::now());
    }

    /// The pages that the index `list_index` has delivered since the last call.
    pub fn take_index_pages(&self) -> usize {
        std::mem::take(&mut self.index_capacity.0.lock().unwrap().delivered)
    }
}

impl IndexCapacity {
    /// Changes the request, or returns the response of a throttled one.
    pub(super) fn limit(&self, body: &Value, request: &mut HttpRequest) -> Option<HttpResponse> {
        if body["IndexName"] != "list_index" {
            return None;
        }
        let mut pages = self.0.lock().unwrap();
        let refill = pages.refilled_at.replace(Instant::now()).map_or(0.0, |at| at.elapsed().as_secs_f64() * pages.per_second);
        if let Some(left) = &mut pages.left {
            *left += refill;
            if *left < 1.0 {
                let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
                return Some(response(400, json!({"__type": code, "message": "the index is busy"}).to_string()));
            }
            *left -= 1.0;
        }
        pages.delivered += 1;
        if let Some(rows) = pages.rows {
            let mut cut = body.clone();
            cut["Limit"] = rows.into();
            let text = cut.to_string();
            request.headers_mut().insert("content-length", text.len().to_string());
            *request.body_mut() = SdkBody::from(text);
        }
        None
    }
}
