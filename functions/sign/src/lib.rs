//! The signing page, and what it calls with the secret of a signing link instead of an API key.

mod page;

shared::endpoints! {
    page: get_sign_page;
}
