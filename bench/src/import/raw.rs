//! The transactions of an import, sent again without the service.

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::types::TransactWriteItem;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeSerializationInterceptorContextRef;
use dev_server::engine::{self, Engine};
use dev_server::server::TABLE;
use dev_server::table;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An SDK interceptor that keeps the items of each transaction.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Vec<TransactWriteItem>>>>);

impl Recorder {
    pub fn take(&self) -> Vec<Vec<TransactWriteItem>> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Intercept for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(input) = context.input().downcast_ref::<TransactWriteItemsInput>() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(input.transact_items().to_vec());
        }
        Ok(())
    }
}

/// Sends the transactions to an engine of their own. Returns the duration.
pub async fn replay(transactions: Vec<Vec<TransactWriteItem>>, concurrency: usize) -> Result<Duration> {
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
    let client = Client::from_conf(engine::config(&engine.url).build());
    table::create(&client, TABLE).await?;
    let start = Instant::now();
    let send = |items| {
        let request = client.transact_write_items().set_transact_items(Some(items));
        async move { request.send().await.map(|_| ()) }
    };
    stream::iter(transactions).map(send).buffer_unordered(concurrency).try_collect::<Vec<()>>().await?;
    Ok(start.elapsed())
}
