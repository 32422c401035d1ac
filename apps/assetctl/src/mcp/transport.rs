//! Transport over standard input and output, one message per line. A line without a valid message is answered with an error
//! that repeats its ID. While too many requests are unanswered, nothing is read.

use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// Longer lines, in bytes, are refused. Calls are far shorter.
const MAX_LINE: usize = 1 << 20;
/// While this many requests are unanswered, not counting elicitations, nothing is read.
const MAX_UNANSWERED: usize = 64;
/// Sending waits while this many lines are not written yet.
const MAX_WAITING: usize = 16;
/// Time limit for writing the last responses after the end of the input.
const END: Duration = Duration::from_secs(5);

/// Error codes of JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

const METHODS: &str = "initialize ping prompts/get prompts/list resources/list resources/read resources/templates/list tools/call \
                       tools/list";

type Received = RxJsonRpcMessage<RoleServer>;

/// Tracks unanswered requests, and the number of open questions to the client.
#[derive(Default)]
struct Open {
    state: Mutex<(HashSet<RequestId>, usize)>,
    changed: Notify,
}

impl Open {
    fn state(&self) -> MutexGuard<'_, (HashSet<RequestId>, usize)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<RequestId>, &mut usize)) {
        let (requests, questions) = &mut *self.state();
        change(requests, questions);
        self.changed.notify_one();
    }

    fn answered(&self, request: Option<&RequestId>) {
        self.change(|requests, _| requests.retain(|open| Some(open) != request));
    }

    /// Waits until another request can be read.
    async fn has_room(&self) {
        loop {
            let is_full = {
                let (requests, questions) = &*self.state();
                requests.len() >= MAX_UNANSWERED + questions
            };
            if !is_full {
                return;
            }
            self.changed.notified().await;
        }
    }
}

/// Reads lines. Reading is cancel-safe: a partly read line stays here.
pub struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Whether to skip the rest of a line that is too long.
    skips: bool,
    /// A read line that isn't delivered or answered yet.
    pending: Option<Read>,
    output: Option<mpsc::Sender<String>>,
    writer: Option<JoinHandle<()>>,
    open: Arc<Open>,
}

impl<R: AsyncRead + Unpin + Send> Lines<R> {
    pub fn new(input: R, mut output: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, mut lines) = mpsc::channel::<String>(MAX_WAITING);
        let writer = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                    return;
                }
            }
        });
        let (input, open) = (BufReader::new(input), Arc::default());
        Self { input, line: Vec::new(), skips: false, pending: None, output: Some(sender), writer: Some(writer), open }
    }

    /// Reads a line. `None` at the end of the input.
    async fn next_line(&mut self) -> Option<Read> {
        loop {
            let part = self.input.fill_buf().await.ok().filter(|part| !part.is_empty())?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(part.len(), |end| end + 1);
            if !self.skips {
                self.line.extend_from_slice(&part[..length]);
            }
            self.input.consume(length);
            let (is_whole, was_skipped) = (end.is_some(), self.skips);
            self.skips = !is_whole && (was_skipped || self.line.len() > MAX_LINE);
            let is_refused = !was_skipped && self.line.len() > MAX_LINE;
            if is_refused || is_whole {
                let line = std::mem::take(&mut self.line);
                if is_refused {
                    return Some(Read::refused(INVALID_REQUEST, &Value::Null, "a message must not exceed 1 MB"));
                }
                if !was_skipped && !line.trim_ascii().is_empty() {
                    return Some(Read::of(&line));
                }
            }
        }
    }
}

enum Read {
    Message(Box<Received>),
    /// A notification with an unknown method, which needs no answer.
    Ignored,
    Refused(String),
}

