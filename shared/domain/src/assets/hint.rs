//! Hints beside empty lists of assets: the values in a request that no asset has, with the most similar values of assets.

use crate::values::field_error::distance;

/// Maximum number of similar values in a hint.
const MAX_NAMED: usize = 5;
/// Maximum number of values that are compared. Among more, the similar ones would take too long to find.
const MAX_COMPARED: usize = 10_000;
/// Maximum length of a value in a hint, in characters.
const MAX_CHARS: usize = 60;
/// Separates the levels of a location.
const SEPARATOR: &str = " / ";

/// What no asset has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing<'a> {
    Location,
    Manufacturer,
    TypeCode,
    CustomField,
    /// A value of the custom field with this name.
    ValueOf(&'a str),
}

impl Missing<'_> {
    fn noun(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Manufacturer => "manufacturer",
            Self::TypeCode => "type code",
            Self::CustomField | Self::ValueOf(_) => "custom field",
        }
    }
}

/// Returns a sentence that names the values that no asset has, and the most similar of the `known` values, which assets have.
pub fn hint(missing: Missing<'_>, values: &[&str], known: Vec<String>) -> String {
    let noun = missing.noun();
    if known.is_empty() {
        return format!("No asset has a {noun}.");
    }
    let noun = if let Missing::ValueOf(name) = missing { shortened(name) } else { noun.to_owned() };
    let shown: Vec<String> = values.iter().take(MAX_NAMED).map(|value| shortened(value)).collect();
    let nearest = nearest(values.first().copied().unwrap_or_default(), known, missing == Missing::Location);
    let nearest: Vec<String> = nearest.iter().map(|value| shortened(value)).collect();
    let similar = if nearest.is_empty() { String::new() } else { format!("; the nearest: {}", nearest.join(", ")) };
    format!("No asset has the {noun} {}{similar}.", shown.join(" or "))
}

/// Returns the most similar values, the nearest first; none if there are too many to compare. Of a location, the lower levels
/// alone can be similar, too.
fn nearest(value: &str, mut known: Vec<String>, has_levels: bool) -> Vec<String> {
    if known.len() > MAX_COMPARED {
        return Vec::new();
    }
    known.sort_unstable();
    known.dedup();
    let value: String = value.chars().take(MAX_CHARS).collect();
    // Lower levels that differ in most characters are only short.
    let most = value.chars().count() / 2;
    known.sort_by_cached_key(|known| {
        let starts = known.match_indices(SEPARATOR).map(|(at, _)| at + SEPARATOR.len()).filter(|_| has_levels);
        let lower = starts.filter_map(|start| known.get(start..)).map(|part| distance(&value, part));
        lower.filter(|distance| *distance < most).chain([distance(&value, known)]).min()
    });
    known.truncate(MAX_NAMED);
    known
}

/// Returns the beginning of a long value, and quotes for an empty one.
fn shortened(value: &str) -> String {
    if value.trim().is_empty() {
        return format!("{value:?}");
    }
    match value.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn the_nearest_values_come_first_and_at_most_five_are_named() {
        let places = known(&["Berlin", "Berlin / 3rd floor", "Köln", "London", "Rom", "Wien", "Berlin"]);
        let hint = |value| hint(Missing::Location, &[value], places.clone());
        assert_eq!(hint("Kölm"), "No asset has the location Kölm; the nearest: Köln, Rom, Wien, Berlin, London.");
        assert!(hint("3rd flor").starts_with("No asset has the location 3rd flor; the nearest: Berlin / 3rd floor, "));
    }

    #[test]
    fn a_hint_says_what_there_is_none_of_and_stays_short() {
        assert_eq!(hint(Missing::CustomField, &["x"], Vec::new()), "No asset has a custom field.");
        assert_eq!(
            hint(Missing::Manufacturer, &[""], known(&["Dell"])),
            "No asset has the manufacturer \"\"; the nearest: Dell."
        );
        assert_eq!(
            hint(Missing::Manufacturer, &["A"], known(&[" ", "Dell"])),
            "No asset has the manufacturer A; the nearest: \" \", Dell."
        );
        assert_eq!(hint(Missing::ValueOf("os"), &["a", "b"], known(&["c"])), "No asset has the os a or b; the nearest: c.");
        let (long, many) = ("x".repeat(10_000), (0..20_000).map(|n| n.to_string()).collect());
        assert!(hint(Missing::ValueOf(&long), &[&long], vec![long.clone()]).len() < 300);
        assert_eq!(hint(Missing::Manufacturer, &["Del"], many), "No asset has the manufacturer Del.");
    }
}
