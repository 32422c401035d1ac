//! The keys and roles that a caller can grant: no key stronger than the caller's, no key of a user above the caller's role, and no
//! role above the caller's. Only a caller who counts as an admin can change an admin.

use crate::keys::api_key::{ApiKey, Role, Scope, Scopes};
use crate::user::User;
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
    #[error("The API key has the effective role {own}, so it can't create or rotate a key of a user with the role {of}.")]
    KeyOf { own: Role, of: Role },
    #[error("The API key has the effective role {own}, so it can't change, offboard or delete a user with the role {of}.")]
    Protected { own: Role, of: Role },
}

impl GrantError {
    pub const fn field(self) -> &'static str {
        match self {
            Self::Scope(_) => "scopes",
            Self::RateLimit(_) => "rate_limit_per_minute",
            Self::Expiry(_) => "expires_at",
            Self::Owner(_) | Self::KeyOf { .. } => "user_id",
            Self::Role { .. } | Self::Rank { .. } | Self::Protected { .. } => "role",
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

    /// Checks that a caller with this role can create or rotate a key of a user with the role `of`.
    ///
    /// # Errors
    ///
    /// Returns [`GrantError::KeyOf`] for a role above this one.
    pub fn check_key_of(self, of: Self) -> Result<(), GrantError> {
        if self >= of { Ok(()) } else { Err(GrantError::KeyOf { own: self, of }) }
    }

    /// Checks that a caller with this role can offboard, delete or change a user with the role `of`.
    ///
    /// # Errors
    ///
    /// Returns [`GrantError::Protected`] for an admin, unless this role is `admin`.
    pub fn check_power_over(self, of: Self) -> Result<(), GrantError> {
        if of < Self::Admin || self >= of { Ok(()) } else { Err(GrantError::Protected { own: self, of }) }
    }

    /// Checks that a caller with this role can create the user `next` or, with `old`, change that user to `next`. Keeping a role
    /// is allowed; a reactivation grants the role again.
    ///
    /// # Errors
    ///
    /// Returns [`GrantError::Protected`] for a change to an admin, and [`GrantError::Role`] for a granted role above this one.
    pub fn check_user(self, old: Option<&User>, next: &User) -> Result<(), GrantError> {
        if old == Some(next) {
            return Ok(());
        }
        old.map_or(Ok(()), |old| self.check_power_over(old.role))?;
        let keeps_role = old.is_some_and(|old| old.role == next.role && (old.is_active || !next.is_active));
        if keeps_role || self >= next.role { Ok(()) } else { Err(GrantError::Role { own: self, given: next.role }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::api_key::SecretHash;
    use crate::samples;
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

    fn user(role: Role, is_active: bool) -> User {
        let fields = serde_json::json!({
            "id": samples::user(1), "email": "a@b.c", "display_name": "A", "role": role, "is_active": is_active
        });
        serde_json::from_value(fields).expect("a user")
    }

    #[test]
    fn role_above_the_own_can_be_kept_but_not_given() {
        let technician = user(Role::Technician, true);
        let change = |old: &User, next: &User| Role::Helpdesk.check_user(Some(old), next);
        assert_eq!(Role::Helpdesk.check_user(None, &user(Role::Helpdesk, true)), Ok(()));
        assert_eq!(change(&technician, &user(Role::Viewer, true)), Ok(()));
        assert_eq!(change(&technician, &user(Role::Technician, false)), Ok(()), "deactivated");
        let refused = Err(GrantError::Role { own: Role::Helpdesk, given: Role::Technician });
        assert_eq!(Role::Helpdesk.check_user(None, &technician), refused);
        assert_eq!(change(&user(Role::Viewer, true), &technician), refused);
        assert_eq!(change(&user(Role::Technician, false), &technician), refused, "reactivated");
    }

    #[test]
    fn only_an_admin_changes_an_admin() {
        let admin = user(Role::Admin, true);
        for role in Role::ALL {
            let refused = Err(GrantError::Protected { own: *role, of: Role::Admin });
            let allowed = if *role == Role::Admin { Ok(()) } else { refused };
            assert_eq!(role.check_user(Some(&admin), &admin), Ok(()), "{role}: without a change");
            for next in [user(Role::Viewer, true), user(Role::Admin, false)] {
                assert_eq!(role.check_user(Some(&admin), &next), allowed, "{role}");
            }
            assert_eq!(role.check_power_over(Role::Admin), allowed, "{role}");
            assert_eq!(role.check_power_over(Role::Technician), Ok(()), "{role}");
        }
    }

    #[test]
    fn key_of_a_user_needs_at_least_the_role_of_the_user() {
        for (own, of) in Role::ALL.iter().flat_map(|own| Role::ALL.iter().map(move |of| (*own, *of))) {
            assert_eq!(own.check_key_of(of).is_ok(), own >= of, "{own}, {of}");
        }
    }
}
