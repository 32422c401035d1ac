//! Tests that need nothing but HTTP: they also run against a deployed API (.ci/aws/deploy).

use crate::support::api::resume_clock;
use crate::support::{Api, Client};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, Uri};
use http_body_util::BodyExt;
use shared::app::system_clock;
use shared::aws::environment::function_environment;
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::store::client::function_store;
use shared::store::{StoreError, WriteError};
use std::sync::Arc;

/// The URL of a deployed API, without `/v1`. Its table and its account are those of a function's environment.
const DEPLOYED_API: &str = "TEST_DEPLOYED_API";

/// A client of a new tenant, whose key has every scope.
pub async fn over_http() -> Client {
    let Ok(origin) = std::env::var(DEPLOYED_API) else {
        let (api, client) = Api::with_tenant().await;
        return Client { table: Some(Arc::new(api)), ..client };
    };
    resume_clock();
    let store = function_store(system_clock()).unwrap();
    let create = async || store.create_tenant("Acme".parse().unwrap(), None, MAX_RATE_LIMIT).await;
    // The emulated account may take longer to connect than a function waits. Then there is a tenant too many.
    let created = match create().await {
        Err(WriteError::Store(StoreError::Unavailable(_))) => create().await,
        created => created,
    };
    let created = created.unwrap();
    let router = forwarding(function_environment().unwrap().connector, origin);
    Client { router, key: created.api_key.expose(), tenant: created.tenant_id, table: None, clock: Arc::default() }
}

/// Sends each request to the origin.
fn forwarding(connector: SharedHttpConnector, origin: String) -> Router {
    Router::new().fallback(move |request: Request<Body>| async move {
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{origin}{}", parts.uri).parse::<Uri>().unwrap();
        let body = SdkBody::from(body.collect().await.unwrap().to_bytes());
        let request = HttpRequest::try_from(Request::from_parts(parts, body)).unwrap();
        let response = connector.call(request).await.unwrap().try_into_http1x().unwrap();
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, Body::from(body.collect().await.unwrap().to_bytes()))
    })
}
