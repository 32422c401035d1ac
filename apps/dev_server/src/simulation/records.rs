//! Client requests for assets and users.

use super::service::{ApiResponse, Service};
use super::tenant::{AssetState, MARKER, Model, Record, Tenant, UserState, id_in};
use crate::faulty_table::SeededRandom;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The first words of names, which lists search for.
pub const COLORS: [&str; 3] = ["red", "green", "blue"];
pub const STATUSES: [&str; 3] = ["in_stock", "in_use", "returned"];
/// As many as fit on one page of a list.
const MAX_ASSETS: usize = 60;
const MAX_USERS: usize = 30;

fn random_name(model: &mut Model, random: &SeededRandom) -> String {
    let color = COLORS[random.below(3) as usize];
    format!("{color} {:05}", model.next_number())
}

/// Reserves a random existing asset that `is_suitable`. Returns its index and ID.
pub fn reserve(
    tenant: &Tenant,
    random: &SeededRandom,
    is_suitable: impl Fn(&Record<AssetState>) -> bool,
) -> Option<(usize, String)> {
    let mut model = tenant.model();
    let is_free =
        |asset: &Record<AssetState>| !asset.register.is_reserved && asset.register.state().is_some() && is_suitable(asset);
    let free: Vec<usize> = (0..model.assets.len()).filter(|place| is_free(&model.assets[*place])).collect();
    let place = *free.get(random.below(free.len() as u64) as usize)?;
    let asset = &mut model.assets[place];
    let id = asset.id.clone()?;
    asset.register.is_reserved = true;
    Some((place, id))
}

pub fn release(tenant: &Tenant, place: usize) {
    tenant.model().assets[place].register.is_reserved = false;
}

/// Creates an asset. Sometimes sends the request twice at once, with the same idempotency key.
pub async fn create_asset(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let (place, body) = {
        let mut model = tenant.model();
        if model.assets.iter().filter(|asset| asset.register.state().is_some()).count() >= MAX_ASSETS {
            return;
        }
        let (name, status) = (random_name(&mut model, random), STATUSES[random.below(2) as usize]);
        let mut asset = Record::default();
        asset.register.is_reserved = true;
        asset.register.begin(Some(AssetState { name: name.clone(), status }));
        model.assets.push(asset);
        (model.assets.len() - 1, json!({"name": name, "status": status, "notes": MARKER}))
    };
    let request = tenant.keyed_post("/assets", body, random);
    let copies = if random.below(4) == 0 { 2 } else { 1 };
    let responses = join_all((0..copies).map(|_| service.settle(&request))).await;
    let ids: Vec<String> = responses.iter().map(id_in).collect();
    if responses.iter().any(|response| response.status != 201) || ids.iter().any(|id| *id != ids[0]) {
        service.add_violation(format!("one asset was created as {responses:?}"));
    }
    let mut model = tenant.model();
    let asset = &mut model.assets[place];
    asset.id = ids.into_iter().next();
    asset.register.end();
    asset.register.is_reserved = false;
}

/// Returns a change and the state after it. The status of an asset in a process can't change.
fn random_change(tenant: &Tenant, place: usize, random: &SeededRandom) -> Option<(Value, AssetState)> {
    let mut model = tenant.model();
    let name = random_name(&mut model, random);
    let asset = &model.assets[place];
    let status = match asset.running {
        Some(_) => asset.register.state()?.status,
        None => STATUSES[random.below(3) as usize],
    };
    Some((json!({"name": name, "status": status}), AssetState { name, status }))
}

pub async fn change_asset(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, id)) = reserve(tenant, random, |_| true) else { return };
    if let Some((body, state)) = random_change(tenant, place, random) {
        tenant.model().assets[place].register.begin(Some(state));
        let response = service.settle(&tenant.request("PATCH", format!("/assets/{id}"), body)).await;
        finish(service, tenant, place, &response, &[200]);
    }
    release(tenant, place);
}

