//! Estimates the maximum cost of compiling a pattern from its text alone: compiling must be bounded.
//!
//! The figures are those of the regex crate, in bytes of memory. Compiling a megabyte takes about 15 ms in a release build. Where
//! something takes more time than that, it counts as so many bytes more. Repetition multiplies: the compiler copies the repeated
//! part.

/// Bytes for each pattern.
const PATTERN: u64 = 8 * 1024;
/// Additional bytes of a pattern with characters beyond ASCII, be it in a class such as `.` or `[^a]`: mostly time.
const BEYOND_ASCII: u64 = 32 * 1024;
/// A character, an assertion or an operator.
const CHARACTER: u64 = 128;
/// A class such as `.` or `[^a]`: nearly all characters.
const WIDE_CLASS: u64 = 1024;
/// A class of Unicode, such as `\pL`: hundreds of ranges of characters.
const UNICODE_CLASS: u64 = 80 * 1024;
/// The characters of the class that replaces `\s`.
const WHITE_SPACE_CHARS: u64 = 160;
/// The factor of characters and classes whose case is ignored.
const IGNORED_CASE: u64 = 6;
/// A character that is parsed again. Each `\d`, `\s` or `\w` outside of brackets makes the whole pattern be parsed again.
const REPARSED_CHARACTER: u64 = 24;
/// The additional factor of a pattern that captures, or has `\b`: it is compiled in one more way.
const CAPTURE: u64 = 8;
/// The maximum of those additional bytes.
const MAX_CAPTURE: u64 = 1024 * 1024;

/// The size of the compiled pattern, estimated. For patterns that do not compile, the estimate may be wrong.
pub fn compile_bytes(pattern: &str) -> u64 {
    let mut estimate = Estimate { ignores_case: ignores_case(pattern), ..Estimate::default() };
    let body = estimate.body(pattern);
    let body = if estimate.ignores_case { body.saturating_mul(IGNORED_CASE) } else { body };
    let beyond_ascii = if estimate.is_beyond_ascii { BEYOND_ASCII } else { 0 };
    let capture = if estimate.captures { body.saturating_mul(CAPTURE).min(MAX_CAPTURE) } else { 0 };
    let parsed = pattern.len() as u64 + estimate.added_chars / 2;
    let reparsed = estimate.rewrites.saturating_mul(parsed).saturating_mul(REPARSED_CHARACTER);
    [PATTERN, body, beyond_ascii, capture, reparsed].into_iter().fold(0, u64::saturating_add)
}

/// The first construct that no pattern may use, in words.
pub fn unsupported(pattern: &str) -> Option<&'static str> {
    let mut rest = pattern;
    while let Some(index) = rest.find(['\\', '(']) {
        let (opening, after) = rest[index..].split_at(1);
        if opening == "(" && ["?=", "?!", "?<=", "?<!"].iter().any(|start| after.starts_with(start)) {
            return Some("look-around, such as (?=…)");
        }
        if opening == "\\" && after.starts_with(|c: char| c == 'k' || ('1'..='9').contains(&c)) {
            return Some("back-references, such as \\1");
        }
        if opening == "(" && flags(after).is_some_and(|flags| flags.contains('x')) {
            return Some("the flag x");
        }
        let skipped = if opening == "\\" { after.chars().next().map_or(0, char::len_utf8) } else { 0 };
        rest = &after[skipped..];
    }
    None
}

/// Flags of a group, given the text after its parenthesis: `i` of `?i:`.
fn flags(group: &str) -> Option<&str> {
    let flags = group.strip_prefix('?')?;
    let end = flags.find(|c: char| !c.is_ascii_alphabetic() && c != '-')?;
    matches!(flags.as_bytes()[end], b':' | b')').then(|| &flags[..end])
}

fn ignores_case(pattern: &str) -> bool {
    pattern.split('(').skip(1).any(|group| flags(group).is_some_and(|flags| flags.contains('i')))
}

