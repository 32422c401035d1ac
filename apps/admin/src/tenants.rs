//! Finds tenants by ID or name, and creates, lists, limits and upgrades them.

use crate::output::{Field, Output, cell};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use shared::domain::keys::api_key::DEFAULT_RATE_LIMIT;
use shared::domain::processes::process::SYSTEM_PROCESSES;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::Email;
use shared::domain::values::field_error::nearest_first;
use shared::domain::values::id::TenantId;
use shared::domain::values::text::{Name, composed, fold, single_spaced};
use shared::store::{DryRun, Reader, RegisteredTenant, Store, StoreError, Writer};
use terminal::Column;

/// Returns the ID of the tenant with this ID or name. Doesn't check whether a tenant has the ID.
pub async fn id_of(store: &Store, tenant: &str) -> Result<TenantId> {
    if let Ok(id) = tenant.parse() {
        return Ok(id);
    }
    let tenants = store.tenants().await?;
    let named = tenants.iter().filter_map(|tenant| Some((tenant.id, &*tenant.record.as_ref()?.value.name)));
    find(tenant, &named.collect::<Vec<_>>()).map_err(anyhow::Error::msg)
}

/// Returns the store of the tenant with this ID or name.
///
/// # Errors
///
/// Returns an error if the tenant doesn't exist or is being deleted.
pub async fn existing(store: &Store, tenant: &str) -> Result<Reader> {
    let store = store.reader(id_of(store, tenant).await?);
    refuse_deletion(&store).await?;
    match store.get::<Tenant>(store.id()).await {
        // A tenant whose record is damaged must be repairable.
        Ok(Some(_)) | Err(StoreError::Unreadable(_)) => Ok(store),
        Err(error) => Err(error.into()),
        Ok(None) => bail!("tenant {} not found; `admin tenant list` shows all tenants", store.id()),
    }
}

/// Returns the tenant's store, which writes nothing in a dry run.
pub async fn writable(store: &Store, tenant: &str, is_dry_run: bool) -> Result<Writer> {
    let store = store.writer(existing(store, tenant).await?.id());
    Ok(if is_dry_run { store.in_dry_run(DryRun::default()) } else { store })
}

/// Fails if the tenant is being deleted: its remains must not be repaired or extended.
pub async fn refuse_deletion(store: &Reader) -> Result<()> {
    match store.deletion_began().await? {
        Some(_) => bail!("tenant {0} is being deleted; finish that with `admin tenant delete {0}`", store.id()),
        None => Ok(()),
    }
}

/// In a dry run, sets the `assigned` members to null: only the real command assigns them.
pub fn mark_dry_run(mut value: Value, is_dry_run: bool, assigned: &[&str]) -> Value {
    if is_dry_run {
        assigned.iter().for_each(|name| value[*name] = Value::Null);
        value["dry_run"] = true.into();
    }
    value
}

/// Fails if a tenant has this name. Two concurrent creations can still use the same name, which is harmless: nothing requires
/// unique names.
pub async fn refuse_same_name(store: &Store, name: &str) -> Result<()> {
    let tenants = store.tenants().await?;
    let same = |tenant: &&RegisteredTenant| tenant.record.as_ref().is_some_and(|it| is_same(&it.value.name, name));
    match tenants.iter().filter(|tenant| tenant.deletion_began.is_none()).find(same) {
        Some(RegisteredTenant { id, .. }) => bail!("tenant {id} has this name; use --allow-same-name to create another tenant"),
        None => Ok(()),
    }
}

pub async fn create(store: &Store, name: Name, admin_email: Option<Email>, is_dry_run: bool) -> Result<Output> {
    if is_dry_run {
        let processes: Vec<_> = SYSTEM_PROCESSES.iter().map(|process| process.slug().as_str().to_owned()).collect();
        let value = json!({
            "tenant_id": null, "key_id": null, "api_key": null, "user_id": null, "name": name, "admin_email": admin_email,
            "processes": processes, "dry_run": true
        });
        return Ok(value.into());
    }
    let created = store.create_tenant(name, admin_email, DEFAULT_RATE_LIMIT).await?;
    let (tenant_id, key_id, user_id) = (created.tenant_id, created.key_id, created.user_id);
    let value = json!({"tenant_id": tenant_id, "key_id": key_id, "api_key": created.api_key.expose(), "user_id": user_id});
    Ok(value.into())
}

