//! How every function's binary starts, and how its answers go to Lambda.

use crate::app::{App, system_clock};
use crate::http::{self, chain};
use crate::key_encryption::KeyEncryption;
use crate::log;
use crate::store::{Store, client};
use axum::Router;
use axum::http::header::HOST;
use axum::http::{Response, StatusCode};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lambda_http::lambda_runtime;
use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::{Adapter, Body, Error, IntoResponse, LambdaEvent, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

/// What `lambda_http` can't read of a query, though the gateway lets it through.
const UNREADABLE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>');
/// What it would take for the end of a path, or leave out, though the gateway, which hands paths over decoded, has it in one.
const NOT_OF_PATHS: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'\\');

/// Connects to the table that `TABLE_NAME` names and serves `routes` to Lambda until it ends.
pub async fn run(routes: Router<App>) -> ExitCode {
    run_with_key_encryption(routes, Ok::<_, Infallible>(None)).await
}

/// [`run`] with somebody who seals secrets, if that could be set up.
pub async fn run_with_key_encryption<E>(
    routes: Router<App>,
    key_encryption: Result<Option<Arc<dyn KeyEncryption>>, E>,
) -> ExitCode
where
    E: std::error::Error + Send + Sync + 'static,
{
    log::of_function();
    let ended = match key_encryption {
        Ok(key_encryption) => serve(routes, key_encryption).await,
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(cause = chain(&*error), "the function can't run");
            ExitCode::FAILURE
        }
    }
}

async fn serve(routes: Router<App>, key_encryption: Option<Arc<dyn KeyEncryption>>) -> Result<(), Error> {
    let table = client::required_variable("TABLE_NAME")?;
    let client = client::function_client()?;
    // The first request opens its connections: doing it here makes starts longer by more than it saves (docs/adr/0011).
    let app = App::new(Store::new(client, table, system_clock())).with_key_encryption(key_encryption);
    let service = ServiceExt::<Request>::map_response(http::service(routes, app), Encoded);
    lambda_runtime::run(ServiceExt::<LambdaEvent<LambdaRequest>>::map_request(Adapter::from(service), readable)).await
}

/// The event without what `lambda_http` panics at when it makes a URI of it: some letters of a query, and a scheme and a
/// host that callers may have made up and nobody here asks for. And with a path that it reads as what it is.
fn readable(mut event: LambdaEvent<LambdaRequest>) -> LambdaEvent<LambdaRequest> {
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload {
        request.headers.remove("x-forwarded-proto");
        request.headers.remove(HOST);
        request.request_context.domain_name = None;
        if let Some(path) = &mut request.raw_path {
            *path = encoded(path);
        }
        if let Some(query) = &mut request.raw_query_string {
            *query = utf8_percent_encode(query, UNREADABLE).to_string();
        }
    }
    event
}

/// A path that was decoded, or not: a `%` that begins no escape is one of its letters.
fn encoded(path: &str) -> String {
    let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let mut parts = path.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    let path = parts.fold(first, |path, rest| path + if is_escape(rest) { "%" } else { "%25" } + rest);
    utf8_percent_encode(&path, NOT_OF_PATHS).to_string()
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
    fn a_path_stays_one_path() {
        for (raw, is) in [
            ("/v1/assets/a?b#c d\\e", "/v1/assets/a%3Fb%23c%20d%5Ce"),
            ("/v1/%23/100%/%a/%", "/v1/%23/100%25/%25a/%25"),
            ("/v1/é", "/v1/%C3%A9"),
        ] {
            assert_eq!(encoded(raw), is);
        }
    }

    #[test]
    fn what_is_not_utf_8_goes_in_base64() {
        assert_eq!(encode("{\"name\": \"Zoë\"}".into()), Body::Text("{\"name\": \"Zoë\"}".into()));
        assert_eq!(encode(vec![]), Body::Text(String::new()));
        assert_eq!(encode(b"\x89PNG".to_vec()), Body::Binary(b"\x89PNG".to_vec()));
    }
}
