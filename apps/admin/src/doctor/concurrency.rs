//! Compares the account's limit on Lambda instances with the number that the stack needs.

use super::{Finding, State};
use anyhow::{Context, Result, bail};
use yaml_serde::Value;

const SUBJECT: &str = "Lambda instances";
/// Number of instances that AWS keeps unreserved in every account ("Configuring reserved concurrency for a function", Lambda
/// developer guide).
const UNRESERVABLE: u64 = 100;
/// Divisor of the account's limit: without reservations, deliveries can take half of the limit, and requests share the rest.
const DELIVERIES_PART: u64 = 2;

/// Compares the account's `limit` with the instances that the stack needs. `parameters` are the stack's parameters that differ
/// from the template's defaults.
pub(super) fn check(parameters: Vec<(String, u64)>, limit: Option<u64>) -> Result<Finding> {
    let template = Template::embedded(parameters)?;
    let Some(limit) = limit else {
        let command = "aws lambda get-account-settings --query AccountLimit.ConcurrentExecutions";
        return Ok(Finding::new(
            SUBJECT,
            State::Skipped,
            format!("Get the account's limit with `{command}`, and pass it with --lambda-limit N."),
        ));
    };
    let (needed, reason, alternative) = if template.parameter("ReservedConcurrency")? == 0 {
        let deliveries = template.parameter("DeliveryConcurrency")? + template.parameter("RetryConcurrency")?;
        (
            deliveries * DELIVERIES_PART,
            format!("deliveries to webhooks can use {deliveries}, and requests need as many"),
            format!("set DeliveryConcurrency and RetryConcurrency to at most {} in total", limit / DELIVERIES_PART),
        )
    } else {
        let reserved = template.reserved_instances()?;
        (
            reserved + UNRESERVABLE,
            format!("the stack reserves {reserved}, and AWS keeps {UNRESERVABLE} unreserved"),
            "lower ReservedConcurrency and DeliverReservedConcurrency".to_owned(),
        )
    };
    let fine = format!("The account can run {limit} at once; the stack needs {needed}.");
    let lacking = format!(
        "The account can run {limit} at once, but {reason}. Request {needed} in Service Quotas (Lambda, \"Concurrent \
         executions\"), or {alternative}."
    );
    Ok(Finding::of(SUBJECT, limit >= needed, &fine, &lacking))
}

const TEMPLATE: &str = include_str!("../../../../template.yaml");

struct Template {
    root: Value,
    parameters: Vec<(String, u64)>,
}

impl Template {
    fn embedded(parameters: Vec<(String, u64)>) -> Result<Self> {
        let root = yaml_serde::from_str(TEMPLATE).context("can't parse the template")?;
        let template = Self { root, parameters };
        for (name, _) in &template.parameters {
            template.default(name)?;
        }
        Ok(template)
    }

    fn member(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.root, |value, name| value.get(*name))
    }

    fn default(&self, name: &str) -> Result<u64> {
        match self.member(&["Parameters", name, "Default"]).and_then(Value::as_u64) {
            Some(default) => Ok(default),
            None => bail!("the template has no numeric parameter {name}"),
        }
    }

    fn parameter(&self, name: &str) -> Result<u64> {
        let given = self.parameters.iter().rev().find(|(given, _)| given == name);
        given.map_or_else(|| self.default(name), |(_, value)| Ok(*value))
    }

    /// Returns the number of instances that all functions together reserve if `ReservedConcurrency` isn't 0.
    fn reserved_instances(&self) -> Result<u64> {
        let resources = self.member(&["Resources"]).and_then(Value::as_mapping).context("the template has no resources")?;
        let common = self.member(&["Globals", "Function", "ReservedConcurrentExecutions"]);
        let is_function = |resource: &&Value| resource.get("Type").and_then(Value::as_str) == Some("AWS::Serverless::Function");
        let reserved = resources.values().filter(is_function).map(|function| {
            let own = function.get("Properties").and_then(|properties| properties.get("ReservedConcurrentExecutions"));
            self.number(own.or(common).context("a function reserves nothing")?)
        });
        reserved.sum()
    }

    /// Evaluates a number, a reference to a parameter, or the first branch of a condition.
    fn number(&self, value: &Value) -> Result<u64> {
        match value {
            Value::Tagged(tagged) => match &tagged.value {
                Value::Sequence(branches) => self.number(branches.get(1).context("a condition has no branches")?),
                Value::String(parameter) => self.parameter(parameter),
                _ => bail!("a number has an unknown form"),
            },
            value => value.as_u64().context("not a number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(limit: u64, parameters: &[(&str, u64)]) -> State {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        check(parameters, Some(limit)).expect("a finding").state
    }

    #[test]
    fn deliveries_take_at_most_half_of_what_is_not_reserved() {
        let many = [("DeliveryConcurrency", 50), ("RetryConcurrency", 25)];
        assert_eq!([state(1_000, &many), state(150, &many), state(149, &many)], [State::Fine, State::Fine, State::Problem]);
        assert_eq!([state(10, &[]), state(10, &many)], [State::Fine, State::Problem], "a new account");
    }

    #[test]
    fn a_parameter_must_be_a_number_of_the_template() {
        assert!(check(vec![("Stage".to_owned(), 1)], Some(1_000)).is_err());
    }

    #[test]
    fn reservations_leave_what_aws_lets_nobody_reserve() {
        let reserved = [("ReservedConcurrency", 20)];
        assert_eq!([state(285, &reserved), state(284, &reserved)], [State::Fine, State::Problem]);
        let more = [("ReservedConcurrency", 20), ("DeliverReservedConcurrency", 100)];
        assert_eq!([state(381, &more), state(380, &more)], [State::Fine, State::Problem]);
    }
}
