//! The environment of the command line (region, credentials and clock), and the findings of `admin doctor`.

use crate::Operator;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use axum::Router;
use dev_server::{server, table};
use serde_json::Value;
use shared::services::system_clock;
use std::collections::BTreeMap;
use std::process::Command;
use tokio::net::TcpListener;

/// Runs the command line with only these variables, and with this AWS configuration in the home directory. Returns the output,
/// and whether the command succeeded.
fn run(home: &std::path::Path, config: &str, variables: &[(&str, &str)]) -> (bool, String) {
    std::fs::create_dir_all(home.join(".aws")).unwrap();
    std::fs::write(home.join(".aws/config"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_admin"));
    command.args(["tenant", "list"]).env_clear().env("HOME", home).env("AWS_EC2_METADATA_DISABLED", "true");
    let output = command.env("PATH", "/usr/bin:/bin").envs(variables.iter().copied()).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_missing_region_and_missing_credentials_are_named() {
    let home = tempfile::tempdir().unwrap();
    let keys = [("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")];
    let (succeeded, text) = run(home.path(), "", &keys);
    assert!(!succeeded && text.starts_with("error: no AWS region: set AWS_REGION"), "{text}");
    let (succeeded, text) = run(home.path(), "", &[("AWS_REGION", "us-east-1")]);
    assert!(!succeeded && text.starts_with("error: no AWS credentials"), "{text}");
}

#[test]
fn errors_of_the_command_line_have_no_tip_that_misleads() {
    let tell = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_admin")).args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = tell(&["verify-receipt", "receipt.json", "--foo"]);
    assert!(code == 2 && text.contains("'--foo' found") && !text.contains("tip:"), "{text}");
    let (_, text) = tell(&["tenant", "creat"]);
    assert!(text.contains("tip: a similar subcommand exists: 'create'"), "{text}");
}

#[tokio::test]
async fn a_profile_may_get_credentials_from_a_process() {
    let operator = Operator::start().await;
    let home = tempfile::tempdir().unwrap();
    let credentials = r#"{"Version": 1, "AccessKeyId": "local", "SecretAccessKey": "local"}"#;
    let file = home.path().join("credentials.json");
    std::fs::write(&file, credentials).unwrap();
    let config = format!("[profile work]\nregion = us-east-1\ncredential_process = cat {}\n", file.display());
    let variables = [("AWS_PROFILE", "work"), ("AWS_ENDPOINT_URL_DYNAMODB", operator.engine.url.as_str())];
    let (succeeded, text) = run(home.path(), &config, &variables);
    assert!(succeeded && text.is_empty(), "{text}");
}

/// Starts a service that responds to every request with an empty object, and whose clock is `ahead` seconds ahead. Returns the
/// service's URL.
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

/// Returns the exit code, and the state and text of each subject.
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
    // The engine doesn't support point-in-time recovery.
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
    assert!(unknown.contains("no numeric parameter DeliveryConcurency"), "{unknown}");
}
