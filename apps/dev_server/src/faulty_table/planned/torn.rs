//! Reads that see only a part of a transaction.

use super::{Faults, response};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// The state of an item before a transaction, which reads see.
#[derive(Debug)]
struct TornItem {
    operation: &'static str,
    /// The record, or the record that the event is of.
    id: String,
    version: Option<u64>,
    /// The attributes that differed; `None` if the item did not exist.
    before: Option<Value>,
    /// The number of reads that still see it so.
    times: usize,
}

/// Items that reads see as they were before a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct TornItems(Arc<Mutex<Vec<TornItem>>>);

impl Faults {
    /// Lets the next lists that read a record see it as it was: with these attributes, or for `None` not at all.
    pub fn tear_record(&self, times: usize, id: &str, before: Option<Value>) {
        let torn = TornItem { operation: "BatchGetItem", id: id.to_owned(), version: None, before, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Hides the event that made this version of a record from the next reads of events that would find it.
    pub fn hide_event(&self, times: usize, id: &str, version: u64) {
        let torn = TornItem { operation: "Query", id: id.to_owned(), version: Some(version), before: None, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Hides the event that made this version of a record from the next reads of single events that would find it.
    pub fn hide_entry(&self, times: usize, id: &str, version: u64) {
        let torn = TornItem { operation: "BatchGetItem", id: id.to_owned(), version: Some(version), before: None, times };
        self.torn.0.lock().unwrap().push(torn);
    }

    /// Ends all torn reads. Returns the number of items that were still to be torn.
    pub fn stop_tearing(&self) -> usize {
        std::mem::take(&mut *self.torn.0.lock().unwrap()).len()
    }
}

impl TornItems {
    pub(super) fn concern(&self, operation: &str) -> bool {
        self.0.lock().unwrap().iter().any(|torn| torn.operation == operation)
    }

    /// Removes the part of the transaction that is not visible yet.
    pub(super) fn tear(&self, operation: &str, whole: HttpResponse) -> HttpResponse {
        let status = whole.status().as_u16();
        let mut body: Value = whole.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap();
        let lists = match operation {
            "Query" => body.get_mut("Items").into_iter().collect::<Vec<_>>(),
            _ => body["Responses"].as_object_mut().map(|tables| tables.values_mut().collect()).unwrap_or_default(),
        };
        for items in lists.into_iter().filter_map(Value::as_array_mut) {
            items.retain_mut(|item| self.is_visible(operation, item));
        }
        if let Some(items) = body["Items"].as_array().map(Vec::len) {
            body["Count"] = items.into();
        }
        response(status, body.to_string())
    }

    /// Puts the item back to its earlier state. Returns whether it existed.
    fn is_visible(&self, operation: &str, item: &mut Value) -> bool {
        let event: Value = item["entry"]["S"].as_str().and_then(|entry| serde_json::from_str(entry).ok()).unwrap_or_default();
        let is_of = |torn: &TornItem| {
            let is_seen = match torn.version {
                Some(version) => event["entity_id"] == torn.id.as_str() && event["version"] == version,
                None => item["id"]["S"] == torn.id.as_str(),
            };
            torn.operation == operation && is_seen
        };
        let mut torn = self.0.lock().unwrap();
        let Some(at) = torn.iter().position(is_of) else { return true };
        torn[at].times -= 1;
        let before = torn[at].before.clone();
        if torn[at].times == 0 {
            torn.remove(at);
        }
        let Some(Value::Object(before)) = before else { return false };
        item.as_object_mut().unwrap().extend(before);
        true
    }
}
