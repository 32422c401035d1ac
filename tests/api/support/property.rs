//! Property tests for random input, and comparisons with models.

use super::{case_count, full_tests};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use tokio::runtime::{Builder, Runtime};

const MAX_SHRINK_STEPS: u32 = 200;

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns a runtime with a paused clock, which the faulty table needs.
pub fn paused_runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Checks a property for random inputs; `cases` is the number of inputs in the full run. Prints the smallest failing input.
#[track_caller]
pub fn check<S: Strategy>(runtime: &Runtime, cases: u32, inputs: &S, case: impl AsyncFn(S::Value) -> TestCaseResult) {
    // A case sends many requests, so the daily run has only half the usual number of cases.
    let cases = if full_tests() { cases } else { case_count(cases).div_ceil(2) };
    let max_shrink_iters = MAX_SHRINK_STEPS;
    let config = Config { cases, max_shrink_iters, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(inputs, |input| runtime.block_on(case(input))).unwrap();
}
