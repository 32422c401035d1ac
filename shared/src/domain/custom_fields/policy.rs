//! What a schema may say: it is a tenant's own program in our process.

use super::cost;
use crate::domain::field_error::ValueError;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// How deep a schema may be once its references are followed.
const LEVELS: usize = 64;
/// How many nodes a schema may have once its references are followed.
const NODES: usize = 20_000;
/// How many states all patterns may have: each is compiled.
const STATES: u64 = 20_000;

/// Refuses a schema that leads out of itself or in circles, or grows out of hand.
///
/// # Errors
///
/// Says what it must not do.
pub fn check(schema: &Value) -> Result<(), ValueError> {
    Expansion { root: schema, nodes: 0, states: 0 }.visit(schema, 0, true)
}

/// Where a reference within the schema `root` leads to.
pub fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// A walk through a schema with its references followed, as a validator would go at worst.
struct Expansion<'a> {
    root: &'a Value,
    nodes: usize,
    states: u64,
}

impl Expansion<'_> {
    fn count(&mut self, level: usize) -> Result<(), ValueError> {
        self.nodes += 1;
        if level > LEVELS || self.nodes > NODES {
            return Err(ValueError::new("must not have references in a circle, nor so many that it grows out of hand"));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), ValueError> {
        self.states = self.states.saturating_add(cost::states(pattern));
        if self.states > STATES {
            return Err(ValueError::new(format!(
                "must not have patterns that repeat so much: {STATES} characters in all, repeated"
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
                let found = target(self.root, reference);
                let found =
                    found.ok_or_else(|| ValueError::new("must have no reference that leads out of it (only #/… within it)"))?;
                self.visit(found, level + 1, false)
            }
            ("$id", Value::String(_)) if is_root => Ok(()),
            ("$id", Value::String(_)) => Err(ValueError::new("must not use $id below its root")),
            ("$dynamicRef" | "$dynamicAnchor" | "$anchor" | "$recursiveRef", Value::String(_)) => {
                Err(ValueError::new(format!("must not use {name}; refer with $ref and #/…")))
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            // Only what a reference leads to counts; definitions nobody uses cost nothing.
            ("$defs" | "definitions", _) if is_root => Ok(()),
            // Data: it may look like rules, and is none.
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
