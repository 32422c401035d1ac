//! Who made a change, and the pseudonyms that replace an erased person's name, address and texts.

use crate::values::id::{ApiKeyId, Id, LinkId, UserId};
use fields::compared::name_key;
use serde::{Deserialize, Serialize};

/// Who made a change, with the names at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Actor {
    /// API key used; null for the operator's command line and for signing links.
    #[schema(required)]
    pub key_id: Option<ApiKeyId>,
    /// Name of the key; `signing link` for a signing link.
    pub key_name: String,
    /// The key's user, or the signer if the signer is a user; null for tenant keys.
    #[schema(required)]
    pub user_id: Option<UserId>,
    /// Display name of that user, or the signer's name.
    #[schema(required)]
    pub user_name: Option<String>,
    /// Signing link used; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = Uuid, required = false)]
    pub link_id: Option<LinkId>,
}

impl Actor {
    #[must_use]
    pub fn operator() -> Self {
        Self { key_id: None, key_name: "operator".into(), user_id: None, user_name: None, link_id: None }
    }

    #[must_use]
    pub fn signer(link: LinkId, name: &str, user: Option<UserId>) -> Self {
        let user_name = Some(name.to_owned());
        Self { key_id: None, key_name: "signing link".into(), user_id: user, user_name, link_id: Some(link) }
    }

    /// JSON Pointers to the personal data within a history entry.
    #[must_use]
    pub fn personal_pointers(&self) -> Vec<String> {
        let user_name = self.user_name.is_some().then_some("/actor/user_name");
        // Keys bound to a user are often named after the user.
        let key_name = (self.user_id.is_some() && self.key_id.is_some()).then_some("/actor/key_name");
        [user_name, key_name].into_iter().flatten().map(str::to_owned).collect()
    }

    /// A copy without personal data, for use outside histories.
    #[must_use]
    pub fn nameless(&self) -> Self {
        let key_name = if self.personal_pointers().is_empty() { self.key_name.clone() } else { "key of a user".to_owned() };
        Self { key_name, user_name: None, ..self.clone() }
    }

    /// The actor that disables failing webhooks.
    #[must_use]
    pub fn webhook_delivery() -> Self {
        Self { key_name: "webhook delivery".into(), ..Self::operator() }
    }
}

/// A pseudonym ends with this many characters of the user's id: 47 random bits.
const SUFFIX: usize = 8;

const PREFIX: &str = "Erased user ";
/// Can't receive mail (RFC 2606 §2).
const DOMAIN: &str = "erased.invalid";

/// `Erased user` and the end of the user's id. Always the same for a user.
#[must_use]
pub fn pseudonym(user: UserId) -> String {
    let id = user.short();
    format!("{PREFIX}{}", &id[id.len() - SUFFIX..])
}

/// Unique per user, as e-mail addresses must be.
#[must_use]
pub fn pseudonymous_email(user: UserId) -> String {
    format!("erased-{}@{DOMAIN}", user.short())
}

/// Whether an address is reserved for pseudonyms: a user with a pseudonymous address would block an erasure. Ignores case, width
/// and the kind of full stop (UTS 46), so look-alikes are reserved, too.
#[must_use]
pub fn is_reserved(email: &str) -> bool {
    let compared = name_key(email).replace('。', ".");
    let domain = compared.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    domain.strip_suffix(DOMAIN).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether a text looks like a pseudonym. Anyone can write one.
#[must_use]
pub fn is_pseudonym(text: &str) -> bool {
    let is_name =
        text.strip_prefix(PREFIX).is_some_and(|end| end.len() == SUFFIX && end.bytes().all(|it| it.is_ascii_alphanumeric()));
    let is_address = || text.strip_suffix(DOMAIN).is_some_and(|local| local.ends_with('@'));
    is_name || (text.starts_with("erased-") && is_address())
}

/// Returns the pseudonym for the value at a path such as `email`.
#[must_use]
pub fn replacement(user: UserId, path: &str) -> String {
    if path.contains("email") && !path.contains("step_data") { pseudonymous_email(user) } else { pseudonym(user) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_actor_with_a_signing_link_names_it() {
        let link = "01890a5d-ac96-774b-bcce-b302099a8057";
        let signer = Actor::signer(link.parse().expect("an id"), "Ada", None);
        for (actor, text) in [
            (Actor::operator(), r#"{"key_id":null,"key_name":"operator","user_id":null,"user_name":null}"#.to_owned()),
            (
                signer,
                format!(r#"{{"key_id":null,"key_name":"signing link","user_id":null,"user_name":"Ada","link_id":"{link}"}}"#),
            ),
        ] {
            assert_eq!(serde_json::to_string(&actor).expect("JSON"), text);
            assert_eq!(serde_json::from_str::<Actor>(&text).expect("an actor"), actor);
        }
    }
}
