//! Asks the person whether to apply a plan, where the client can: in a session by a request, and without one by an answer that
//! the client completes.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use std::fmt::Display;
use terminal::clean_hidden;

const QUESTION: &str = "apply";

/// A question that is returned makes the client call again with the person's answer. The error says why there is no consent.
pub type Consent = Result<Option<InputRequiredResult>, String>;

/// A client without forms is trusted to confirm each call.
pub async fn ask(effect: &str, request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Consent {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    if elicitation.is_none_or(|modes| modes.form.is_none() && modes.url.is_some()) {
        return Ok(None);
    }
    let requested_schema = ElicitationSchema::builder().optional_bool(QUESTION, true).build()?;
    let message = clean_hidden(&format!("Apply this? {effect}"));
    let question = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    if context.protocol_version().is_none_or(|version| version < ProtocolVersion::V_2026_07_28) {
        return meaning(context.peer.create_elicitation(question).await);
    }
    if let Some(given) = request.input_responses.as_ref().and_then(|responses| responses.get(QUESTION)) {
        return meaning(serde_json::from_value(given.clone()));
    }
    let question = InputRequest::Elicitation(ElicitRequest::new(question));
    Ok(Some(InputRequiredResult::from_input_requests([(QUESTION.to_owned(), question)].into())))
}

fn meaning(result: Result<ElicitResult, impl Display>) -> Consent {
    let answer = result.map_err(|error| format!("the person can't be asked: {error}"))?;
    // Without a form, the acceptance alone counts.
    let is_ticked = matches!(answer.content.unwrap_or_default()[QUESTION], Value::Null | Value::Bool(true));
    if is_ticked && answer.action == ElicitationAction::Accept { Ok(None) } else { Err("the person declined".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_clear_yes_is_consent() {
        let is_given = |answer: Value| matches!(meaning(serde_json::from_value(answer)), Ok(None));
        assert!(is_given(json!({"action": "accept"})));
        assert!(is_given(json!({"action": "accept", "content": {}})));
        assert!(is_given(json!({"action": "accept", "content": {"apply": true}})));
        for unclear in [json!(false), json!("false"), json!("no"), json!(0), json!([])] {
            assert!(!is_given(json!({"action": "accept", "content": {"apply": unclear}})), "{unclear}");
        }
        for action in ["decline", "cancel", "else"] {
            assert!(!is_given(json!({"action": action, "content": {"apply": true}})), "{action}");
        }
    }
}
