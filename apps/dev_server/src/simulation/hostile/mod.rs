//! Hostile requests to a tenant of their own. No response may disclose anything of the other tenants, whose records stay as
//! the model says, and everything that was accepted must be readable in the end.

mod generator;

use super::service::{ApiResponse, Service};
use super::tenant::{MARKER, Tenant};
use crate::faulty_table::SeededRandom;
use crate::invariants::violations;
use crate::server::TABLE;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use generator::Generator;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

const MAX_PAUSE_MILLIS: u64 = 100;
/// Far more than the few records of the tenant take.
const MAX_ERASURE_REQUESTS: usize = 20;
/// Lists whose records must be readable in the end.
const LISTS: [&str; 10] = [
    "/assets",
    "/users",
    "/catalog/asset-types",
    "/catalog/manufacturers",
    "/catalog/models",
    "/keys",
    "/webhooks",
    "/processes",
    "/processes/instances",
    "/movements",
];

/// Attacks `target` until the simulation is over. The attackers know ids of the others.
pub async fn attack(service: &Service, target: &Tenant, others: &[Tenant], random: SeededRandom) {
    let document = service.settle(&target.request("GET", "/openapi.json", Value::Null)).await.body;
    let mut generator = Generator::new(&document, target, random);
    while !service.is_over() {
        service.wait_while_idle().await;
        let attack = generator.next(target, others);
        if let Some(response) = service.send(&attack.request).await {
            if let Some(fault) = fault(attack.is_permitted, &response) {
                service.add_violation(format!("{fault}: {:?} is answered with {response:?}", attack.request));
            }
            service.count_attack(&response);
            generator.learn(&attack.request, &response);
        }
        sleep(Duration::from_millis(generator.random.below(MAX_PAUSE_MILLIS))).await;
    }
}

fn fault(is_permitted: bool, response: &ApiResponse) -> Option<&'static str> {
    match response.status {
        _ if discloses(response) => Some("data of another tenant"),
        ..300 if !is_permitted => Some("success without a credential"),
        400.. if !response.body["code"].is_string() => Some("an error without a problem document"),
        _ => None,
    }
}

fn discloses(response: &ApiResponse) -> bool {
    response.body.to_string().contains(MARKER) || response.headers.iter().any(|value| value.contains(MARKER))
}

/// Checks that all accepted records can be read, and the tenant's invariants.
pub async fn check(service: &Service, target: &Tenant, client: &Client) -> Result<()> {
    for list in LISTS {
        for page in 1.. {
            let listed = read(
                service,
                target,
                &format!("{list}?limit=100&page={page}{}", if list == "/processes" { "&status=all" } else { "" }),
            )
            .await;
            let records = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            for id in records.iter().filter_map(|record| record["id"].as_str()) {
                read(service, target, &format!("{list}/{id}")).await;
            }
            if records.len() < 100 {
                break;
            }
        }
    }
    read(service, target, "/settings").await;
    finish_erasures(service, target).await?;
    for violation in violations(&service.store().tenant(target.id), client, TABLE).await? {
        service.add_violation(format!("{}: in the end, {violation}", target.name));
    }
    Ok(())
}

/// An attacker sends a request once. An erasure has ended only when its last response says so.
async fn finish_erasures(service: &Service, target: &Tenant) -> Result<()> {
    for erasure in service.store().tenant(target.id).erasures().await? {
        let request = target.request("POST", format!("/users/{}/erase", erasure.user_id), Value::Null);
        let mut rounds = 0;
        while rounds < MAX_ERASURE_REQUESTS && service.settle(&request).await.body["data"]["done"] != true {
            rounds += 1;
        }
        if rounds == MAX_ERASURE_REQUESTS {
            service.add_violation(format!("{}: the erasure of {} does not end", target.name, erasure.user_id));
        }
    }
    Ok(())
}

async fn read(service: &Service, target: &Tenant, path: &str) -> Value {
    let response = service.settle(&target.request("GET", path, Value::Null)).await;
    if response.status != 200 {
        service.add_violation(format!("{}: {path} can't be read: {} {}", target.name, response.status, response.body));
    }
    response.body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_fault_is_found() {
        let response = |status, body| ApiResponse { status, body, ..ApiResponse::default() };
        let others = json!({"data": [{"name": format!("{MARKER} laptop")}]});
        assert_eq!(fault(true, &response(200, others)), Some("data of another tenant"));
        let header = ApiResponse { headers: vec![format!("/v1/assets/{MARKER}")], ..response(308, Value::Null) };
        assert_eq!(fault(true, &header), Some("data of another tenant"));
        assert_eq!(fault(false, &response(200, json!({}))), Some("success without a credential"));
        assert_eq!(fault(true, &response(500, json!("Internal Server Error"))), Some("an error without a problem document"));
        for (is_permitted, status) in [(true, 201), (true, 409), (false, 401)] {
            assert_eq!(fault(is_permitted, &response(status, json!({"code": "CODE"}))), None);
        }
    }
}
