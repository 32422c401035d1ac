//! The endpoints that the signing page calls with a link's secret. The function `sign` serves them together with the page.

mod receipt;
mod session;
mod submit;

shared::endpoints! {
    session: get_signing_session;
    submit: submit_with_link;
    receipt: get_signing_receipt;
}
