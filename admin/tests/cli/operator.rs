//! An operator with a table.

use local::engine::{self, Engine};
use local::{server, table};
use serde_json::Value;
use std::process::{Command, Output};

/// A table that the command line works on.
pub struct Operator {
    pub engine: Engine,
    /// More variables for the command line.
    pub more: Vec<(&'static str, String)>,
}

impl Operator {
    pub async fn start() -> Self {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
        let client = aws_sdk_dynamodb::Client::from_conf(engine::config(&engine.url).build());
        table::create(&client, server::TABLE).await.unwrap();
        Self { engine, more: Vec::new() }
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_admin"))
            .args(arguments)
            .envs(self.environment())
            .envs(self.more.iter().map(|(name, value)| (*name, value)))
            .env_remove("TABLE_NAME")
            .output()
            .unwrap()
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What a failing command says: one line, and exit code 1.
    #[track_caller]
    pub fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    /// A client of the table.
    pub fn client(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::from_conf(engine::config(&self.engine.url).build())
    }

    /// What the command line is run with.
    pub fn environment(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.engine.url),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ]
    }
}
