//! Creates the table in the embedded engine as template.yaml declares it, so that the two can't differ, and executes API calls.
//! The stream is enabled only where it is read, because it stores every change a second time until it is trimmed (docs/adr/0004
//! lists its differences from DynamoDB Streams).

use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TimeToLiveSpecification,
};
use dynoxide::{Database, types};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The contents of template.yaml at build time.
pub const TEMPLATE: &str = include_str!("../../../template.yaml");

/// The properties of `AWS::DynamoDB::Table` needed to create the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TableProperties {
    pub attribute_definitions: Vec<types::AttributeDefinition>,
    pub key_schema: Vec<types::KeySchemaElement>,
    pub global_secondary_indexes: Vec<types::GlobalSecondaryIndex>,
    pub stream_specification: Stream,
    pub time_to_live_specification: Ttl,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ttl {
    pub attribute_name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Stream {
    pub stream_view_type: String,
}

/// Reads the table's properties from template.yaml.
///
/// # Errors
///
/// Returns an error if the template has no resource `Table` with these properties.
pub fn declared() -> Result<&'static TableProperties> {
    // Parsing the template takes longer than creating the table, and tests create hundreds of tables.
    static DECLARED: OnceLock<TableProperties> = OnceLock::new();
    if let Some(declared) = DECLARED.get() {
        return Ok(declared);
    }
    let declared = read_declared()?;
    Ok(DECLARED.get_or_init(|| declared))
}

fn read_declared() -> Result<TableProperties> {
    let template: yaml_serde::Value = yaml_serde::from_str(TEMPLATE).context("can't parse template.yaml")?;
    let properties = template.get("Resources").and_then(|r| r.get("Table")?.get("Properties"));
    let properties = properties.context("template.yaml has no resource Table")?.clone();
    yaml_serde::from_value(properties).context("can't read the resource Table of template.yaml")
}

fn key_schema(parts: &[types::KeySchemaElement]) -> Result<Vec<KeySchemaElement>> {
    let part = |part: &types::KeySchemaElement| {
        let key_type = KeyType::from(api_name(&part.key_type).as_str());
        KeySchemaElement::builder().attribute_name(&part.attribute_name).key_type(key_type).build()
    };
    Ok(parts.iter().map(part).collect::<Result<_, _>>()?)
}

fn index(index: &types::GlobalSecondaryIndex) -> Result<GlobalSecondaryIndex> {
    let projection = Projection::builder()
        .set_projection_type(index.projection.projection_type.as_ref().map(|kind| ProjectionType::from(api_name(kind).as_str())))
        .set_non_key_attributes(index.projection.non_key_attributes.clone())
        .build();
    let keys = key_schema(&index.key_schema)?;
    Ok(GlobalSecondaryIndex::builder().index_name(&index.index_name).set_key_schema(Some(keys)).projection(projection).build()?)
}

/// Returns the API's name for a variant, which has the same name in the engine.
fn api_name(variant: &impl Debug) -> String {
    format!("{variant:?}")
}

/// Fails if a different version created the table with different index attributes: lists would lack attributes.
async fn check_indexes(client: &Client, name: &str, declared: &TableProperties) -> Result<()> {
    let described = client.describe_table().table_name(name).send().await.context("can't describe the table")?;
    let indexes = described.table().map(|table| table.global_secondary_indexes()).unwrap_or_default();
    for index in &declared.global_secondary_indexes {
        let existing = indexes.iter().find(|existing| existing.index_name() == Some(&index.index_name));
        let existing = existing.and_then(|existing| existing.projection());
        let mut actual: Vec<String> = existing.map(|projection| projection.non_key_attributes().to_vec()).unwrap_or_default();
        let mut expected = index.projection.non_key_attributes.clone().unwrap_or_default();
        actual.sort_unstable();
        expected.sort_unstable();
        if actual != expected {
            bail!(
                "a different version created this data: its index {} differs; delete the data folder, or choose another \
                 one with --data",
                index.index_name
            );
        }
    }
    Ok(())
}

