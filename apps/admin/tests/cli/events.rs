//! `admin events`.

use crate::UNKNOWN_ID;
use crate::operator::Operator;
use dev_server::server;
use shared::domain::keys::api_key::DEFAULT_RATE_LIMIT;
use shared::domain::values::time::Timestamp;
use shared::store::Store;
use std::sync::Arc;

#[tokio::test]
async fn events_lists_every_change_since_a_time() {
    let operator = Operator::start().await;
    // Long enough ago that no earlier event can still appear.
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let created = at("2026-03-05T10:00:00Z");
    let store = Store::new(operator.client(), server::TABLE, Arc::new(move || created));
    let tenant = store.create_tenant("Acme".parse().unwrap(), None, DEFAULT_RATE_LIMIT).await.unwrap().tenant_id.to_string();
    let all = operator.lines(&["events", "--tenant", &tenant]);
    let types: Vec<&str> = all.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert!(types.contains(&"tenant.created") && types.contains(&"key.created"), "{types:?}");
    let since = |time: &str| operator.lines(&["events", "--tenant", &tenant, "--since", time]);
    assert_eq!(since("2026-03-05T09:59:59Z"), all);
    assert!(since("2026-03-05T10:00:01Z").is_empty());
    assert!(operator.error(&["events", "--tenant", UNKNOWN_ID]).contains(&format!("tenant {UNKNOWN_ID} not found")));
}
