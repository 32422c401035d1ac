//! Texts in a monospaced font: a letter has one cell, and an ideograph two.

use unicode_width::UnicodeWidthChar;

/// Marks a shortened text. Every printer has these characters.
pub const ELLIPSIS: &str = "...";
const ZERO_WIDTH_JOINER: char = '\u{200d}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ltr,
    Rtl,
}

impl Direction {
    /// That of the first letter, as in HTML's `dir="auto"`.
    pub fn of(text: &str) -> Self {
        let first = text.chars().find(|c| c.is_alphabetic());
        if first.is_some_and(is_right_to_left) { Self::Rtl } else { Self::Ltr }
    }
}

/// All scripts of the letter's block are written from right to left.
fn is_right_to_left(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Puts spaces in place of control characters, and U+FFFD in place of others that XML can't contain. Names that were stored by
/// older rules may have such characters.
pub fn printable(text: &str) -> String {
    let printable = |c: char| match c {
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(printable).collect()
}

/// 0 for one that combines with the one before, 2 for an ideograph.
pub fn cells_of(c: char) -> usize {
    c.width().unwrap_or_default()
}

pub fn cells(text: &str) -> usize {
    text.chars().map(cells_of).sum()
}

/// Splits a text after at most `most` cells, not between characters that are shown as one; but never before the first.
fn split_at_cells(text: &str, most: usize) -> (&str, &str) {
    let (mut used, mut before) = (0, None);
    for (index, c) in text.char_indices() {
        let joins = cells_of(c) == 0 || before == Some(ZERO_WIDTH_JOINER);
        used += cells_of(c);
        if used > most && !joins && index > 0 {
            return text.split_at(index);
        }
        before = Some(c);
    }
    (text, "")
}

/// Lines of at most `width` cells: broken at spaces, and in words that are longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if cells(line) + 1 + cells(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => {
                let mut rest = word;
                while !rest.is_empty() {
                    let (line, after) = split_at_cells(rest, width);
                    lines.push(line.to_owned());
                    rest = after;
                }
            }
        }
    }
    lines
}

/// Keeps `most` lines. An ellipsis replaces the others.
pub fn shorten(mut lines: Vec<String>, most: usize, width: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let room = width.saturating_sub(ELLIPSIS.len());
            let kept = if cells(last) > room { split_at_cells(last, room).0 } else { last.as_str() };
            *last = format!("{}{ELLIPSIS}", kept.trim_end());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_decides_the_direction() {
        assert_eq!(Direction::of("12 \"Laptop\" של דנה"), Direction::Ltr);
        assert_eq!(Direction::of("(15) מחשב Dell"), Direction::Rtl);
        assert_eq!(Direction::of("حاسوب"), Direction::Rtl);
        assert_eq!(Direction::of("电脑"), Direction::Ltr);
        assert_eq!(Direction::of("2026"), Direction::Ltr);
    }

    #[test]
    fn cells_are_those_of_a_monospaced_font() {
        assert_eq!((cells("AST-1"), cells("电脑"), cells("e\u{301}"), cells("")), (5, 4, 1, 0));
    }

    #[test]
    fn texts_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("Dell XPS 15 of Ada", 8), ["Dell XPS", "15 of", "Ada"]);
        assert_eq!(wrap("a  ThinkPadCarbonGen12 b", 8), ["a", "ThinkPad", "CarbonGe", "n12 b"]);
        assert_eq!(wrap("电脑电脑", 3), ["电", "脑", "电", "脑"]);
        assert_eq!(wrap("电", 1), ["电"], "no line stays empty");
        assert!(wrap("", 8).is_empty());
    }

    #[test]
    fn what_is_shown_as_one_stays_together() {
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(wrap(&format!("{family}{family}"), 6), [family, family]);
    }

    #[test]
    fn what_does_not_fit_is_replaced_by_an_ellipsis() {
        let lines = |text: &str, most| shorten(wrap(text, 8), most, 8);
        assert_eq!(lines("Dell XPS 15 of Ada", 3), ["Dell XPS", "15 of", "Ada"]);
        assert_eq!(lines("Dell XPS 15 of Ada", 2), ["Dell XPS", "15 of..."]);
        assert_eq!(lines("Dell XPS 15 of Ada", 1), ["Dell..."]);
        assert!(lines("Dell XPS", 0).is_empty());
        assert_eq!(lines("电脑电脑电脑", 1), ["电脑..."]);
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{1}b\nc\u{ffff}"), "a b c\u{fffd}");
    }
}
