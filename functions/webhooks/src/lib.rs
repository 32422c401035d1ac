//! `/v1/webhooks`: where a tenant's events are sent, and what became of them.

mod handlers;

shared::endpoints! {
    handlers: list_webhooks;
}