/// Creates the table, unless it exists. Doesn't enable its stream: see [`enable_stream`].
///
/// # Errors
///
/// Returns an error if a call to the engine fails, or if the existing table has other indexes.
pub async fn create(client: &Client, name: &str) -> Result<()> {
    let declared = declared()?;
    let attribute = |a: &types::AttributeDefinition| {
        let kind = ScalarAttributeType::from(api_name(&a.attribute_type).as_str());
        AttributeDefinition::builder().attribute_name(&a.attribute_name).attribute_type(kind).build()
    };
    let created = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(declared.attribute_definitions.iter().map(attribute).collect::<Result<_, _>>()?))
        .set_key_schema(Some(key_schema(&declared.key_schema)?))
        .set_global_secondary_indexes(Some(declared.global_secondary_indexes.iter().map(index).collect::<Result<_>>()?))
        .send()
        .await;
    match created {
        Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
            return check_indexes(client, name, declared).await;
        }
        other => other.context("can't create the table")?,
    };
    let ttl =
        TimeToLiveSpecification::builder().attribute_name(&declared.time_to_live_specification.attribute_name).enabled(true);
    client.update_time_to_live().table_name(name).time_to_live_specification(ttl.build()?).send().await?;
    Ok(())
}

/// Enables the stream that template.yaml declares, even on an existing table, and returns its ARN.
///
/// # Errors
///
/// Returns an error if a call to the engine fails, or if the template declares no stream.
pub async fn enable_stream(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<String> {
    let view = StreamViewType::from(declared()?.stream_specification.stream_view_type.as_str());
    let described = client.describe_table().table_name(name).send().await.context("can't describe the table")?;
    let described = described.table().context("the engine returned no description of the table")?;
    // Enabling the stream again would give it a new ARN, and lose the read position.
    if described.stream_specification().and_then(StreamSpecification::stream_view_type) == Some(&view)
        && let Some(arn) = described.latest_stream_arn()
    {
        return Ok(arn.to_owned());
    }
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view).build()?;
    let updated = client.update_table().table_name(name).stream_specification(stream).send().await;
    let updated = updated.context("can't enable the table's stream")?;
    let arn = updated.table_description().and_then(|table| table.latest_stream_arn());
    Ok(arn.context("the engine returned no stream")?.to_owned())
}

/// More transactions than are ever in flight between an attempt that timed out and the SDK's retry.
const REMEMBERED_TRANSACTIONS: usize = 256;

#[derive(Debug, Clone)]
pub struct TableResponse {
    pub status: u16,
    pub body: Value,
}

impl TableResponse {
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self { status, body: json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message}) }
    }

    pub fn is_success(&self) -> bool {
        self.status == 200
    }
}

/// An embedded engine. Cheap to clone.
#[derive(Clone)]
pub struct TableEngine {
    database: Database,
    /// The latest successful transactions by `ClientRequestToken`, newest last. The engine itself would remember each for ten
    /// minutes, and scan all of them for every further transaction.
    transactions: Arc<Mutex<VecDeque<(String, TableResponse)>>>,
}

impl TableEngine {
    pub fn new(database: Database) -> Self {
        Self { database, transactions: Arc::default() }
    }

    /// # Errors
    ///
    /// Returns an error if SQLite can't open a database in memory.
    pub fn in_memory() -> Result<Self> {
        Ok(Self::new(Database::memory()?))
    }

    /// Executes a call. `operation` is DynamoDB's name for the call.
    pub fn execute(&self, operation: &str, mut body: Value) -> TableResponse {
        let token = body.as_object_mut().and_then(|request| request.remove("ClientRequestToken"));
        match token.as_ref().and_then(Value::as_str) {
            Some(token) => self.execute_once(token, operation, body),
            None => self.call(operation, body),
        }
    }

