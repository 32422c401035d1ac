//! Reference items: the number of references to each record, beside the record.
//!
//! Every write of an item, and every check of a condition on it, costs by the size of the whole item. Records can be
//! large, so references are counted in a small item of their own: `REFERENCES#<noun>#<id>`. It also has the attributes
//! that references can require, and changes with the record in the same transaction.

use crate::domain::record::{Kind, Record, Reference, RequiredValue, Requirement, Stored};
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::keys::{Item, PK, TYPE};
use crate::store::table::error::StoreError;
use crate::store::table::item::USES;
use crate::store::table::transaction::{Condition, TransactionItem};
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use uuid::Uuid;

/// Names and values of an expression that compares or sets attributes.
#[derive(Default)]
struct Expression {
    names: HashMap<String, String>,
    values: Item,
}

impl Expression {
    /// `#name = :name` for each attribute.
    fn equations(&mut self, attributes: &[Requirement]) -> Vec<String> {
        let equation = |Requirement { attribute, value }: &Requirement| {
            self.names.insert(format!("#{attribute}"), (*attribute).to_owned());
            self.values.insert(format!(":{attribute}"), attribute_value(value));
            format!("#{attribute} = :{attribute}")
        };
        attributes.iter().map(equation).collect()
    }

    fn exists(&mut self) -> String {
        self.names.insert("#pk".to_owned(), PK.to_owned());
        "attribute_exists(#pk)".to_owned()
    }

    fn unreferenced(&mut self) -> String {
        self.names.insert("#uses".to_owned(), USES.to_owned());
        self.values.insert(":none".to_owned(), AttributeValue::N("0".to_owned()));
        "#uses = :none".to_owned()
    }

    /// `None` if there are none, since DynamoDB refuses an empty map.
    fn values(self) -> Option<Item> {
        (!self.values.is_empty()).then_some(self.values)
    }
}

fn attribute_value(value: &RequiredValue) -> AttributeValue {
    match value {
        RequiredValue::Text(text) => AttributeValue::S(text.clone()),
        RequiredValue::Bool(flag) => AttributeValue::Bool(*flag),
    }
}

impl TenantStore {
    /// `uses` is the number of references. `None` if no record can refer to its kind.
    pub(in crate::store) fn reference_item<T: Record>(&self, value: &T, uses: u64) -> Option<Item> {
        let attributes = value.referenceable_attributes()?;
        let mut item = self.keys.references(T::KIND, value.id().uuid()).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("references".to_owned()));
        item.insert(USES.to_owned(), AttributeValue::N(uses.to_string()));
        item.extend(attributes.iter().map(|it| (it.attribute.to_owned(), attribute_value(&it.value))));
        Some(item)
    }

    pub(in crate::store) fn reference_item_put<T: Record>(&self, value: &T) -> Result<Option<TransactionItem>, StoreError> {
        let put = self.reference_item(value, 0).map(|item| self.store.put_new(item)).transpose()?;
        Ok(put.map(|write| TransactionItem { condition: Condition::Invariant, write }))
    }

    /// Sets the attributes that differ; with `is_unreferenced`, requires that nothing refers to the record.
    pub(in crate::store) fn reference_item_update<T: Record>(
        &self,
        old: &Stored<T>,
        next: &T,
        is_unreferenced: bool,
    ) -> Result<Option<TransactionItem>, StoreError> {
        let (Some(before), Some(after)) = (old.value.referenceable_attributes(), next.referenceable_attributes()) else {
            return Ok(None);
        };
        let changed: Vec<Requirement> = after.into_iter().filter(|attribute| !before.contains(attribute)).collect();
        let mut expression = Expression::default();
        let (meaning, condition) = if is_unreferenced {
            (Condition::Unreferenced, expression.unreferenced())
        } else {
            (Condition::RecordState, expression.exists())
        };
        let key = self.keys.references(T::KIND, next.id().uuid()).item();
        let write = if !changed.is_empty() {
            let set = expression.equations(&changed).join(", ");
            let update = Update::builder()
                .table_name(&self.store.table)
                .set_key(Some(key))
                .update_expression(format!("SET {set}"))
                .condition_expression(condition)
                .set_expression_attribute_names(Some(expression.names.clone()))
                .set_expression_attribute_values(expression.values())
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            TransactWriteItem::builder().update(update.build().map_err(StoreError::broken)?).build()
        } else if is_unreferenced {
            self.check(key, condition, expression)?
        } else {
            return Ok(None);
        };
        Ok(Some(TransactionItem { condition: meaning, write }))
    }

    /// On condition that nothing refers to the record.
    pub(in crate::store) fn reference_item_deletion<T: Record>(&self, value: &T) -> Result<Option<TransactionItem>, StoreError> {
        if value.referenceable_attributes().is_none() {
            return Ok(None);
        }
        let mut expression = Expression::default();
        let delete = Delete::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.keys.references(T::KIND, value.id().uuid()).item()))
            .condition_expression(expression.unreferenced())
            .set_expression_attribute_names(Some(expression.names.clone()))
            .set_expression_attribute_values(expression.values())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(StoreError::broken)?;
        let write = TransactWriteItem::builder().delete(delete).build();
        Ok(Some(TransactionItem { condition: Condition::Unreferenced, write }))
    }

    /// An update of the count, or a check of the reference item if the count stays.
    ///
    /// For an added reference, the record must meet the reference's requirements. Its version does not matter: several units of
    /// work may add references at the same time.
    pub(in crate::store) fn reference_count_item(
        &self,
        kind: Kind,
        id: Uuid,
        delta: i64,
        added: Option<&Reference>,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut expression = Expression::default();
        let required = expression.equations(added.map_or(&[], |added| added.requirements.as_slice()));
        let condition = std::iter::once(expression.exists()).chain(required).collect::<Vec<_>>().join(" AND ");
        let key = self.keys.references(kind, id).item();
        if delta == 0 {
            return self.check(key, condition, expression);
        }
        expression.names.insert("#uses".to_owned(), USES.to_owned());
        expression.values.insert(":delta".to_owned(), AttributeValue::N(delta.to_string()));
        let update = Update::builder()
            .table_name(&self.store.table)
            .set_key(Some(key))
            .update_expression("ADD #uses :delta")
            .condition_expression(condition)
            .set_expression_attribute_names(Some(expression.names.clone()))
            .set_expression_attribute_values(expression.values())
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    fn check(&self, key: Item, condition: String, expression: Expression) -> Result<TransactWriteItem, StoreError> {
        let check = ConditionCheck::builder()
            .table_name(&self.store.table)
            .set_key(Some(key))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(expression.names.clone()))
            .set_expression_attribute_values(expression.values())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }
}
