//! The memory budget of list indexes.

/// Sets the budget, in bytes. With 0, every list reads the records themselves, if there are few.
const BUDGET: &str = "LIST_INDEX_BYTES";
/// Lambda sets this variable to a function's memory in MB ("Using Lambda environment variables" in the AWS guide).
const FUNCTION_MEMORY: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
/// List indexes get one third of a function's memory. Loading needs as much again for a while, and the rest is for
/// everything else.
const SHARE: usize = 3;
/// The budget if neither variable is set.
const DEFAULT: usize = 256 * 1024 * 1024;

/// In bytes.
pub fn from_env() -> usize {
    let variable = |name: &str| std::env::var(name).ok();
    budget(variable(BUDGET).as_deref(), variable(FUNCTION_MEMORY).as_deref())
}

fn budget(bytes: Option<&str>, function_megabytes: Option<&str>) -> usize {
    let share = || Some(function_megabytes?.parse::<usize>().ok()?.saturating_mul(1024 * 1024) / SHARE);
    bytes.and_then(|bytes| bytes.parse().ok()).or_else(share).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_third_of_the_function_unless_it_is_set() {
        assert_eq!(budget(None, Some("300")), 100 * 1024 * 1024);
        assert_eq!(budget(Some("12345"), Some("300")), 12345);
        assert_eq!(budget(Some("much"), None), DEFAULT);
    }
}
