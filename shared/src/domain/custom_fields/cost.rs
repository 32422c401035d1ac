//! How much work it is at most to check a value by a schema. Both are a tenant's own, and small ones can ask for much:
//! a list of many values, each checked by many rules, each with a pattern.
//!
//! The walk goes where a validator would go at worst, and ends as soon as the work is too much, so that it is itself
//! less work than the check.

use super::policy::target;
use serde_json::{Map, Value};

/// How many units a check may take. Measured, one took 1 to 2 ns, and 80 ns with the worst patterns: 0.4 s at most.
const MOST: u64 = 5_000_000;
/// How many it may take for every field_error to be named: a field_error takes 300 ns a unit, and memory.
const MOST_TO_NAME_ALL: u64 = 100_000;

/// What may be found out about a value with little work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Every field_error.
    Little,
    /// The first field_error.
    Much,
    /// Nothing.
    TooMuch,
}

/// How much it is to check `instance` by `schema`.
pub fn effort(schema: &Value, instance: &Value) -> Effort {
    let mut walk = Walk { root: schema, left: MOST };
    match walk.check(schema, instance, 1) {
        Err(TooMuch) => Effort::TooMuch,
        Ok(()) if MOST - walk.left > MOST_TO_NAME_ALL => Effort::Much,
        Ok(()) => Effort::Little,
    }
}

struct TooMuch;

struct Walk<'a> {
    root: &'a Value,
    left: u64,
}

impl Walk<'_> {
    fn spend(&mut self, units: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(units).ok_or(TooMuch)?;
        Ok(())
    }

    /// Checks `times` times.
    fn check(&mut self, schema: &Value, instance: &Value, times: u64) -> Result<(), TooMuch> {
        self.spend(times)?;
        let Value::Object(rules) = schema else { return Ok(()) };
        // To know what no rule has looked at, all of them are gone through again for each child.
        let again = rules.contains_key("unevaluatedProperties") || rules.contains_key("unevaluatedItems");
        let times = if again { times.saturating_mul(1 + children(instance).count() as u64) } else { times };
        for (name, rule) in rules {
            self.spend(times)?;
            self.rule(name, rule, instance, times)?;
        }
        Ok(())
    }

    fn rule(&mut self, name: &str, rule: &Value, instance: &Value, times: u64) -> Result<(), TooMuch> {
        match (name, rule, instance) {
            ("$ref", Value::String(pointer), _) => match target(self.root, pointer) {
                Some(found) => self.check(found, instance, times),
                None => Ok(()),
            },
            ("properties", Value::Object(rules), Value::Object(members)) => {
                self.spend(times.saturating_mul(rules.len() as u64))?;
                rules
                    .iter()
                    .try_for_each(|(name, rule)| members.get(name).map_or(Ok(()), |member| self.check(rule, member, times)))
            }
            ("patternProperties", Value::Object(rules), Value::Object(members)) => self.matched(rules, members, times),
            ("propertyNames", _, Value::Object(members)) => {
                members.keys().try_for_each(|name| self.check(rule, &Value::String(name.clone()), times))
            }
            ("prefixItems", Value::Array(rules), Value::Array(items)) => {
                rules.iter().zip(items).try_for_each(|(rule, item)| self.check(rule, item, times))
            }
            (
                "additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" | "contains",
                Value::Object(_) | Value::Bool(_),
                _,
            ) => children(instance).try_for_each(|child| self.check(rule, child, times)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(rules), _) => {
                rules.iter().try_for_each(|rule| self.check(rule, instance, times))
            }
            ("not" | "if" | "then" | "else", _, _) => self.check(rule, instance, times),
            ("dependentSchemas", Value::Object(rules), _) => {
                rules.values().try_for_each(|rule| self.check(rule, instance, times))
            }
            ("enum" | "const", _, _) => self.spend(times.saturating_mul(size(rule))),
            ("pattern", Value::String(pattern), Value::String(text)) => self.spend(times.saturating_mul(search(pattern, text))),
            // Sorted, then compared.
            ("uniqueItems", _, Value::Array(_)) => self.spend(times.saturating_mul(8 * size(instance))),
            ("required" | "dependentRequired", _, Value::Object(_)) => self.spend(times.saturating_mul(size(rule))),
            _ => Ok(()),
        }
    }

    fn matched(&mut self, rules: &Map<String, Value>, members: &Map<String, Value>, times: u64) -> Result<(), TooMuch> {
        for (pattern, rule) in rules {
            for (name, member) in members {
                self.spend(times.saturating_mul(search(pattern, name)))?;
                self.check(rule, member, times)?;
            }
        }
        Ok(())
    }
}