    /// Executes a transaction. A retry waits for the first attempt, and gets its response.
    fn execute_once(&self, token: &str, operation: &str, body: Value) -> TableResponse {
        let mut transactions = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, response)) = transactions.iter().rev().find(|(earlier, _)| earlier == token) {
            return response.clone();
        }
        let response = self.call(operation, body);
        if response.is_success() {
            if transactions.len() == REMEMBERED_TRANSACTIONS {
                transactions.pop_front();
            }
            transactions.push_back((token.to_owned(), response.clone()));
        }
        response
    }

    fn call(&self, operation: &str, body: Value) -> TableResponse {
        match operation {
            "GetItem" => respond(body, |request| self.database.get_item(request)),
            "BatchGetItem" => respond(body, |request| self.database.batch_get_item(request)),
            "TransactGetItems" => respond(body, |request| self.database.transact_get_items(request)),
            "Query" => respond(body, |request| self.database.query(request)),
            "Scan" => respond(body, |request| self.database.scan(request)),
            "PutItem" => respond(body, |request| self.database.put_item(request)),
            "UpdateItem" => respond(body, |request| self.database.update_item(request)),
            "DeleteItem" => respond(body, |request| self.database.delete_item(request)),
            "TransactWriteItems" => respond(body, |request| self.database.transact_write_items(request)),
            "CreateTable" => respond(body, |request| self.database.create_table(request)),
            "DeleteTable" => respond(body, |request| self.database.delete_table(request)),
            "DescribeTable" => respond(body, |request| self.database.describe_table(request)),
            "UpdateTable" => respond(body, |request| self.database.update_table(request)),
            "ListTables" => respond(body, |request| self.database.list_tables(request)),
            "DescribeTimeToLive" => respond(body, |request| self.database.describe_time_to_live(request)),
            "BatchWriteItem" => respond(body, |request| self.database.batch_write_item(request)),
            "UpdateTimeToLive" => respond(body, |request| self.database.update_time_to_live(request)),
            "ListStreams" => respond(body, |request| self.database.list_streams(request)),
            "DescribeStream" => respond(body, |request| self.database.describe_stream(request)),
            "GetShardIterator" => respond(body, |request| self.database.get_shard_iterator(request)),
            "GetRecords" => respond(body, |request| self.database.get_records(request)),
            other => TableResponse::error(400, "UnknownOperationException", other),
        }
    }
}

fn respond<Q: DeserializeOwned, A: Serialize>(body: Value, call: impl FnOnce(Q) -> dynoxide::Result<A>) -> TableResponse {
    let request = match serde_json::from_value(body) {
        Ok(request) => request,
        Err(error) => return TableResponse::error(400, "ValidationException", &error.to_string()),
    };
    match call(request) {
        Ok(answer) => TableResponse { status: 200, body: serde_json::to_value(answer).unwrap_or_default() },
        Err(error) => {
            TableResponse { status: error.status_code(), body: serde_json::from_str(&error.to_json()).unwrap_or_default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableEngine {
        let engine = TableEngine::in_memory().unwrap();
        let key = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
        let attributes = json!([{"AttributeName": "id", "AttributeType": "S"}]);
        let table =
            json!({"TableName": "table", "KeySchema": key, "AttributeDefinitions": attributes, "BillingMode": "PAY_PER_REQUEST"});
        assert!(engine.execute("CreateTable", table).is_success());
        engine
    }

    fn put(engine: &TableEngine, id: usize, token: &str) -> TableResponse {
        let put = json!({"TableName": "table", "Item": {"id": {"S": id.to_string()}}, "ConditionExpression": "attribute_not_exists(id)"});
        engine.execute("TransactWriteItems", json!({"TransactItems": [{"Put": put}], "ClientRequestToken": token}))
    }

    #[test]
    fn a_repeated_attempt_of_a_transaction_gets_the_first_response() {
        let engine = table();
        assert!(put(&engine, 1, "first").is_success());
        assert!(put(&engine, 1, "first").is_success());
        assert_eq!(put(&engine, 1, "second").status, 400);
        assert_eq!(put(&engine, 1, "second").status, 400, "a failure is not remembered as a success");
    }

    #[test]
    fn only_the_latest_transactions_are_remembered() {
        let engine = table();
        for id in 0..=REMEMBERED_TRANSACTIONS {
            assert!(put(&engine, id, &id.to_string()).is_success());
        }
        assert_eq!(engine.transactions.lock().unwrap().len(), REMEMBERED_TRANSACTIONS);
        assert!(put(&engine, 1, "1").is_success());
        assert_eq!(put(&engine, 0, "0").status, 400);
    }
}
