//! Every release binary in the emulator that `sam local` runs it in.

use rig::emulator::Emulator;
use rig::events::{request, samples};
use rig::world::World;
use serde_json::json;
use std::collections::HashMap;

#[tokio::test]
#[ignore = "needs the release binaries and the emulator: .ci/emulator"]
async fn each_binary_answers_the_sample_events_in_awss_emulator() {
    let world = World::start().await.unwrap();
    let mut running: HashMap<String, Emulator> = HashMap::new();
    let samples = samples(&world.api_key, &world.asset).unwrap();
    assert!(samples.len() > 20);
    for sample in samples {
        if !running.contains_key(&sample.function) {
            running.insert(sample.function.clone(), world.emulate(&sample.function).await.unwrap());
        }
        let answer = running[&sample.function].invoke(&sample.event).await.unwrap();
        assert_eq!(answer["statusCode"], sample.status, "{}: {answer}", sample.name);
    }
    assert_eq!(running.len(), 6);
}

#[tokio::test]
#[ignore = "needs the release binaries and the emulator: .ci/emulator"]
async fn a_panic_stays_one_requests_500_in_awss_emulator() {
    let world = World::start().await.unwrap();
    let panics = world.emulate("panics").await.unwrap();
    for (path, status) in [("/v1/panics", 500), ("/v1/fine", 200)] {
        assert_eq!(panics.invoke(&request("GET", path, "", None)).await.unwrap()["statusCode"], json!(status));
    }
}
