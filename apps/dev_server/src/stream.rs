//! The stream of the table in the embedded engine: every change of an item, in order.
//!
//! It is enabled only where somebody reads it, since every change is stored twice until it has been read. docs/adr/0004 lists
//! where it differs from DynamoDB Streams.

use crate::{engine, table};
use anyhow::{Context, Result};
use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType};

#[must_use]
pub fn client(url: &str) -> aws_sdk_dynamodbstreams::Client {
    let config = aws_sdk_dynamodbstreams::Config::builder()
        .behavior_version(aws_sdk_dynamodbstreams::config::BehaviorVersion::latest())
        .region(engine::REGION)
        .endpoint_url(url)
        .credentials_provider(engine::credentials())
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    aws_sdk_dynamodbstreams::Client::from_conf(config.build())
}

/// Enables the stream that template.yaml declares, also of a table that has none yet, and returns its ARN.
///
/// # Errors
///
/// Returns an error when a call to the engine fails, or when the template declares no stream.
pub async fn enable(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<String> {
    let view = StreamViewType::from(table::declared()?.stream_specification.stream_view_type.as_str());
    let described = client.describe_table().table_name(name).send().await.context("can't describe the table")?;
    let described = described.table().context("the engine describes no table")?;
    // A second call would give the stream another ARN, by which nobody would find what has been read of it.
    if described.stream_specification().and_then(StreamSpecification::stream_view_type) == Some(&view)
        && let Some(arn) = described.latest_stream_arn()
    {
        return Ok(arn.to_owned());
    }
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view).build()?;
    let updated = client.update_table().table_name(name).stream_specification(stream).send().await;
    let updated = updated.context("can't enable the table's stream")?;
    let arn = updated.table_description().and_then(|table| table.latest_stream_arn());
    Ok(arn.context("the engine names no stream")?.to_owned())
}
