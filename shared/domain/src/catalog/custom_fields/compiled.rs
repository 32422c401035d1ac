//! Compiled schemas, and the cache of those that a running function has used lately.

use super::policy::{self, PatternCost};
use super::shortened;
use crate::values::field_error::ValueError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The maximum memory of the automaton of one pattern. Schemas whose patterns take more are refused before.
const MAX_AUTOMATON_BYTES: usize = 1024 * 1024;
/// The maximum memory of the caches that matching all patterns of a schema uses.
const MAX_MATCHING_BYTES: usize = 2 * 1024 * 1024;
/// The share of one pattern in [`MAX_MATCHING_BYTES`].
const MAX_CACHE_BYTES_OF_PATTERN: usize = 256 * 1024;
/// Bytes of a compiled schema for each byte of its text, without patterns, as measured.
const BYTES_OF_TEXT_BYTE: usize = 64;
/// Bytes compiled in the time of a unit of validating with the worst patterns, as measured.
const BYTES_COMPILED_A_UNIT: u64 = 8;
/// The maximum size of all compiled schemas in memory.
const MAX_CACHED_BYTES: usize = 32 * 1024 * 1024;

pub(super) struct Compiled {
    pub(super) validator: Validator,
    /// The maximum size in memory, with the caches that matching uses.
    bytes: usize,
    /// The cost of compiling, in units of validating.
    pub(super) units: u64,
}

impl Compiled {
    /// A stored schema is checked as a new one: other rules may have accepted it, and what compiles and follows its references
    /// has a stack that only [`policy::check`] protects.
    ///
    /// # Errors
    ///
    /// Says why the schema is invalid or too expensive.
    pub(super) fn new(schema: &Value) -> Result<Self, ValueError> {
        let PatternCost { patterns, bytes } = policy::check(schema)?;
        let cache_bytes = (MAX_MATCHING_BYTES / patterns.max(1)).min(MAX_CACHE_BYTES_OF_PATTERN);
        let options = PatternOptions::regex().size_limit(MAX_AUTOMATON_BYTES).dfa_size_limit(cache_bytes);
        let validator = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(options).build(schema);
        let bytes = bytes.saturating_add((schema.to_string().len() * BYTES_OF_TEXT_BYTE) as u64);
        Ok(Self {
            validator: validator.map_err(|error| invalid(&error))?,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(2 * cache_bytes * patterns),
            units: bytes / BYTES_COMPILED_A_UNIT,
        })
    }
}

/// Our own words, where the library's would not help.
fn invalid(error: &ValidationError<'_>) -> ValueError {
    // A rule that is refused while it is compiled is at the schema's path, and at no path within the schema as a value.
    let pointer = match error.instance_path().as_str() {
        "" => error.schema_path().as_str(),
        pointer => pointer,
    };
    ValueError::new(match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!(
                "must only have patterns that are regular expressions, without look-around and back-references, and that don't repeat too much (at {pointer})"
            )
        }
        ValidationErrorKind::Referencing(_) => "must only have references to its own parts, $ref with #/…".to_owned(),
        _ => format!("is not a valid JSON Schema: {} (at {pointer})", shortened(error.to_string())),
    })
}

/// An asset type and its version.
pub(super) type SchemaKey = (Uuid, u64);

/// The compiled schemas that were used lately, so that a running function compiles each only once.
#[derive(Default)]
pub struct CompiledSchemas(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    schemas: HashMap<SchemaKey, Arc<Compiled>>,
    /// The oldest first.
    order: VecDeque<SchemaKey>,
    bytes: usize,
}

impl CompiledSchemas {
    /// The schema, from the cache or made by `compile`, which no other request waits for; and the cost of compiling in units.
    pub(super) fn get(
        &self,
        key: SchemaKey,
        compile: impl FnOnce() -> Result<Compiled, ValueError>,
    ) -> Result<(Arc<Compiled>, u64), ValueError> {
        let known = self.cached().schemas.get(&key).cloned();
        if let Some(known) = known {
            return Ok((known, 0));
        }
        let compiled = Arc::new(compile()?);
        self.cached().insert(key, Arc::clone(&compiled));
        let units = compiled.units;
        Ok((compiled, units))
    }

    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    fn insert(&mut self, key: SchemaKey, compiled: Arc<Compiled>) {
        self.bytes += compiled.bytes;
        match self.schemas.insert(key, compiled) {
            Some(known) => self.bytes -= known.bytes,
            None => self.order.push_back(key),
        }
        while self.bytes > MAX_CACHED_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.schemas.remove(&oldest).map_or(0, |dropped| dropped.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(bytes: usize) -> Compiled {
        Compiled { bytes, ..Compiled::new(&json!({})).expect("a schema") }
    }

    #[test]
    fn nobody_waits_while_a_schema_is_compiled() {
        let cache = CompiledSchemas::default();
        let other = || cache.get((Uuid::from_u128(2), 1), || Ok(schema(1)));
        let compiled = cache.get((Uuid::from_u128(1), 1), || {
            assert!(cache.0.try_lock().is_ok(), "another request would wait");
            other().map(|_| schema(1))
        });
        assert!(compiled.is_ok() && cache.cached().schemas.len() == 2);
    }

    #[test]
    fn the_cache_drops_the_oldest_schemas() {
        let cache = CompiledSchemas::default();
        for version in [1, 2, 3, 4, 4] {
            cache.cached().insert((Uuid::nil(), version), Arc::new(schema(MAX_CACHED_BYTES / 3)));
        }
        assert!(cache.cached().bytes <= MAX_CACHED_BYTES);
        let known = |version| cache.cached().schemas.contains_key(&(Uuid::nil(), version));
        assert_eq!([1, 2, 3, 4].map(known), [false, true, true, true]);
    }
}
