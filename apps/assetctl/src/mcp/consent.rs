//! The person's consent to apply a plan, where the client can ask for it (in a session by a request, without one by an answer
//! that the client completes), and the asker's connection: what its key may do, and people by name.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_document, post_data};
use crate::lookup::{person_with, text, user_named};
use crate::mcp::answer;
use crate::who;
use jiff::civil::Date;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
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

const PAGE: u64 = 20;

pub type Query = Vec<(String, String)>;
pub type Row = fn(&Value) -> Value;

pub struct Asker {
    pub client: Client,
    /// `GET /me`.
    pub me: Value,
}

impl Asker {
    /// The key has a scope.
    pub fn has(&self, scope: &str) -> bool {
        self.me["key"]["scopes"].as_array().is_some_and(|scopes| scopes.iter().any(|own| own == scope))
    }

    pub async fn data(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        get_data(&self.client, path, query).await
    }

    /// A list as far as there is room, from a place on.
    pub async fn list(&self, path: &str, mut query: Query, skip: &Value, name: &str, row: Row) -> Result<Map<String, Value>> {
        let skip = skip.as_u64().unwrap_or_default();
        query.extend([("limit", PAGE), ("page", skip / PAGE + 1)].map(|(name, number)| (name.to_owned(), number.to_string())));
        let query: Vec<_> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (document, _) = get_document(&self.client, path, &query).await?;
        let total = document["meta"]["total"].as_u64().unwrap_or_default();
        let on_page = document["data"].as_array().into_iter().flatten();
        let all: Vec<Value> = on_page.skip(usize::try_from(skip % PAGE).unwrap_or_default()).map(row).collect();
        let has_more = skip + (all.len() as u64) < total;
        let mut data = answer::rows(name, all, has_more, |shown| format!("call again with skip={}", skip + shown as u64));
        data.insert("total".to_owned(), total.into());
        Ok(data)
    }

    /// Sends a request, or its dry run, which has no token.
    pub async fn post(&self, path: &str, body: &Value, token: Option<&str>) -> Result<Value> {
        let dry_run = token.is_none().then_some(("dry_run", "true"));
        post_data(&self.client, &self.client.url(path, dry_run.as_slice())?, body, token).await
    }

    /// As [`user_named`].
    pub async fn person(&self, name: &Value) -> Result<Value> {
        user_named(&self.client, text(name)).await
    }

    /// As [`person_with`]; null for nobody.
    pub async fn name_of(&self, id: &Value) -> Result<Value> {
        let Some(id) = id.as_str() else { return Ok(Value::Null) };
        Ok(person_with(&self.client, id).await?.into())
    }
}

/// The filters of a list that the arguments are. `names`: of the argument, and of the filter.
pub fn filters(arguments: &Value, names: &[(&str, &str)]) -> Query {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    names.iter().filter_map(|(name, filter)| Some(((*filter).to_owned(), value(arguments.get(name)?)))).collect()
}

/// An argument that is a day.
pub fn day(argument: &Value) -> Result<Option<Date>> {
    let read = |text| who::day(text).map_err(|error| CliError::Usage(format!("on {error}")));
    argument.as_str().map(read).transpose()
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
