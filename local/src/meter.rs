//! Counts what requests cost, as the table itself reports it.

use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::operation::{batch_get_item, get_item, query, transact_write_items, update_item};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextMut, BeforeSerializationInterceptorContextRef, FinalizerInterceptorContextRef,
};
use std::sync::{Arc, Mutex, PoisonError};
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
#[derive(Debug, Default, PartialEq)]
pub struct Cost {
    /// The longest chain of calls that waited for one another.
    pub round_trips: usize,
    /// How many calls.
    pub calls: usize,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Call { began, ended: Instant::now(), reads, writes });
        Ok(())
    }
}

impl Meter {
    /// What was spent since the last look.
    pub fn take(&self) -> Cost {
        let mut calls = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
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
