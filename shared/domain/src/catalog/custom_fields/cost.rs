//! Estimates the maximum cost of validating a value against a schema. Tenants choose both, and even small ones can be expensive:
//! a list of many values, each checked against many rules, each with a pattern.
//!
//! The estimate visits the same rules and values as a validator in the worst case. It stops as soon as the cost is excessive, so
//! it is cheaper than the validation.

use super::policy::target;
use serde_json::{Map, Value};

/// The cost of a validation and the work of estimating it, both in units. As measured, a unit takes 1 to 2 ns, or 80 ns with the
/// worst patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Units {
        units: u64,
        work: u64,
    },
    Excessive {
        work: u64,
    },
    /// The estimate was given up.
    Unknown {
        work: u64,
    },
}

/// Estimates the cost of validating `value` against `schema`, up to `limit`. The estimate itself takes no more work than the
/// validation, and is given up beyond `most_work`.
pub fn estimate(schema: &Value, value: &Value, limit: u64, most_work: u64) -> Cost {
    let mut estimate = Estimate { root: schema, left: limit, work: 0, most_work };
    match estimate.check(schema, value, 1) {
        Ok(()) => Cost::Units { units: limit - estimate.left, work: estimate.work },
        Err(Exceeded::Limit) => Cost::Excessive { work: estimate.work },
        Err(Exceeded::Work) => Cost::Unknown { work: estimate.work },
    }
}

enum Exceeded {
    Limit,
    Work,
}

struct Estimate<'a> {
    root: &'a Value,
    left: u64,
    work: u64,
    most_work: u64,
}

