//! `/v1/settings`, `/v1/keys`, `/v1/me` and `/v1/events`: a tenant's settings, API keys and events.

mod events;
mod keys;
mod me;
mod settings;

shared::endpoints! {
    settings: get_settings, update_settings;
    keys: list_keys, create_key, get_key, delete_key, rotate_key;
    me: get_me;
    events: list_events;
}
