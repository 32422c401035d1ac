//! Errors and exit codes of commands.

/// An error whose text tells the user what to do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Wrong arguments, environment or columns; a parameter that the service refused; or a question that the user answered with
    /// no.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Failed(String),
    /// The service didn't respond in time. The request may have taken effect.
    #[error("{0}")]
    Unanswered(String),
    /// The service refused a request, with this status and the code of its problem document.
    #[error("{detail}{}", lines(errors))]
    Answered { status: u16, code: String, detail: String, errors: Vec<Fault> },
    #[error("{0}")]
    Interrupted(String),
}

/// An error about a part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer into the body, or the name of a parameter, a header or a column.
    pub place: String,
    pub detail: String,
}

/// Maximum number of errors to show.
const MAX_SHOWN: usize = 20;

fn lines(errors: &[Fault]) -> String {
    errors.iter().take(MAX_SHOWN).map(|Fault { place, detail }| format!("\n  {place}: {detail}")).collect()
}

pub type Result<T, E = CliError> = std::result::Result<T, E>;

/// Success: for an import, every row was accepted.
pub const EXIT_SUCCESS: u8 = 0;
/// The service refused rows, an export lacks records, or a receiver missed events.
pub const EXIT_REFUSED: u8 = 3;
/// The user pressed Ctrl-C.
pub const EXIT_INTERRUPTED: u8 = 130;

impl CliError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Unanswered(_) | Self::Answered { .. } => 1,
            Self::Usage(_) => 2,
            Self::Interrupted(_) => EXIT_INTERRUPTED,
        }
    }

    /// Whether the service has no such resource. A 404 without the code `NOT_FOUND` means a wrong address.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Answered { code, .. } if code == "NOT_FOUND")
    }

    /// Whether the idempotency key was sent before with a different body, path or query.
    pub fn is_used_key(&self) -> bool {
        matches!(self, Self::Answered { status: 422, errors, .. } if errors.iter().any(|fault| fault.place == "Idempotency-Key"))
    }

    /// Whether the steps to submit make too many changes for one transaction.
    pub fn is_too_many_steps(&self) -> bool {
        let is_limit = |fault: &Fault| fault.place == "/through" && fault.detail.starts_with("makes ");
        matches!(self, Self::Answered { status: 422, errors, .. } if errors.iter().any(is_limit))
    }

    /// Whether the request conflicts with the current state, for example because of a concurrent change.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Answered { status: 409, .. })
    }

    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_alone_tells_that_a_resource_is_missing() {
        let answered = |code: &str| {
            let (code, detail) = (code.into(), "404 NOT_FOUND".into());
            CliError::Answered { status: 404, code, detail, errors: Vec::new() }
        };
        assert!(answered("NOT_FOUND").is_missing() && !answered("").is_missing());
    }
}