/// Records the outcome of a write. The response must have one of the `expected` statuses.
fn finish(service: &Service, tenant: &Tenant, place: usize, response: &ApiResponse, expected: &[u16]) {
    let mut model = tenant.model();
    if expected.contains(&response.status) {
        model.assets[place].register.end();
        return;
    }
    let asset = format!("{:?}", model.assets[place]);
    model.assets[place].register.abandon();
    drop(model);
    service.add_violation(format!("{}: changing {asset} returned {} {}", tenant.name, response.status, response.body));
}

/// Sends two concurrent changes that both require the asset's current version. Exactly one must win.
pub async fn change_asset_at_once(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, id)) = reserve(tenant, random, |_| true) else { return };
    let path = format!("/assets/{id}");
    let current = service.settle(&tenant.request("GET", path.clone(), Value::Null)).await;
    let changes = [random_change(tenant, place, random), random_change(tenant, place, random)];
    let ([Some(first), Some(second)], Some(etag)) = (changes, current.etag) else { return release(tenant, place) };
    let send = |body: &Value| {
        let mut request = tenant.request("PATCH", path.clone(), body.clone());
        request.headers.push(("if-match", etag.clone()));
        async move { service.send(&request).await }
    };
    // Each change is sent once, because a retry couldn't tell its success from a rival's.
    tenant.model().assets[place].register.begin(Some(first.1.clone()));
    tenant.model().assets[place].register.begin(Some(second.1.clone()));
    let (one, other) = futures_util::join!(send(&first.0), send(&second.0));
    let status = |response: &Option<ApiResponse>| response.as_ref().map_or(0, |response| response.status);
    // By then, even a write with an unknown outcome is decided.
    sleep(Duration::from_secs(9)).await;
    let shown = service.settle(&tenant.request("GET", path.clone(), Value::Null)).await;
    let mut model = tenant.model();
    let register = &mut model.assets[place].register;
    register.abandon();
    register.abandon();
    let winner = [&first.1, &second.1].into_iter().find(|state| shown.body["data"]["name"] == *state.name);
    if let Some(state) = winner {
        register.begin(Some(state.clone()));
        register.end();
    }
    register.is_reserved = false;
    drop(model);
    let is_winner = |state: &AssetState| winner == Some(state);
    for (answer, state) in [(&one, &first.1), (&other, &second.1)] {
        let is_right = match status(answer) {
            200 => is_winner(state),
            412 => !is_winner(state),
            0 | 503 => true,
            _ => false,
        };
        if !is_right {
            service.add_violation(format!("{path}: {answer:?} for {state:?}, and then {}", shown.body));
        }
    }
    if status(&one) == 412 && status(&other) == 412 {
        service.add_violation(format!("{path}: nobody won: {one:?} {other:?}"));
    }
}

pub async fn delete_asset(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, id)) = reserve(tenant, random, |asset| asset.running.is_none()) else { return };
    tenant.model().assets[place].register.begin(None);
    let response = service.settle(&tenant.request("DELETE", format!("/assets/{id}"), Value::Null)).await;
    // 404 if an earlier attempt has deleted it.
    finish(service, tenant, place, &response, &[200, 204, 404]);
    release(tenant, place);
}

pub async fn read_asset(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, id)) = random_asset(tenant, random) else { return };
    let from = Instant::now();
    let Some(response) = service.send(&tenant.request("GET", format!("/assets/{id}"), Value::Null)).await else { return };
    let possible = tenant.model().assets[place].register.possible(from);
    let data = &response.body["data"];
    let is_possible = possible.iter().any(|state| match (response.status, state) {
        (200, Some(state)) => data["name"] == *state.name && data["status"] == state.status,
        (404, None) => true,
        (503 | 429, _) => true,
        _ => false,
    });
    if !is_possible {
        service.add_violation(format!("{}: asset {id} was {} {}, not {possible:?}", tenant.name, response.status, response.body));
    }
}

fn random_asset(tenant: &Tenant, random: &SeededRandom) -> Option<(usize, String)> {
    let model = tenant.model();
    let place = random.below(model.assets.len() as u64) as usize;
    Some((place, model.assets.get(place)?.id.clone()?))
}

