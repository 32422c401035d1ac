//! What requests cost: round trips one after the other, and capacity units, as the table reports them.

use crate::support::{Api, Client};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::operation::{batch_get_item, get_item, query, transact_write_items, update_item};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextMut, BeforeSerializationInterceptorContextRef, FinalizerInterceptorContextRef,
};
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Asks every operation for its capacity and notes it, with when it began and ended.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Vec<Call>>>);

#[derive(Debug, Clone)]
struct Call {
    began: Instant,
    ended: Instant,
    reads: f64,
    writes: f64,
}

/// What a request cost.
#[derive(Debug, PartialEq)]
pub struct Cost {
    /// The longest chain of calls that waited for one another.
    pub round_trips: usize,
    pub calls: usize,
    pub read_units: f64,
    pub write_units: f64,
}

#[derive(Debug)]
struct Began(Instant);
impl aws_smithy_types::config_bag::Storable for Began {
    type Storer = aws_smithy_types::config_bag::StoreReplace<Self>;
}

macro_rules! each_operation {
    ($input:expr, $($module:ident::$type:ident),*) => {$(
        if let Some(input) = $input.downcast_mut::<$module::$type>() {
            input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
        }
    )*};
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        bag.interceptor_state().store_put(Began(Instant::now()));
        Ok(())
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        each_operation!(
            context.input_mut(),
            get_item::GetItemInput,
            batch_get_item::BatchGetItemInput,
            query::QueryInput,
            update_item::UpdateItemInput,
            transact_write_items::TransactWriteItemsInput
        );
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else { return Ok(()) };
        let mut capacity: Vec<ConsumedCapacity> = Vec::new();
        let mut writes = false;
        if let Some(out) = output.downcast_ref::<get_item::GetItemOutput>() {
            capacity.extend(out.consumed_capacity.clone());
        } else if let Some(out) = output.downcast_ref::<batch_get_item::BatchGetItemOutput>() {
            capacity.extend(out.consumed_capacity().iter().cloned());
        } else if let Some(out) = output.downcast_ref::<query::QueryOutput>() {
            capacity.extend(out.consumed_capacity.clone());
        } else if let Some(out) = output.downcast_ref::<update_item::UpdateItemOutput>() {
            writes = true;
            capacity.extend(out.consumed_capacity.clone());
        } else if let Some(out) = output.downcast_ref::<transact_write_items::TransactWriteItemsOutput>() {
            writes = true;
            capacity.extend(out.consumed_capacity().iter().cloned());
        }
        let units: f64 = capacity.iter().filter_map(|c| c.capacity_units).sum();
        let began = bag.load::<Began>().map_or_else(Instant::now, |began| began.0);
        let (reads, writes) = if writes { (0.0, units) } else { (units, 0.0) };
        self.0.lock().unwrap().push(Call { began, ended: Instant::now(), reads, writes });
        Ok(())
    }
}

impl Meter {
    /// What was spent since the last look.
    pub fn take(&self) -> Cost {
        let mut calls = std::mem::take(&mut *self.0.lock().unwrap());
        calls.sort_by_key(|call| call.ended);
        let mut round_trips = 0;
        let mut free_from: Option<Instant> = None;
        for call in &calls {
            if free_from.is_none_or(|free| call.began >= free) {
                round_trips += 1;
                free_from = Some(call.ended);
            }
        }
        Cost {
            round_trips,
            calls: calls.len(),
            read_units: calls.iter().map(|call| call.reads).sum(),
            write_units: calls.iter().map(|call| call.writes).sum(),
        }
    }
}

