//! The conditions of writes, taken apart from the writes for dry runs.

use crate::store::keys::Item;
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::{ConditionCheck, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use std::collections::HashMap;

/// The condition of a write on the item before it.
pub(in crate::store) struct Check {
    /// The key attributes of the item, and others if it is put.
    pub(in crate::store) key: Item,
    condition: String,
    names: HashMap<String, String>,
    values: Item,
    returned: Option<ReturnValuesOnConditionCheckFailure>,
}

impl Check {
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] for a write without a condition.
    pub(in crate::store) fn of(write: TransactWriteItem) -> Result<Self, StoreError> {
        macro_rules! check {
            ($write:expr, $key:ident) => {
                $write.and_then(|write| {
                    Some(Self {
                        key: write.$key,
                        condition: write.condition_expression?,
                        names: write.expression_attribute_names.unwrap_or_default(),
                        values: write.expression_attribute_values.unwrap_or_default(),
                        returned: write.return_values_on_condition_check_failure,
                    })
                })
            };
        }
        if write.condition_check.is_some() {
            let check = write.condition_check.map(|check| Self {
                key: check.key,
                condition: check.condition_expression,
                names: check.expression_attribute_names.unwrap_or_default(),
                values: check.expression_attribute_values.unwrap_or_default(),
                returned: check.return_values_on_condition_check_failure,
            });
            return check.ok_or_else(without_condition);
        }
        let check = check!(write.put, item).or(check!(write.update, key)).or(check!(write.delete, key));
        check.ok_or_else(without_condition)
    }

    /// DynamoDB refuses names and values that an expression does not use.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] for an item without a key.
    pub(in crate::store) fn into_write(self, table: &str) -> Result<TransactWriteItem, StoreError> {
        let key = crate::store::keys::Key::of(&self.key).ok_or_else(|| StoreError::broken("a write without a key"))?;
        let check = ConditionCheck::builder()
            .table_name(table)
            .set_key(Some(key.item()))
            .set_expression_attribute_names(used(self.names, &self.condition))
            .set_expression_attribute_values(used(self.values, &self.condition))
            .condition_expression(self.condition)
            .set_return_values_on_condition_check_failure(self.returned)
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// `None` stands for a missing item. Knows the expressions that units of work use: alternatives of terms that must all hold.
    pub(in crate::store) fn is_met_by(&self, item: Option<&Item>) -> bool {
        let attribute = |name: &str| item?.get(self.names.get(name)?);
        let holds = |term: &str| match (term.split_once(" = "), term.split_once('(')) {
            (Some((name, value)), _) => attribute(name).is_some_and(|present| Some(present) == self.values.get(value)),
            (_, Some(("attribute_exists", name))) => attribute(name.trim_end_matches(')')).is_some(),
            (_, Some(("attribute_not_exists", name))) => attribute(name.trim_end_matches(')')).is_none(),
            _ => false,
        };
        self.condition.split(" OR ").any(|alternative| alternative.split(" AND ").all(holds))
    }
}

fn without_condition() -> StoreError {
    StoreError::broken("a write without a condition")
}

/// `None` if it uses none, since DynamoDB refuses an empty map.
fn used<V>(all: HashMap<String, V>, condition: &str) -> Option<HashMap<String, V>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "#:_-.".contains(c);
    let is_used = |name: &String| condition.split(|c| !is_part(c)).any(|part| part == name);
    let used: HashMap<String, V> = all.into_iter().filter(|(name, _)| is_used(name)).collect();
    (!used.is_empty()).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::{AttributeValue, Put, Update};

    fn text(value: &str) -> AttributeValue {
        AttributeValue::S(value.to_owned())
    }

    fn item(members: &[(&str, &str)]) -> Item {
        members.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
    }

    fn put(condition: &str) -> Check {
        let put = Put::builder()
            .table_name("t")
            .set_item(Some(item(&[("PK", "p"), ("SK", "s"), ("name", "x")])))
            .condition_expression(condition)
            .expression_attribute_names("#pk", "PK")
            .expression_attribute_names("#name", "name")
            .expression_attribute_values(":name", text("a"));
        Check::of(TransactWriteItem::builder().put(put.build().unwrap()).build()).unwrap()
    }

    #[test]
    fn a_check_has_the_key_and_only_the_names_and_values_of_the_condition() {
        let update = Update::builder()
            .table_name("t")
            .set_key(Some(item(&[("PK", "p"), ("SK", "s")])))
            .update_expression("SET #s1 = :s1, #version = :next")
            .condition_expression("attribute_exists(#s11) AND #version = :old")
            .expression_attribute_names("#s1", "a")
            .expression_attribute_names("#s11", "b")
            .expression_attribute_names("#version", "version")
            .expression_attribute_values(":s1", text("1"))
            .expression_attribute_values(":next", text("2"))
            .expression_attribute_values(":old", text("1"))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let update = TransactWriteItem::builder().update(update.build().unwrap()).build();
        let check = Check::of(update).unwrap().into_write("t").unwrap().condition_check.unwrap();
        assert_eq!(check.condition_expression, "attribute_exists(#s11) AND #version = :old");
        let names = check.expression_attribute_names.unwrap();
        assert_eq!((names.len(), names["#s11"].as_str(), names["#version"].as_str()), (2, "b", "version"));
        assert_eq!(check.expression_attribute_values.unwrap(), item(&[(":old", "1")]));
        assert_eq!(check.return_values_on_condition_check_failure, Some(ReturnValuesOnConditionCheckFailure::AllOld));
        let check = put("attribute_not_exists(#pk)").into_write("t").unwrap().condition_check.unwrap();
        assert_eq!((check.key, check.expression_attribute_values), (item(&[("PK", "p"), ("SK", "s")]), None));
        assert_eq!(Check::of(TransactWriteItem::builder().build()).err().map(|error| error.to_string().is_empty()), Some(false));
    }

    #[test]
    fn a_condition_is_decided_by_an_item_as_the_table_decides_it() {
        let (other, same) = (item(&[("PK", "p"), ("name", "b")]), item(&[("PK", "p"), ("name", "a")]));
        for (condition, of_none, of_other, of_same) in [
            ("attribute_not_exists(#pk)", true, false, false),
            ("attribute_exists(#pk)", false, true, true),
            ("#name = :name", false, false, true),
            ("attribute_exists(#pk) AND #name = :name", false, false, true),
            ("attribute_not_exists(#pk) OR attribute_exists(#name)", true, true, true),
            ("attribute_not_exists(#pk) OR #name = :name", true, false, true),
        ] {
            let check = put(condition);
            let met = [None, Some(&other), Some(&same)].map(|item| check.is_met_by(item));
            assert_eq!(met, [of_none, of_other, of_same], "{condition}");
        }
    }
}
