//! What stands in place of an erased person's name, and of texts about the person.

use crate::values::id::{Id, UserId};
use fields::compared::name_key;

/// The characters of the user's id that a pseudonym ends with: 47 random bits.
const SUFFIX: usize = 8;

const PREFIX: &str = "Erased user ";
/// No mail reaches it (RFC 2606 §2).
const DOMAIN: &str = "erased.invalid";

/// `Erased user` and the end of the user's id, so that it stays the same.
#[must_use]
pub fn pseudonym(user: UserId) -> String {
    let id = user.short();
    format!("{PREFIX}{}", &id[id.len() - SUFFIX..])
}

/// Each user has another, since addresses are unique.
#[must_use]
pub fn pseudonymous_email(user: UserId) -> String {
    format!("erased-{}@{DOMAIN}", user.short())
}

/// Nobody else can take such an address, which would be in the way of an erasure, or one that looks like it. Case, width and the
/// kind of full stop make no difference (UTS 46).
#[must_use]
pub fn is_reserved(email: &str) -> bool {
    let compared = name_key(email).replace('。', ".");
    let domain = compared.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    domain.strip_suffix(DOMAIN).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether a text looks like the pseudonym of somebody. Anybody can write one.
#[must_use]
pub fn is_pseudonym(text: &str) -> bool {
    let is_name =
        text.strip_prefix(PREFIX).is_some_and(|end| end.len() == SUFFIX && end.bytes().all(|it| it.is_ascii_alphanumeric()));
    let is_address = || text.strip_suffix(DOMAIN).is_some_and(|local| local.ends_with('@'));
    is_name || (text.starts_with("erased-") && is_address())
}

/// What stands in place of the value at the end of this path, such as `email`.
#[must_use]
pub fn replacement(user: UserId, path: &str) -> String {
    if path.contains("email") && !path.contains("step_data") { pseudonymous_email(user) } else { pseudonym(user) }
}
