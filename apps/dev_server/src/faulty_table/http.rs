//! The HTTP client through which the SDK reaches a faulty table, and the ways that requests and responses take.

use super::table::FaultyTable;
use super::weaknesses::MAX_DELAY_MILLIS;
use crate::engine;
use crate::in_process::{http_response, table_call};
use crate::table_calls::TableResponse;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

impl FaultyTable {
    /// Each client has its own quota of retries, as in a process of its own.
    #[must_use]
    pub fn config(&self) -> Builder {
        engine::config("http://faulty.invalid")
            .http_client(self.clone())
            .retry_partition(RetryPartition::custom("faulty").build())
    }

    /// Carries a request to the table and its response back. `None` if one of them is lost.
    async fn carry(&self, operation: String, body: serde_json::Value) -> Option<TableResponse> {
        let weaknesses = self.weaknesses();
        let mut way = self.random().below(weaknesses.latency_millis + 1);
        if self.random().chance(weaknesses.slow_per_mille) {
            self.show("late requests");
            way += self.random().below(MAX_DELAY_MILLIS);
        }
        sleep(Duration::from_millis(way)).await;
        if self.random().chance(weaknesses.lost_before_per_mille) {
            self.show("lost requests");
            return None;
        }
        let response = self.call(&operation, body).await;
        sleep(Duration::from_millis(self.random().below(weaknesses.latency_millis + 1))).await;
        if self.random().chance(weaknesses.lost_after_per_mille) {
            self.show("lost responses");
            return None;
        }
        Some(response)
    }
}

impl HttpClient for FaultyTable {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for FaultyTable {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = table_call(&request);
        let (mut sender, receiver) = oneshot::channel();
        let table = self.clone();
        // A task of its own: what was sent takes effect even if the sender no longer waits.
        tokio::spawn(async move {
            let response = table.carry(operation, body).await;
            let is_reset = response.is_none() && table.random().below(2) == 0;
            match response {
                Some(response) => drop(sender.send(Ok(response))),
                None if is_reset => drop(sender.send(Err(ConnectorError::io("connection reset".into())))),
                // Without a word, so that the sender waits for its timeout.
                None => sender.closed().await,
            }
        });
        HttpConnectorFuture::new(async move {
            let response = receiver.await.map_err(|error| ConnectorError::other(error.into(), None))??;
            http_response(&response)
        })
    }
}
