//! Scans of assets.

use crate::assets::asset::Asset;
use crate::values::field_error::{ErrorCode, ValueError};
use crate::values::string_enum::string_enum;
use crate::values::text::Location;
use crate::values::time::Timestamp;
use chrono::TimeDelta;

string_enum! {
    /// Result of a scan.
    SeenOutcome {
        /// The asset is at the place, the scan has no place, or a later scan is already recorded.
        Seen = "seen",
        /// The asset was elsewhere. Its location is now the place.
        Moved = "moved",
        /// The asset's location is outside the place, and unchanged.
        Elsewhere = "elsewhere",
        /// No asset was found.
        Unknown = "unknown",
        /// Several assets have this serial number.
        Ambiguous = "ambiguous",
    }
}

/// Older scans are refused. The limit leaves time for devices that store scans and send them later.
const MAX_AGE_DAYS: u32 = 7;

/// Returns why a scan that arrived at `now` can't have been at this time.
#[must_use]
pub fn fault_of_time(at: Timestamp, now: Timestamp) -> Option<ValueError> {
    if at > now {
        return Some(ValueError::form(format!("must not be in the future; server time: {now}")));
    }
    let text = || format!("must not be more than {MAX_AGE_DAYS} days ago");
    let is_old = at.plus_seconds(MAX_AGE_DAYS * 24 * 60 * 60) < now;
    is_old.then(|| ValueError::limited(ErrorCode::TooOld, MAX_AGE_DAYS, text()))
}

impl Asset {
    /// Returns the time for a scan that arrived at `now` without a time: later than every stored scan of the asset, even if
    /// concurrent scans are stored out of order, or a server's clock is slow.
    pub fn time_of_scan(&self, now: Timestamp) -> Timestamp {
        self.last_seen_at.map_or(now, |last| now.max(last.plus(TimeDelta::milliseconds(1))))
    }

    /// Records a scan of the asset at this time. With `moves`, the asset's location becomes `place`, unless it is already within
    /// `place`.
    #[must_use]
    pub fn seen(&self, at: Timestamp, place: Option<&Location>, moves: bool) -> (Self, SeenOutcome) {
        if self.last_seen_at > Some(at) {
            return (self.clone(), SeenOutcome::Seen);
        }
        let location = self.details.location.as_ref();
        let left = place.filter(|place| !location.is_some_and(|location| place.contains(location)));
        let mut next = Self { last_seen_at: Some(at), ..self.clone() };
        match left {
            Some(place) if moves => {
                next.details.location = Some(place.clone());
                (next, SeenOutcome::Moved)
            }
            left => {
                next.scans += 1;
                (next, if left.is_some() { SeenOutcome::Elsewhere } else { SeenOutcome::Seen })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, time as at};
    use SeenOutcome::{Elsewhere, Moved, Seen};

    #[test]
    fn scans_are_at_most_seven_days_old_and_not_from_the_future() {
        let now = Timestamp::from_millis(10 * 24 * 60 * 60 * 1000);
        let week_ago = now.plus(-TimeDelta::days(7));
        assert_eq!([now, week_ago].map(|at| fault_of_time(at, now)), [None, None]);
        for at in [now.plus(TimeDelta::milliseconds(1)), week_ago.plus(-TimeDelta::milliseconds(1))] {
            assert!(fault_of_time(at, now).is_some(), "{at}");
        }
    }

    fn asset_in(location: Option<&str>) -> Asset {
        let mut asset = samples::asset(1);
        asset.details.location = location.map(|text| text.parse().expect(text));
        Asset { last_seen_at: Some(at(5)), ..asset }
    }

    #[test]
    fn an_asset_is_within_the_place_elsewhere_or_moved() {
        let place = "Berlin/3".parse::<Location>().expect("a place");
        for (location, place, moves, outcome, after) in [
            (Some("berlin / 3"), Some(&place), true, Seen, Some("berlin / 3")),
            (Some("Berlin/3/14"), Some(&place), true, Seen, Some("Berlin / 3 / 14")),
            (Some("Berlin"), Some(&place), false, Elsewhere, Some("Berlin")),
            (Some("Berlin"), Some(&place), true, Moved, Some("Berlin / 3")),
            (None, Some(&place), false, Elsewhere, None),
            (None, Some(&place), true, Moved, Some("Berlin / 3")),
            (Some("Bonn"), None, false, Seen, Some("Bonn")),
        ] {
            let (next, found) = asset_in(location).seen(at(9), place, moves);
            assert_eq!((found, next.details.location.as_deref()), (outcome, after), "{location:?}");
            // Only a move counts as a version for `If-Match`.
            assert_eq!((next.last_seen_at, next.scans), (Some(at(9)), u64::from(outcome != Moved)), "{location:?}");
        }
    }

    #[test]
    fn an_earlier_scan_changes_nothing_and_one_at_the_same_time_counts() {
        let asset = asset_in(Some("Bonn"));
        let place = "Berlin".parse::<Location>().ok();
        assert_eq!(asset.seen(at(4), place.as_ref(), true), (asset.clone(), SeenOutcome::Seen));
        let (next, _) = asset.seen(at(5), None, false);
        assert_ne!(next, asset);
    }

    #[test]
    fn a_scan_without_a_time_is_later_than_every_other() {
        let asset = asset_in(Some("Bonn"));
        for (now, expected) in [(4, 6), (5, 6), (6, 6), (9, 9)] {
            assert_eq!(asset.time_of_scan(at(now)), at(expected));
        }
        assert_eq!(Asset { last_seen_at: None, ..asset }.time_of_scan(at(4)), at(4));
    }
}
