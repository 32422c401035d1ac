//! The meaning of a response's status for the request.

use crate::error::CliError;
use crate::http::client::Reply;
use serde::Deserialize;
use std::time::Duration;

#[derive(Debug)]
pub enum Answer {
    /// The body is the requested one.
    Done(Reply),
    /// Send the request again later.
    Busy(Busy),
    /// Repeating doesn't help.
    Refused(CliError),
}

/// The reason for sending a request again later.
#[derive(Debug, Default)]
pub struct Busy {
    pub retry_after: Option<Duration>,
    /// A fault of the service, which may not pass.
    pub is_fault: bool,
    /// Nobody answered. The address may be wrong.
    pub is_away: bool,
    /// The request may have taken effect nevertheless.
    pub may_have_effect: bool,
    /// The error if it doesn't pass.
    pub detail: String,
}

/// A problem document (RFC 9457).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    detail: String,
    code: String,
    request_id: String,
    errors: Vec<ProblemError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProblemError {
    detail: String,
    column: Option<String>,
    parameter: Option<String>,
    header: Option<String>,
    pointer: Option<String>,
}

#[must_use]
pub fn interpret(reply: Reply) -> Answer {
    let problem: Problem = serde_json::from_slice(&reply.body).unwrap_or_default();
    let (status, retry_after, detail) = (reply.status, reply.retry_after, describe(&reply, &problem));
    let busy = |is_fault, detail| {
        Answer::Busy(Busy { retry_after, is_fault, may_have_effect: status != 429, detail, ..Busy::default() })
    };
    match status {
        _ if reply.is_too_long => {
            Answer::Refused(CliError::Failed(detail + " with more than 6 MB, which the API never does; check --base-url"))
        }
        200..=299 => Answer::Done(reply),
        408 | 429 | 502..=504 => busy(false, detail),
        409 if problem.code == "REQUEST_IN_PROGRESS" => busy(false, detail),
        500 => busy(true, detail),
        _ => Answer::Refused(CliError::Answered { status, code: problem.code, detail }),
    }
}

/// Without line breaks, so that no part of it can pretend to be a line of this program.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn describe(reply: &Reply, problem: &Problem) -> String {
    let mut text = format!("the service answered {}", reply.status);
    for part in [&problem.code, &problem.detail].into_iter().filter(|part| !part.is_empty()) {
        text.push_str(if text.ends_with(&problem.code) && !problem.code.is_empty() { ": " } else { " " });
        text.push_str(&one_line(part));
    }
    for error in problem.errors.iter().take(20) {
        let place =
            error.column.as_deref().or(error.parameter.as_deref()).or(error.header.as_deref()).or(error.pointer.as_deref());
        text.push_str(&format!("\n  {}: {}", one_line(place.unwrap_or("request")), one_line(&error.detail)));
    }
    if !problem.request_id.is_empty() && reply.status >= 500 {
        text.push_str(&format!(" (request {})", one_line(&problem.request_id)));
    }
    let hint = match reply.status {
        300..=399 => {
            format!("\nSet --base-url to where it redirects: {}", one_line(reply.location.as_deref().unwrap_or("unknown")))
        }
        401 => "\nCheck the key in ASSETCTL_API_KEY or in the file that ASSETCTL_API_KEY_FILE names.".into(),
        403 => "\nUse a key with the scope that is named.".into(),
        404 | 405 if problem.code.is_empty() => "\nCheck --base-url: it ends in /v1.".into(),
        _ => String::new(),
    };
    text + &hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() }
    }

    #[test]
    fn what_passes_is_repeated() {
        for (status, body) in [(429, ""), (503, "{}"), (502, "<html>"), (409, r#"{"code": "REQUEST_IN_PROGRESS"}"#)] {
            let Answer::Busy(busy) = interpret(reply(status, body)) else { panic!("{status}") };
            assert_eq!((busy.is_fault, busy.may_have_effect), (false, status != 429), "{status}");
        }
        assert!(matches!(interpret(reply(500, "")), Answer::Busy(Busy { is_fault: true, .. })));
        assert!(matches!(interpret(reply(200, "{}")), Answer::Done(_)));
    }

    #[test]
    fn what_does_not_pass_says_what_to_do() {
        let body =
            r#"{"code": "VALIDATION_ERROR", "detail": "2\nerrors.", "errors": [{"column": "RAM", "detail": "unknown column"}]}"#;
        let refused = |status, body| match interpret(reply(status, body)) {
            Answer::Refused(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(422, body), "the service answered 422 VALIDATION_ERROR: 2 errors.\n  RAM: unknown column");
        assert!(refused(401, "").contains("ASSETCTL_API_KEY"));
        assert!(refused(404, "").contains("--base-url"));
        assert!(refused(308, "").contains("redirects"));
        assert!(refused(409, "{}").contains("409"));
    }
}
