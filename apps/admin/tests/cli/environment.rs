//! Region and credentials from the environment and from AWS's configuration files.

use crate::operator::Operator;
use std::process::Command;

/// Runs the command line with only these variables, and with this AWS configuration in its home directory. Returns whether
/// it succeeded, and its output.
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
