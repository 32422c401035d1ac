//! Requests of clients about users.

use super::service::Service;
use super::tenant::{Record, Tenant, UserState, id_in};
use crate::faulty_table::SeededRandom;
use futures_util::future::join_all;
use serde_json::{Value, json};

const MAX_USERS: usize = 30;

pub async fn write(service: &Service, tenant: &Tenant, random: &SeededRandom) {
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
        Some(place) => change(service, tenant, random, place).await,
        None if tenant.model().users.len() < MAX_USERS => create(service, tenant, random).await,
        None => {}
    }
}

/// Creates a user; sometimes a rival wants the same e-mail address, and exactly one must win.
async fn create(service: &Service, tenant: &Tenant, random: &SeededRandom) {
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
    let rivals = if random.below(3) == 0 { 2 } else { 1 };
    let requests: Vec<_> = (0..rivals)
        .map(|_| {
            let mut request = tenant.request("POST", "/users", body.clone());
            request.idempotency_key = Some(format!("{:x}", random.next()));
            request
        })
        .collect();
    let responses = join_all(requests.iter().map(|request| service.settle(request))).await;
    let created: Vec<_> = responses.iter().filter(|response| response.status == 201).collect();
    if created.len() != 1 || responses.iter().any(|response| !matches!(response.status, 201 | 409)) {
        service.add_violation(format!("{}: one user is created as {responses:?}", tenant.name));
    }
    // The address finds the user as soon as the creation was acknowledged.
    let found = service.settle(&tenant.request("GET", format!("/users?email={}", email.to_uppercase()), Value::Null)).await;
    if created.iter().any(|response| found.body["data"][0]["id"] != id_in(response)) {
        service.add_violation(format!("{}: {email} finds {} {}", tenant.name, found.status, found.body));
    }
    let mut model = tenant.model();
    let user = &mut model.users[place];
    user.id = created.first().map(|response| id_in(response));
    user.register.end();
    user.register.is_reserved = false;
}

async fn change(service: &Service, tenant: &Tenant, random: &SeededRandom, place: usize) {
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
        service.add_violation(format!("{}: user {id} can't be changed: {} {}", tenant.name, response.status, response.body));
    }
    let register = &mut tenant.model().users[place].register;
    register.end();
    register.is_reserved = false;
}
