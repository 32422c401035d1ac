//! The limits on schemas: a tenant's schema is a program that runs in the service.

use super::cost;
use crate::domain::field_error::ValueError;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The maximum nesting of a schema with its references followed.
const MAX_LEVELS: usize = 64;
/// The maximum number of values in a schema with its references followed.
const MAX_NODES: usize = 20_000;
/// The maximum number of states of all patterns, each of which is compiled.
const MAX_STATES: u64 = 20_000;

/// Checks that all references of a schema stay within it, don't form a cycle and don't expand excessively.
///
/// # Errors
///
/// Returns an error that says what the schema must not contain.
pub fn check(schema: &Value) -> Result<(), ValueError> {
    Expansion { root: schema, nodes: 0, states: 0 }.visit(schema, 0, true)
}

/// Returns the schema that a reference within the schema `root` refers to.
pub fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// Visits a schema with its references followed, as a validator does in the worst case.
struct Expansion<'a> {
    root: &'a Value,
    nodes: usize,
    states: u64,
}

impl Expansion<'_> {
    fn count(&mut self, level: usize) -> Result<(), ValueError> {
        self.nodes += 1;
        if level > MAX_LEVELS || self.nodes > MAX_NODES {
            return Err(ValueError::new("must not have references that form a cycle or expand to too many rules"));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), ValueError> {
        self.states = self.states.saturating_add(cost::states(pattern));
        if self.states > MAX_STATES {
            return Err(ValueError::new(format!(
                "must not have patterns that expand to more than {MAX_STATES} characters in all, with repetitions"
            )));
        }
        Ok(())
    }

    fn visit(&mut self, node: &Value, level: usize, is_root: bool) -> Result<(), ValueError> {
        self.count(level)?;
        match node {
            Value::Object(members) => members.iter().try_for_each(|(name, value)| self.keyword(name, value, level, is_root)),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, level + 1, false)),
            _ => Ok(()),
        }
    }

    fn keyword(&mut self, name: &str, value: &Value, level: usize, is_root: bool) -> Result<(), ValueError> {
        match (name, value) {
            ("$ref", Value::String(reference)) => {
                let schema = target(self.root, reference);
                let schema = schema.ok_or_else(|| ValueError::new("must only have references of the form #/… within it"))?;
                self.visit(schema, level + 1, false)
            }
            ("$id", Value::String(_)) if is_root => Ok(()),
            ("$id", Value::String(_)) => Err(ValueError::new("must not use $id below its root")),
            ("$dynamicRef" | "$dynamicAnchor" | "$anchor" | "$recursiveRef", Value::String(_)) => {
                Err(ValueError::new(format!("must not use {name}; use $ref with #/… instead")))
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            // Definitions count where they are referenced. Unused ones cost nothing.
            ("$defs" | "definitions", _) if is_root => Ok(()),
            // These contain data, which may look like rules.
            ("enum" | "const" | "default" | "examples", _) => self.data(value, level + 1),
            ("properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions", Value::Object(rules)) => {
                self.count(level + 1)?;
                for (member, rule) in rules {
                    if name == "patternProperties" {
                        self.pattern(member)?;
                    }
                    self.visit(rule, level + 2, false)?;
                }
                Ok(())
            }
            _ => self.visit(value, level + 1, false),
        }
    }

    fn data(&mut self, value: &Value, level: usize) -> Result<(), ValueError> {
        self.count(level)?;
        match value {
            Value::Object(members) => members.values().try_for_each(|member| self.data(member, level + 1)),
            Value::Array(items) => items.iter().try_for_each(|item| self.data(item, level + 1)),
            _ => Ok(()),
        }
    }
}
