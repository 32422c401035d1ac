//! Compares the OpenAPI document in docs with the served one.

use crate::document::examples;
use crate::support::prelude::*;

/// To update the file: `UPDATE_OPENAPI=1 cargo test --workspace --test api document`.
#[tokio::test(start_paused = true)]
async fn the_document_in_docs_matches_the_routes() {
    let expected = &examples::recorded().await.text;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, expected).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = stored.lines().zip(expected.lines()).position(|(stored, expected)| stored != expected);
    assert!(
        stored == *expected,
        "docs/openapi.json differs from the routes (line {:?}). Run: UPDATE_OPENAPI=1 cargo test --workspace --test api document",
        differs.map(|line| line + 1)
    );
}

/// Functions reject unknown fields by this list.
#[test]
fn the_list_of_paths_is_that_of_the_document() {
    let document = serde_json::to_value(dev_server::document::document(Default::default()).unwrap()).unwrap();
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

/// Calls `visitor` with each object and its JSON Pointer.
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

/// Returns the pointers of the objects for which `is_wrong` is true, except within examples.
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

#[tokio::test(start_paused = true)]
async fn the_document_is_openapi_3_1_without_dangling_references() {
    let client = over_http().await;
    let (document, operations) = operations();
    assert_eq!(client.with_key("").get("/openapi.json").await.json(), *document, "the served one");
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    visit(document, "", &mut |_, object| {
        if let Some(target) = object["$ref"].as_str() {
            assert!(document.pointer(&target[1..]).is_some(), "{target} leads nowhere");
        }
    });
    let mut ids: Vec<&str> = operations.iter().map(|o| o.description["operationId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), operations.len(), "two operations have the same ID");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_read_as_the_document_describes_them() {
    let (client, samples) = samples_over_http().await;
    let (document, operations) = operations();
    let mut seen = 0;
    for operation in operations {
        let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let schema = match schema["oneOf"].as_array() {
            Some(choices) => choices.iter().find(|choice| choice["$ref"].is_string()).unwrap(),
            None => schema,
        };
        let schema = at(document, schema);
        let fields = schema["properties"].as_object().unwrap_or_else(|| panic!("{operation} has no fields"));
        // No field accepts `[[]]`, so the response must have exactly one error per field.
        let invalid: Map<String, Value> = fields.keys().map(|name| (name.clone(), json!([[]]))).collect();
        let path = samples.path(&operation.path);
        let send = async |body: String| client.send(&operation.method, &path, Some("application/json"), body).await;
        let reply = send(Value::Object(invalid).to_string()).await;
        let mut expected: Vec<String> = fields.keys().map(|name| format!("/{name}")).collect();
        expected.sort();
        // An error in an array has the element's index after the field's name.
        let field = |location: &String| location.split('/').take(2).collect::<Vec<_>>().join("/");
        let found: Vec<String> = reply.field_errors().iter().map(field).collect();
        assert_eq!(found, expected, "{operation}");

        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut expected: Vec<String> = required.iter().map(|name| format!("/{}", name.as_str().unwrap())).collect();
        expected.push("/colour".into());
        // The schema can't express that one of two fields is required.
        expected.extend(operation.path.ends_with("/start").then(|| "/asset_id".to_owned()));
        expected.sort();
        assert_eq!(send(r#"{"colour":"red"}"#.to_owned()).await.field_errors(), expected, "{operation}");
        seen += 1;
    }
    assert!(seen >= 12, "only {seen} bodies");
}

/// Each response has a status in the document, and a body that matches its schema.
#[tokio::test(start_paused = true)]
async fn responses_are_as_the_document_describes_them() {
    let (client, samples) = samples_over_http().await;
    let (document, operations) = operations();
    let without_key = client.with_key("");
    let lacking = client.scoped(&["settings:read"]).await;
    let mut validators = HashMap::new();
    let mut bodies = 0;
    for operation in by_method(operations, &METHODS) {
        let mut replies = vec![operation.send(&without_key, &samples).await, operation.send(&lacking, &samples).await];
        if ["PATCH", "PUT", "POST"].contains(&operation.method.as_str()) {
            let path = samples.path(&operation.path);
            replies.push(client.send(&operation.method, &path, Some("application/json"), r#"{"colour":1}"#).await);
        }
        if operation.is_write() {
            replies.push(operation.send_dry_run(&client, &samples).await);
        }
        replies.push(operation.send(&client, &samples).await);
        for reply in replies.into_iter().filter(|reply| !is_dry_run_of_creation(&operation.description, reply)) {
            let status = reply.status.as_str();
            let described = response(&operation.description, status);
            let described =
                described.unwrap_or_else(|| panic!("{operation} responds with {status}, which is not listed: {}", reply.text()));
            let media_type = reply.header("content-type").split(';').next().unwrap();
            let schema = &described["content"][media_type]["schema"];
            assert!(!schema.is_null(), "{operation} {status} has a body of {media_type}, which is not listed");
            if ["image/png", "image/svg+xml", "text/csv", "text/html"].contains(&media_type) {
                continue;
            }
            // Compiling is slow in a debug build, and most operations share their schemas.
            let validator = validators.entry(schema.to_string()).or_insert_with(|| {
                let schema = json!({"allOf": [schema], "components": document["components"]});
                jsonschema::validator_for(&schema).unwrap()
            });
            let errors: Vec<String> = validator.iter_errors(&reply.json()).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{operation} {status}: {errors:?} in {}", reply.text());
            bodies += 1;
        }
    }
    assert!(bodies > 120, "only {bodies} bodies");
}
