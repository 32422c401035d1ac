//! What strangers send to the service, as targets for a fuzzer: each takes any bytes and checks what must hold of them.
//!
//! `.ci/fuzz` runs them; docs/fuzzing.md says how to do so for hours.
#![expect(clippy::expect_used, reason = "a target fails by panicking")]

mod targets;

use targets::{body, header, key, png, query, schema, tag};

/// A target: bytes in, a panic for what must not be.
pub type Target = fn(&[u8]);

/// Every target, by the name of its folder in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("body", body::run),
    ("header", header::run),
    ("key", key::run),
    ("png", png::run),
    ("query", query::run),
    ("schema", schema::run),
    ("tag", tag::run),
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}
