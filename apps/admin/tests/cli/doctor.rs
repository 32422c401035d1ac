//! `admin doctor`.

use crate::operator::Operator;
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use dev_server::{server, table};
use serde_json::Value;
use std::collections::BTreeMap;

/// The exit code, and the state and text of each subject.
fn findings(operator: &Operator, arguments: &[&str]) -> (Option<i32>, BTreeMap<String, (String, String)>) {
    let output = operator.run(&[&["doctor"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |row: &Value| (text(&row["subject"]), (text(&row["state"]), text(&row["text"])));
    (output.status.code(), report["findings"].as_array().unwrap().iter().map(row).collect())
}

#[tokio::test]
async fn what_a_table_lacks_is_named_until_it_is_there() {
    let operator = Operator::start().await;
    let arguments = ["--table", server::TABLE, "--lambda-limit", "1000"];
    let (code, before) = findings(&operator, &arguments);
    let state = |findings: &BTreeMap<String, (String, String)>, subject: &str| findings[subject].0.clone();
    assert_eq!(code, Some(1));
    for subject in ["table", "index list_index", "index history", "time to live", "Lambda instances"] {
        assert_eq!(state(&before, subject), "ok", "{before:?}");
    }
    for subject in ["stream", "deletion protection"] {
        assert_eq!(state(&before, subject), "problem", "{before:?}");
    }
    // The engine has no backups.
    let (state_of_recovery, text) = &before["point-in-time recovery"];
    assert!(state_of_recovery == "unknown" && text.contains("dynamodb:DescribeContinuousBackups"), "{before:?}");

    table::enable_stream(&operator.client(), server::TABLE).await.unwrap();
    let protect = operator.client().update_table().table_name(server::TABLE).deletion_protection_enabled(true);
    protect.send().await.unwrap();
    let (_, after) = findings(&operator, &arguments);
    for subject in ["stream", "deletion protection"] {
        assert_eq!(state(&after, subject), "ok", "{after:?}");
    }
}

#[tokio::test]
async fn a_table_of_other_makers_lacks_indexes_and_expiry() {
    let operator = Operator::start().await;
    let attribute = AttributeDefinition::builder().attribute_name("PK").attribute_type(ScalarAttributeType::S).build().unwrap();
    let key = KeySchemaElement::builder().attribute_name("PK").key_type(KeyType::Hash).build().unwrap();
    let table = operator.client().create_table().table_name("other").billing_mode(BillingMode::PayPerRequest);
    table.attribute_definitions(attribute).key_schema(key).send().await.unwrap();
    let (code, findings) = findings(&operator, &["--table", "other"]);
    assert_eq!(code, Some(1));
    for subject in ["index list_index", "index history", "time to live"] {
        assert_eq!(findings[subject].0, "problem", "{findings:?}");
    }
    let (state, text) = &findings["Lambda instances"];
    assert!(state == "not checked" && text.contains("aws lambda get-account-settings"), "{findings:?}");
}

#[tokio::test]
async fn before_the_first_deployment_only_the_accounts_limit_is_compared() {
    let operator = Operator::start().await;
    let new_account = ["--table", "nowhere", "--lambda-limit", "10"];
    let (code, findings) = findings(&operator, &new_account);
    assert_eq!((code, findings.len()), (Some(1), 2), "{findings:?}");
    assert!(findings["table"].1.contains("Deploy the stack"), "{findings:?}");
    assert_eq!(findings["Lambda instances"].0, "ok", "{findings:?}");
    let many = ["--parameter", "DeliveryConcurrency=50", "--parameter", "RetryConcurrency=25"];
    let (_, findings) = self::findings(&operator, &[&new_account[..], &many[..]].concat());
    let (state, text) = &findings["Lambda instances"];
    assert!(state == "problem" && text.contains("Request 150 in Service Quotas"), "{findings:?}");
    let unknown = operator.error(&["doctor", "--parameter", "DeliveryConcurency=2"]);
    assert!(unknown.contains("no parameter DeliveryConcurency"), "{unknown}");
}
