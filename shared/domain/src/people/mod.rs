//! What is held about a person who is a user, and what stands in its place once the person is erased (docs/adr/0021-people.md).

mod erase;
mod erased;
mod erasure;
mod obstacle;
mod traces;

pub use erase::Erase;
pub use erased::erased_people;
pub use erasure::Erasure;
pub use obstacle::Obstacle;
pub use traces::{Traces, actor_pointers, lead, personal_fields};

use crate::record::Kind;
use crate::values::id::{Id, UserId};

/// The characters of the user's id that a pseudonym ends with: 47 random bits.
const SUFFIX: usize = 8;

/// What stands in place of an erased person's name, and of texts about the person: `Erased user` and the end of the user's id, so
/// that it stays the same.
#[must_use]
pub fn pseudonym(user: UserId) -> String {
    let id = user.short();
    format!("Erased user {}", &id[id.len() - SUFFIX..])
}

/// No mail reaches it (RFC 2606 §2). Each user has another, since addresses are unique.
#[must_use]
pub fn pseudonymous_email(user: UserId) -> String {
    format!("erased-{}@erased.invalid", user.short())
}

/// What stands in place of the value at the end of this path, such as `email`.
#[must_use]
pub fn replacement(user: UserId, path: &str) -> String {
    if path.contains("email") && !path.contains("step_data") { pseudonymous_email(user) } else { pseudonym(user) }
}

/// The kinds of records that can hold something about a person, besides the name of an entry's actor.
pub const KINDS: [Kind; 6] = [Kind::User, Kind::ApiKey, Kind::Asset, Kind::Instance, Kind::Movement, Kind::Link];
