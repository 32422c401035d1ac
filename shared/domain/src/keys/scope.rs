//! Scopes, which API keys carry, and roles, which limit the keys that are bound to a user.

use crate::values::field_error::ValueError;
use crate::values::string_enum::string_enum;
use crate::values::suggestions::nearest_first;
use std::collections::BTreeSet;

string_enum! {
    /// A permission of an API key.
    Scope {
        /// List and read assets and their history.
        AssetsRead = "assets:read",
        /// Create, change and delete assets.
        AssetsWrite = "assets:write",
        /// Read process definitions, process instances and movements.
        ProcessesRead = "processes:read",
        /// Define, start, advance and cancel processes.
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
        /// List and read API keys, but never their secrets.
        KeysRead = "keys:read",
        /// Create, rotate and revoke API keys.
        KeysWrite = "keys:write",
        /// Read all events of the tenant.
        EventsRead = "events:read",
        /// List and read webhooks and their deliveries, but never their secrets.
        WebhooksRead = "webhooks:read",
        /// Create, change, delete and test webhooks, and repeat deliveries.
        WebhooksWrite = "webhooks:write",
    }
}

pub type Scopes = BTreeSet<Scope>;

string_enum! {
    /// The role of a user, which limits the scopes of the keys that are bound to the user. Each role allows what the one
    /// before it allows, and more.
    Role {
        /// Reads assets, processes, users, the catalog and settings.
        Viewer = "viewer",
        /// Also runs processes.
        Helpdesk = "helpdesk",
        /// Also changes assets and the catalog.
        Technician = "technician",
        /// Is allowed every scope.
        Admin = "admin",
    }
}

impl Role {
    #[must_use]
    pub fn allows(self, scope: Scope) -> bool {
        use Scope::{AssetsRead, AssetsWrite, CatalogRead, CatalogWrite, EventsRead, KeysRead, KeysWrite};
        use Scope::{
            ProcessesRead, ProcessesWrite, SettingsRead, SettingsWrite, UsersRead, UsersWrite, WebhooksRead, WebhooksWrite,
        };
        let lowest = match scope {
            AssetsRead | ProcessesRead | UsersRead | CatalogRead | SettingsRead => Self::Viewer,
            ProcessesWrite => Self::Helpdesk,
            AssetsWrite | CatalogWrite => Self::Technician,
            UsersWrite | SettingsWrite | KeysRead | KeysWrite | EventsRead | WebhooksRead | WebhooksWrite => Self::Admin,
        };
        self >= lowest
    }
}

/// Comma-separated, as the operator's command line takes it.
///
/// # Errors
///
/// Returns an error that names the scope most like an unknown one, and lists all.
pub fn parse_list(text: &str) -> Result<Scopes, ValueError> {
    text.split(',').map(str::trim).map(|scope| scope.parse().map_err(|error| unknown(scope, &error))).collect()
}

fn unknown(scope: &str, error: &ValueError) -> ValueError {
    let nearest = nearest_first(scope, Scope::ALL.iter().map(|known| known.as_str()));
    let nearest = nearest.first().copied().unwrap_or_default();
    ValueError::new(format!("{scope:?} is not a scope; did you mean {nearest}? Each {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_more_than_the_one_before() {
        let allowed = |role: Role| Scope::ALL.iter().filter(|s| role.allows(**s)).map(|s| s.as_str()).collect::<Vec<_>>();
        assert_eq!(allowed(Role::Viewer), ["assets:read", "processes:read", "users:read", "catalog:read", "settings:read"]);
        assert_eq!(allowed(Role::Helpdesk).len(), 6);
        assert!(allowed(Role::Helpdesk).contains(&"processes:write"));
        assert_eq!(allowed(Role::Technician).len(), 8);
        assert_eq!(allowed(Role::Admin).len(), Scope::ALL.len());
    }

    #[test]
    fn a_list_with_an_unknown_scope_is_refused() {
        assert_eq!(parse_list("assets:read, keys:write").map(|s| s.len()), Ok(2));
        assert!(parse_list("assets:read,").is_err());
        let unknown = parse_list("keys:read,asset:read").unwrap_err().to_string();
        assert!(
            unknown.starts_with("\"asset:read\" is not a scope; did you mean assets:read? Each must be one of "),
            "{unknown}"
        );
    }
}
