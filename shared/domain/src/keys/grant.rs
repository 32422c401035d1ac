//! The keys and roles that a caller can grant: no key stronger than the caller's, and no role above the caller's.

use crate::keys::api_key::{ApiKey, Role, Scope, Scopes};
use crate::values::id::UserId;
use crate::values::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRights<'a> {
    pub scopes: &'a Scopes,
    pub rate_limit_per_minute: u32,
    pub expires_at: Option<Timestamp>,
    /// The user whose deactivation disables the key; `None` for tenant keys.
    pub user_id: Option<UserId>,
}

/// Why a caller can't grant a key or a role. The error texts are shown to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("The API key lacks the scope {0}.")]
    Scope(Scope),
    #[error("The API key is limited to {0} requests per minute, so it can't grant a higher limit.")]
    RateLimit(u32),
    #[error("The API key expires at {0}, so it can't grant a later expiry.")]
    Expiry(Timestamp),
    #[error("The API key is bound to the user {0}, so it can only create or rotate keys bound to that user.")]
    Owner(UserId),
    #[error("The API key has the effective role {own}, so it can't grant the role {given}.")]
    Role { own: Role, given: Role },
    #[error("The API key has the effective role {own}. This request requires {needed} or a higher role.")]
    Rank { own: Role, needed: Role },
}

impl GrantError {
    pub const fn field(self) -> &'static str {
        match self {
            Self::Scope(_) => "scopes",
            Self::RateLimit(_) => "rate_limit_per_minute",
            Self::Expiry(_) => "expires_at",
            Self::Owner(_) => "user_id",
            Self::Role { .. } | Self::Rank { .. } => "role",
        }
    }
}

impl KeyRights<'_> {
    /// Checks that a granted key isn't stronger than this one in any respect.
    ///
    /// # Errors
    ///
    /// Returns a [`GrantError`] for the first right that exceeds the caller's.
    pub fn check_grant(&self, other: &KeyRights<'_>) -> Result<(), GrantError> {
        if let Some(scope) = other.scopes.difference(self.scopes).next() {
            return Err(GrantError::Scope(*scope));
        }
        if other.rate_limit_per_minute > self.rate_limit_per_minute {
            return Err(GrantError::RateLimit(self.rate_limit_per_minute));
        }
        match self.expires_at {
            Some(end) if other.expires_at.is_none_or(|other| other > end) => return Err(GrantError::Expiry(end)),
            _ => {}
        }
        match self.user_id {
            Some(user) if other.user_id != Some(user) => Err(GrantError::Owner(user)),
            _ => Ok(()),
        }
    }
}

impl ApiKey {
    /// Returns the rights that the key can grant. `scopes` are the key's scopes, or a subset of them.
    pub fn rights<'a>(&self, scopes: &'a Scopes) -> KeyRights<'a> {
        let Self { rate_limit_per_minute, expires_at, user_id, .. } = *self;
        KeyRights { scopes, rate_limit_per_minute, expires_at, user_id }
    }

    /// Returns the key's effective role: its owner's or, for a tenant key, the highest role whose scopes it has.
    pub fn role(&self, owner: Option<Role>) -> Role {
        let has_all =
            |role: &&Role| Scope::ALL.iter().filter(|scope| role.allows(**scope)).all(|scope| self.scopes.contains(scope));
        owner.or_else(|| Role::ALL.iter().rev().find(has_all).copied()).unwrap_or(Role::Viewer)
    }
}

impl Role {
    /// Checks that the caller has at least this role.
    ///
    /// # Errors
    ///
    /// Returns [`GrantError::Rank`] for a role below `needed`.
    pub fn check_rank(self, needed: Self) -> Result<(), GrantError> {
        if self >= needed { Ok(()) } else { Err(GrantError::Rank { own: self, needed }) }
    }

    /// Checks that a caller with this role can give a user the role `given`. The `current` role can always be kept.
    ///
    /// # Errors
    ///
    /// Returns [`GrantError::Role`] for a role above this one.
    pub fn check_grant(self, current: Option<Self>, given: Self) -> Result<(), GrantError> {
        if given > self && current != Some(given) { Err(GrantError::Role { own: self, given }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::api_key::SecretHash;
    use crate::values::id::{ApiKeyId, Id};

    fn key(scopes: &[Scope]) -> ApiKey {
        let id = ApiKeyId::new(Timestamp::from_millis(0), [0; 10]);
        ApiKey::new(id, "k".parse().expect("a name"), scopes.iter().copied().collect(), SecretHash("h".into()), 10)
    }

    #[test]
    fn a_key_of_the_tenant_counts_as_the_highest_role_whose_scopes_it_has() {
        let of = |role: Role| Scope::ALL.iter().copied().filter(|scope| role.allows(*scope)).collect::<Vec<_>>();
        for role in Role::ALL {
            assert_eq!(key(&of(*role)).role(None), *role);
            assert_eq!(key(&[]).role(Some(*role)), *role, "a bound key");
        }
        assert_eq!(key(&[Scope::UsersWrite]).role(None), Role::Viewer);
        let all_but_one: Vec<Scope> = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::EventsRead).collect();
        assert_eq!(key(&all_but_one).role(None), Role::Technician);
    }

    #[test]
    fn a_role_above_the_own_can_be_kept_but_not_given() {
        assert_eq!(Role::Helpdesk.check_grant(None, Role::Helpdesk), Ok(()));
        assert_eq!(Role::Helpdesk.check_grant(Some(Role::Admin), Role::Viewer), Ok(()));
        assert_eq!(Role::Helpdesk.check_grant(Some(Role::Admin), Role::Admin), Ok(()));
        let error = Err(GrantError::Role { own: Role::Helpdesk, given: Role::Technician });
        assert_eq!(Role::Helpdesk.check_grant(None, Role::Technician), error);
        assert_eq!(Role::Helpdesk.check_grant(Some(Role::Admin), Role::Technician), error);
    }
}
