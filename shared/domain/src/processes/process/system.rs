//! The system processes, which every new tenant has.

use super::{Process, ProcessStatus, Slug, Steps};
use crate::assets::asset::Status;
use crate::values::field_error::ValueError;
use crate::values::id::ProcessId;

#[derive(Debug, Clone, Copy)]
pub struct SystemProcess {
    name: &'static str,
    description: &'static str,
    trigger_status: Status,
    target_status: Status,
    steps: &'static str,
}

impl SystemProcess {
    /// The same in every tenant.
    #[must_use]
    pub fn slug(&self) -> Slug {
        Slug::from_name(self.name, 1)
    }

    /// # Errors
    ///
    /// Returns an error if the template is not valid, which a unit test rules out.
    pub fn process(&self, id: ProcessId) -> Result<Process, ValueError> {
        let steps = Steps::from_json(self.steps).map_err(|errors| ValueError::new(format!("{}: {errors:?}", self.name)))?;
        Ok(Process {
            id,
            name: self.name.parse()?,
            slug: self.slug(),
            description: self.description.parse()?,
            trigger_status: self.trigger_status,
            target_status: self.target_status,
            is_system: true,
            status: ProcessStatus::Active,
            steps,
        })
    }
}

pub const SYSTEM_PROCESSES: [SystemProcess; 7] = [
    SystemProcess {
        name: "Employee Onboarding",
        description: "Hands a prepared asset to a user, who signs for it.",
        trigger_status: Status::Preparing,
        target_status: Status::InUse,
        steps: r#"[
            {"type": "user_picker", "key": "employee", "label": "Who gets the asset?", "required": true},
            {"type": "checklist", "key": "handover", "label": "Handed over", "items": ["Device", "Power supply", "Accessories", "Usage policy explained"]},
            {"type": "signature", "key": "signature", "label": "Signature of the recipient", "required": true},
            {"type": "complete", "key": "complete", "label": "Complete the handover"}
        ]"#,
    },
    SystemProcess {
        name: "Device Return",
        description: "Takes an asset back from its user.",
        trigger_status: Status::InUse,
        target_status: Status::Returned,
        steps: r#"[
            {"type": "checklist", "key": "returned_items", "label": "Given back", "items": ["Device", "Power supply", "Accessories"]},
            {"type": "textarea", "key": "condition", "label": "Condition and damage"},
            {"type": "signature", "key": "signature", "label": "Signature of the user", "required": true},
            {"type": "confirmation", "key": "received", "label": "Received by IT"},
            {"type": "complete", "key": "complete", "label": "Complete the return"}
        ]"#,
    },
    SystemProcess {
        name: "Repair",
        description: "Sends an asset in use to be repaired.",
        trigger_status: Status::InUse,
        target_status: Status::InService,
        steps: r#"[
            {"type": "textarea", "key": "fault", "label": "What is broken?", "required": true},
            {"type": "text", "key": "ticket", "label": "Ticket of the service partner"},
            {"type": "complete", "key": "complete", "label": "Send it to be repaired"}
        ]"#,
    },
    SystemProcess {
        name: "Back from Repair",
        description: "Puts a repaired asset back into stock.",
        trigger_status: Status::InService,
        target_status: Status::InStock,
        steps: r#"[
            {"type": "checklist", "key": "checks", "label": "Checked", "items": ["Fault is gone", "Device starts", "Nothing is missing"], "required": true},
            {"type": "text", "key": "invoice", "label": "Number of the invoice"},
            {"type": "complete", "key": "complete", "label": "Put it into stock"}
        ]"#,
    },
    SystemProcess {
        name: "Restock",
        description: "Makes a returned asset ready for the next user.",
        trigger_status: Status::Returned,
        target_status: Status::InStock,
        steps: r#"[
            {"type": "checklist", "key": "checks", "label": "Done", "items": ["Data erased", "Device reset", "Device cleaned"], "required": true},
            {"type": "complete", "key": "complete", "label": "Put it into stock"}
        ]"#,
    },
    SystemProcess {
        name: "Decommission",
        description: "Takes a returned asset out of service for good.",
        trigger_status: Status::Returned,
        target_status: Status::Scrapped,
        steps: r#"[
            {"type": "select", "key": "reason", "label": "Why?", "options": ["Defective", "Too old", "Lost", "Sold"], "required": true},
            {"type": "confirmation", "key": "data_erased", "label": "All data is erased"},
            {"type": "complete", "key": "complete", "label": "Scrap it"}
        ]"#,
    },
    SystemProcess {
        name: "Prepare",
        description: "Takes an asset out of stock and sets it up for a user.",
        trigger_status: Status::InStock,
        target_status: Status::Preparing,
        steps: r#"[
            {"type": "checklist", "key": "setup", "label": "Set up", "items": ["System installed", "Updates installed", "Disk encrypted", "Asset tag attached"]},
            {"type": "complete", "key": "complete", "label": "Ready to be handed over"}
        ]"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::Id;
    use crate::values::time::Timestamp;

    #[test]
    fn all_system_processes_are_valid_definitions() {
        let id = ProcessId::new(Timestamp::from_millis(0), [0; 10]);
        let processes: Vec<Process> = SYSTEM_PROCESSES.iter().map(|system| system.process(id).expect("a process")).collect();
        let changes: Vec<String> =
            processes.iter().map(|p| format!("{}: {} → {}", p.slug.as_str(), p.trigger_status, p.target_status)).collect();
        assert_eq!(
            changes,
            [
                "employee-onboarding: preparing → in_use",
                "device-return: in_use → returned",
                "repair: in_use → in_service",
                "back-from-repair: in_service → in_stock",
                "restock: returned → in_stock",
                "decommission: returned → scrapped",
                "prepare: in_stock → preparing"
            ]
        );
    }
}
