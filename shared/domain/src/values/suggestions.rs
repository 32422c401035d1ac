//! Similar names, for suggestions in error texts.

/// Longer names are not compared: nobody types them.
const MAX_CHARS: usize = 64;
/// Minimum length in bytes of a name that counts as similar because it is part of a known name, such as `serial` in
/// `serial_number`.
const MIN_PART: usize = 3;
/// Maximum distance of a name that is part of a known one, in characters.
const DISTANCE_OF_PART: usize = 2;
/// Maximum number of errors in a response that list the known names. A body of 1 MiB can cause 100,000 errors.
const MAX_NAMED_UNKNOWN: usize = 20;

/// The error text for an unknown name, with the known names, nearest first. `earlier` is the number of earlier errors: after
/// many, the known names are omitted.
#[must_use]
pub fn unknown_name(name: &str, known: &[&str], kind: &str, earlier: usize) -> String {
    if earlier >= MAX_NAMED_UNKNOWN {
        return format!("unknown {kind}");
    }
    match nearest_first(name, known.iter().copied()).join(", ") {
        none if none.is_empty() => format!("unknown {kind}"),
        known => format!("unknown {kind}; known: {known}"),
    }
}

/// Sorts the known names by similarity to `name`, the most similar first.
#[must_use]
pub fn nearest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.into_iter().collect();
    if name.chars().nth(MAX_CHARS).is_none() {
        // A stable sort: equally similar names keep their order.
        let name = name.to_lowercase();
        known.sort_by_cached_key(|known| {
            let known = known.to_lowercase();
            let distance = distance(&name, &known);
            if name.len() >= MIN_PART && known.contains(&name) { distance.min(DISTANCE_OF_PART) } else { distance }
        });
    }
    known
}

/// The number of characters to insert, remove, replace or swap with their neighbour to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(from != to);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_name_comes_first_and_others_keep_their_order() {
        let fields = ["name", "status", "model_id", "model", "notes"];
        assert_eq!(nearest_first("modell", fields)[..2], ["model", "model_id"]);
        assert_eq!(nearest_first("nmae", fields)[0], "name");
        assert_eq!(nearest_first("stat", ["id", "notes", "initial_status"])[0], "initial_status");
        assert_eq!(nearest_first("Notes", fields)[0], "notes");
        assert_eq!(nearest_first(&"x".repeat(1_000_000), fields), fields);
        assert_eq!(nearest_first("x", []), [""; 0]);
    }

    #[test]
    fn the_distance_counts_single_changes() {
        for (a, b, expected) in [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3), ("ä", "a", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
