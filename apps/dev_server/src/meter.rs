//! Measures the cost of requests: the capacity that the table reports as consumed, and a thread's CPU time, which depends little
//! on other work on the machine.

use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::operation::{batch_get_item, delete_item, get_item, put_item, query, transact_write_items, update_item};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextMut, BeforeSerializationInterceptorContextRef, FinalizerInterceptorContextRef, Input,
    Output,
};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::Span;
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

/// An SDK interceptor that records the consumed capacity, start and end of each call.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    calls: Arc<Mutex<Vec<Call>>>,
    is_by_request: bool,
}

#[derive(Debug, Clone)]
struct Call {
    start: Instant,
    end: Instant,
    read_units: f64,
    write_units: f64,
}

#[derive(Debug, Default, PartialEq)]
pub struct Cost {
    /// Calls that run concurrently count as one. Not counted by request.
    pub round_trips: usize,
    pub calls: usize,
    pub read_units: f64,
    pub write_units: f64,
}

/// Time when a call started, in the SDK's config bag.
#[derive(Debug)]
struct Start(Instant);
impl aws_smithy_types::config_bag::Storable for Start {
    type Storer = aws_smithy_types::config_bag::StoreReplace<Self>;
}

/// Requests the consumed capacity, if the input is of this type.
fn request_capacity<I: Debug + Send + Sync + 'static>(
    input: &mut Input,
    field: fn(&mut I) -> &mut Option<ReturnConsumedCapacity>,
) {
    if let Some(input) = input.downcast_mut::<I>() {
        *field(input) = Some(ReturnConsumedCapacity::Total);
    }
}

/// Returns the consumed units, if the output is of this type.
fn units<O: Debug + Send + Sync + 'static>(output: &Output, capacity: fn(&O) -> &[ConsumedCapacity]) -> Option<f64> {
    let capacity = capacity(output.downcast_ref::<O>()?);
    Some(capacity.iter().filter_map(|capacity| capacity.capacity_units).sum())
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
        bag.interceptor_state().store_put(Start(Instant::now()));
        Ok(())
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input_mut();
        request_capacity::<get_item::GetItemInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<batch_get_item::BatchGetItemInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<query::QueryInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<put_item::PutItemInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<update_item::UpdateItemInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<delete_item::DeleteItemInput>(input, |input| &mut input.return_consumed_capacity);
        request_capacity::<transact_write_items::TransactWriteItemsInput>(input, |input| &mut input.return_consumed_capacity);
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else { return Ok(()) };
        let read = units::<get_item::GetItemOutput>(output, |output| output.consumed_capacity.as_slice())
            .or_else(|| units::<batch_get_item::BatchGetItemOutput>(output, |output| output.consumed_capacity()))
            .or_else(|| units::<query::QueryOutput>(output, |output| output.consumed_capacity.as_slice()));
        let written = units::<update_item::UpdateItemOutput>(output, |output| output.consumed_capacity.as_slice())
            .or_else(|| units::<put_item::PutItemOutput>(output, |output| output.consumed_capacity.as_slice()))
            .or_else(|| units::<delete_item::DeleteItemOutput>(output, |output| output.consumed_capacity.as_slice()))
            .or_else(|| units::<transact_write_items::TransactWriteItemsOutput>(output, |output| output.consumed_capacity()));
        let start = bag.load::<Start>().map_or_else(Instant::now, |start| start.0);
        let (read_units, write_units) = (read.unwrap_or_default(), written.unwrap_or_default());
        let call = Call { start, end: Instant::now(), read_units, write_units };
        if self.is_by_request {
            add_to_request(&call);
        } else {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        }
        Ok(())
    }
}

/// Adds a call to the [`Cost`] of the outermost span, which is the request's.
fn add_to_request(call: &Call) {
    Span::current().with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>().and_then(|registry| registry.span(id));
        let Some(request) = span.and_then(|span| span.scope().from_root().next()) else { return };
        let mut extensions = request.extensions_mut();
        let known = extensions.remove::<Cost>().unwrap_or_default();
        extensions.insert(Cost {
            calls: known.calls + 1,
            read_units: known.read_units + call.read_units,
            write_units: known.write_units + call.write_units,
            ..known
        });
    });
}

impl Meter {
    /// Returns a meter that adds each call to the cost of its request, instead of recording it.
    #[must_use]
    pub fn by_request() -> Self {
        Self { is_by_request: true, ..Self::default() }
    }

    /// Returns the cost of all calls since the previous `take`.
    pub fn take(&self) -> Cost {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.sort_by_key(|call| call.end);
        let mut round_trips = 0;
        // A call counts if it starts after the last counted call has ended.
        let mut last_end: Option<Instant> = None;
        for call in &calls {
            if last_end.is_none_or(|end| call.start >= end) {
                round_trips += 1;
                last_end = Some(call.end);
            }
        }
        Cost {
            round_trips,
            calls: calls.len(),
            read_units: calls.iter().map(|call| call.read_units).sum(),
            write_units: calls.iter().map(|call| call.write_units).sum(),
        }
    }
}

/// Returns the CPU time of this thread. Includes an in-process engine, but not an engine with a port, which has a separate
/// thread.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
