//! `/v1/webhooks`: the receivers of a tenant's events, and the deliveries to them.

mod deliveries;
mod handlers;
mod replay;
mod secrets;

shared::endpoints! {
    handlers: list_webhooks, create_webhook, get_webhook, update_webhook, delete_webhook;
    secrets: rotate_webhook;
    deliveries: test_webhook, list_deliveries, retry_delivery;
    replay: replay_events;
}
