//! Calls of the APIs of DynamoDB and DynamoDB Streams, executed by the embedded engine.

use anyhow::Result;
use dynoxide::Database;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// More transactions than are ever under way at once, between an attempt that timed out and the SDK's next one.
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
    /// The latest successful transactions by `ClientRequestToken`, newest last. The engine would remember each for ten minutes,
    /// and walk through all of them at every further one.
    transactions: Arc<Mutex<VecDeque<(String, TableResponse)>>>,
}

impl TableEngine {
    pub fn new(database: Database) -> Self {
        Self { database, transactions: Arc::default() }
    }

    /// # Errors
    ///
    /// Returns an error when SQLite can't open a database in memory.
    pub fn in_memory() -> Result<Self> {
        Ok(Self::new(Database::memory()?))
    }

    /// `operation` is DynamoDB's name.
    pub fn execute(&self, operation: &str, mut body: Value) -> TableResponse {
        let token = body.as_object_mut().and_then(|request| request.remove("ClientRequestToken"));
        match token.as_ref().and_then(Value::as_str) {
            Some(token) => self.execute_once(token, operation, body),
            None => self.call(operation, body),
        }
    }

    /// A repeated attempt waits for the first, and gets its response.
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
