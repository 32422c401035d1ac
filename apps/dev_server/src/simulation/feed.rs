//! A reader of a tenant's event feed.

use super::service::Service;
use super::tenant::Tenant;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_secs(7);

/// Follows the feed until the simulation is over.
pub async fn follow(service: &Service, tenant: &Tenant) {
    while !service.is_over() {
        service.wait_while_idle().await;
        read_on(service, tenant).await;
        sleep(INTERVAL).await;
    }
}

pub async fn read_on(service: &Service, tenant: &Tenant) {
    loop {
        let after = tenant.model().events.last().map(|last| format!("&after={last}")).unwrap_or_default();
        let Some(response) = service.send(&tenant.request("GET", format!("/events?limit=20{after}"), Value::Null)).await else {
            return;
        };
        let Some(events) = response.body["data"].as_array().filter(|_| response.status == 200) else { return };
        let ids = events.iter().filter_map(|event| event["id"].as_str().map(str::to_owned));
        tenant.model().events.extend(ids);
        if response.body["meta"]["has_more"] != true {
            return;
        }
    }
}
