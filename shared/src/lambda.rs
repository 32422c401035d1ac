//! How every function's binary starts.

use crate::app::{App, system_clock};
use crate::http;
use crate::seal::Sealer;
use crate::store::{Store, client};
use axum::Router;
use lambda_http::{Error, tracing};
use std::sync::Arc;

/// Connects to the table that `TABLE_NAME` names and serves `routes` to Lambda until it ends.
///
/// # Errors
///
/// `TABLE_NAME` is not set, or the Runtime API is gone.
pub async fn run(routes: Router<App>) -> Result<(), Error> {
    run_sealed(routes, None).await
}

/// [`run`] with somebody who seals secrets.
///
/// # Errors
///
/// As [`run`].
pub async fn run_sealed(routes: Router<App>, sealer: Option<Arc<dyn Sealer>>) -> Result<(), Error> {
    tracing::init_default_subscriber();
    let table = std::env::var("TABLE_NAME").map_err(|_| "set TABLE_NAME to the table's name")?;
    let client = client::of_function()?;
    // The first request opens its connections: doing it here makes starts longer by more than it saves (docs/adr/0011).
    let app = App::new(Store::new(client, table, system_clock())).with_sealer(sealer);
    lambda_http::run(http::service(routes, app)).await
}
