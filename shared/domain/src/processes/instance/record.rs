//! Process instances as records of the table.

use super::{Instance, InstanceStatus, State};
use crate::processes::process::Process;
use crate::record::{Kind, Record, Reference, fields};
use crate::user::User;
use crate::values::id::{InstanceId, UserId};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

impl Record for Instance {
    const KIND: Kind = Kind::Instance;
    const PERSONAL_FIELDS: &'static [&'static str] = &["step_data/*", "cancel_reason"];
    type Id = InstanceId;

    fn id(&self) -> InstanceId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            process_id,
            asset_id,
            movement_id,
            state,
            step_values,
            signed: _,
            steps: _,
            target_status: _,
            process_name: _,
            asset_name: _,
            asset_tag: _,
            started_by: _,
            started_by_name: _,
            held_by,
        } = self;
        let (completed_at, cancelled_at, reason) = match state {
            State::InProgress { step: _ } => (None, None, None),
            State::Completed { at } => (Some(*at), None, None),
            State::Cancelled { step: _, at, reason } => (None, Some(*at), reason.clone()),
        };
        fields([
            ("process_id", json!(process_id)),
            ("asset_id", json!(asset_id)),
            ("movement_id", json!(movement_id)),
            ("held_by", json!(held_by)),
            ("status", json!(self.status())),
            ("current_step", json!(self.current_step())),
            ("step_data", Value::Object(step_values.0.clone())),
            ("completed_at", json!(completed_at)),
            ("cancelled_at", json!(cancelled_at)),
            ("cancel_reason", json!(reason)),
        ])
    }

    fn is_ended(&self) -> bool {
        self.status() != InstanceStatus::InProgress
    }

    /// The definition and, while the instance is in progress, the picked users can't be deleted.
    fn references(&self) -> Vec<Reference> {
        if self.status() != InstanceStatus::InProgress {
            return Vec::new();
        }
        let process = Process::reference("process_id", self.process_id);
        let users: BTreeSet<UserId> = self.picked_users().collect();
        let users = users.into_iter().map(|user| User::reference("step_data", user));
        std::iter::once(process).chain(users).collect()
    }
}
