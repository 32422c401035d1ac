//! `/v1/users`: the people that assets are assigned to, their current and former assets, the report on a person's data, and the
//! erasure of the data.

mod bulk;
mod changes;
mod erase;
mod handlers;
mod report;
mod user_assets;

use bulk::{batch, export, import, suggest};

shared::endpoints! {
    handlers: list_users, create_user, get_user, update_user, delete_user;
    batch: batch_users;
    import: import_users;
    suggest: suggest_user_import;
    export: export_users;
    user_assets: list_user_assets;
    erase: erase_user;
    report: get_user_report;
}
