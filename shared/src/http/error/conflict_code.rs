//! The codes of 409s.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictCode {
    /// Other writers were faster several times, or another rule forbids it.
    Conflict,
    TransitionNotAllowed,
    Duplicate,
    InUse,
    ProcessRunning,
    WrongAssetStatus,
    ProcessInactive,
    InstanceClosed,
    StepMoved,
    StepSubmitted,
    RequestInProgress,
}

impl ConflictCode {
    pub const ALL: [Self; 11] = [
        Self::Conflict,
        Self::TransitionNotAllowed,
        Self::Duplicate,
        Self::InUse,
        Self::ProcessRunning,
        Self::WrongAssetStatus,
        Self::ProcessInactive,
        Self::InstanceClosed,
        Self::StepMoved,
        Self::StepSubmitted,
        Self::RequestInProgress,
    ];

    /// For the OpenAPI document.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Conflict => "changed by another request at the same time, or a rule forbids it: see `detail`.",
            Self::TransitionNotAllowed => "the settings don't permit this change of status.",
            Self::Duplicate => "another resource has this value, which must be unique.",
            Self::InUse => "other resources refer to it.",
            Self::ProcessRunning => "a process instance is in progress on the asset.",
            Self::WrongAssetStatus => "the asset doesn't have the status that the process begins with.",
            Self::ProcessInactive => "the process definition is inactive.",
            Self::InstanceClosed => "the process instance is completed or cancelled.",
            Self::StepMoved => "`current_step` isn't the open step.",
            Self::StepSubmitted => "the step was submitted with another value.",
            Self::RequestInProgress => "a request with the same `Idempotency-Key` is in progress.",
        }
    }

    /// For the problem document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "CONFLICT",
            Self::TransitionNotAllowed => "TRANSITION_NOT_ALLOWED",
            Self::Duplicate => "DUPLICATE",
            Self::InUse => "IN_USE",
            Self::ProcessRunning => "PROCESS_RUNNING",
            Self::WrongAssetStatus => "WRONG_ASSET_STATUS",
            Self::ProcessInactive => "PROCESS_INACTIVE",
            Self::InstanceClosed => "INSTANCE_CLOSED",
            Self::StepMoved => "STEP_MOVED",
            Self::StepSubmitted => "STEP_SUBMITTED",
            Self::RequestInProgress => "REQUEST_IN_PROGRESS",
        }
    }
}
