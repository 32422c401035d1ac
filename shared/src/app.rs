//! How Lambda runs a function: its routes, or its handler of stream records or queue messages.

pub use aws_lambda_events::{dynamodb, sqs, streams};

use crate::aws::environment::{EnvironmentError, endpoint, function_environment, required_variable};
use crate::aws::object_store::{ObjectStore, S3};
use crate::domain::values::time::Timestamp;
use crate::http;
use crate::http::base_url::{BaseUrl, FORWARDED_HOST, with_base_url};
use crate::key_encryption::KeyEncryption;
use crate::log::{self, error_chain};
use crate::queue::Queue;
use crate::services::{App, system_clock};
use crate::store::{Clock, MAX_SNAPSHOT_TIME, SnapshotReport, Store, configure_client, with_deadline};
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, Config};
use axum::Router;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Response, StatusCode};
use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lambda_http::lambda_runtime::{self, service_fn};
use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::{Adapter, Body, Error, IntoResponse, LambdaEvent, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Minimum number of rows for a snapshot. A smaller list loads from the table in one or two round trips, so a snapshot would
/// store people's names without need.
const SMALLEST_SNAPSHOT: usize = 5_000;

/// Creates the store for the table `TABLE_NAME`, at the endpoint `AWS_ENDPOINT_URL_DYNAMODB` if set, with snapshots in the bucket
/// at `SNAPSHOTS_URL` if set.
///
/// # Errors
///
/// Same as [`function_environment`] and [`endpoint`].
pub fn function_store(clock: Clock) -> Result<Store, EnvironmentError> {
    let table = required_variable("TABLE_NAME")?;
    let environment = function_environment()?;
    let snapshots = endpoint("SNAPSHOTS_URL")?.map(|url| S3::new(&url, &environment, clock.clone()));
    let mut config = configure_client(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .http_client(environment.http_client())
        .region(environment.region)
        .credentials_provider(environment.credentials);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_DYNAMODB")?);
    let store = Store::new(Client::from_conf(config.build()), table, clock).with_smallest_snapshot(SMALLEST_SNAPSHOT);
    Ok(store.with_snapshots(snapshots.map(|snapshots| Arc::new(snapshots) as Arc<dyn ObjectStore>)))
}

/// Query characters that API Gateway passes on but `lambda_http` can't parse.
const QUERY_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>');
/// Characters that would end or change a path. API Gateway passes on decoded paths, which can contain them.
const PATH_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'\\');

/// Path prefixes whose remainder is a single value. The gateway decodes the value, so it can contain slashes.
const ONE_PART: [&str; 2] = ["/v1/assets/by-serial/", "/v1/assets/by-tag/"];

/// Safety margin before Lambda's deadline, on top of the time for the last snapshot.
const RESERVE: Duration = Duration::from_secs(60);

/// Serves `routes` on the table `TABLE_NAME`, until Lambda stops the function.
pub async fn run(routes: impl FnOnce() -> Router<App>) -> ExitCode {
    run_with_key_encryption(routes, Ok::<_, Infallible>(None)).await
}

/// Like [`run`], with key encryption. Logs the error and fails if key encryption can't be set up.
pub async fn run_with_key_encryption<E>(
    routes: impl FnOnce() -> Router<App>,
    key_encryption: Result<Option<Arc<dyn KeyEncryption>>, E>,
) -> ExitCode
where
    E: std::error::Error + Send + Sync + 'static,
{
    run_with_queue(routes, key_encryption, Ok::<_, Infallible>(None)).await
}

/// Like [`run_with_key_encryption`], with the webhook delivery queue. Logs the error and fails if key encryption or the queue
/// can't be set up.
pub async fn run_with_queue<E, Q>(
    routes: impl FnOnce() -> Router<App>,
    key_encryption: Result<Option<Arc<dyn KeyEncryption>>, E>,
    queue: Result<Option<Arc<dyn Queue>>, Q>,
) -> ExitCode
where
    E: std::error::Error + Send + Sync + 'static,
    Q: std::error::Error + Send + Sync + 'static,
{
    log::init_function();
    exit_code(match (key_encryption, queue) {
        (Ok(key_encryption), Ok(queue)) => serve(routes, key_encryption, queue).await,
        (Err(error), _) => Err(error.into()),
        (_, Err(error)) => Err(error.into()),
    })
}

/// Like [`run_with_key_encryption`], for a function whose responses link to the API. Links start with `PUBLIC_URL`, if set. Logs
/// the error and fails if `PUBLIC_URL` is invalid.
pub async fn run_with_links<E>(
    routes: impl FnOnce() -> Router<App>,
    key_encryption: Result<Option<Arc<dyn KeyEncryption>>, E>,
) -> ExitCode
where
    E: std::error::Error + Send + Sync + 'static,
{
    match BaseUrl::from_env() {
        Ok(Some(base_url)) => run_with_key_encryption(|| with_base_url(routes(), base_url), key_encryption).await,
        Ok(None) => run_with_key_encryption(routes, key_encryption).await,
        Err(error) => run_with_key_encryption(routes, Err(error)).await,
    }
}

/// hyper's error text for a connection closed before the response. Compared as text, because hyper is not a dependency.
const CLOSED: &str = "connection closed before message completed";

fn exit_code(ended: Result<(), Error>) -> ExitCode {
    match ended.map_err(|error| error_chain(&*error)) {
        Ok(()) => ExitCode::SUCCESS,
        // `sam local` removed the container while the function was waiting for the next event.
        Err(cause) if cause.ends_with(CLOSED) => {
            tracing::info!("the Runtime API has closed the connection");
            ExitCode::SUCCESS
        }
        Err(cause) => {
            tracing::error!(cause, "the function can't run");
            ExitCode::FAILURE
        }
    }
}

async fn serve(
    routes: impl FnOnce() -> Router<App>,
    key_encryption: Option<Arc<dyn KeyEncryption>>,
    queue: Option<Arc<dyn Queue>>,
) -> Result<(), Error> {
    // The first request opens the connection to the table. Opening it here would cost more than it saves (docs/adr/0011).
    let app = App::new(function_store(system_clock())?).with_key_encryption(key_encryption).with_queue(queue);
    let service = ServiceExt::<Request>::map_response(http::service(routes(), app), Encoded);
    let service = ServiceExt::<LambdaEvent<LambdaRequest>>::map_request(Adapter::from(service), sanitized);
    // `lambda_runtime::run` would open a span for each event, but no log line shows spans.
    lambda_runtime::Runtime::new(service).run().await
}

/// Time left until Lambda's deadline when a batch ends. At the deadline, Lambda stops the function and the whole batch counts as
/// failed.
const MARGIN: Duration = Duration::from_millis(1500);

pub trait BatchHandler {
    type Batch: DeserializeOwned;
    type Response: Serialize;

    /// Reports the items not finished by `deadline` as unhandled.
    fn handle_until(&self, batch: Self::Batch, deadline: Instant) -> impl Future<Output = Self::Response>;
}

/// Creates a handler for the table `TABLE_NAME` with `make`, and passes it every batch until Lambda stops the function. Logs the
/// error and fails if `make` fails.
pub async fn run_batches<H, E>(make: impl FnOnce(Store) -> Result<H, E>) -> ExitCode
where
    H: BatchHandler,
    E: Into<Error>,
{
    log::init_function();
    let clock = system_clock();
    let handler = function_store(clock.clone()).map_err(Error::from);
    exit_code(match handler.and_then(|store| make(store).map_err(Into::into)) {
        Ok(handler) => {
            let service = service_fn(async |event: LambdaEvent<H::Batch>| {
                let deadline = Instant::now() + time_left(event.context.deadline, &clock);
                Ok::<_, Error>(with_deadline(deadline, handler.handle_until(event.payload, deadline)).await)
            });
            lambda_runtime::run(service).await
        }
        Err(error) => Err(error),
    })
}

/// Returns the time left until [`MARGIN`] before Lambda's deadline. `deadline` is in milliseconds since 1970.
fn time_left(deadline: u64, clock: &Clock) -> Duration {
    let now = u64::try_from(clock().millis()).unwrap_or_default();
    Duration::from_millis(deadline.saturating_sub(now)).saturating_sub(MARGIN)
}

/// Writes snapshots of the table `TABLE_NAME` on every event, until Lambda stops the function.
pub async fn write_snapshots() -> ExitCode {
    log::init_function();
    exit_code(match function_store(system_clock()) {
        Ok(store) => {
            let handler = service_fn(async |event: LambdaEvent<IgnoredAny>| {
                let deadline = i64::try_from(event.context.deadline).unwrap_or(i64::MAX);
                let last = TimeDelta::from_std(MAX_SNAPSHOT_TIME + RESERVE)?;
                run_writer(&store, Timestamp::from_millis(deadline).plus(-last)).await
            });
            lambda_runtime::run(handler).await
        }
        Err(error) => Err(error.into()),
    })
}

/// Fails if a snapshot can't be written: the failed invocation raises an alarm.
async fn run_writer(store: &Store, until: Timestamp) -> Result<(), Error> {
    let SnapshotReport { current, written, failed, postponed } = Box::pin(store.write_snapshots(until)).await?;
    tracing::info!(current, written, failed, postponed, "snapshots");
    if failed > 0 { Err(format!("{failed} snapshots could not be written").into()) } else { Ok(()) }
}

/// Escapes or removes everything that makes `lambda_http` panic or misread the URI: certain characters in path and query, and the
/// scheme and host, which clients can forge. The URI gets the host `localhost`; [`BaseUrl`] reads the client's `Host` from
/// [`FORWARDED_HOST`].
fn sanitized(mut event: LambdaEvent<LambdaRequest>) -> LambdaEvent<LambdaRequest> {
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload {
        request.headers.remove("x-forwarded-proto");
        if let Some(host) = request.headers.insert(HOST, HeaderValue::from_static("localhost")) {
            request.headers.insert(FORWARDED_HOST, host);
        }
        if let Some(path) = &mut request.raw_path {
            *path = escaped_path(path);
        }
        if let Some(query) = &mut request.raw_query_string {
            *query = utf8_percent_encode(query, QUERY_ESCAPES).to_string();
        }
    }
    event
}

/// Escapes a path that may already be decoded. A `%` that doesn't start an escape is literal.
fn escaped_path(path: &str) -> String {
    let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let mut parts = path.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    let path = parts.fold(first, |path, rest| path + if is_escape(rest) { "%" } else { "%25" } + rest);
    utf8_percent_encode(&with_encoded_slashes(path), PATH_ESCAPES).to_string()
}

fn with_encoded_slashes(path: String) -> String {
    let Some((start, part)) = ONE_PART.iter().find_map(|start| Some((*start, path.strip_prefix(start)?))) else { return path };
    // A trailing slash may be part of the value. Double it, so that the request gets a 404 instead of a redirect to a different
    // value.
    let (part, end) = part.strip_suffix('/').map_or((part, ""), |part| (part, "//"));
    format!("{start}{}{end}", part.replace('/', "%2F"))
}

/// A response whose body is passed to Lambda as text if the body is UTF-8, and as Base64 otherwise.
///
/// `lambda_http` would decide by media type and charset, which links the tables of all charsets (125 KB).
struct Encoded(Response<axum::body::Body>);

impl IntoResponse for Encoded {
    fn into_response(self) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let (mut parts, body) = self.0.into_parts();
            let Ok(body) = body.collect().await else {
                // All bodies are in memory, so collecting one can't fail.
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
    use axum::extract::FromRequestParts;
    use lambda_http::Context;
    use serde_json::{Value, json};

    /// Returns the base URL of links in the response to a request through a gateway with this domain.
    async fn base_url(domain: Value, headers: Value) -> String {
        let event = json!({
            "version": "2.0", "routeKey": "GET /v1/a", "rawPath": "/v1/a", "rawQueryString": "b=c", "headers": headers,
            "isBase64Encoded": false, "requestContext": {
                "accountId": "1", "apiId": "a", "stage": "$default", "requestId": "r", "domainName": domain,
                "http": {"method": "GET", "path": "/v1/a", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "curl"},
                "time": "05/Mar/2026:10:00:00 +0000", "timeEpoch": 1_772_704_800_000_u64
            }
        });
        let event = serde_json::from_value(event).expect("an event");
        let request = Request::from(sanitized(LambdaEvent::new(event, Context::default())).payload);
        assert_eq!(request.uri().path_and_query().expect("a path"), "/v1/a?b=c");
        let (mut parts, _) = request.into_parts();
        let Ok(base_url) = BaseUrl::from_request_parts(&mut parts, &()).await;
        base_url.as_str().to_owned()
    }

    #[tokio::test]
    async fn base_url_is_never_taken_from_a_header() {
        let hostile = json!({
            "host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "http", "forwarded": "host=evil.example"
        });
        assert_eq!(base_url(json!("api.example.com"), hostile.clone()).await, "https://api.example.com");
        for domain in
            [json!(null), json!(""), json!("a b"), json!("a/b@c"), json!("[::1"), json!("999.999.999.999:x"), json!("é")]
        {
            assert_eq!(base_url(domain, hostile.clone()).await, "");
        }
    }

    #[tokio::test]
    async fn local_gateways_are_where_the_caller_found_them() {
        let headers = json!({"host": "127.0.0.1:3001", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https"});
        assert_eq!(base_url(json!("localhost"), headers).await, "http://127.0.0.1:3001");
        for host in ["a b", "a/b", "a:99999", "[::1", "zoë"] {
            assert_eq!(base_url(json!("localhost"), json!({"host": host})).await, "", "{host}");
        }
    }

    #[test]
    fn path_of_an_event_is_escaped_and_keeps_its_segments() {
        for (raw, is) in [
            ("/v1/assets/a?b#c d\\e", "/v1/assets/a%3Fb%23c%20d%5Ce"),
            ("/v1/%23/100%/%a/%", "/v1/%23/100%25/%25a/%25"),
            ("/v1/é", "/v1/%C3%A9"),
            ("/v1/assets/by-serial/S/1 a", "/v1/assets/by-serial/S%2F1%20a"),
            ("/v1/assets/by-serial/S%2F1/", "/v1/assets/by-serial/S%2F1//"),
        ] {
            assert_eq!(escaped_path(raw), is);
        }
    }

    #[test]
    fn a_body_that_is_not_utf_8_is_sent_in_base64() {
        assert_eq!(encode("{\"name\": \"Zoë\"}".into()), Body::Text("{\"name\": \"Zoë\"}".into()));
        assert_eq!(encode(vec![]), Body::Text(String::new()));
        assert_eq!(encode(b"\x89PNG".to_vec()), Body::Binary(b"\x89PNG".to_vec()));
    }

    #[test]
    fn a_batch_ends_before_lambda_would_end_it() {
        let clock: Clock = Arc::new(|| Timestamp::from_millis(10_000));
        assert_eq!(time_left(70_000, &clock), Duration::from_millis(58_500));
        assert_eq!([0, 10_000, 11_000].map(|deadline| time_left(deadline, &clock)), [Duration::ZERO; 3]);
    }
}
