//! How every function's binary starts, and how its answers go to Lambda.

use crate::app::{App, system_clock};
use crate::http;
use crate::seal::Sealer;
use crate::store::{Store, client};
use axum::Router;
use axum::http::{Response, StatusCode};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lambda_http::{Body, Error, IntoResponse, Request, tower::ServiceExt, tracing};
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
    let service = http::service(routes, app);
    lambda_http::run(ServiceExt::<Request>::map_response(service, Encoded)).await
}

/// A response whose body Lambda gets as text where it is UTF-8, else in Base64.
///
/// `lambda_http` goes by type and charset, and links the tables of every charset for that: an eighth of a megabyte.
struct Encoded(Response<axum::body::Body>);

impl IntoResponse for Encoded {
    fn into_response(self) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let (mut parts, body) = self.0.into_parts();
            let Ok(body) = body.collect().await else {
                // No body of ours is still to be made when it comes here.
                parts.status = StatusCode::INTERNAL_SERVER_ERROR;
                return Response::from_parts(parts, Body::Empty);
            };
            Response::from_parts(parts, encode(body.to_bytes().into()))
        })
    }
}

fn encode(body: Vec<u8>) -> Body {
    String::from_utf8(body).map_or_else(|error| Body::Binary(error.into_bytes()), Body::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf_8_goes_in_base64() {
        assert_eq!(encode("{\"name\": \"Zoë\"}".into()), Body::Text("{\"name\": \"Zoë\"}".into()));
        assert_eq!(encode(vec![]), Body::Text(String::new()));
        assert_eq!(encode(b"\x89PNG".to_vec()), Body::Binary(b"\x89PNG".to_vec()));
    }
}
