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

pub enum Consent {
    /// Or the client can't ask: it then asks the person whether to call the tool.
    Given,
    Refused(String),
    /// The client calls again with the person's answer.
    Asked(InputRequiredResult),
}

pub async fn ask(effect: &str, request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Consent {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    if elicitation.is_none_or(|modes| modes.form.is_none() && modes.url.is_some()) {
        return Consent::Given;
    }
    if let Some(given) = request.input_responses.as_ref().and_then(|responses| responses.get(QUESTION)) {
        return meaning(serde_json::from_value(given.clone()));
    }
    let requested_schema = match ElicitationSchema::builder().optional_bool(QUESTION, true).build() {
        Ok(schema) => schema,
        Err(error) => return Consent::Refused(error.to_owned()),
    };
    let message = clean_hidden(&format!("Apply this? {effect}"));
    let question = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        return Consent::Asked(InputRequiredResult::from_input_requests([(QUESTION.to_owned(), question)].into()));
    }
    meaning(context.peer.create_elicitation(question).await)
}

fn meaning(result: Result<ElicitResult, impl Display>) -> Consent {
    let is_ticked = |content: &Option<Value>| content.as_ref().is_none_or(|content| content[QUESTION] != false);
    match result {
        Ok(result) if result.action == ElicitationAction::Accept && is_ticked(&result.content) => Consent::Given,
        Ok(_) => Consent::Refused("the person declined".into()),
        Err(error) => Consent::Refused(format!("the person can't be asked: {error}")),
    }
}
