//! The whole table as text, for comparing before and after, and the rows of its indexes, for tests that freeze them.

use crate::support::Api;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::values::id::TenantId;
use shared::store::keys::{HISTORY, Item, Keys, LIST_INDEX};
use std::collections::HashMap;

/// Every item of a table but request counters, as sorted texts. Its `Debug` output is short, because a table is long.
#[derive(PartialEq, Eq)]
pub struct Dump(pub Vec<String>);

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items, {} bytes", self.0.len(), self.0.iter().map(String::len).sum::<usize>())
    }
}

impl Dump {
    pub fn without(self, text: &str) -> Vec<String> {
        self.0.into_iter().filter(|item| !item.contains(text)).collect()
    }
}

impl Api {
    /// Without counters, since refused requests are counted, too.
    pub async fn dump(&self) -> Dump {
        let items = all_items(self).await.into_iter().filter(|item| !is_request_counter(item));
        let mut items: Vec<String> = items.map(|item| render(&AttributeValue::M(item))).collect();
        items.sort();
        Dump(items)
    }
}

/// Scans the whole table, which only a test may do.
pub async fn all_items(api: &Api) -> Vec<Item> {
    let mut items = Vec::new();
    let mut pages = api.dynamo.scan().table_name(&api.table).into_paginator().send();
    while let Some(page) = pages.next().await {
        items.extend(page.unwrap().items.unwrap_or_default());
    }
    items
}

fn is_request_counter(item: &Item) -> bool {
    item.get("type").and_then(|kind| kind.as_s().ok()).is_some_and(|kind| kind == "rate")
}

/// The same text for equal values. `last_used_at` is left out, because even a refused request may write it.
fn render(value: &AttributeValue) -> String {
    match value {
        AttributeValue::M(map) => {
            let shown = map.iter().filter(|(name, _)| *name != "last_used_at");
            let mut members: Vec<String> = shown.map(|(name, value)| format!("{name}: {}", render(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(", "))
        }
        AttributeValue::L(list) => format!("[{}]", list.iter().map(render).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

impl Api {
    /// By the first letter of their sort keys.
    pub async fn list_index_rows(&self, tenant: TenantId) -> HashMap<char, Value> {
        let mut rows = HashMap::new();
        for letter in ['A', 'U', 'I', 'J', 'M'] {
            let query = self.dynamo.query().table_name(&self.table).index_name(LIST_INDEX);
            let found = query
                .key_condition_expression("PK = :pk AND begins_with(LS, :letter)")
                .expression_attribute_values(":pk", Keys::of(tenant).partition())
                .expression_attribute_values(":letter", AttributeValue::S(letter.to_string()))
                .into_paginator()
                .items()
                .send();
            let found: Vec<Item> = found.try_collect().await.unwrap();
            rows.insert(letter, found.iter().map(wire_json).collect());
        }
        rows
    }

    pub async fn history_rows(&self, tenant: TenantId) -> Vec<Value> {
        let query = self.dynamo.query().table_name(&self.table).index_name(HISTORY).key_condition_expression("PK = :pk");
        let query = query.expression_attribute_values(":pk", Keys::of(tenant).partition());
        let found: Vec<Item> = query.into_paginator().items().send().try_collect().await.unwrap();
        found.iter().map(wire_json).collect()
    }
}

fn wire_json(item: &Item) -> Value {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        other => panic!("the index has {other:?}"),
    };
    item.iter().map(|(name, attribute)| (name.clone(), value(attribute))).collect()
}
