//! Runs the command line as an operator does.

use dev_server::engine::{self, Engine};
use dev_server::{server, table};
use serde_json::Value;
use shared::domain::values::time::Timestamp;
use shared::store::Store;
use std::process::{Command, Output};
use std::sync::Arc;

/// A table in an embedded engine, and the environment in which the command line reaches it.
pub struct Operator {
    pub engine: Engine,
    pub more_variables: Vec<(&'static str, String)>,
}

impl Operator {
    pub async fn start() -> Self {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
        let operator = Self { engine, more_variables: Vec::new() };
        table::create(&operator.client(), server::TABLE).await.unwrap();
        operator
    }

    pub fn create_tenant(&self) -> String {
        self.json(&["tenant", "create", "--name", "Acme"])["tenant_id"].as_str().unwrap().to_owned()
    }

    /// With the system's clock.
    pub fn store(&self) -> Store {
        Store::new(self.client(), server::TABLE, shared::app::system_clock())
    }

    /// `ahead` is in seconds.
    pub fn store_with_clock(&self, ahead: i64) -> Store {
        let clock = shared::app::system_clock();
        let clock = move || Timestamp::from_millis(clock().millis() + ahead * 1_000);
        Store::new(self.client(), server::TABLE, Arc::new(clock))
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_admin"))
            .args(arguments)
            .envs(self.environment())
            .envs(self.more_variables.iter().map(|(name, value)| (*name, value)))
            .env_remove("TABLE_NAME")
            .output()
            .unwrap()
    }

    /// Runs a command that must succeed, and returns the one object that it prints.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut lines = self.lines(arguments);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// Runs a command that must succeed, and returns the objects that it prints.
    #[track_caller]
    pub fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a command that must fail with exit code 1 and one line on stderr, and returns the line.
    #[track_caller]
    pub fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    pub fn client(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::from_conf(engine::config(&self.engine.url).build())
    }

    pub fn environment(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.engine.url),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ]
    }
}
