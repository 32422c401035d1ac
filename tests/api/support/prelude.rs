//! Imports for most tests.

pub use super::bulk::outcomes;
pub use super::operations::{by_method, operations};
pub use super::processes::{advance, cancel, create_process, start, start_movement, system_process};
pub use super::samples::{SIGNATURE, content_type};
pub use super::signing::{Link, id_of, signature_step, started, step};
pub use super::table::event_chain;
pub use super::{Api, Client, Reply, UNKNOWN_ID, at_each_place, call, over_http, paused_runtime, sample};
pub use aws_sdk_dynamodb::types::AttributeValue;
pub use dev_server::faulty_table::Weaknesses;
pub use dev_server::faulty_table::planned::CallFailure;
pub use futures_util::future::join_all;
pub use serde_json::{Map, Value, json};
pub use shared::domain::record::Kind;
pub use shared::domain::values::id::{EventId, Id};
pub use shared::domain::values::time::Timestamp;
pub use shared::store::keys::Keys;
pub use std::collections::{BTreeSet, HashMap};
pub use std::time::Duration;
