//! What happened in a tenant.

use crate::operator::Operator;
use local::server;
use shared::domain::api_key::DEFAULT_RATE_LIMIT;
use shared::domain::time::Timestamp;
use shared::store::Store;
use std::sync::Arc;

#[tokio::test]
async fn an_operator_hears_of_every_change_since_a_moment() {
    let operator = Operator::start().await;
    // Long enough ago that no event can still appear before those there are.
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let made = at("2026-03-05T10:00:00Z");
    let store = Store::new(operator.client(), server::TABLE, Arc::new(move || made));
    let tenant = store.create_tenant("Acme".parse().unwrap(), None, DEFAULT_RATE_LIMIT).await.unwrap().tenant_id.to_string();
    let all = operator.json(&["events", "--tenant", &tenant]);
    let types: Vec<&str> = all.as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert!(types.contains(&"tenant.created") && types.contains(&"key.created"), "{types:?}");
    let since = |moment: &str| operator.json(&["events", "--tenant", &tenant, "--since", moment]);
    assert_eq!(since("2026-03-05T09:59:59Z"), all);
    assert_eq!(since("2026-03-05T10:00:01Z"), serde_json::json!([]));
    assert!(
        operator
            .refusal(&["events", "--tenant", "01890a5d-ac96-774b-bcce-b302099a8057"])
            .contains("tenant 01890a5d-ac96-774b-bcce-b302099a8057 not found")
    );
}