async fn measured(api: &Api, client: &Client, name: &str, request: (&str, String, serde_json::Value), most: Cost) -> String {
    let (method, path, body) = request;
    api.meter.take();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = client.send(method, &path, Some("application/json"), body).await;
    assert!(reply.status.is_success(), "{name}: {}", reply.text());
    let cost = api.meter.take();
    assert!(
        cost.round_trips <= most.round_trips
            && cost.calls <= most.calls
            && cost.read_units <= most.read_units
            && cost.write_units <= most.write_units,
        "{name} costs {cost:?}, more than {most:?}"
    );
    assert!(cost.round_trips > 0 && cost.read_units > 0.0, "{name} was not measured: {cost:?}");
    format!("{name:<38}{:>12}{:>7}{:>12.1}{:>13.1}", cost.round_trips, cost.calls, cost.read_units, cost.write_units)
}

fn most(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
    Cost { round_trips, calls, read_units, write_units }
}

#[tokio::test]
async fn requests_cost_no_more_round_trips_and_units_than_planned() {
    let (api, client) = Api::with_tenant().await;
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let user = client.user("Ada").await;
    let plain = client.asset(json!({"name": "plain"})).await;
    let linked = client.asset(json!({"name": "linked", "model_id": model})).await;
    for n in 0..18 {
        client.asset(json!({"name": format!("more {n}"), "model_id": model})).await;
    }
    let (plain, linked) = (format!("/assets/{plain}"), format!("/assets/{linked}"));
    let none = serde_json::Value::Null;

    // The key check costs one read unit of each, in the same round trip as the request's own first read.
    let rows = [
        measured(&api, &client, "GET one asset", ("GET", plain.clone(), none.clone()), most(1, 2, 2.0, 0.0)).await,
        measured(&api, &client, "GET one asset with model", ("GET", linked.clone(), none.clone()), most(2, 3, 5.0, 0.0)).await,
        measured(&api, &client, "POST an asset", ("POST", "/assets".into(), json!({"name": "new"})), most(3, 4, 2.0, 10.0)).await,
        measured(
            &api,
            &client,
            "POST an asset with model",
            ("POST", "/assets".into(), json!({"name": "new", "model_id": model})),
            most(4, 5, 5.0, 14.0),
        )
        .await,
        measured(&api, &client, "PATCH a name", ("PATCH", plain.clone(), json!({"name": "newer"})), most(2, 3, 2.0, 7.0)).await,
        measured(
            &api,
            &client,
            "PATCH an assignment",
            ("PATCH", plain.clone(), json!({"assigned_to": user})),
            most(2, 3, 3.0, 9.0),
        )
        .await,
        measured(&api, &client, "PATCH without a change", ("PATCH", plain, json!({"name": "newer"})), most(1, 2, 2.0, 0.0)).await,
        measured(
            &api,
            &client,
            "GET the first page on a cold instance",
            ("GET", "/assets".into(), none.clone()),
            most(3, 8, 40.0, 0.0),
        )
        .await,
    ];
    // Events are read again for as long as others may still be late. Then it is quiet.
    api.wait(120);
    client.get("/assets").await.data();
    let warm = [
        measured(&api, &client, "GET a page of 20 of 22 assets", ("GET", "/assets".into(), none.clone()), most(2, 3, 22.0, 0.0))
            .await,
        measured(&api, &client, "GET page 2", ("GET", "/assets?page=2".into(), none.clone()), most(2, 3, 4.0, 0.0)).await,
        measured(&api, &client, "GET a search for nothing", ("GET", "/assets?q=none".into(), none.clone()), most(1, 2, 2.0, 0.0))
            .await,
        measured(
            &api,
            &client,
            "GET by kind and status",
            ("GET", "/assets?kind=physical&status=in_stock&sort=name".into(), none.clone()),
            most(2, 3, 22.0, 0.0),
        )
        .await,
    ];
    let rows = [rows.as_slice(), warm.as_slice()].concat();
    // Straight to stdout, so that the table shows in every run of the tests.
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{:<38}{:>12}{:>7}{:>12}{:>13}", "request", "round trips", "calls", "read units", "write units").unwrap();
    writeln!(out, "{}", rows.join("\n")).unwrap();
}
