//! The scopes that an endpoint needs, as a type.

use crate::domain::keys::scope::Scope;

/// A type in place of scopes: that of one scope, or a tuple.
pub trait RequiredScopes: 'static {
    const SCOPES: &'static [Scope];
}

macro_rules! scopes {
    ($($name:ident)*) => {$(
        pub struct $name;

        impl RequiredScopes for $name {
            const SCOPES: &'static [Scope] = &[Scope::$name];
        }
    )*};
}

scopes! {
    AssetsRead AssetsWrite ProcessesRead ProcessesWrite UsersRead UsersWrite CatalogRead CatalogWrite SettingsRead SettingsWrite
    KeysRead KeysWrite EventsRead WebhooksRead WebhooksWrite
}

/// Every key may, whatever its scopes.
impl RequiredScopes for () {
    const SCOPES: &'static [Scope] = &[];
}

/// Offboarding is a change of a user, of processes and of assets.
impl RequiredScopes for (UsersWrite, ProcessesWrite, AssetsRead) {
    const SCOPES: &'static [Scope] = &[Scope::UsersWrite, Scope::ProcessesWrite, Scope::AssetsRead];
}
