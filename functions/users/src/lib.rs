//! `/v1/users`: the people that assets are assigned to.

pub mod bulk;
mod handlers;
mod wire;

shared::endpoints! {
    handlers: list_users, create_user, get_user, update_user, delete_user;
}
