//! Erasures of people: lists them, erases a person, and repeats erasures after a restore.

use crate::deletion::Bucket;
use crate::output::{Field, Output, cell};
use crate::tenants;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use shared::domain::people::{Erasure, Obstacle, Person, Removed};
use shared::domain::signing::Link;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::id::{LinkId, TenantId, UserId};
use shared::domain::values::time::Timestamp;
use shared::store::{ChangeContext, Reader, Store, Writer};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use terminal::Column;

/// Returns the ID of the user or, for a guest, of the link.
fn person(row: &Value) -> String {
    cell(row.get("user_id").unwrap_or(&row["link_id"]))
}

/// Returns `value` with the tenant's ID, and the `user_id` or `link_id`.
fn of_person(tenant: TenantId, person: Person, mut value: Value) -> Value {
    let (mut row, mut person) = (json!({"tenant_id": tenant}), json!(person));
    for members in [&mut person, &mut value] {
        if let (Some(row), Some(members)) = (row.as_object_mut(), members.as_object_mut()) {
            row.append(members);
        }
    }
    row
}

const LISTED: &[Field] = &[
    (Column::new("USER OR LINK"), person),
    (Column::new("ERASED (UTC)"), |row| cell(&row["erased_at"])),
    (Column::new("DONE (UTC)"), |row| cell(&row["done_at"])),
];

/// With `since`, lists the erasures that are missing or incomplete in a table restored to that time.
pub async fn list(store: &Reader, since: Option<Timestamp>) -> Result<Output> {
    let erasures = store.erasures().await?.into_iter();
    let listed = erasures.filter(|erasure| since.is_none_or(|since| erasure.is_since(since)));
    let row = |Erasure { person, erased_at, done_at, .. }| {
        of_person(store.id(), person, json!({"erased_at": erased_at, "done_at": done_at}))
    };
    Ok(Output::table(listed.map(row).collect(), LISTED, "Nobody was erased."))
}

/// Erases a person, unless there is an obstacle.
pub async fn erase(store: &Writer, person: Person) -> Result<Output> {
    match person {
        Person::User(user) => erase_user(store, user).await,
        Person::Guest(link) => erase_guest(store, link).await,
    }
}

async fn erase_guest(store: &Writer, id: LinkId) -> Result<Output> {
    let Some(link) = store.get::<Link>(id).await? else { bail!("link {id} not found in tenant {}", store.id()) };
    if let Some(obstacle) = store.guest_obstacle(&link.value, store.now()).await? {
        bail!("{obstacle}");
    }
    let removed = remove(store, id.into(), Bucket::from_env().await?.as_ref()).await?;
    Ok(erased(store, id.into(), removed, None).into())
}

async fn erase_user(store: &Writer, user: UserId) -> Result<Output> {
    let (record, context) = (store.get::<User>(user).await?, ChangeContext::operator(store.now()));
    match store.erase_unhindered(user, record.as_ref(), &context).await? {
        None => {}
        Some(Obstacle::Unknown) => bail!("user {user} not found in tenant {}", store.id()),
        Some(obstacle @ Obstacle::InUse { .. }) => bail!("{obstacle} {}", cell(&json!(still(&obstacle)))),
        Some(obstacle) => bail!("{obstacle}"),
    }
    let removed = remove(store, user.into(), Bucket::from_env().await?.as_ref()).await?;
    Ok(erased(store, user.into(), removed, None).into())
}

/// Erases the person's data outside the user's record; in a dry run, only counts it.
async fn remove(store: &Writer, person: Person, bucket: Option<&Bucket>) -> Result<Removed> {
    if store.is_dry_run() {
        return Ok(store.remains(person, usize::MAX).await?.1);
    }
    let removed = store.erase_whole(person).await?;
    if let Some(bucket) = bucket {
        bucket.delete(store).await?;
    }
    Ok(removed)
}

/// Returns the records that still refer to the user.
fn still(obstacle: &Obstacle) -> Option<Value> {
    match obstacle {
        Obstacle::InUse { assets, processes, instances } => {
            Some(json!({"asset_ids": assets, "open_processes": processes, "instance_ids": instances}))
        }
        _ => None,
    }
}

