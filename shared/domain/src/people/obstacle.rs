//! What is in the way of erasing a person.

use crate::record::Stored;
use crate::user::User;
use crate::values::id::{AssetId, InstanceId};
use crate::values::time::Timestamp;
use chrono::TimeDelta;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("There was never such a user.")]
    Unknown,
    #[error("The user is active. Deactivate the user first, with PATCH or by offboarding.")]
    Active,
    /// Requests with the user's own keys can still be running.
    #[error("The user was changed or deleted a moment ago, and its requests may still be running. Try again after {0}.")]
    Changed(Timestamp),
    #[error("The user is in use. Assets: {}. Open processes: {processes}. Return the assets, and complete or cancel the processes.", .assets.len())]
    InUse {
        assets: Vec<AssetId>,
        processes: u64,
        /// Those of the processes that were found.
        instances: Vec<InstanceId>,
    },
}

impl Obstacle {
    /// By the user's own record. A request that began before its last change has ended after `delay`.
    #[must_use]
    pub fn of(user: &Stored<User>, now: Timestamp, delay: TimeDelta) -> Option<Self> {
        if user.value.is_active {
            return Some(Self::Active);
        }
        Self::of_change(user.updated_at, now, delay)
    }

    /// By the last change of the user, or its deletion.
    #[must_use]
    pub fn of_change(changed_at: Timestamp, now: Timestamp, delay: TimeDelta) -> Option<Self> {
        let retry_at = changed_at.plus(delay);
        (now < retry_at).then_some(Self::Changed(retry_at))
    }

    /// `references` is the number of references to a user, who has these assets. Open processes have the others.
    #[must_use]
    pub fn processes(assets: &[AssetId], references: u64) -> u64 {
        references.saturating_sub(assets.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::values::id::{EventId, Id};
    use serde_json::json;

    #[test]
    fn a_user_is_inactive_for_a_while_first() {
        let user = |is_active: bool| {
            let fields = json!({
                "id": samples::user(1), "email": "a@b.c", "display_name": "A", "role": "viewer", "is_active": is_active
            });
            let (at, last_event) = (samples::time(1_000), EventId::new(samples::time(0), [0; 10]));
            let value: User = serde_json::from_value(fields).expect("a user");
            Stored { value, version: 1, created_at: at, updated_at: at, last_hash: String::new(), last_event }
        };
        let obstacle = |is_active, now| Obstacle::of(&user(is_active), samples::time(now), TimeDelta::seconds(2));
        assert_eq!(obstacle(true, 9_000), Some(Obstacle::Active));
        assert_eq!(obstacle(false, 2_999), Some(Obstacle::Changed(samples::time(3_000))));
        assert_eq!(obstacle(false, 3_000), None);
        let assets = vec![samples::asset(1).id];
        let in_use = Obstacle::InUse { processes: Obstacle::processes(&assets, 3), assets, instances: Vec::new() };
        assert!(in_use.to_string().starts_with("The user is in use. Assets: 1. Open processes: 2."), "{in_use}");
    }
}
