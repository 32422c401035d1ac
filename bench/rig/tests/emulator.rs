//! Runs every release binary in AWS's emulator, as `sam local` does.

use rig::emulator::Emulator;
use rig::environment::Environment;
use rig::events::{request, samples};

use serde_json::json;
use std::collections::HashMap;

#[tokio::test]
#[ignore = "needs the release binaries and the emulator: .ci/functions/emulator"]
async fn each_function_returns_the_expected_status_for_the_sample_events() {
    let environment = Environment::start().await.unwrap();
    let mut functions: HashMap<String, Emulator> = HashMap::new();
    let samples = samples(&environment.api_key, &environment.asset_id).unwrap();
    assert!(samples.len() > 20);
    for sample in samples {
        if !functions.contains_key(&sample.function) {
            functions.insert(sample.function.clone(), environment.start_in_emulator(&sample.function).await.unwrap());
        }
        let response = functions[&sample.function].invoke(&sample.event).await.unwrap();
        assert_eq!(response["statusCode"], sample.status, "{}: {response}", sample.name);
    }
    assert_eq!(functions.len(), 8);
}

#[tokio::test]
#[ignore = "needs the release binaries and the emulator: .ci/functions/emulator"]
async fn a_panic_fails_only_its_own_request() {
    let environment = Environment::start().await.unwrap();
    let panics = environment.start_in_emulator("panics").await.unwrap();
    for (path, status) in [("/v1/panics", 500), ("/v1/fine", 200)] {
        assert_eq!(panics.invoke(&request("GET", path, "", None)).await.unwrap()["statusCode"], json!(status));
    }
}
