//! Users: people that assets can be assigned to.

use crate::history::event::{is_reserved, pseudonym, pseudonymous_email};
use crate::keys::api_key::Role;
use crate::record::{Kind, Record, Reference, Requirement, Unique, fields, record_change};
use crate::values::field_error::ValueError;
use crate::values::id::{Id, UserId};
use crate::values::text::{Name, check_visible};
use crate::values::time::Timestamp;
use fields::compared::compatible;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// E-mail address as entered. Comparisons ignore case, and width and composition (Unicode's NFKC).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = Email, max_length = 254)]
pub struct Email(String);

/// Maximum length of an address in bytes (RFC 5321 §4.5.3.1.3, without angle brackets).
const MAX_BYTES: usize = 254;

impl Email {
    /// Returns the address as it is compared: normalized and case-folded.
    pub fn folded(&self) -> String {
        compatible(&self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that a user can have this address.
    ///
    /// # Errors
    ///
    /// Returns an error for an address reserved for erased users.
    pub fn check_free(&self) -> Result<(), ValueError> {
        match is_reserved(&self.0) {
            true => Err(ValueError::new("must not be in the domain erased.invalid, which is reserved for erased users")),
            false => Ok(()),
        }
    }
}

impl std::str::FromStr for Email {
    type Err = ValueError;

    /// Parses an address. Checks only the form that all mail systems share, not whether the address exists.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        check_visible(text)?;
        if text.len() > MAX_BYTES {
            return Err(ValueError::new(format!("must have at most {MAX_BYTES} bytes; this has {}", text.len())));
        }
        let fits = !text.chars().any(|c| c.is_control() || c.is_whitespace())
            && text.split_once('@').is_some_and(|(local, domain)| {
                (1..=64).contains(&local.len())
                    && !domain.contains('@')
                    && !domain.is_empty()
                    && domain.split('.').all(|label| !label.is_empty())
            });
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::form("must be an e-mail address"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    /// Unique in the tenant.
    pub email: Email,
    pub display_name: Name,
    /// Limits the scopes of keys bound to the user.
    pub role: Role,
    /// Whether assets can be assigned to the user, and keys bound to the user work.
    pub is_active: bool,
    /// When the user was erased. Since then, the record has no personal data and can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
}

record_change! {
    UserChange of pub User::changed {
        set email: Email,
        set display_name: Name,
        set role: Role,
        set is_active: bool,
    }
}

impl User {
    /// Replaces the personal data with pseudonyms. A user who was already erased keeps the original time.
    #[must_use]
    pub fn erased(&self, at: Timestamp) -> Self {
        Self {
            id: self.id,
            email: Email(pseudonymous_email(self.id)),
            display_name: Name::from_stored(pseudonym(self.id)),
            role: self.role,
            is_active: false,
            erased_at: self.erased_at.or(Some(at)),
        }
    }

    /// Returns a reference to a user, who must be active to be newly assigned or picked.
    pub fn reference(field: &'static str, id: UserId) -> Reference {
        Reference::new(field, Kind::User, id.uuid()).requiring(Requirement::flag("is_active", true))
    }

    pub fn unique_email(folded: String) -> Unique {
        Unique { field: "email", value: folded, reserved_after_deletion: false }
    }
}

impl Record for User {
    const KIND: Kind = Kind::User;
    const PERSONAL_FIELDS: &'static [&'static str] = &["email", "display_name"];
    type Id = UserId;

    fn id(&self) -> UserId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, email, display_name, role, is_active, erased_at } = self;
        fields([
            ("email", json!(email)),
            ("display_name", json!(display_name)),
            ("role", json!(role)),
            ("is_active", json!(is_active)),
            ("erased_at", json!(erased_at)),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_email(self.email.folded())]
    }

    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        Some(vec![Requirement::flag("is_active", self.is_active)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_however_it_is_spelt() {
        let folded = |text: &str| text.parse::<Email>().map(|email| email.folded());
        assert_eq!(folded("Ju\u{308}rgen@example.com"), folded("JÜRGEN@EXAMPLE.COM"));
        assert_eq!(folded("\u{1e9e}@x.de"), folded("ss@x.de"));
        assert_eq!(folded("ａｄａ@Example．com"), folded("ada@example.com"));
        assert_ne!(folded("jurgen@example.com"), folded("jürgen@example.com"));
    }

    #[test]
    fn an_address_has_a_local_part_and_a_domain() {
        for right in ["ada@example.com", "a+b@localhost", " Jürgen.Ö@müller.de "] {
            assert!(right.parse::<Email>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "ada",
            "ad\u{200b}a@example.com",
            "\u{202e}ada@example.com",
            "@example.com",
            "ada@",
            "a@b@c",
            "a b@c.de",
            "a@b..c",
            "a@.c",
            &format!("{}@x.de", "a".repeat(65)),
        ] {
            assert!(wrong.parse::<Email>().is_err(), "{wrong}");
        }
    }
}
