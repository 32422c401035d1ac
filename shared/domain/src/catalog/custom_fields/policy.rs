//! Limits on schemas: a tenant's schema is a program that runs in the service.

use super::cost::{compile_bytes, unsupported};
use crate::values::field_error::{ValueError, pointer_token};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum nesting of a schema, with references followed.
const MAX_LEVELS: usize = 64;
/// Maximum number of values in a schema, with references followed. Each value takes up to 500 bytes when compiled.
const MAX_NODES: usize = 8_000;
/// Maximum total size of a schema's distinct compiled patterns. Compiling them takes less than 35 ms in a release build.
pub const MAX_PATTERN_BYTES: u64 = 2 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternCost {
    pub patterns: usize,
    pub bytes: u64,
}

/// Checks that all references in a schema stay within the schema, don't form a cycle and don't expand excessively, and that its
/// patterns are cheap to compile. The error says what the schema must not contain.
pub fn check(schema: &Value) -> Result<PatternCost, ValueError> {
    let mut expansion = Expansion { root: schema, follows: true, nodes: 0, patterns: BTreeSet::new(), bytes: 0 };
    expansion.visit(schema, &Place { level: 0, is_root: true, pointer: String::new() })?;
    // Definitions count where they are referenced. Unused definitions cost nothing, but must not have external references either.
    expansion.follows = false;
    for name in ["$defs", "definitions"] {
        let definitions = schema.get(name).and_then(Value::as_object).into_iter().flatten();
        for (member, definition) in definitions {
            let pointer = format!("/{name}/{}", pointer_token(member));
            expansion.visit(definition, &Place { level: 2, is_root: false, pointer })?;
        }
    }
    Ok(PatternCost { patterns: expansion.patterns.len(), bytes: expansion.bytes })
}

/// Resolves a reference within the schema `root`.
pub fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&target_pointer(reference)?)
}

fn target_pointer(reference: &str) -> Option<String> {
    Some(percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?.into_owned())
}

struct Place {
    /// Nesting of this part of the schema, with references followed.
    level: usize,
    is_root: bool,
    /// JSON Pointer to this part of the schema.
    pointer: String,
}

impl Place {
    fn member(&self, name: &str) -> Self {
        Self { level: self.level + 1, is_root: false, pointer: format!("{}/{}", self.pointer, pointer_token(name)) }
    }
}

/// Visits a schema and follows its references, as a validator does in the worst case.
struct Expansion<'a> {
    root: &'a Value,
    /// Whether to follow references and count patterns.
    follows: bool,
    nodes: usize,
    patterns: BTreeSet<&'a str>,
    bytes: u64,
}

impl<'a> Expansion<'a> {
    fn count(&mut self, level: usize) -> Result<(), ValueError> {
        self.nodes += 1;
        // In a new schema, only references can reach this depth: the schema's text has fewer levels.
        if level > MAX_LEVELS {
            return Err(ValueError::new(format!("must not have references that form a cycle or exceed {MAX_LEVELS} levels")));
        }
        if self.nodes > MAX_NODES {
            return Err(ValueError::new(format!(
                "must have at most {MAX_NODES} values, with references followed; this has more"
            )));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'a str, place: &Place) -> Result<(), ValueError> {
        if let Some(feature) = unsupported(pattern) {
            return Err(ValueError::new(format!(
                "must not have a pattern with {feature}; patterns don't support look-around or back-references (at {})",
                place.pointer
            )));
        }
        // Equal patterns are compiled only once.
        if self.follows && self.patterns.insert(pattern) {
            self.bytes = self.bytes.saturating_add(compile_bytes(pattern));
        }
        if self.bytes > MAX_PATTERN_BYTES {
            return Err(ValueError::new(format!(
                "must not have patterns that compile to more than {MAX_PATTERN_BYTES} bytes; use fewer or shorter ones, with \
                 fewer repetitions and Unicode classes such as \\p{{L}} (at {})",
                place.pointer
            )));
        }
        Ok(())
    }

    fn visit(&mut self, node: &'a Value, place: &Place) -> Result<(), ValueError> {
        self.count(place.level)?;
        match node {
            Value::Object(members) => {
                members.iter().try_for_each(|(name, value)| self.keyword(name, value, place.is_root, &place.member(name)))
            }
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(index, item)| self.visit(item, &place.member(&index.to_string())))
            }
            _ => Ok(()),
        }
    }

    /// Visits a keyword. `is_top`: whether `name` is a keyword at the root of the schema.
    fn keyword(&mut self, name: &str, value: &'a Value, is_top: bool, place: &Place) -> Result<(), ValueError> {
        match (name, value) {
            ("$ref", Value::String(reference)) => self.reference(reference, place),
            ("$id", Value::String(_)) if is_top => Ok(()),
            ("$id", Value::String(_)) => Err(ValueError::new("must not use $id below its root")),
            ("$dynamicRef" | "$dynamicAnchor" | "$anchor" | "$recursiveRef", Value::String(_)) => {
                Err(ValueError::new(format!("must not use {name}; use $ref with #/… instead")))
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern, place),
            ("$defs" | "definitions", _) if is_top => Ok(()),
            // These keywords contain data, whose members can look like keywords.
            ("enum" | "const" | "default" | "examples", _) => self.data(value, place.level),
            ("properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions", Value::Object(rules)) => {
                self.count(place.level)?;
                for (member, rule) in rules {
                    let place = place.member(member);
                    if name == "patternProperties" {
                        self.pattern(member, &place)?;
                    }
                    self.visit(rule, &place)?;
                }
                Ok(())
            }
            _ => self.visit(value, place),
        }
    }

    fn reference(&mut self, reference: &str, place: &Place) -> Result<(), ValueError> {
        let outside = || {
            ValueError::new(format!(
                "must only use references within the schema: each $ref must start with # (at {})",
                place.pointer
            ))
        };
        let schema = target(self.root, reference).ok_or_else(outside)?;
        if !self.follows {
            return Ok(());
        }
        let pointer = target_pointer(reference).ok_or_else(outside)?;
        self.visit(schema, &Place { level: place.level, is_root: false, pointer })
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
