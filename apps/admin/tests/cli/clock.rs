//! Commands while the operator's clock differs from the service's.

use crate::operator::Operator;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use axum::Router;
use shared::app::system_clock;
use tokio::net::TcpListener;

/// Starts a service that responds to everything with an empty object, and whose clock is `ahead` seconds ahead. Returns its URL.
async fn service(ahead: i64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let respond = move || async move {
        let date = DateTime::from_secs(system_clock()().millis() / 1_000 + ahead).fmt(DateTimeFormat::HttpDate).unwrap();
        ([("date", date)], "{}")
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(respond)).into_future());
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_is_refused() {
    for (ahead, expected) in [(300, "s behind the service's; set it"), (-90, "s ahead of the service's; set it")] {
        let mut operator = Operator::start().await;
        operator.more_variables = vec![("AWS_ENDPOINT_URL_DYNAMODB", service(ahead).await)];
        let error = operator.error(&["tenant", "create", "--name", "Acme"]);
        assert!(error.starts_with("error: this computer's clock is ") && error.contains(expected), "{error}");
    }
}
