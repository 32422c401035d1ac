//! The template of this release: what it declares of the table, and how many Lambda instances it reserves.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use yaml_serde::Value;

const TEMPLATE: &str = include_str!("../../../../template.yaml");

pub(super) struct Template {
    root: Value,
    /// The stack's parameters that aren't the defaults.
    parameters: Vec<(String, u64)>,
}

/// An index, and the attributes that it has besides the keys.
pub(super) struct Index {
    pub(super) name: String,
    pub(super) attributes: BTreeSet<String>,
}

impl Template {
    /// # Errors
    ///
    /// Returns an error for a parameter that isn't a number of the template.
    pub(super) fn embedded(parameters: Vec<(String, u64)>) -> Result<Self> {
        let root = yaml_serde::from_str(TEMPLATE).context("can't parse the template")?;
        let template = Self { root, parameters };
        for (name, _) in &template.parameters {
            template.default(name)?;
        }
        Ok(template)
    }

    fn member(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.root, |value, name| value.get(*name))
    }

    fn default(&self, name: &str) -> Result<u64> {
        match self.member(&["Parameters", name, "Default"]).and_then(Value::as_u64) {
            Some(default) => Ok(default),
            None => bail!("the template has no parameter {name} that is a number"),
        }
    }

    pub(super) fn parameter(&self, name: &str) -> Result<u64> {
        let given = self.parameters.iter().rev().find(|(given, _)| given == name);
        given.map_or_else(|| self.default(name), |(_, value)| Ok(*value))
    }

    /// The sum of what all functions reserve if `ReservedConcurrency` isn't 0.
    pub(super) fn reserved_instances(&self) -> Result<u64> {
        let resources = self.member(&["Resources"]).and_then(Value::as_mapping).context("the template has no resources")?;
        let common = self.member(&["Globals", "Function", "ReservedConcurrentExecutions"]);
        let is_function = |resource: &&Value| resource.get("Type").and_then(Value::as_str) == Some("AWS::Serverless::Function");
        let reserved = resources.values().filter(is_function).map(|function| {
            let own = function.get("Properties").and_then(|properties| properties.get("ReservedConcurrentExecutions"));
            self.number(own.or(common).context("a function reserves nothing")?)
        });
        reserved.sum()
    }

    /// A number, a reference to a parameter, or the first branch of a condition.
    fn number(&self, value: &Value) -> Result<u64> {
        match value {
            Value::Tagged(tagged) => match &tagged.value {
                Value::Sequence(branches) => self.number(branches.get(1).context("a condition without branches")?),
                Value::String(parameter) => self.parameter(parameter),
                _ => bail!("an unknown form of a number"),
            },
            value => value.as_u64().context("not a number"),
        }
    }

    fn table(&self, path: &[&str]) -> Option<&Value> {
        self.member(&[&["Resources", "Table", "Properties"], path].concat())
    }

    pub(super) fn expiry_attribute(&self) -> Option<&str> {
        self.table(&["TimeToLiveSpecification", "AttributeName"])?.as_str()
    }

    pub(super) fn stream_view(&self) -> Option<&str> {
        self.table(&["StreamSpecification", "StreamViewType"])?.as_str()
    }

    pub(super) fn indexes(&self) -> Vec<Index> {
        let indexes = self.table(&["GlobalSecondaryIndexes"]).and_then(Value::as_sequence);
        let index = |index: &Value| {
            let attributes = index.get("Projection")?.get("NonKeyAttributes").and_then(Value::as_sequence);
            let attributes = attributes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            Some(Index { name: index.get("IndexName")?.as_str()?.to_owned(), attributes })
        };
        indexes.into_iter().flatten().filter_map(index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_table_and_reservations_are_read() {
        let template = Template::embedded(vec![("ReservedConcurrency".to_owned(), 20)]).expect("a template");
        assert_eq!((template.expiry_attribute(), template.stream_view()), (Some("expires"), Some("NEW_IMAGE")));
        let indexes: Vec<(String, bool)> =
            template.indexes().into_iter().map(|index| (index.name, index.attributes.contains("asset_tag"))).collect();
        assert_eq!(indexes, [("list_index".to_owned(), true), ("history".to_owned(), false)]);
        // Eight functions that serve requests, `fanout`, `snapshots` and `deliver`.
        assert_eq!(template.reserved_instances().expect("a sum"), 9 * 20 + 1 + 75);
        assert!(Template::embedded(vec![("Stage".to_owned(), 1)]).is_err());
    }
}
