//! The counter that gave a tag, and counters that are behind.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) last_number: u64,
    pub(super) width: usize,
}

/// The pattern of the counter that must have given `tag`, and the number that it must have at least; `None` if a counter accounts
/// for the tag, or none can have given it. `counters` are by pattern, such as `AST-{N}`.
pub(super) fn behind(counters: &BTreeMap<String, Counter>, tag: &str) -> Option<(String, u64)> {
    let candidates = readings(tag).filter_map(|(pattern, digits)| {
        let counter = counters.get(&pattern)?;
        let number: u64 = digits.parse().ok()?;
        let is_given = digits.len() == counter.width.max(number.to_string().len());
        is_given.then_some((pattern, number, counter.last_number))
    });
    let candidates: Vec<(String, u64, u64)> = candidates.collect();
    if candidates.iter().any(|(_, number, last)| number <= last) {
        return None;
    }
    let (pattern, number, _) = candidates.into_iter().min_by_key(|(_, number, last)| number - last)?;
    Some((pattern, number))
}

/// Every way to read a tag as a pattern with a number.
fn readings(tag: &str) -> impl Iterator<Item = (String, &str)> {
    let is_digit = |index: usize| tag.as_bytes().get(index).is_some_and(u8::is_ascii_digit);
    let starts = (0..tag.len()).filter(move |start| is_digit(*start));
    starts.flat_map(move |start| {
        let ends = (start + 1..=tag.len()).take_while(move |end| is_digit(end - 1));
        ends.map(move |end| (format!("{}{{N}}{}", &tag[..start], &tag[end..]), &tag[start..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counters: &[(&str, u64, usize)], tag: &str) -> Option<(String, u64)> {
        let counters = counters
            .iter()
            .map(|(pattern, last_number, width)| ((*pattern).to_owned(), Counter { last_number: *last_number, width: *width }));
        behind(&counters.collect(), tag)
    }

    #[test]
    fn a_counter_is_behind_a_tag_with_a_higher_number() {
        assert_eq!(check(&[("AST-{N}", 6, 6)], "AST-000007"), Some(("AST-{N}".into(), 7)));
        assert_eq!(check(&[("AST-{N}", 7, 6)], "AST-000007"), None);
        assert_eq!(check(&[("AST-{N}", 999_999, 6)], "AST-1000000"), Some(("AST-{N}".into(), 1_000_000)));
        assert_eq!(check(&[("Ä{N}-x", 1, 3)], "Ä002-x"), Some(("Ä{N}-x".into(), 2)));
    }

    #[test]
    fn a_tag_that_another_counter_gave_says_nothing_of_this_one() {
        let year = ("26-{N}", 12, 4);
        assert_eq!(check(&[("{N}-0012", 3, 3), year], "26-0012"), None);
        assert_eq!(check(&[("26{N}", 41, 4), ("{N}", 5, 6)], "260042"), Some(("26{N}".into(), 42)), "the nearest");
        assert_eq!(check(&[("{N}", 5, 6)], "0042"), None, "too short for this counter");
        assert_eq!(check(&[year], "27-0013"), None);
    }
}
