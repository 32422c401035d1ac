//! Scans: an asset was seen, perhaps at a place.

use crate::assets::asset::Asset;
use crate::assets::location::Location;
use crate::values::string_enum::string_enum;
use crate::values::time::Timestamp;

string_enum! {
    /// What a scan found.
    SeenOutcome {
        /// The asset, at the place if there is one. Also if a later scan is known already.
        Seen = "seen",
        /// The asset, which was elsewhere. The place is now its location.
        Moved = "moved",
        /// The asset. Its location is neither the place nor below it, and stays.
        Elsewhere = "elsewhere",
        /// No asset.
        Unknown = "unknown",
        /// Several assets with this serial number.
        Ambiguous = "ambiguous",
    }
}

impl Asset {
    /// Returns the asset after it was seen at this time. With `moves`, the place becomes its location, unless it is within the place
    /// already.
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
    use crate::samples;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn asset_in(location: Option<&str>) -> Asset {
        let mut asset = samples::asset(1);
        asset.details.location = location.map(|text| text.parse().expect(text));
        Asset { last_seen_at: Some(at(5)), ..asset }
    }

    #[test]
    fn an_asset_is_within_the_place_elsewhere_or_moved() {
        use SeenOutcome::{Elsewhere, Moved, Seen};
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
            // Only a move makes a version that counts.
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
}