/// Verifies the history of an asset, which may be deleted.
pub async fn verify_history(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, id)) = random_asset(tenant, random) else { return };
    let least = tenant.model().assets[place].register.changes;
    let path = format!("/assets/{id}/history?verify=true&limit=5");
    let Some(response) = service.send(&tenant.request("GET", path.clone(), Value::Null)).await else { return };
    let most = {
        let model = tenant.model();
        let register = &model.assets[place].register;
        // At most two changes are in flight.
        register.changes + 2 * u64::from(register.is_reserved || register.is_changing())
    };
    let checked = response.body["verification"]["checked"].as_u64().unwrap_or_default();
    let is_right = response.status == 200 && response.body["verification"]["valid"] == true && (least..=most).contains(&checked);
    if !is_right && !matches!(response.status, 503 | 429) {
        let verification = &response.body["verification"];
        service.add_violation(format!(
            "{}: {path} returned {} {verification} of {least} to {most} changes",
            tenant.name, response.status
        ));
    }
}

pub async fn write_user(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let existing = {
        let mut model = tenant.model();
        let free: Vec<usize> = (0..model.users.len()).filter(|place| !model.users[*place].register.is_reserved).collect();
        let place = free.get(random.below(2 * free.len() as u64) as usize).copied();
        if let Some(place) = place {
            model.users[place].register.is_reserved = true;
        }
        place
    };
    match existing {
        Some(place) => change_user(service, tenant, random, place).await,
        None if tenant.model().users.len() < MAX_USERS => create_user(service, tenant, random).await,
        None => {}
    }
}

/// Creates a user. Sometimes also sends a rival request with the same e-mail address; exactly one must win.
async fn create_user(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let (place, name) = {
        let mut model = tenant.model();
        let name = format!("user {:05}", model.next_number());
        let mut user = Record::default();
        user.register.is_reserved = true;
        user.register.begin(Some(UserState { name: name.clone(), is_active: true }));
        model.users.push(user);
        (model.users.len() - 1, name)
    };
    let email = format!("{}@example.com", name.replace(' ', "."));
    let body = json!({"email": email, "display_name": name});
    let responses = tenant.post_with_rivals(service, "/users", &body, (random, 3)).await;
    let created: Vec<_> = responses.iter().filter(|response| response.status == 201).collect();
    if created.len() != 1 || responses.iter().any(|response| !matches!(response.status, 201 | 409)) {
        service.add_violation(format!("{}: one user was created as {responses:?}", tenant.name));
    }
    // Searching by the address finds the user once the creation is acknowledged.
    let found = service.settle(&tenant.request("GET", format!("/users?email={}", email.to_uppercase()), Value::Null)).await;
    if created.iter().any(|response| found.body["data"][0]["id"] != id_in(response)) {
        service.add_violation(format!("{}: searching for {email} returned {} {}", tenant.name, found.status, found.body));
    }
    let mut model = tenant.model();
    let user = &mut model.users[place];
    user.id = created.first().map(|response| id_in(response));
    user.register.end();
    user.register.is_reserved = false;
}

async fn change_user(service: &Service, tenant: &Tenant, random: &SeededRandom, place: usize) {
    let (id, state) = {
        let mut model = tenant.model();
        let state = UserState { name: format!("user {:05}", model.next_number()), is_active: random.below(2) == 0 };
        let user = &mut model.users[place];
        user.register.begin(Some(state.clone()));
        (user.id.clone().unwrap_or_default(), state)
    };
    let body = json!({"display_name": state.name, "is_active": state.is_active});
    let response = service.settle(&tenant.request("PATCH", format!("/users/{id}"), body)).await;
    if response.status != 200 {
        service.add_violation(format!("{}: user {id} couldn't be changed: {} {}", tenant.name, response.status, response.body));
    }
    let register = &mut tenant.model().users[place].register;
    register.end();
    register.is_reserved = false;
}