/// The values directly within a value.
fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// How much it is to go through a value: one unit for each value within, and for each 64 bytes of text.
fn size(value: &Value) -> u64 {
    let text = if let Value::String(text) = value { text.len() as u64 / 64 } else { 0 };
    1 + text + children(value).map(size).sum::<u64>()
}

/// Searching goes through a text once, with as many states at a time as the pattern has at worst.
fn search(pattern: &str, text: &str) -> u64 {
    1 + (text.len() as u64).saturating_mul(states(pattern)) / 16
}

/// How many states a pattern has: one for each thing in it, as often as it is repeated.
pub fn states(pattern: &str) -> u64 {
    let mut groups: Vec<u64> = Vec::new();
    let (mut sum, mut last) = (0u64, 0u64);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '(' => {
                groups.push(sum);
                (sum, last) = (0, 0);
                continue;
            }
            ')' => {
                last = sum;
                sum = sum.saturating_add(groups.pop().unwrap_or_default());
                continue;
            }
            '{' => {
                let inner = rest.as_str().split('}').next().unwrap_or_default();
                let most = inner.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
                if let Some(most) = most {
                    sum = sum.saturating_add(last.saturating_mul(most.saturating_sub(1)));
                    last = last.saturating_mul(most);
                    rest = rest.as_str()[inner.len()..].chars();
                    rest.next();
                }
                continue;
            }
            '\\' => drop(rest.next()),
            _ => {}
        }
        last = 1;
        sum = sum.saturating_add(1);
    }
    groups.into_iter().fold(sum, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_has_as_many_states_as_it_repeats() {
        for (pattern, count) in
            [("", 0), ("^[A-Z]{2}$", 8), ("x{1000}", 1000), ("(ab{3}){2,4}", 16), ("a{,5}b{2,}", 7), (r"\p{L}\{3", 5), ("((", 0)]
        {
            assert_eq!(states(pattern), count, "{pattern}");
        }
        assert_eq!(states(&"(x{1000})".repeat(3).replace(')', "){99999999999}{99999999999}")), u64::MAX);
    }

    #[test]
    fn effort_grows_with_rules_times_values() {
        let list = |values: u32| json!({"a": (0..values).collect::<Vec<_>>()});
        let rules = |rules: u32| {
            let rules: Vec<Value> = (0..rules).map(|n| json!({"maximum": n})).collect();
            json!({"properties": {"a": {"items": {"anyOf": rules}}}, "$defs": {"far": {"$ref": "#/$defs/away"}}})
        };
        assert_eq!(effort(&rules(20), &list(100)), Effort::Little);
        assert_eq!(effort(&rules(400), &list(1000)), Effort::Much);
        assert_eq!(effort(&rules(800), &list(10_000)), Effort::TooMuch);
        let mut nested = json!({"unevaluatedProperties": true});
        for _ in 0..8 {
            nested = json!({"anyOf": [nested], "unevaluatedProperties": {"type": "integer"}});
        }
        assert_eq!(effort(&nested, &json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6})), Effort::TooMuch);
        assert_eq!(effort(&nested, &json!({})), Effort::Little);
    }
}
