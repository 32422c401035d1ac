//! The rows of the table's indexes at a moment, for tests that freeze them.

use crate::support::Api;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::values::id::TenantId;
use shared::store::keys::{HISTORY, Item, Keys, LIST_INDEX};
use std::collections::HashMap;

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
