//! Process definitions, process instances and movements.

use super::{Fields, Origin, Restore, RestoreError};
use crate::processes::instance::{Instance, InstanceStatus, Signed, Starter, State};
use crate::processes::movement::Movement;
use crate::processes::process::values::StepValues;
use crate::processes::process::{Process, Steps};
use crate::values::id::{InstanceId, MovementId, ProcessId};
use std::collections::BTreeMap;

impl Restore for Process {
    fn from_fields(id: ProcessId, fields: &Fields<'_>, _: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let steps = fields.parse("steps", |text| Steps::try_from(text.to_owned()).ok())?;
        Ok(Self {
            id,
            name: fields.get("name")?,
            slug: fields.get("slug")?,
            description: fields.get("description")?,
            trigger_status: fields.get("trigger_status")?,
            target_status: fields.get("target_status")?,
            is_system: fields.get("is_system")?,
            status: fields.get("status")?,
            steps: steps.ok_or_else(|| RestoreError::Unreadable("steps".to_owned()))?,
        })
    }
}

/// The parts that an instance copied from its definition and its asset at its start come from them.
impl Restore for Instance {
    fn from_fields(id: InstanceId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let state = state(fields)?;
        let step_values = StepValues(fields.get("step_data")?);
        if let Some(old) = origin.old {
            let signed = signed(&old.steps, &step_values, origin);
            return Ok(Self { state, step_values, signed, ..old.clone() });
        }
        let process = origin.process.ok_or(RestoreError::NotShown("the steps of its process"))?;
        let asset = origin.asset.ok_or(RestoreError::NotShown("the name of its asset"))?;
        Ok(Self {
            process_id: fields.get("process_id")?,
            asset_id: fields.get("asset_id")?,
            movement_id: fields.get("movement_id")?,
            held_by: fields.get("held_by")?,
            state,
            signed: signed(&process.steps, &step_values, origin),
            step_values,
            ..Self::new(id, process, asset, &Starter::from(origin.creator))
        })
    }
}

fn signed<T>(steps: &Steps, values: &StepValues, origin: &Origin<'_, T>) -> BTreeMap<String, Signed> {
    let signed = steps.as_slice().iter().filter(|step| step.is_signature() && values.0.contains_key(&step.key));
    signed.filter_map(|step| Some((step.key.clone(), origin.submissions?.get(&step.key)?.clone()))).collect()
}

fn state(fields: &Fields<'_>) -> Result<State, RestoreError> {
    Ok(match fields.get("status")? {
        InstanceStatus::InProgress => State::InProgress { step: fields.get("current_step")? },
        InstanceStatus::Completed => State::Completed { at: fields.get("completed_at")? },
        InstanceStatus::Cancelled => State::Cancelled {
            step: fields.get("current_step")?,
            at: fields.get("cancelled_at")?,
            reason: fields.get("cancel_reason")?,
        },
    })
}

impl Restore for Movement {
    fn from_fields(id: MovementId, fields: &Fields<'_>, origin: &Origin<'_, Self>) -> Result<Self, RestoreError> {
        let (process_name, started_by, started_by_name) = match (origin.old, origin.process) {
            (Some(old), _) => (old.process_name.clone(), old.started_by, old.started_by_name.clone()),
            (None, Some(process)) => {
                let starter = Starter::from(origin.creator);
                (process.name.clone(), starter.key_id, starter.name)
            }
            (None, None) => return Err(RestoreError::NotShown("the name of its process")),
        };
        Ok(Self {
            id,
            number: fields.get("number")?,
            process_id: fields.get("process_id")?,
            process_name,
            instance_ids: fields.get("instances")?,
            started_by,
            started_by_name,
        })
    }
}
