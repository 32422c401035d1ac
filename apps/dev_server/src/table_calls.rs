//! Calls of the APIs of DynamoDB and DynamoDB Streams, executed by the embedded engine.

use dynoxide::Database;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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

/// `operation` is DynamoDB's name.
pub fn execute(db: &Database, operation: &str, body: Value) -> TableResponse {
    match operation {
        "GetItem" => respond(body, |request| db.get_item(request)),
        "BatchGetItem" => respond(body, |request| db.batch_get_item(request)),
        "TransactGetItems" => respond(body, |request| db.transact_get_items(request)),
        "Query" => respond(body, |request| db.query(request)),
        "Scan" => respond(body, |request| db.scan(request)),
        "PutItem" => respond(body, |request| db.put_item(request)),
        "UpdateItem" => respond(body, |request| db.update_item(request)),
        "DeleteItem" => respond(body, |request| db.delete_item(request)),
        "TransactWriteItems" => respond(body, |request| db.transact_write_items(request)),
        "CreateTable" => respond(body, |request| db.create_table(request)),
        "DeleteTable" => respond(body, |request| db.delete_table(request)),
        "DescribeTable" => respond(body, |request| db.describe_table(request)),
        "UpdateTable" => respond(body, |request| db.update_table(request)),
        "ListTables" => respond(body, |request| db.list_tables(request)),
        "DescribeTimeToLive" => respond(body, |request| db.describe_time_to_live(request)),
        "BatchWriteItem" => respond(body, |request| db.batch_write_item(request)),
        "UpdateTimeToLive" => respond(body, |request| db.update_time_to_live(request)),
        "ListStreams" => respond(body, |request| db.list_streams(request)),
        "DescribeStream" => respond(body, |request| db.describe_stream(request)),
        "GetShardIterator" => respond(body, |request| db.get_shard_iterator(request)),
        "GetRecords" => respond(body, |request| db.get_records(request)),
        other => TableResponse::error(400, "UnknownOperationException", other),
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
