//! Fuzz targets for the parsers of unauthenticated input. Each target takes arbitrary bytes and panics when a property of
//! the parser doesn't hold.
//!
//! `.ci/rust/fuzz` runs them for some seconds; docs/fuzzing.md explains longer runs.
#![expect(clippy::expect_used, reason = "a target fails by panicking")]

mod targets;

use targets::{body, header, key, png, query, schema, tag};

/// A fuzz target: takes arbitrary bytes and panics on a bug.
pub type Target = fn(&[u8]);

/// All targets with their names, which are also their folders in `tests/fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("body", body::run),
    ("header", header::run),
    ("key", key::run),
    ("png", png::run),
    ("query", query::run),
    ("schema", schema::run),
    ("tag", tag::run),
];

#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(candidate, _)| *candidate == name).map(|(_, target)| *target)
}