#[derive(Default)]
struct Estimate {
    ignores_case: bool,
    is_beyond_ascii: bool,
    captures: bool,
    /// Number of times that the whole pattern is parsed again.
    rewrites: u64,
    /// Characters that this adds to the pattern.
    added_chars: u64,
}

impl Estimate {
    fn body(&mut self, pattern: &str) -> u64 {
        // The sums of the groups that are open, and the size of what a repetition would repeat.
        let mut groups: Vec<u64> = Vec::new();
        let (mut sum, mut last) = (0u64, 0u64);
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '(' => {
                    groups.push(sum);
                    (sum, last) = (CHARACTER, 0);
                    let flags = flags(rest);
                    self.captures |= flags.is_none();
                    rest = &rest[flags.map_or(0, |flags| flags.len() + 1)..];
                    continue;
                }
                ')' => {
                    last = sum;
                    sum = sum.saturating_add(groups.pop().unwrap_or_default());
                    continue;
                }
                // They apply to what a repetition that follows repeats, too.
                '*' | '+' | '?' => {
                    sum = sum.saturating_add(CHARACTER);
                    last = last.saturating_add(CHARACTER);
                    continue;
                }
                '{' => {
                    let inner = rest.split('}').next().unwrap_or_default();
                    let max = inner.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
                    if let Some(max) = max {
                        let repeated = last.saturating_add(CHARACTER).saturating_mul(max);
                        (sum, last) = (sum.saturating_add(repeated), repeated.saturating_add(last));
                        rest = rest[inner.len()..].strip_prefix('}').unwrap_or_default();
                        continue;
                    }
                    last = CHARACTER;
                }
                '[' => (last, rest) = self.class(rest),
                '\\' => (last, rest) = self.escape(rest, false),
                '.' => last = self.wide_class(),
                c => last = self.character(c),
            }
            sum = sum.saturating_add(last);
        }
        groups.into_iter().fold(sum, u64::saturating_add)
    }

    fn character(&mut self, c: char) -> u64 {
        self.is_beyond_ascii |= !c.is_ascii();
        CHARACTER
    }

    fn wide_class(&mut self) -> u64 {
        self.is_beyond_ascii = true;
        WIDE_CLASS
    }

    /// The size of a class, and the text after it, given the text after its bracket.
    fn class<'p>(&mut self, class: &'p str) -> (u64, &'p str) {
        let mut rest = class;
        let mut size = CHARACTER;
        if let Some(negated) = rest.strip_prefix('^') {
            size += self.wide_class();
            rest = negated;
        }
        let mut is_first = true;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                ']' if !is_first => break,
                '\\' => {
                    let (escaped, after) = self.escape(rest, true);
                    (size, rest) = (size.saturating_add(escaped), after);
                }
                // One state has any number of ASCII characters.
                c if c.is_ascii() => size += 8,
                c => size += self.character(c),
            }
            is_first = false;
        }
        (size, rest)
    }

    /// The size of an escape, and the text after it, given the text after its backslash.
    fn escape<'p>(&mut self, escape: &'p str, is_in_class: bool) -> (u64, &'p str) {
        let Some(c) = escape.chars().next() else { return (CHARACTER, escape) };
        let rest = &escape[c.len_utf8()..];
        let in_braces = || rest.strip_prefix('{').and_then(|name| name.split_once('}')).map(|(_, after)| after);
        let size = match c {
            'p' | 'P' => {
                self.is_beyond_ascii = true;
                let one = rest.chars().next().map_or(0, char::len_utf8);
                return (UNICODE_CLASS, in_braces().unwrap_or(&rest[one..]));
            }
            // A character by its number.
            'x' | 'u' | 'U' => {
                self.is_beyond_ascii = true;
                return (CHARACTER, in_braces().unwrap_or(rest));
            }
            'd' | 'w' => {
                self.rewrite(is_in_class, 12);
                CHARACTER
            }
            'D' | 'W' => {
                self.rewrite(is_in_class, 12);
                self.wide_class()
            }
            's' | 'S' => {
                self.rewrite(is_in_class, WHITE_SPACE_CHARS);
                self.wide_class()
            }
            'c' => {
                self.rewrite(false, 0);
                CHARACTER
            }
            'b' | 'B' => {
                self.captures = true;
                CHARACTER
            }
            c => self.character(c),
        };
        (size, rest)
    }

    /// All classes within brackets are rewritten at once, any other one by one.
    fn rewrite(&mut self, is_in_class: bool, added_chars: u64) {
        self.rewrites += u64::from(!is_in_class);
        self.added_chars += added_chars;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex_automata::nfa::thompson::{Config, NFA, WhichCaptures};

    /// Memory of the two automata; `None` if the pattern does not compile.
    fn automata_bytes(pattern: &str) -> Option<u64> {
        let limited = |reverse| Config::new().nfa_size_limit(Some(1 << 24)).reverse(reverse);
        let size = |config: Config| NFA::compiler().configure(config).build(pattern).ok().map(|nfa| nfa.memory_usage() as u64);
        let captures = limited(true).which_captures(WhichCaptures::None);
        Some(size(limited(false))? + size(captures)?)
    }

    #[test]
    fn a_class_of_unicode_costs_what_its_compilation_takes() {
        let class = compile_bytes(r"\pL");
        assert!((100_000..130_000).contains(&class), "{class}");
        assert!(compile_bytes(r"\pL{20}") > 1_000_000);
        assert!(compile_bytes(r"(?i)\pL") > 2 * UNICODE_CLASS);
        assert!(compile_bytes(r"\pL+{20}") > 1_000_000 && compile_bytes(r"(?:\pL|a){20}") > 1_000_000);
        assert!(compile_bytes(r"[\pL-]{20}") > 1_000_000);
        assert!(compile_bytes("^[A-Z]{2}-[0-9]{4}$") < 12_000);
        assert!(compile_bytes("x{1000}{1000}") > 100_000_000);
        assert_eq!(compile_bytes(&format!("x{}", "{99999999999}".repeat(4))), u64::MAX);
    }

    #[test]
    fn classes_that_are_rewritten_cost_the_square_of_their_number() {
        assert!(compile_bytes(&r"\s".repeat(300)) > 100_000_000);
        assert!(compile_bytes(&r"\d".repeat(10)) < 100_000);
        assert!(compile_bytes(&r"\ca".repeat(1_000)) > 10_000_000);
    }

    #[test]
    fn what_patterns_can_not_use_is_named() {
        for (pattern, what) in [
            ("^(?=a)b", "look-around"),
            ("a(?!b)", "look-around"),
            ("(?<=a)b", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "back-references"),
            (r"(?<n>a)\k<n>", "back-references"),
            ("(?x) a", "flag x"),
            ("(?i-sx:a)", "flag x"),
        ] {
            assert!(unsupported(pattern).is_some_and(|found| found.contains(what)), "{pattern}");
        }
        for pattern in [r"\\1", r"\(?=", "(?:a)", "(?<name>a)", "(?i)a", "a{1}", r"\0", "é\\", "(?"] {
            assert_eq!(unsupported(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_estimate_is_not_less_than_the_automata_take(
            atoms in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "é", "日", ".", r"\pL", r"\p{Greek}", r"\PN", "[^a]", "[a-z0-9]", r"[\pL\d_-]", "[àéî]", "(?:", "(", ")",
                    "|", "*", "+?", "?", "{3}", "{2,5}", "{,4}", "{2,}", "{10}", r"\x41", r"\u{e9}", r"\b", "^", "$", r"\.", "(?i)",
                    "[]a]", "(?i:", "(?<n>", "-", "{", "}", r"[^\PL]",
                ]),
                1..12,
            )
        ) {
            let pattern = atoms.concat();
            if let Some(bytes) = automata_bytes(&pattern) {
                prop_assert!(bytes <= compile_bytes(&pattern), "{}: {} > {}", pattern, bytes, compile_bytes(&pattern));
            }
        }
    }
}
