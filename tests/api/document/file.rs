//! docs/openapi.json, which the function `meta` serves, against the routes of all functions, and the needs of its readers.

use crate::document::examples;
use crate::support::document::served_document;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// To write the file: `UPDATE_OPENAPI=1 cargo test --workspace --test api document`.
#[tokio::test(start_paused = true)]
async fn the_document_in_docs_matches_the_routes() {
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        // The document contains the examples.
        examples::recorded().await;
    }
    let expected = serde_json::to_string_pretty(&dev_server::document::document().unwrap()).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = stored.lines().zip(expected.lines()).position(|(stored, expected)| stored != expected);
    assert!(
        stored == expected,
        "docs/openapi.json differs from the routes (line {:?}). Run: UPDATE_OPENAPI=1 cargo test --workspace --test api document",
        differs.map(|line| line + 1)
    );
}

/// Every function refuses requests by this list.
#[test]
fn the_list_of_paths_is_that_of_the_document() {
    let document = serde_json::to_value(dev_server::document::document().unwrap()).unwrap();
    let methods = [("get", "GET,HEAD"), ("post", "POST"), ("patch", "PATCH"), ("put", "PUT"), ("delete", "DELETE")];
    let lines: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, item)| {
            let allowed = methods.iter().filter(|(method, _)| item.get(method).is_some()).map(|(_, names)| *names);
            format!("{path} {}\n", allowed.collect::<Vec<_>>().join(","))
        })
        .collect();
    let expected: String = lines.into_iter().collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/src/http/paths.txt");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        expected,
        "Run: UPDATE_OPENAPI=1 cargo test --workspace --test api document"
    );
}

/// Calls `visitor` with every object and its JSON Pointer.
fn visit(value: &Value, pointer: &str, visitor: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(object) => {
            visitor(pointer, value);
            object.iter().for_each(|(name, value)| visit(value, &format!("{pointer}/{}", name.replace('/', "~1")), visitor));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| visit(value, &format!("{pointer}/{index}"), visitor));
        }
        _ => {}
    }
}

/// Pointers of the objects that `is_wrong` finds, except within examples.
fn wrong(is_wrong: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    visit(&served_document(), "", &mut |pointer, object| {
        if !pointer.contains("/example") && is_wrong(pointer, object) {
            found.push(pointer.to_owned());
        }
    });
    found
}

#[test]
fn operations_are_described_as_a_viewer_shows_them() {
    let wrong = wrong(|_, object| {
        let is_operation = object["operationId"].is_string();
        let summary = object["summary"].as_str().unwrap_or_default();
        let is_described = object["description"].as_str().is_some_and(|text| !text.is_empty());
        is_operation
            && (!(1..=60).contains(&summary.len()) || !is_described || object["tags"].as_array().is_none_or(Vec::is_empty))
    });
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn schemas_have_names_and_say_which_members_they_have() {
    let is_object = |object: &Value| {
        object["type"] == "object" || object["type"].as_array().is_some_and(|types| types.contains(&json!("object")))
    };
    let unclear =
        wrong(|_, object| is_object(object) && object["properties"].is_null() && object["additionalProperties"].is_null());
    assert!(unclear.is_empty(), "generators read these as empty objects: {unclear:?}");
    let inlined = wrong(|pointer, object| !pointer.starts_with("/components/schemas/") && object["properties"].is_object());
    assert!(inlined.is_empty(), "these have no names: {inlined:?}");
    let untitled = wrong(|_, object| {
        let choices = object["oneOf"].as_array().into_iter().flatten();
        choices.filter(|choice| choice["$ref"].is_string()).count() > 1
            && object["discriminator"].is_null()
            && object["title"].is_null()
    });
    assert!(untitled.is_empty(), "{untitled:?}");
    let bytes = wrong(|_, object| object["type"] == "array" && object["items"]["type"] == "integer");
    assert!(bytes.is_empty(), "images as numbers: {bytes:?}");
    let document = served_document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(
            !name.ends_with("View") && !["BTree", "Vec", "Option"].iter().any(|part| name.contains(part)),
            "{name} is a name of the code"
        );
        assert!(schema["description"].is_string() || name.ends_with("Response") || name.ends_with("List"), "{name}");
    }
}

#[test]
fn errors_are_described_once() {
    let wrong = wrong(|pointer, object| {
        let parts: Vec<&str> = pointer.split('/').collect();
        let [.., "responses", status] = parts.as_slice() else { return false };
        pointer.starts_with("/paths/") && !status.starts_with(['2', '3']) && object["$ref"].is_null()
    });
    assert!(wrong.is_empty(), "{wrong:?}");
}
