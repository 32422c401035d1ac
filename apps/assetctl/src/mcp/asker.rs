//! Who asks: the connection, what its key may do, and the names of people.

use crate::error::{CliError, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_document, post_data};
use crate::lookup::{person_with, text, user_named};
use crate::mcp::answer;
use crate::who;
use jiff::civil::Date;
use serde_json::{Map, Value};

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
