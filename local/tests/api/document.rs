//! docs/openapi.json, which the function meta serves, against the routes of all functions.

use std::path::Path;

/// `UPDATE_OPENAPI=1 cargo test -p local --test api document` writes the file.
#[test]
fn the_document_in_docs_is_that_of_the_routes() {
    let made = serde_json::to_string_pretty(&local::api::document()).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "docs/openapi.json is not what the routes say (line {:?}). Run: UPDATE_OPENAPI=1 cargo test -p local --test api document",
        differs.map(|line| line + 1)
    );
}
