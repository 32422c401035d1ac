//! docs/openapi.json, which the function `meta` serves, against the routes of all functions.

use crate::document_examples;
use std::path::Path;

/// To write the file: `UPDATE_OPENAPI=1 cargo test -p local --test api document`.
#[tokio::test]
async fn the_document_in_docs_matches_the_routes() {
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        // The document contains the examples.
        document_examples::recorded().await;
    }
    let expected = serde_json::to_string_pretty(&local::api::document().unwrap()).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = stored.lines().zip(expected.lines()).position(|(stored, expected)| stored != expected);
    assert!(
        stored == expected,
        "docs/openapi.json differs from the routes (line {:?}). Run: UPDATE_OPENAPI=1 cargo test -p local --test api document",
        differs.map(|line| line + 1)
    );
}
