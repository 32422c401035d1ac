//! The account's limit of Lambda instances, against what the stack takes.

use super::template::Template;
use super::{Finding, State};
use anyhow::Result;

const SUBJECT: &str = "Lambda instances";
/// The instances of an account that can't be reserved ("Configuring reserved concurrency for a function", Lambda developer
/// guide).
const UNRESERVABLE: u64 = 100;
/// The part of the account's limit that deliveries may take without reservations, as a divisor. Requests share the rest.
const DELIVERIES_PART: u64 = 2;

pub(super) fn check(template: &Template, limit: Option<u64>) -> Result<Finding> {
    let Some(limit) = limit else {
        let command = "aws lambda get-account-settings --query AccountLimit.ConcurrentExecutions";
        return Ok(Finding::new(
            SUBJECT,
            State::Skipped,
            format!("Read the account's limit with `{command}`: --lambda-limit N."),
        ));
    };
    let (needed, reason, alternative) = if template.parameter("ReservedConcurrency")? == 0 {
        let deliveries = template.parameter("DeliveryConcurrency")? + template.parameter("RetryConcurrency")?;
        (
            deliveries * DELIVERIES_PART,
            format!("deliveries to webhooks may take {deliveries} of them, and requests need as many"),
            format!("choose DeliveryConcurrency and RetryConcurrency of together at most {}", limit / DELIVERIES_PART),
        )
    } else {
        let reserved = template.reserved_instances()?;
        (
            reserved + UNRESERVABLE,
            format!("the stack reserves {reserved}, and AWS lets nobody reserve the last {UNRESERVABLE}"),
            "lower ReservedConcurrency and DeliverReservedConcurrency".to_owned(),
        )
    };
    let fine = format!("The account may run {limit} at once; the stack needs {needed}.");
    let lacking = format!(
        "The account may run {limit} at once, but {reason}. Request {needed} in Service Quotas (Lambda, \"Concurrent \
         executions\"), or {alternative}."
    );
    Ok(Finding::of(SUBJECT, limit >= needed, &fine, &lacking))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(limit: u64, parameters: &[(&str, u64)]) -> State {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        check(&Template::embedded(parameters).expect("a template"), Some(limit)).expect("a finding").state
    }

    #[test]
    fn deliveries_take_at_most_half_of_what_is_not_reserved() {
        assert_eq!([state(1_000, &[]), state(150, &[]), state(149, &[])], [State::Fine, State::Fine, State::Problem]);
        let few = [("DeliveryConcurrency", 2), ("RetryConcurrency", 2)];
        assert_eq!([state(10, &few), state(10, &[])], [State::Fine, State::Problem], "a new account");
    }

    #[test]
    fn reservations_leave_what_aws_lets_nobody_reserve() {
        let reserved = [("ReservedConcurrency", 20)];
        assert_eq!([state(356, &reserved), state(355, &reserved)], [State::Fine, State::Problem]);
        let more = [("ReservedConcurrency", 20), ("DeliverReservedConcurrency", 100)];
        assert_eq!([state(381, &more), state(380, &more)], [State::Fine, State::Problem]);
    }
}
