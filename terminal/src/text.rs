//! Texts as a terminal can show them.

use console::measure_text_width;

/// Characters that change in which direction the others run, so that a text seems to be another one.
const DIRECTIONS: [std::ops::RangeInclusive<char>; 2] = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];

/// Returns a text without anything that a terminal would obey: a name must not move the cursor.
#[must_use]
pub fn clean(text: &str) -> String {
    let is_obeyed = |character: char| character.is_control() || DIRECTIONS.iter().any(|range| range.contains(&character));
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        character if is_obeyed(character) => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}

/// Returns a time of the service, such as `2027-01-01T08:30:00.000Z`, to the minute: `2027-01-01 08:30`. Any other text
/// stays as it is.
#[must_use]
pub fn time(text: &str) -> String {
    let is_time = text.len() >= 20 && text.ends_with('Z') && text.get(10..11) == Some("T") && text.get(13..14) == Some(":");
    match (is_time, text.get(..10), text.get(11..16)) {
        (true, Some(date), Some(clock)) => format!("{date} {clock}"),
        _ => text.to_owned(),
    }
}

/// Returns how many columns a text takes; wide characters take two.
pub fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// Returns a text with blanks up to a width.
#[must_use]
pub fn pad(text: &str, columns: usize, is_right: bool) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    if is_right { blanks + text } else { text.to_owned() + &blanks }
}

/// Breaks a text into lines of at most `columns`, between words where that is possible.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut line = lines.pop().unwrap_or_default();
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            let mut bytes = [0; 4];
            let next = width(character.encode_utf8(&mut bytes));
            if !line.is_empty() && width(&line) + next > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{202e}d"), "a\u{fffd}[2Jb c\u{fffd}d");
        assert_eq!(clean("Müller 東京"), "Müller 東京");
    }

    #[test]
    fn times_are_shown_to_the_minute() {
        assert_eq!(time("2027-01-01T08:30:59.000Z"), "2027-01-01 08:30");
        assert_eq!(time("2027-01-01T08:30:59Z"), "2027-01-01 08:30");
        for other in ["2027-01-01", "", "never", "日本語日本語日本語日本語Z"] {
            assert_eq!(time(other), other);
        }
    }

    #[test]
    fn lines_break_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrap("assets:read, users:read", 12), ["assets:read,", "users:read"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("東京都庁", 5), ["東京", "都庁"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("a b", 9), ["a b"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(pad("東京", 6, false), "東京  ");
        assert_eq!(pad("12", 4, true), "  12");
    }
}
