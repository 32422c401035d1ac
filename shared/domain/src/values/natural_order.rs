//! Natural order of texts: runs of digits compare as numbers.

use crate::values::text::fold;
use std::cmp::Ordering;

/// Compares texts byte by byte, and runs of ASCII digits by value. Of equal numbers, the one with more leading zeros comes first.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    compare(a.as_bytes(), b.as_bytes(), |byte| byte)
}

/// Like [`natural_cmp`], but case-insensitive.
pub fn natural_cmp_folded(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return compare(a.as_bytes(), b.as_bytes(), |byte| byte.to_ascii_lowercase());
    }
    natural_cmp(&fold(a), &fold(b))
}

fn compare(a: &[u8], b: &[u8], form: impl Fn(u8) -> u8) -> Ordering {
    let common = a.iter().zip(b).take_while(|(a, b)| form(**a) == form(**b)).count();
    let (next_a, next_b) = (a.get(common), b.get(common));
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    if is_digit(next_a) || is_digit(next_b) {
        // The runs can start before the difference.
        let start = a.iter().take(common).rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
        let (a, b) = (digits(a, start), digits(b, start));
        if !a.is_empty() && !b.is_empty() {
            let (value_a, value_b) = (without_zeros(a), without_zeros(b));
            let values = value_a.len().cmp(&value_b.len()).then_with(|| value_a.cmp(value_b));
            // If the numbers are equal, the longer one has more leading zeros.
            return values.then(b.len().cmp(&a.len()));
        }
    }
    next_a.map(|byte| form(*byte)).cmp(&next_b.map(|byte| form(*byte)))
}

fn digits(text: &[u8], start: usize) -> &[u8] {
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

fn without_zeros(run: &[u8]) -> &[u8] {
    let zeros = run.iter().position(|digit| *digit != b'0').unwrap_or(run.len());
    run.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_of_digits_compare_as_numbers() {
        let sorted = ["", "1", "2", "007", "07", "7", "10", "a", "a1b", "a02b", "a2", "a2b", "a10", "a10b1", "b"];
        for (index, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(natural_cmp(a, b), index.cmp(&other), "{a} and {b}");
            }
        }
        assert_eq!(natural_cmp("AST-999", "AST-1000"), Ordering::Less);
        assert_eq!(natural_cmp("AST-0999", "AST-999"), Ordering::Less);
        let digits = ["9".repeat(40), "1".to_owned() + &"0".repeat(40)];
        assert_eq!(natural_cmp(&digits[0], &digits[1]), Ordering::Less);
        assert_eq!(natural_cmp_folded("Room 9", "ROOM 10"), Ordering::Less);
        assert_eq!(natural_cmp_folded("ÄRZTE 2", "ärzte 2"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn natural_order_is_total_and_only_equal_texts_are_equal(mut texts in proptest::collection::vec("[a0 19B]{0,5}", 0..30)) {
            for a in &texts {
                for b in &texts {
                    prop_assert_eq!(natural_cmp(a, b), natural_cmp(b, a).reverse());
                    prop_assert_eq!(natural_cmp(a, b) == Ordering::Equal, a == b);
                }
            }
            texts.sort_by(|a, b| natural_cmp(a, b));
            for (index, a) in texts.iter().enumerate() {
                prop_assert!(texts.iter().skip(index).all(|b| natural_cmp(a, b) != Ordering::Greater));
            }
        }
    }
}
