//! Indexes that lag behind the table.

use super::{Faults, response};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Default)]
pub(super) struct FrozenIndexes {
    list_index: Arc<Mutex<Option<HashMap<char, Value>>>>,
    history: Arc<Mutex<Option<Vec<Value>>>>,
}

impl Faults {
    /// Freezes the index `list_index` with these rows, by the first letter of their sort keys; `None` thaws it.
    pub fn freeze_list_index(&self, rows: Option<HashMap<char, Value>>) {
        *self.frozen.list_index.lock().unwrap() = rows;
    }

    /// Freezes the index `history` with these rows; `None` thaws it.
    pub fn freeze_history(&self, rows: Option<Vec<Value>>) {
        *self.frozen.history.lock().unwrap() = rows;
    }
}

impl FrozenIndexes {
    /// `None` unless the request is a query of a frozen index.
    pub(super) fn response(&self, operation: &str, request: &Value) -> Option<HttpResponse> {
        let index = request["IndexName"].as_str().filter(|_| operation == "Query")?;
        let rows = match index {
            "list_index" => self.list_index_rows(request)?,
            "history" => self.history_rows(request)?,
            _ => return None,
        };
        Some(response(200, json!({"Items": rows, "Count": rows.len()}).to_string()))
    }

    fn list_index_rows(&self, request: &Value) -> Option<Vec<Value>> {
        let frozen = self.list_index.lock().unwrap();
        let letter = |bound: &str| request["ExpressionAttributeValues"][bound]["S"].as_str()?.chars().next();
        let rows = (letter(":from")?..=letter(":to")?).filter_map(|letter| frozen.as_ref()?.get(&letter)?.as_array());
        frozen.as_ref()?;
        Some(rows.flatten().cloned().collect())
    }

    fn history_rows(&self, request: &Value) -> Option<Vec<Value>> {
        let frozen = self.history.lock().unwrap();
        let bound = |name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().unwrap();
        let is_within = |item: &&Value| (bound(":from")..=bound(":to")).contains(&item["HS"]["S"].as_str().unwrap());
        let mut rows: Vec<Value> = frozen.as_ref()?.iter().filter(is_within).cloned().collect();
        assert_eq!(request["ScanIndexForward"], false);
        rows.sort_by_key(|row| std::cmp::Reverse(row["HS"]["S"].as_str().unwrap().to_owned()));
        rows.truncate(request["Limit"].as_u64().map_or(usize::MAX, |limit| limit as usize));
        Some(rows)
    }
}
