//! What the command line makes of AWS's environment.

use crate::operator::Operator;
use std::process::Command;

/// The command line with nothing but these variables and a home with this AWS configuration.
fn run(home: &std::path::Path, config: &str, variables: &[(&str, &str)]) -> (bool, String) {
    std::fs::create_dir_all(home.join(".aws")).unwrap();
    std::fs::write(home.join(".aws/config"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_admin"));
    command.args(["tenant", "list"]).env_clear().env("HOME", home).env("AWS_EC2_METADATA_DISABLED", "true");
    let output = command.env("PATH", "/usr/bin:/bin").envs(variables.iter().copied()).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn what_is_missing_is_named() {
    let home = tempfile::tempdir().unwrap();
    let keys = [("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")];
    let (done, text) = run(home.path(), "", &keys);
    assert!(!done && text.starts_with("error: no AWS region: set AWS_REGION"), "{text}");
    let (done, text) = run(home.path(), "", &[("AWS_REGION", "us-east-1")]);
    assert!(!done && text.starts_with("error: no AWS credentials"), "{text}");
}

#[tokio::test]
async fn a_profile_may_name_a_process_that_gives_credentials() {
    let operator = Operator::start().await;
    let home = tempfile::tempdir().unwrap();
    let answer = r#"{"Version": 1, "AccessKeyId": "local", "SecretAccessKey": "local"}"#;
    let process = home.path().join("credentials.json");
    std::fs::write(&process, answer).unwrap();
    let config = format!("[profile work]\nregion = us-east-1\ncredential_process = cat {}\n", process.display());
    let variables = [("AWS_PROFILE", "work"), ("AWS_ENDPOINT_URL_DYNAMODB", operator.engine.url.as_str())];
    let (done, text) = run(home.path(), &config, &variables);
    assert!(done && text.trim() == "[]", "{text}");
}
