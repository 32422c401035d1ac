//! Runs processes from start to end, and gets their receipts.

use super::client::{Client, Reply};
use super::samples::SIGNATURE;
use serde_json::{Value, json};
use shared::domain::receipts::key::Jwks;

pub async fn system_process(client: &Client, slug: &str) -> String {
    let processes = client.get("/processes").await.data();
    let process = processes.as_array().unwrap().iter().find(|process| process["slug"] == slug).unwrap();
    process["id"].as_str().unwrap().to_owned()
}

/// Creates a process from `in_stock` to `in_use`. Returns its ID.
pub async fn create_process(client: &Client, steps: Value) -> String {
    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    client.post("/processes", body).await.id()
}

pub async fn start(client: &Client, process: &str, asset: &str) -> String {
    client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id()
}

pub async fn start_movement(client: &Client, process: &str, assets: &[String]) -> Value {
    client.post(&format!("/processes/{process}/start"), json!({"asset_ids": assets})).await.data()
}

pub async fn advance(client: &Client, instance: &str, data: Value) -> Reply {
    client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": data})).await
}

pub async fn advance_movement(client: &Client, movement: &str, data: Value) -> Reply {
    client.post(&format!("/movements/{movement}/advance"), json!({"step_data": data})).await
}

pub async fn cancel(client: &Client, instance: &str) -> Reply {
    client.post(&format!("/processes/instances/{instance}/cancel"), json!({})).await
}

/// Completes the system process "Employee Onboarding" for a new asset and `user`. Returns the instance's ID.
pub async fn complete_onboarding(client: &Client, user: &str) -> String {
    let body = json!({"name": "Laptop", "status": "preparing", "serial_number": "S-1", "manufacturer": "Dell", "model": "XPS"});
    let asset = client.asset(body).await;
    let instance = start(client, &system_process(client, "employee-onboarding").await, &asset).await;
    for data in [json!({"employee": user}), json!({"handover": ["Device"]}), json!({"signature": SIGNATURE}), json!({})] {
        advance(client, &instance, data).await.data();
    }
    instance
}

/// Returns a PNG of about 100 KB, as a data URL.
pub fn large_signature() -> String {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 320, 320);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_compression(png::Compression::Fast);
    let mut noise = fastrand::Rng::with_seed(1);
    let pixels: Vec<u8> = (0..320 * 320).map(|_| noise.u8(..)).collect();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    shared::domain::values::signature_image::data_url(&bytes)
}

/// Returns a PNG with a single dot, as a data URL: a few kilobytes for any dimensions.
pub fn dotted_signature(width: u32, height: u32) -> String {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    let mut pixels = vec![0; (width.div_ceil(8) * height) as usize];
    pixels[0] = 0x80;
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    shared::domain::values::signature_image::data_url(&bytes)
}

/// Completes a handover to `user`. Returns the asset's ID and the receipt's path.
pub async fn completed_receipt(client: &Client, user: &str) -> (String, String) {
    let instance = complete_onboarding(client, user).await;
    let path = format!("/processes/instances/{instance}");
    let asset = client.get(&path).await.data()["asset_id"].as_str().unwrap().to_owned();
    (asset, format!("{path}/receipt"))
}

pub async fn public_keys(client: &Client) -> Jwks {
    let path = format!("/.well-known/receipt-keys?tenant={}", client.tenant);
    serde_json::from_value(client.with_key("").get(&path).await.json()).unwrap()
}
