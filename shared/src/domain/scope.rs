//! What a key may do (interface 5, contract 3).

use super::field_error::ValueError;
use std::collections::BTreeSet;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $word:tt,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub enum $name {$(
            $(#[$vdoc])*
            #[serde(rename = $word)]
            $variant,
        )*}

        impl $name {
            /// Every value, in the order of the interface.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that the interface uses.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::domain::field_error::ValueError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text).ok_or_else(|| {
                    $crate::domain::field_error::ValueError::new(concat!("must be one of ", $what))
                })
            }
        }
    };
}
pub(crate) use words;

words! {
    /// One permission of a key.
    Scope, "the scopes assets, processes, users, catalog, settings, keys, each with :read or :write, and events:read", {
        /// List and read assets and their history.
        AssetsRead = "assets:read",
        /// Create, change and delete assets.
        AssetsWrite = "assets:write",
        /// Read definitions and instances.
        ProcessesRead = "processes:read",
        /// Start, advance and define processes.
        ProcessesWrite = "processes:write",
        /// List and read users.
        UsersRead = "users:read",
        /// Create, change and delete users.
        UsersWrite = "users:write",
        /// Read asset types, manufacturers and models.
        CatalogRead = "catalog:read",
        /// Change asset types, manufacturers and models.
        CatalogWrite = "catalog:write",
        /// Read the tenant's settings.
        SettingsRead = "settings:read",
        /// Change the tenant's settings.
        SettingsWrite = "settings:write",
        /// List and read API keys (never their secrets).
        KeysRead = "keys:read",
        /// Create, rotate and revoke API keys.
        KeysWrite = "keys:write",
        /// Read every change of the tenant.
        EventsRead = "events:read",
    }
}

/// A set of permissions.
pub type Scopes = BTreeSet<Scope>;

words! {
    /// What a user of the tenant may do at most, through a key bound to the user.
    Role, "viewer, helpdesk, technician, admin", {
        /// Reads everything but keys.
        Viewer = "viewer",
        /// A viewer who runs processes.
        Helpdesk = "helpdesk",
        /// A helpdesk who changes assets and the catalog.
        Technician = "technician",
        /// Everything.
        Admin = "admin",
    }
}

impl Role {
    /// Whether this role allows `scope` (contract 3, "Roles").
    #[must_use]
    pub fn allows(self, scope: Scope) -> bool {
        use Scope::{AssetsRead, AssetsWrite, CatalogRead, CatalogWrite, EventsRead, KeysRead, KeysWrite};
        use Scope::{ProcessesRead, ProcessesWrite, SettingsRead, SettingsWrite, UsersRead, UsersWrite};
        let least = match scope {
            AssetsRead | ProcessesRead | UsersRead | CatalogRead | SettingsRead => Self::Viewer,
            ProcessesWrite => Self::Helpdesk,
            AssetsWrite | CatalogWrite => Self::Technician,
            UsersWrite | SettingsWrite | KeysRead | KeysWrite | EventsRead => Self::Admin,
        };
        self >= least
    }
}

/// Reads scopes separated by commas, as the operator's command line takes them.
///
/// # Errors
///
/// Names the list of scopes when one is unknown.
pub fn parse_list(text: &str) -> Result<Scopes, ValueError> {
    text.split(',').map(|scope| scope.trim().parse()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_grow_by_what_the_contract_says() {
        let allowed = |role: Role| Scope::ALL.iter().filter(|s| role.allows(**s)).map(|s| s.as_str()).collect::<Vec<_>>();
        assert_eq!(allowed(Role::Viewer), ["assets:read", "processes:read", "users:read", "catalog:read", "settings:read"]);
        assert_eq!(allowed(Role::Helpdesk).len(), 6);
        assert!(allowed(Role::Helpdesk).contains(&"processes:write"));
        assert_eq!(allowed(Role::Technician).len(), 8);
        assert_eq!(allowed(Role::Admin).len(), Scope::ALL.len());
    }

    #[test]
    fn a_list_of_scopes_is_read_whole_or_not_at_all() {
        assert_eq!(parse_list("assets:read, keys:write").map(|s| s.len()), Ok(2));
        assert!(parse_list("assets:read,").is_err());
        assert!(parse_list("assets").is_err());
    }
}
