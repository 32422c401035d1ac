//! Client requests for processes and movements.

use super::records::{release, reserve};
use super::service::{ApiResponse, Service};
use super::tenant::{AssetState, Record, RunningProcess, Tenant, id_in};
use crate::faulty_table::SeededRandom;
use serde_json::{Value, json};

fn step_data(step: u64) -> Value {
    match step {
        0 => json!({"a": "text"}),
        1 => json!({"b": ["x"]}),
        _ => json!({}),
    }
}

/// Starts a process on an asset, or a movement of several. Sometimes sends two such requests at once; exactly one must win.
pub async fn start(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let count = if random.below(3) == 0 { 2 + random.below(2) } else { 1 };
    let is_startable =
        |asset: &Record<AssetState>| asset.running.is_none() && asset.register.state().is_some_and(|s| s.status == "in_stock");
    let reserved: Vec<(usize, String)> = (0..count).filter_map(|_| reserve(tenant, random, is_startable)).collect();
    let (places, ids): (Vec<usize>, Vec<String>) = reserved.into_iter().unzip();
    if !ids.is_empty() {
        start_on(service, tenant, random, &places, &ids).await;
    }
    for place in places {
        release(tenant, place);
    }
}

async fn start_on(service: &Service, tenant: &Tenant, random: &SeededRandom, places: &[usize], ids: &[String]) {
    let is_movement = ids.len() > 1;
    let body = if is_movement { json!({"asset_ids": ids}) } else { json!({"asset_id": ids[0]}) };
    let instances = begin_instances(tenant, places);
    let path = format!("/processes/{}/start", tenant.process_id);
    let responses = tenant.post_with_rivals(service, &path, &body, (random, 4)).await;
    let (started, refused): (Vec<&ApiResponse>, Vec<&ApiResponse>) = responses.iter().partition(|r| r.status == 201);
    if started.len() != 1 || refused.iter().any(|response| response.status != 409) {
        let answers: Vec<(u16, &Value)> = responses.iter().map(|response| (response.status, &response.body)).collect();
        service.add_violation(format!("{}: starts on {ids:?} returned {answers:?}", tenant.name));
    }
    let mut model = tenant.model();
    let Some(won) = started.first() else {
        for place in places {
            model.assets[*place].register.abandon();
        }
        return;
    };
    let kind = if is_movement { "/movements" } else { "/processes/instances" };
    let running =
        RunningProcess { path: format!("{kind}/{}", id_in(won)), assets: places.to_vec(), instances: instances.clone(), step: 0 };
    for place in places {
        model.assets[*place].register.end();
        model.assets[*place].running = Some(running.clone());
    }
    for place in instances {
        model.instances[place].register.end();
    }
}

/// Notes that instances on these assets are about to start. Returns their indexes.
fn begin_instances(tenant: &Tenant, places: &[usize]) -> Vec<usize> {
    let mut model = tenant.model();
    let mut instances = Vec::new();
    for place in places {
        let register = &mut model.assets[*place].register;
        let Some(state) = register.state().cloned() else { continue };
        register.begin(Some(state.clone()));
        let mut instance = Record::default();
        instance.register.begin(Some(AssetState { name: state.name, status: "in_progress" }));
        model.instances.push(instance);
        instances.push(model.instances.len() - 1);
    }
    instances
}

/// Submits the next step of a running process, or cancels it.
pub async fn advance_or_cancel(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let Some((place, _)) = reserve(tenant, random, |asset| asset.running.is_some()) else { return };
    let Some(running) = tenant.model().assets[place].running.clone() else { return release(tenant, place) };
    let others: Vec<usize> = running.assets.iter().copied().filter(|other| *other != place).collect();
    // Reserves the movement's other assets, all or none.
    let is_free = {
        let mut model = tenant.model();
        let is_free = others.iter().all(|other| !model.assets[*other].register.is_reserved);
        for other in others.iter().filter(|_| is_free) {
            model.assets[*other].register.is_reserved = true;
        }
        is_free
    };
    if is_free {
        let is_cancelled = random.below(5) == 0;
        let expected = if is_cancelled { "cancelled" } else { "completed" };
        submit(service, tenant, random, &running, is_cancelled, expected).await;
        for other in others {
            release(tenant, other);
        }
    }
    release(tenant, place);
}

async fn submit(
    service: &Service,
    tenant: &Tenant,
    random: &SeededRandom,
    running: &RunningProcess,
    is_cancelled: bool,
    ended: &'static str,
) {
    let is_end = is_cancelled || running.step == 2;
    let (action, body) = match is_cancelled {
        true => ("cancel", json!({"reason": "simulated"})),
        false => ("advance", json!({"step_data": step_data(running.step), "current_step": running.step})),
    };
    if is_end {
        begin_end(tenant, running, ended);
    }
    let request = tenant.keyed_post(format!("{}/{action}", running.path), body, random);
    let response = service.settle(&request).await;
    if response.status != 200 {
        service.add_violation(format!("{}: {} returns {} {}", tenant.name, request.path, response.status, response.body));
    }
    let mut model = tenant.model();
    for place in &running.assets {
        let asset = &mut model.assets[*place];
        if is_end {
            asset.register.end();
            asset.running = None;
        } else if let Some(running) = &mut asset.running {
            running.step += 1;
        }
    }
    for place in running.instances.iter().filter(|_| is_end) {
        model.instances[*place].register.end();
    }
}

fn begin_end(tenant: &Tenant, running: &RunningProcess, ended: &'static str) {
    let mut model = tenant.model();
    for place in &running.assets {
        let register = &mut model.assets[*place].register;
        let Some(mut state) = register.state().cloned() else { continue };
        if ended == "completed" {
            state.status = "in_use";
        }
        register.begin(Some(state));
    }
    for place in &running.instances {
        let register = &mut model.instances[*place].register;
        let Some(state) = register.state().cloned() else { continue };
        register.begin(Some(AssetState { status: ended, ..state }));
    }
}