const LISTED: &[Field] = &[
    (Column::new("ID"), |row| cell(&row["tenant_id"])),
    (Column::text("NAME"), name),
    (Column::new("LIMIT"), |row| cell(&row["requests_per_minute"])),
    (Column::new("CREATED (UTC)"), |row| cell(&row["created_at"])),
];

fn name(row: &Value) -> String {
    let name = row["name"].as_str().unwrap_or("(can't be read)");
    if row["deletion_began"].is_null() { name.to_owned() } else { format!("{name} (being deleted)") }
}

pub async fn list(store: &Store) -> Result<Output> {
    let mut rows = Vec::new();
    for RegisteredTenant { id, record, deletion_began } in store.tenants().await? {
        let name = record.as_ref().map(|record| &record.value.name);
        let created_at = record.as_ref().map(|record| record.created_at);
        let limit = store.reader(id).ceiling().await?;
        rows.push(json!({
            "tenant_id": id, "name": name, "requests_per_minute": limit, "created_at": created_at,
            "deletion_began": deletion_began
        }));
    }
    Ok(Output::table(rows, LISTED, "There are no tenants."))
}

pub async fn limit(store: &Writer, per_minute: Option<u32>) -> Result<Output> {
    let before = store.ceiling().await?;
    if !store.is_dry_run() {
        store.set_ceiling(per_minute).await?;
    }
    let value = json!({"tenant_id": store.id(), "requests_per_minute": per_minute, "before": before});
    Ok(mark_dry_run(value, store.is_dry_run(), &[]).into())
}

const UPGRADED: &[Field] =
    &[(Column::new("TENANT"), |row| cell(&row["tenant_id"])), (Column::text("PROCESSES ADDED"), |row| cell(&row["added"]))];

/// Adds missing system processes to one tenant or to all tenants.
pub async fn upgrade(store: &Store, tenant: Option<&str>, is_dry_run: bool) -> Result<Output> {
    let tenants = match tenant {
        Some(tenant) => vec![existing(store, tenant).await?.id()],
        None => {
            let tenants = store.tenants().await?.into_iter();
            tenants.filter(|tenant| tenant.deletion_began.is_none()).map(|tenant| tenant.id).collect()
        }
    };
    let mut rows = Vec::new();
    for id in tenants {
        let store = store.writer(id);
        let store = if is_dry_run { store.in_dry_run(DryRun::default()) } else { store };
        rows.push(mark_dry_run(json!({"tenant_id": id, "added": store.upgrade().await?}), is_dry_run, &[]));
    }
    Ok(Output::table(rows, UPGRADED, "There are no tenants."))
}

const MAX_NAMES: usize = 5;
/// Maximum number of tenants with the same name to list in an error.
const MAX_SAME: usize = 20;

/// Ignores case, Unicode normalization, and the kind and number of spaces.
fn is_same(one: &str, other: &str) -> bool {
    let form = |name: &str| fold(&composed(&single_spaced(name)));
    form(one) == form(other)
}

/// Finds a tenant by its name, ignoring case.
///
/// # Errors
///
/// Returns a message with the IDs of all tenants with the name or, if there are none, with the most similar names.
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
            Err(format!("{} tenants are called {name:?}; use one of their IDs: {ids}", several.len()))
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
        assert_eq!(find("BETA", &TENANTS), Err("2 tenants are called \"BETA\"; use one of their IDs: 2, 3".into()));
        let unknown = find("acmee", &TENANTS).unwrap_err();
        assert!(unknown.starts_with("tenant \"acmee\" not found; the nearest: \"Acme\", "), "{unknown}");
        assert!(find("x", &[] as &[(u32, &str)]).unwrap_err().contains("there are no tenants"));
    }
}
