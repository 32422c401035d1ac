//! Scans of assets, and places with levels such as site, floor and room.

use crate::assets::asset::Asset;
use crate::values::field_error::{ErrorCode, ValueError, text_form};
use crate::values::string_enum::string_enum;
use crate::values::text::{Line, fold};
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

const MAX_LEVELS: usize = 8;
const MAX_CHARS: usize = 255;
const SEPARATOR: &str = " / ";

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

impl Asset {
    /// Returns the time of a scan that arrived at `now` without a time. It is later than every stored scan, even if concurrent
    /// scans are stored out of order, or a server's clock is slow.
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

/// Levels separated by ` / `, the largest first: `Berlin / 3rd floor / 3.14`. Whitespace around levels is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 255, examples("Berlin / 3rd floor / 3.14"))]
#[schema(pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+(/[^/\u0000-\u001f\u007f-\u009f]+){0,7}$")]
pub struct Location(String);

impl Location {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a place contains another place, ignoring case. A place contains itself.
    pub fn contains(&self, other: &Self) -> bool {
        is_at_or_below(&fold(&self.0), &fold(&other.0))
    }
}

impl std::ops::Deref for Location {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// Whether a location is at or below a place. Both must be case-folded.
pub fn is_at_or_below(place: &str, location: &str) -> bool {
    location.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATOR))
}

/// Returns the first `depth` levels.
pub fn upper_levels(location: &str, depth: usize) -> &str {
    let end = location.match_indices(SEPARATOR).nth(depth.saturating_sub(1)).map(|(end, _)| end);
    end.and_then(|end| location.get(..end)).unwrap_or(location)
}

impl std::str::FromStr for Location {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let line: Line = text.parse()?;
        let levels: Vec<&str> = line.split('/').map(str::trim).collect();
        if line.is_empty() {
            return Err(ValueError::coded(ErrorCode::Required, "must not be empty"));
        }
        if levels.iter().any(|level| level.is_empty()) {
            let detail = "must not have an empty level, such as between two slashes";
            return Err(ValueError::coded(ErrorCode::EmptyLevel, detail));
        }
        if levels.len() > MAX_LEVELS {
            let detail = format!("must have at most {MAX_LEVELS} levels; this has {}", levels.len());
            return Err(ValueError::limited(ErrorCode::TooManyLevels, MAX_LEVELS, detail));
        }
        let text = levels.join(SEPARATOR);
        let length = text.chars().count();
        if length > MAX_CHARS {
            let detail = format!("must have at most {MAX_CHARS} characters, with ' / ' between levels; this has {length}");
            return Err(ValueError::limited(ErrorCode::TooLong, MAX_CHARS, detail));
        }
        Ok(Self(text))
    }
}

text_form!(Location, |location| location.0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, time as at};
    use SeenOutcome::{Elsewhere, Moved, Seen};

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
            // Only a move counts as a version.
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

    fn location(text: &str) -> Location {
        text.parse().expect(text)
    }

    #[test]
    fn spellings_of_a_place_have_one_form() {
        for text in ["Berlin/3rd floor/3.14", "Berlin / 3rd floor / 3.14", "  Berlin /3rd floor/\u{a0}3.14 "] {
            assert_eq!(&*location(text), "Berlin / 3rd floor / 3.14", "{text}");
        }
        assert_eq!(&*location("Ju\u{308}lich"), "Jülich");
        assert_eq!(location("1/2/3/4/5/6/7/8").split(SEPARATOR).count(), MAX_LEVELS);
    }

    #[test]
    fn levels_are_few_and_not_empty() {
        let long = format!("{}/{}", "a".repeat(126), "b".repeat(127));
        for wrong in ["", " ", "/", "Berlin/", "/Berlin", "a//b", "a/ /b", "a\nb", "1/2/3/4/5/6/7/8/9", &"a".repeat(256), &long] {
            assert!(wrong.parse::<Location>().is_err(), "{wrong}");
        }
        assert!(format!("{}/{}", "a".repeat(126), "b".repeat(126)).parse::<Location>().is_ok());
    }

    #[test]
    fn a_place_contains_itself_and_what_is_below() {
        let berlin = location("Berlin");
        for (other, is_inside) in
            [("berlin", true), ("BERLIN/3", true), ("Berlin / 3 / 14", true), ("Berlin-Mitte", false), ("Bonn", false)]
        {
            assert_eq!(berlin.contains(&location(other)), is_inside, "{other}");
        }
        assert!(!location("Berlin/3").contains(&berlin) && location("STRASSE/1").contains(&location("Straße / 1 / 2")));
    }

    #[test]
    fn the_upper_levels_of_a_place_are_a_place() {
        for (depth, upper) in [(1, "a"), (2, "a / b"), (3, "a / b / c"), (8, "a / b / c")] {
            assert_eq!(upper_levels("a / b / c", depth), upper);
        }
    }
}
