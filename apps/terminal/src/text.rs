//! Makes text safe for terminals.

use console::measure_text_width;

/// Characters that change the text direction, which can disguise a text.
const DIRECTIONS: [std::ops::RangeInclusive<char>; 4] =
    ['\u{61c}'..='\u{61c}', '\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
/// The styles of this crate and of clap's help, without their escape character.
const STYLES: [&str; 10] = ["[0m", "[1m", "[2m", "[4m", "[31m", "[32m", "[33m", "[36m", "[97m", "[40m"];

/// Removes everything that a terminal would interpret, so that a name can't move the cursor.
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

/// Like [`clean`], but keeps line breaks.
#[must_use]
pub fn clean_lines(text: &str) -> String {
    text.split('\n').map(|line| clean(line.strip_suffix('\r').unwrap_or(line))).collect::<Vec<_>>().join("\n")
}

/// Like [`clean_lines`], but also removes invisible characters that a program reads.
#[must_use]
pub fn clean_hidden(text: &str) -> String {
    let is_hidden = |character: char| {
        matches!(character, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    clean_lines(text).replace(is_hidden, "\u{fffd}")
}

pub fn unstyled(text: &str) -> String {
    STYLES.iter().fold(text.to_owned(), |text, style| text.replace(&format!("\u{1b}{style}"), ""))
}

/// Like [`clean_lines`], but keeps styles. Values in the text must already be cleaned.
pub fn clean_styled(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut cleaned = clean_lines(parts.next().unwrap_or_default());
    for part in parts {
        let style = STYLES.iter().find(|style| part.starts_with(**style));
        cleaned.push(if style.is_some() { '\u{1b}' } else { '\u{fffd}' });
        cleaned.push_str(&clean_lines(part));
    }
    cleaned
}

/// Shortens a time such as `2027-01-01T08:30:00.000Z` to `2027-01-01 08:30`. Returns any other text unchanged.
#[must_use]
pub fn time(text: &str) -> String {
    let is_time = text.len() >= 20 && text.ends_with('Z') && text.get(10..11) == Some("T") && text.get(13..14) == Some(":");
    match (is_time, text.get(..10), text.get(11..16)) {
        (true, Some(date), Some(clock)) => format!("{date} {clock}"),
        _ => text.to_owned(),
    }
}

/// Returns the width in columns. Wide characters take two columns.
pub fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// Pads with spaces to a width, before the text if `is_right`.
#[must_use]
pub fn pad(text: &str, columns: usize, is_right: bool) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    if is_right { blanks + text } else { text.to_owned() + &blanks }
}

/// Wraps text into lines of at most `columns`, between words if possible.
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
        for obeyed in ["\u{0}", "\u{8}", "\u{7f}", "\u{80}", "\u{9b}", "\u{9f}", "\u{61c}", "\u{200e}", "\u{200f}"] {
            assert_eq!(clean(obeyed), "\u{fffd}", "{obeyed:?}");
        }
        for direction in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            assert_eq!(clean(&direction.to_string()), "\u{fffd}", "{direction:?}");
        }
    }

    #[test]
    fn line_breaks_stay_and_lone_returns_do_not() {
        assert_eq!(clean_lines("a\r\nb\rc\u{9b}\n\n"), "a\nb c\u{fffd}\n\n");
    }

    #[test]
    fn nothing_is_left_that_only_a_program_reads() {
        let tags: String = "ignore".chars().filter_map(|letter| char::from_u32(0xe0000 + u32::from(letter))).collect();
        assert_eq!(clean_hidden(&format!("a{tags}\nb\u{200b}\u{1b}")), format!("a{}\nb\u{fffd}\u{fffd}", "\u{fffd}".repeat(6)));
        assert_eq!(clean_hidden("Müller ❤\u{fe0f} 東京"), "Müller ❤\u{fe0f} 東京");
    }

    #[test]
    fn styles_stay_and_other_escapes_do_not() {
        let styled = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m a\n";
        assert_eq!(clean_styled(styled), styled);
        assert_eq!(unstyled(styled), "error: a\n");
        assert_eq!(clean_styled("a\u{1b}[8mb\u{1b}]0;c\u{7}\u{1b}"), "a\u{fffd}[8mb\u{fffd}]0;c\u{fffd}\u{fffd}");
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
    fn lines_break_between_words_and_within_long_ones() {
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
