//! Partitions that take no more writes.

use super::{Faults, response};
use crate::faulty_table::requests::write_actions;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The partitions whose writes are throttled, and the number of throttled writes.
#[derive(Debug, Clone, Default)]
pub(super) struct ThrottledPartitions(Arc<Mutex<(Vec<String>, usize)>>);

impl Faults {
    /// Throttles every write to these partitions from now on, as if others used up their write units.
    pub fn throttle_writes_to(&self, partitions: &[String]) {
        *self.throttled.0.lock().unwrap() = (partitions.to_vec(), 0);
    }

    /// Since [`Faults::throttle_writes_to`].
    pub fn throttled_writes(&self) -> usize {
        self.throttled.0.lock().unwrap().1
    }
}

impl ThrottledPartitions {
    /// For a request that writes to one of the partitions.
    pub(super) fn response(&self, operation: &str, request: &Value) -> Option<HttpResponse> {
        let is_write = ["PutItem", "UpdateItem", "TransactWriteItems"].contains(&operation);
        let mut throttled = self.0.lock().unwrap();
        let is_throttled = |partition: &String| throttled.0.contains(partition);
        if !is_write || !write_actions(operation, request).iter().any(|action| is_throttled(&action.key.partition)) {
            return None;
        }
        throttled.1 += 1;
        let code = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
        Some(response(400, json!({"__type": code, "message": "the partition is busy"}).to_string()))
    }
}
