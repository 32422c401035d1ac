//! What else there is to know of an asset. The function `reports` has these routes, so that `assets` stays small.

mod history;
mod startable;

shared::endpoints! {
    history: get_asset_history;
    startable: list_asset_processes;
}
