//! The shares of rate limits that this function instance holds.

use crate::domain::keys::lease::{Counter, Lease, Share};
use crate::domain::values::id::TenantId;
use crate::domain::values::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The most leases in memory: less than a hundred bytes each.
const MAX_LEASES: usize = 10_000;

/// A credential's requests in the minute of `at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) tenant: TenantId,
    pub(super) credential: Uuid,
    pub(super) limit: u32,
    pub(super) at: Timestamp,
}

/// The instance's lease of each credential.
#[derive(Debug, Default)]
pub(in crate::store) struct Leases(Mutex<HashMap<(TenantId, Uuid), Lease>>);

impl Leases {
    /// [`Lease::count`] with the credential's lease of this minute.
    pub(super) fn count(&self, of: &Counted) -> Result<u64, Share> {
        self.with(of, Lease::count)
    }

    /// [`Lease::add`] with the credential's lease of this minute.
    pub(super) fn add(&self, of: &Counted, share: Share, counter: Counter) -> u64 {
        self.with(of, |lease| lease.add(share, counter))
    }

    /// [`Lease::exhaust`] with the credential's lease of this minute.
    pub(super) fn exhaust(&self, of: &Counted) -> u64 {
        self.with(of, Lease::exhaust)
    }

    fn with<T>(&self, of: &Counted, change: impl FnOnce(&mut Lease) -> T) -> T {
        let (key, mut fresh) = ((of.tenant, of.credential), Lease::new(of.limit, of.at));
        let mut leases = self.leases();
        if leases.len() >= MAX_LEASES && !leases.contains_key(&key) {
            leases.retain(|_, lease| lease.window() >= fresh.window());
            // Rare. What is dropped counts as used until the minute ends.
            if leases.len() >= MAX_LEASES {
                leases.clear();
            }
        }
        let lease = leases.entry(key).or_insert(fresh);
        if lease.window() > fresh.window() {
            // A request that took long doesn't end the lease of the present minute.
            return change(&mut fresh);
        }
        if !lease.is_for(of.limit, of.at) {
            *lease = fresh;
        }
        change(lease)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<(TenantId, Uuid), Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::Id;

    fn counted(tenant: u8, credential: u128, millis: i64) -> Counted {
        let start = Timestamp::from_millis(0);
        let tenant = TenantId::new(start, [tenant; 10]);
        Counted { tenant, credential: Uuid::from_u128(credential), limit: 600, at: Timestamp::from_millis(millis) }
    }

    fn take(leases: &Leases, of: &Counted) {
        let share = leases.count(of).expect_err("nothing is left");
        leases.add(of, share, Counter { taken: share.requests, held: share.requests - 1 });
    }

    #[test]
    fn a_lease_is_of_one_tenant_one_credential_and_one_minute() {
        let leases = Leases::default();
        take(&leases, &counted(1, 1, 0));
        assert_eq!(leases.count(&counted(1, 1, 59_999)), Ok(2));
        for other in [counted(2, 1, 0), counted(1, 2, 0), counted(1, 1, 60_000)] {
            assert!(leases.count(&other).is_err(), "{other:?}");
        }
        assert_eq!(leases.count(&counted(1, 1, 60_000)).map_err(|share| share.used_up), Err(0), "it held them a minute ago");
        take(&leases, &counted(1, 1, 60_000));
        assert!(leases.count(&counted(1, 1, 0)).is_err(), "a late request gets no share of the next minute");
        assert_eq!(leases.count(&counted(1, 1, 60_000)), Ok(2), "and doesn't end it");
        assert_eq!(leases.exhaust(&counted(1, 3, 0)), 601);
        assert_eq!(leases.count(&counted(1, 3, 0)), Ok(601), "it is not asked for again");
    }

    #[test]
    fn the_number_of_leases_is_limited_and_those_of_the_present_minute_are_kept() {
        let leases = Leases::default();
        for credential in 0..30_000 {
            let of = counted(1, credential, if credential < 9_000 { 0 } else { 60_000 });
            take(&leases, &of);
            assert!(leases.leases().len() <= MAX_LEASES && leases.count(&of).is_ok());
            assert!(credential != 12_000 || leases.count(&counted(1, 9_000, 60_000)).is_ok());
        }
    }
}
