//! What stands in place of an erased person's name, and of texts about the person.

use crate::values::id::{Id, UserId};

/// The characters of the user's id that a pseudonym ends with: 47 random bits.
const SUFFIX: usize = 8;

/// `Erased user` and the end of the user's id, so that it stays the same.
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
