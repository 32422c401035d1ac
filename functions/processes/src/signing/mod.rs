//! The endpoints that the signing page calls with the secret of a link. The function `sign` serves them, beside the page.

mod receipt;
mod session;
mod submit;

shared::endpoints! {
    session: get_signing_session;
    submit: submit_with_link;
    receipt: get_signing_receipt;
}