impl Read {
    fn refused(code: i64, id: &Value, message: &str) -> Self {
        let error = json!({"code": code, "message": message});
        Self::Refused(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error})))
    }

    fn of(line: &[u8]) -> Self {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Self::refused(PARSE_ERROR, &Value::Null, "the line is not JSON");
        };
        let sent_id = value.get("id").cloned();
        let id = sent_id.clone().filter(|id| id.is_string() || id.is_i64()).unwrap_or_default();
        let is_named = value["jsonrpc"] == "2.0" && value["method"].is_string();
        let is_known = |request: &ClientRequest| match request {
            ClientRequest::CustomRequest(custom) => METHODS.split(' ').any(|known| known == custom.method),
            _ => false,
        };
        match serde_json::from_value::<Received>(value) {
            // rmcp reads a message with an invalid ID as a notification.
            Ok(JsonRpcMessage::Notification(_)) if sent_id.is_some() => {
                Self::refused(INVALID_REQUEST, &id, "the id must be a string or an integer")
            }
            // rmcp reads a known method with invalid params as a custom request.
            Ok(JsonRpcMessage::Request(request)) if is_known(&request.request) => {
                Self::refused(INVALID_PARAMS, &id, "the params are invalid for the method")
            }
            Ok(message) => Self::Message(Box::new(message)),
            Err(_) if is_named && sent_id.is_none() => Self::Ignored,
            Err(_) => Self::refused(INVALID_REQUEST, &id, "the line isn't a JSON-RPC 2.0 message"),
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, open, line) = (self.output.clone(), Arc::clone(&self.open), serde_json::to_string(&item));
        async move {
            let closed = || io::Error::from(io::ErrorKind::NotConnected);
            if matches!(item, JsonRpcMessage::Request(_)) {
                open.change(|_, questions| *questions += 1);
            }
            output.ok_or_else(closed)?.send(line? + "\n").await.map_err(|_| closed())?;
            match item {
                JsonRpcMessage::Response(response) => open.answered(Some(&response.id)),
                JsonRpcMessage::Error(error) => open.answered(error.id.as_ref()),
                _ => {}
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            match &self.pending {
                None => self.pending = Some(self.next_line().await?),
                Some(Read::Ignored) => self.pending = None,
                Some(Read::Refused(line)) => {
                    let place = self.output.as_ref()?.reserve().await.ok()?;
                    place.send(line.clone());
                    self.pending = None;
                }
                Some(Read::Message(message)) => {
                    if matches!(**message, JsonRpcMessage::Request(_)) {
                        self.open.has_room().await;
                    }
                    let Some(Read::Message(message)) = self.pending.take() else { continue };
                    match &*message {
                        JsonRpcMessage::Request(request) => {
                            self.open.change(|requests, _| requests.extend([request.id.clone()]));
                        }
                        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                            self.open.change(|_, questions| *questions = questions.saturating_sub(1));
                        }
                        // A cancelled request gets no response.
                        JsonRpcMessage::Notification(_) => self.open.answered(cancelled(&message).as_ref()),
                    }
                    return Some(*message);
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.take());
        if let Some(writer) = self.writer.take() {
            // The client may have stopped reading.
            let _ = tokio::time::timeout(END, writer).await;
        }
        Ok(())
    }
}

/// Returns the ID of the request that a notification cancels.
fn cancelled(message: &Received) -> Option<RequestId> {
    let message = serde_json::to_value(message).ok().filter(|message| message["method"] == "notifications/cancelled")?;
    serde_json::from_value(message["params"]["requestId"].clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code and ID of the error for a line, or the method of its message.
    fn read(line: &str) -> Value {
        match Read::of(line.as_bytes()) {
            Read::Message(message) => serde_json::to_value(&message).expect("a message")["method"].take(),
            Read::Ignored => "ignored".into(),
            Read::Refused(answer) => {
                let answer: Value = serde_json::from_str(&answer).expect("JSON");
                json!([answer["error"]["code"], answer["id"]])
            }
        }
    }

    #[test]
    fn invalid_messages_are_answered_with_their_id() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, json!("tools/list")),
            (r#"{"jsonrpc":"2.0","id":"a","method":"own/method","params":{}}"#, json!("own/method")),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, json!("notifications/initialized")),
            ("{", json!([PARSE_ERROR, null])),
            ("nonsense", json!([PARSE_ERROR, null])),
            (r#"{"id":7,"method":"tools/list"}"#, json!([INVALID_REQUEST, 7])),
            (r#"{"jsonrpc":"1.0","id":"x","method":"tools/list"}"#, json!([INVALID_REQUEST, "x"])),
            (r#"{"jsonrpc":"2.0","id":8}"#, json!([INVALID_REQUEST, 8])),
            (r#"{"jsonrpc":"2.0","id":9,"method":5}"#, json!([INVALID_REQUEST, 9])),
            (r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":"x"}"#, json!([INVALID_REQUEST, 10])),
            (r#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":5}}"#, json!([INVALID_PARAMS, 11])),
            (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, json!([INVALID_REQUEST, null])),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, json!([INVALID_REQUEST, null])),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#, json!([INVALID_REQUEST, null])),
            ("5", json!([INVALID_REQUEST, null])),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#, json!("ignored")),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
        assert_eq!(read(&"[".repeat(100_000)), json!([PARSE_ERROR, null]), "deep nesting");
    }

    fn request(id: usize) -> String {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn answer(id: usize) -> TxJsonRpcMessage<RoleServer> {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": {}})).expect("an answer")
    }

    /// Returns the next message if it has arrived.
    async fn ready<R: AsyncRead + Unpin + Send>(lines: &mut Lines<R>) -> Option<Received> {
        tokio::time::timeout(Duration::ZERO, lines.receive()).await.ok().flatten()
    }

    #[tokio::test]
    async fn no_more_is_read_than_can_be_answered() {
        let input: String = (0..MAX_UNANSWERED + 3).map(request).collect();
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        let mut lines = Lines::new(std::io::Cursor::new(format!("{cancel}\n{input}")), tokio::io::sink());
        for _ in 0..=MAX_UNANSWERED {
            assert!(lines.receive().await.is_some());
        }
        assert!(ready(&mut lines).await.is_none(), "it waits");
        lines.send(answer(0)).await.expect("sent");
        assert!(ready(&mut lines).await.is_some());
        assert!(ready(&mut lines).await.is_none());
        // A question to the person leaves room for another request.
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
        lines.send(serde_json::from_value(question).expect("a question")).await.expect("sent");
        assert!(ready(&mut lines).await.is_some());
    }
}
