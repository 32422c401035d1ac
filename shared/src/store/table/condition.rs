//! The conditions of writes: in DynamoDB's language, and as a dry run decides them.

use crate::store::keys::{Item, PK};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// What a write requires of the item that is under its key before.
#[derive(Debug, Clone)]
pub(in crate::store) enum Condition {
    Has(&'static str),
    /// A missing item lacks every attribute.
    Lacks(&'static str),
    Is(String, AttributeValue),
    /// The attribute is a number, and at most this.
    AtMost(&'static str, i64),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl Condition {
    /// Every item has a partition key.
    pub(in crate::store) const EXISTS: Self = Self::Has(PK);
    pub(in crate::store) const MISSING: Self = Self::Lacks(PK);
    pub(in crate::store) const ALWAYS: Self = Self::All(Vec::new());

    pub(in crate::store) fn is(attribute: &str, value: AttributeValue) -> Self {
        Self::Is(attribute.to_owned(), value)
    }

    /// Empty if nothing is required.
    pub(in crate::store) fn expression(&self, placeholders: &mut Placeholders) -> String {
        match self {
            Self::Has(attribute) => format!("attribute_exists({})", placeholders.name(attribute)),
            Self::Lacks(attribute) => format!("attribute_not_exists({})", placeholders.name(attribute)),
            Self::Is(attribute, value) => format!("{} = {}", placeholders.name(attribute), placeholders.value(value.clone())),
            Self::AtMost(attribute, limit) => {
                let limit = AttributeValue::N(limit.to_string());
                format!("{} <= {}", placeholders.name(attribute), placeholders.value(limit))
            }
            // AND binds tighter than OR.
            Self::All(conditions) => joined(conditions, " AND ", placeholders),
            Self::Any(conditions) => format!("({})", joined(conditions, " OR ", placeholders)),
        }
    }

    /// `None` stands for a missing item.
    pub(in crate::store) fn is_met_by(&self, item: Option<&Item>) -> bool {
        let present = |attribute: &str| item?.get(attribute);
        match self {
            Self::Has(attribute) => present(attribute).is_some(),
            Self::Lacks(attribute) => present(attribute).is_none(),
            Self::Is(attribute, value) => present(attribute) == Some(value),
            Self::AtMost(attribute, limit) => {
                let number = present(attribute).and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
                number.is_some_and(|number| number <= *limit)
            }
            Self::All(conditions) => conditions.iter().all(|condition| condition.is_met_by(item)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.is_met_by(item)),
        }
    }
}

fn joined(conditions: &[Condition], operator: &str, placeholders: &mut Placeholders) -> String {
    conditions.iter().map(|condition| condition.expression(placeholders)).collect::<Vec<_>>().join(operator)
}

/// The names and values of a request's expressions, which have placeholders for them.
#[derive(Default)]
pub(in crate::store) struct Placeholders {
    names: HashMap<String, String>,
    values: Item,
}

impl Placeholders {
    pub(in crate::store) fn name(&mut self, attribute: &str) -> String {
        let placeholder = format!("#n{}", self.names.len());
        self.names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    }

    pub(in crate::store) fn value(&mut self, value: AttributeValue) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// `None` where there are none, since DynamoDB refuses empty maps.
    pub(in crate::store) fn into_maps(self) -> (Option<HashMap<String, String>>, Option<Item>) {
        (Some(self.names).filter(|names| !names.is_empty()), Some(self.values).filter(|values| !values.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> AttributeValue {
        AttributeValue::S(value.to_owned())
    }

    fn item(name: &str, uses: i64) -> Item {
        let uses = AttributeValue::N(uses.to_string());
        Item::from([(PK.to_owned(), text("p")), ("name".to_owned(), text(name)), ("uses".to_owned(), uses)])
    }

    /// The expression, with names and values in the places that stand for them.
    fn shown(condition: &Condition) -> String {
        let mut placeholders = Placeholders::default();
        let mut shown = condition.expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        for (placeholder, name) in names.unwrap_or_default() {
            shown = shown.replace(&placeholder, &name);
        }
        for (placeholder, value) in values.unwrap_or_default() {
            shown = shown.replace(&placeholder, value.as_s().or(value.as_n()).unwrap());
        }
        shown
    }

    #[test]
    fn a_condition_is_decided_as_the_table_decides_its_expression() {
        let (other, same) = (item("b", 9), item("a", 10));
        let is_a = || Condition::is("name", text("a"));
        for (condition, expression, of_none, of_other, of_same) in [
            (Condition::ALWAYS, "", true, true, true),
            (Condition::MISSING, "attribute_not_exists(PK)", true, false, false),
            (Condition::EXISTS, "attribute_exists(PK)", false, true, true),
            (Condition::Lacks("began"), "attribute_not_exists(began)", true, true, true),
            (is_a(), "name = a", false, false, true),
            (Condition::AtMost("uses", 9), "uses <= 9", false, true, false),
            (Condition::AtMost("name", 9), "name <= 9", false, false, false),
            (Condition::All(vec![Condition::EXISTS, is_a()]), "attribute_exists(PK) AND name = a", false, false, true),
            (Condition::Any(vec![Condition::MISSING, is_a()]), "(attribute_not_exists(PK) OR name = a)", true, false, true),
            (
                Condition::All(vec![Condition::Has("uses"), Condition::Any(vec![is_a(), Condition::AtMost("uses", 9)])]),
                "attribute_exists(uses) AND (name = a OR uses <= 9)",
                false,
                true,
                true,
            ),
        ] {
            assert_eq!(shown(&condition), expression);
            let met = [None, Some(&other), Some(&same)].map(|item| condition.is_met_by(item));
            assert_eq!(met, [of_none, of_other, of_same], "{expression}");
        }
    }

    #[test]
    fn an_expression_without_placeholders_has_no_maps() {
        assert_eq!(Placeholders::default().into_maps(), (None, None));
        let mut placeholders = Placeholders::default();
        Condition::EXISTS.expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        assert_eq!((names, values), (Some(HashMap::from([("#n0".to_owned(), PK.to_owned())])), None));
    }
}
