//! Tenants by their name.

use shared::domain::values::suggestions::nearest_first;
use shared::domain::values::text::{composed, fold};

const MAX_NAMES: usize = 5;
/// Tenants of the same name that an error lists.
const MAX_SAME: usize = 20;

/// Ignores case, spelling of characters and white space around the names.
pub fn is_same(one: &str, other: &str) -> bool {
    let form = |name: &str| fold(&composed(name.trim()));
    form(one) == form(other)
}

/// Without regard to case.
///
/// # Errors
///
/// Returns a text that lists the ids of the tenants with the name or, if there is none, the names that are most like it.
pub fn find<T: Copy + ToString>(name: &str, tenants: &[(T, &str)]) -> Result<T, String> {
    let same: Vec<T> = tenants.iter().filter(|(_, known)| is_same(known, name)).map(|(tenant, _)| *tenant).collect();
    match same.as_slice() {
        [tenant] => Ok(*tenant),
        [] => {
            let nearest = nearest_first(name, tenants.iter().map(|(_, name)| *name));
            let names = nearest.iter().take(MAX_NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let hint = if names.is_empty() { "there are no tenants".to_owned() } else { format!("the nearest: {names}") };
            Err(format!("tenant {name:?} not found; {hint}; `admin tenant list` shows all tenants"))
        }
        several => {
            let ids = several.iter().take(MAX_SAME).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Err(format!("{} tenants are called {name:?}; use one of their ids: {ids}", several.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANTS: [(u32, &str); 5] = [(1, "Acme"), (2, "Beta"), (3, "beta"), (4, "Müller & Söhne"), (5, "Straße")];

    #[test]
    fn names_are_found_without_regard_to_case_and_spelling() {
        for (name, tenant) in [("acme", 1), (" ACME ", 1), ("mu\u{308}ller & so\u{308}hne", 4), ("STRASSE", 5)] {
            assert_eq!(find(name, &TENANTS), Ok(tenant), "{name}");
        }
    }

    #[test]
    fn ambiguous_and_unknown_names_say_what_there_is() {
        assert_eq!(find("BETA", &TENANTS), Err("2 tenants are called \"BETA\"; use one of their ids: 2, 3".into()));
        let unknown = find("acmee", &TENANTS).unwrap_err();
        assert!(unknown.starts_with("tenant \"acmee\" not found; the nearest: \"Acme\", "), "{unknown}");
        assert!(find("x", &[] as &[(u32, &str)]).unwrap_err().contains("there are no tenants"));
    }
}