impl Estimate<'_> {
    /// Adds `units`, `times` times. Finding them out took `work`.
    fn spend(&mut self, units: u64, times: u64, work: u64) -> Result<(), Exceeded> {
        self.work = self.work.saturating_add(work);
        self.left = self.left.checked_sub(units.saturating_mul(times)).ok_or(Exceeded::Limit)?;
        if self.work > self.most_work { Err(Exceeded::Work) } else { Ok(()) }
    }

    /// Adds units whose estimate takes as much work as they do.
    fn add(&mut self, units: u64, times: u64) -> Result<(), Exceeded> {
        self.spend(units, times, units)
    }

    fn search(&mut self, pattern: &str, text: &str, times: u64) -> Result<(), Exceeded> {
        let reading = 1 + pattern.len() as u64 / 4;
        // The text is read once, with all states of the pattern at a time in the worst case.
        let matching = (text.len() as u64).saturating_mul(states(pattern)) / 16;
        self.spend(reading.saturating_add(matching), times, reading)
    }

    /// Adds the cost of validating `value` against `schema`, `times` times.
    fn check(&mut self, schema: &Value, value: &Value, times: u64) -> Result<(), Exceeded> {
        self.add(1, times)?;
        let Value::Object(rules) = schema else { return Ok(()) };
        // To find what no rule has evaluated, a validator evaluates all rules again for each child.
        let evaluates_again = rules.contains_key("unevaluatedProperties") || rules.contains_key("unevaluatedItems");
        let times = if evaluates_again { times.saturating_mul(1 + children(value).count() as u64) } else { times };
        for (name, rule) in rules {
            self.add(1, times)?;
            self.rule(name, rule, value, times)?;
        }
        Ok(())
    }

    fn rule(&mut self, name: &str, rule: &Value, value: &Value, times: u64) -> Result<(), Exceeded> {
        match (name, rule, value) {
            ("$ref", Value::String(pointer), _) => match target(self.root, pointer) {
                Some(schema) => self.check(schema, value, times),
                None => Ok(()),
            },
            ("properties", Value::Object(rules), Value::Object(members)) => {
                self.add(rules.len() as u64, times)?;
                rules
                    .iter()
                    .try_for_each(|(name, rule)| members.get(name).map_or(Ok(()), |member| self.check(rule, member, times)))
            }
            ("patternProperties", Value::Object(rules), Value::Object(members)) => self.pattern_properties(rules, members, times),
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
            ) => children(value).try_for_each(|child| self.check(rule, child, times)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(rules), _) => {
                rules.iter().try_for_each(|rule| self.check(rule, value, times))
            }
            ("not" | "if" | "then" | "else", _, _) => self.check(rule, value, times),
            ("dependentSchemas", Value::Object(rules), _) => rules.values().try_for_each(|rule| self.check(rule, value, times)),
            ("enum" | "const", _, _) => self.add(size(rule), times),
            ("pattern", Value::String(pattern), Value::String(text)) => self.search(pattern, text, times),
            // The characters are counted.
            ("minLength" | "maxLength", _, Value::String(text)) => self.spend(text.len() as u64 / 16, times, 1),
            // The items are sorted, then compared.
            ("uniqueItems", _, Value::Array(_)) => self.add(8 * size(value), times),
            ("required" | "dependentRequired", _, Value::Object(_)) => self.add(size(rule), times),
            _ => Ok(()),
        }
    }

    fn pattern_properties(
        &mut self,
        rules: &Map<String, Value>,
        members: &Map<String, Value>,
        times: u64,
    ) -> Result<(), Exceeded> {
        for (pattern, rule) in rules {
            for (name, member) in members {
                self.search(pattern, name, times)?;
                self.check(rule, member, times)?;
            }
        }
        Ok(())
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// One unit for each value inside it, and for each 64 bytes of text.
fn size(value: &Value) -> u64 {
    let text = if let Value::String(text) = value { text.len() as u64 / 64 } else { 0 };
    1 + text + children(value).map(size).sum::<u64>()
}

/// The number of states of a pattern that a text can be in: one for each character, as often as it is repeated.
fn states(pattern: &str) -> u64 {
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
                let max = inner.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
                if let Some(max) = max {
                    sum = sum.saturating_add(last.saturating_mul(max.saturating_sub(1)));
                    last = last.saturating_mul(max);
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
    fn repetition_multiplies_the_states_of_a_pattern() {
        for (pattern, count) in
            [("", 0), ("^[A-Z]{2}$", 8), ("x{1000}", 1000), ("(ab{3}){2,4}", 16), ("a{,5}b{2,}", 7), (r"\p{L}\{3", 5), ("((", 0)]
        {
            assert_eq!(states(pattern), count, "{pattern}");
        }
        assert_eq!(states(&"(x{1000})".repeat(3).replace(')', "){99999999999}{99999999999}")), u64::MAX);
    }

    #[test]
    fn the_cost_is_that_of_every_rule_for_every_value() {
        let list = |values: u32| json!({"a": (0..values).collect::<Vec<_>>()});
        let rules = |rules: u32| {
            let rules: Vec<Value> = (0..rules).map(|n| json!({"maximum": n})).collect();
            json!({"properties": {"a": {"items": {"anyOf": rules}}}, "$defs": {"far": {"$ref": "#/$defs/away"}}})
        };
        let cost = |schema: &Value, value: &Value| estimate(schema, value, 5_000_000, u64::MAX);
        assert!(matches!(cost(&rules(20), &list(100)), Cost::Units { units: 2_000..10_000, .. }));
        assert!(matches!(cost(&rules(400), &list(1000)), Cost::Units { units: 400_000..2_000_000, .. }));
        assert!(matches!(cost(&rules(800), &list(10_000)), Cost::Excessive { work: 1_000_000..5_100_000 }));
        let mut nested = json!({"unevaluatedProperties": true});
        for _ in 0..8 {
            nested = json!({"anyOf": [nested], "unevaluatedProperties": {"type": "integer"}});
        }
        let excessive = cost(&nested, &json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}));
        assert!(matches!(excessive, Cost::Excessive { work: ..1_000 }), "{excessive:?}");
        assert!(matches!(cost(&nested, &json!({})), Cost::Units { units: ..1_000, .. }));
        let lengths = json!({"properties": {"a": {"allOf": vec![json!({"maxLength": 100_000}); 3_600]}}});
        assert!(matches!(cost(&lengths, &json!({"a": "é".repeat(16_000)})), Cost::Excessive { .. }));
    }

    #[test]
    fn an_estimate_is_given_up_when_it_is_too_much_work_itself() {
        let list = json!(vec!["y"; 10_000]);
        let names: Value = (0..3_000).map(|n| (format!("{n}"), json!(true))).collect::<Map<_, _>>().into();
        for schema in [
            json!({"items": {"enum": (0..3_000).collect::<Vec<_>>()}}),
            json!({"items": {"pattern": "x".repeat(20_000)}}),
            json!({"items": {"not": {"items": {"properties": names}}}, "prefixItems": [], "uniqueItems": true}),
            json!({"items": {"anyOf": vec![json!({"type": "string"}); 1_000]}}),
        ] {
            let cost = estimate(&schema, &list, u64::MAX, 20_000);
            assert!(matches!(cost, Cost::Unknown { work: 20_000..150_000 }), "{cost:?}");
        }
    }
}