fn erased(store: &Reader, person: Person, removed: Removed, still_refer: Option<Value>) -> Value {
    let value = json!({"done": !store.is_dry_run(), "removed": removed, "still_refer": still_refer});
    let value = of_person(store.id(), person, value);
    tenants::mark_dry_run(value, store.is_dry_run(), &[])
}

const REPEATED: &[Field] = &[
    (Column::new("TENANT"), |row| cell(&row["tenant_id"])),
    (Column::new("USER OR LINK"), person),
    (Column::text("RESULT"), |row| match (&row["skipped"], &row["error"]) {
        (Value::Null, Value::Null) => cell(&row["removed"]),
        (Value::Null, error) => format!("failed: {}", cell(error)),
        (reason, _) => format!("skipped: {}", cell(reason)),
    }),
    (Column::text("STILL REFER"), |row| cell(&row["still_refer"])),
];

/// Repeats the erasures in `file`, each in the tenant named on its line. A failed erasure doesn't stop the others.
pub async fn repeat(store: &Store, file: &Path, is_dry_run: bool) -> Result<Output> {
    let bucket = Bucket::from_env().await?;
    let (mut rows, mut is_success) = (Vec::new(), true);
    for (tenant, person) in lines(file)? {
        let row = match repeat_one(store, tenant, person, bucket.as_ref(), is_dry_run).await {
            Ok(Ok(row)) => row,
            Ok(Err(reason)) => of_person(tenant, person, json!({"skipped": reason})),
            Err(error) => {
                is_success = false;
                of_person(tenant, person, json!({"error": format!("{error:#}")}))
            }
        };
        rows.push(row);
    }
    Ok(Output::table(rows, REPEATED, "There is nothing to repeat.").with_success(is_success))
}

/// Repeats an erasure. The inner error is the reason why there is nothing to erase.
async fn repeat_one(
    store: &Store,
    tenant: TenantId,
    person: Person,
    bucket: Option<&Bucket>,
    is_dry_run: bool,
) -> Result<Result<Value, &'static str>> {
    let restored = store.writer(tenant);
    if restored.deletion_began().await?.is_some() {
        return Ok(Err("the tenant is being deleted"));
    }
    if let Ok(None) = restored.get::<Tenant>(tenant).await {
        return Ok(Err("the table doesn't have the tenant"));
    }
    let store = tenants::writable(store, &tenant.to_string(), is_dry_run).await?;
    let still_refer = match person {
        Person::User(user) => {
            let record = store.get::<User>(user).await?;
            if record.is_none() && !store.ever_existed::<User>(user).await? {
                return Ok(Err("the tenant doesn't have the user"));
            }
            let still_refer = store.references_to_user(user).await?.as_ref().and_then(still);
            if let Some(record) = record.filter(|record| record.value.erased_at.is_none()) {
                store.erase_user(&record, &ChangeContext::operator(store.now()), true).await?;
            }
            still_refer
        }
        Person::Guest(link) => {
            if !store.ever_existed::<Link>(link).await? {
                return Ok(Err("the tenant doesn't have the link"));
            }
            None
        }
    };
    let removed = remove(&store, person, bucket).await?;
    Ok(Ok(erased(&store, person, removed, still_refer)))
}

/// Reads the IDs from all lines, so that an invalid line is found before any erasure is repeated. The other members that [`list`]
/// writes are for people.
fn lines(file: &Path) -> Result<BTreeSet<(TenantId, Person)>> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        _ => std::fs::read_to_string(file).map(|content| text = content),
    };
    read.with_context(|| format!("can't read {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        let id = |name: &str| value[name].as_str();
        let user = || id("user_id")?.parse().ok().map(Person::User);
        let guest = || id("link_id")?.parse().ok().map(Person::Guest);
        Some((id("tenant_id")?.parse().ok()?, user().or_else(guest)?))
    };
    let wrong = |number| anyhow!("line {number} of {} is not from `admin erasures`", file.display());
    lines.map(|(index, text)| line(text).ok_or_else(|| wrong(index + 1))).collect()
}
