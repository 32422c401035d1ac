//! How much memory directories may take.

/// The variable that says so, in bytes.
const BYTES: &str = "LIST_INDEX_BYTES";
/// Lambda says here how many megabytes a function has ("Using Lambda environment variables" in the AWS guide).
const FUNCTION_MEGABYTES: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
/// The share of a function's memory: loading takes as much again for a while, and the rest is the program's.
const SHARE: usize = 3;
/// Where nothing says how much there is.
const ELSEWHERE: usize = 256 * 1024 * 1024;

/// By the environment.
pub fn from_env() -> usize {
    let number = |name: &str| std::env::var(name).ok();
    budget(number(BYTES).as_deref(), number(FUNCTION_MEGABYTES).as_deref())
}

fn budget(bytes: Option<&str>, megabytes: Option<&str>) -> usize {
    let share = || Some(megabytes?.parse::<usize>().ok()?.saturating_mul(1024 * 1024) / SHARE);
    bytes.and_then(|bytes| bytes.parse().ok()).or_else(share).unwrap_or(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_function_unless_said_otherwise() {
        assert_eq!(budget(None, Some("300")), 100 * 1024 * 1024);
        assert_eq!(budget(Some("12345"), Some("300")), 12345);
        assert_eq!(budget(Some("much"), None), ELSEWHERE);
    }
}
