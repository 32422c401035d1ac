//! A session with `assetctl mcp`, line by line.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// An answer that takes longer doesn't come.
const LIMIT: Duration = Duration::from_secs(120);

pub struct McpSession {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    number: u64,
}

impl McpSession {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let mut session = Self { child, input, lines, number: 0 };
        let client = json!({"name": "test", "version": "1"});
        session.ask("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The answer to a line that is no message.
    pub fn answer_to(&mut self, line: &str) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.next()
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(LIMIT).unwrap()).unwrap()
    }

    /// The next line must be the answer.
    pub fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}));
        let answer = self.next();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(self.number)), "{answer}");
        answer
    }

    pub fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Whether it failed, the line for people, and the structured content.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String, Value) {
        let mut result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].take();
        let line = result["content"][0]["text"].as_str().unwrap().to_owned();
        (result["isError"] == true, line, result["structuredContent"].take())
    }

    /// Ends the input. Returns the exit code.
    pub fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}
