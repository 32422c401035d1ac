//! The command line as an operator runs it, against an embedded engine.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

mod check;
mod doctor;
mod erasures;
mod keys;
mod on_terminal;
mod policy;
mod receipts;
mod tenants;
mod verify;

use aws_sdk_dynamodb::types::AttributeValue;
use dev_server::api::ApiClient;
use dev_server::engine::{self, Engine};
use dev_server::{server, table};
use serde_json::Value;
use shared::domain::values::time::Timestamp;
use shared::services::App;
use shared::store::Store;
use shared::store::keys::Item;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use terminal::pty::Session;

/// A well-formed ID that no tenant has.
const UNKNOWN_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A table in an embedded engine, and the environment that lets the command line reach it.
struct Operator {
    engine: Engine,
    more_variables: Vec<(&'static str, String)>,
}

impl Operator {
    async fn start() -> Self {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
        let operator = Self { engine, more_variables: Vec::new() };
        table::create(&operator.client(), server::TABLE).await.unwrap();
        operator
    }

    fn create_tenant(&self) -> String {
        self.json(&["tenant", "create", "--name", "Acme"])["tenant_id"].as_str().unwrap().to_owned()
    }

    fn store(&self) -> Store {
        Store::new(self.client(), server::TABLE, shared::services::system_clock())
    }

    /// Returns a store whose clock is this many seconds ahead.
    fn store_with_clock(&self, ahead: i64) -> Store {
        let clock = shared::services::system_clock();
        let clock = move || Timestamp::from_millis(clock().millis() + ahead * 1_000);
        Store::new(self.client(), server::TABLE, Arc::new(clock))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admin"));
        command.args(arguments).env_remove("TABLE_NAME").env("AWS_ENDPOINT_URL_DYNAMODB", &self.engine.url);
        command.envs([("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")]);
        command.envs(self.more_variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    fn run_typing(&self, arguments: &[&str], text: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed, and returns the one object that it prints.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let mut lines = self.lines(arguments);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// Runs a command that must succeed, and returns the objects that it prints.
    #[track_caller]
    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a command that must fail with exit code 1 and one line on stderr, and returns the line.
    #[track_caller]
    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    /// Runs the command line on a terminal of 80 columns; returns its output, and whether its exit code is 0.
    fn show(&self, arguments: &[&str], typed: &str) -> (String, bool) {
        let mut command = self.command(arguments);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let mut session = Session::start(command, 80).unwrap();
        session.type_text(typed).unwrap();
        let is_success = session.wait().unwrap().success();
        (session.shown(), is_success)
    }

    fn client(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::from_conf(engine::config(&self.engine.url).build())
    }

    async fn item(&self, key: &Item) -> Option<Item> {
        let get = self.client().get_item().table_name(server::TABLE).set_key(Some(key.clone()));
        get.send().await.unwrap().item
    }

    async fn put(&self, item: Item) {
        self.client().put_item().table_name(server::TABLE).set_item(Some(item)).send().await.unwrap();
    }

    async fn set(&self, key: &Item, name: &str, text: &str) {
        let update = self.client().update_item().table_name(server::TABLE).set_key(Some(key.clone()));
        let update = update.update_expression("SET #name = :text").expression_attribute_names("#name", name);
        update.expression_attribute_values(":text", AttributeValue::S(text.to_owned())).send().await.unwrap();
    }

    async fn delete(&self, key: &Item) {
        self.client().delete_item().table_name(server::TABLE).set_key(Some(key.clone())).send().await.unwrap();
    }

    /// Returns a client of the API on this store.
    fn api(&self, store: Store, key: &str) -> ApiClient {
        ApiClient { router: server::router(App::new(store)), api_key: key.to_owned() }
    }
}
