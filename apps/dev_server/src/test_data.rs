//! Sample data for several test programs, and the selection of cases for exhaustive tests: a sample that changes daily, or all
//! cases in the full run.

use fastrand::Rng;
use shared::domain::keys::api_key::{BearerToken, Credential, Secret};
use shared::domain::values::id::{ApiKeyId, Id, LinkId, TenantId};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Returns a well-formed API key that the tenant never created.
#[must_use]
pub fn made_up_key(tenant: TenantId) -> String {
    made_up::<ApiKeyId>(tenant)
}

/// Returns a well-formed secret of a signing link that the tenant never created.
#[must_use]
pub fn made_up_link(tenant: TenantId) -> String {
    made_up::<LinkId>(tenant)
}

fn made_up<C: Credential>(tenant: TenantId) -> String {
    BearerToken::new(tenant, C::from_uuid(Uuid::from_bytes([5; 16])), Secret::new([1; 32])).expose()
}

#[must_use]
pub fn unknown_tenant() -> TenantId {
    TenantId::from_uuid(Uuid::from_bytes([5; 16]))
}

/// Environment variable with a seed, which repeats an earlier sample.
const SEED: &str = "TEST_SEED";

/// Whether `FULL_TESTS=1` requests every case.
#[must_use]
pub fn full_tests() -> bool {
    std::env::var("FULL_TESTS").is_ok_and(|value| value == "1")
}

/// Returns a source of random choices for a call site. Prints the seed, which is shown if the test fails.
#[must_use]
#[track_caller]
#[expect(clippy::print_stdout, reason = "only tests call it")]
pub fn random() -> Rng {
    println!("{SEED}={} repeats this sample, FULL_TESTS=1 takes every case", seed());
    random_for(Location::caller())
}

/// Returns a source of random choices, different for each test or call site.
pub fn random_for(what: impl Hash) -> Rng {
    let mut hasher = DefaultHasher::new();
    (seed(), what).hash(&mut hasher);
    Rng::with_seed(hasher.finish())
}

/// Returns the value of `TEST_SEED`, or the day.
#[expect(clippy::disallowed_methods, reason = "the day is the seed; the tests' own clock stands still")]
#[expect(clippy::panic, reason = "only tests call it")]
fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED} must be a number, not {seed:?}")),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400),
    }
}

/// Returns a sample in the order of the cases, or all cases in the full run.
#[must_use]
#[track_caller]
pub fn sample<T>(cases: impl IntoIterator<Item = T>, count: usize) -> Vec<T> {
    let cases: Vec<T> = cases.into_iter().collect();
    if full_tests() || cases.len() <= count {
        return cases;
    }
    let mut chosen = random().choose_multiple(cases.into_iter().enumerate(), count);
    chosen.sort_unstable_by_key(|(place, _)| *place);
    chosen.into_iter().map(|(_, case)| case).collect()
}

/// Returns the number of cases for a test with random input: `full` in the full run, otherwise a sixteenth.
#[must_use]
pub fn case_count(full: u32) -> u32 {
    if full_tests() { full } else { full.div_ceil(16) }
}

/// A pattern that compares each text of [`text_with_many_states`] in as many states as the text has characters.
pub const PATTERN_WITH_MANY_STATES: &str = "[ab]*a[ab]{900}";

/// Returns a text of random letters a and b.
#[must_use]
pub fn text_with_many_states(seed: u64, length: usize) -> String {
    let mut random = Rng::with_seed(seed);
    std::iter::repeat_with(|| if random.bool() { 'a' } else { 'b' }).take(length).collect()
}
