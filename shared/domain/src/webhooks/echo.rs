//! Responses of receivers that repeat what they got. Records of deliveries keep no values about people, so that an erasure need
//! not look for them there.

use percent_encoding::percent_decode_str;

/// Stands in place of such a response.
pub const NOT_KEPT: &str = "(not kept: the response repeats values about people)";
/// The shortest word that counts on its own, and the shortest beginning of one where the response was cut, in characters.
const MIN_WORD: usize = 3;

/// Whether a response has one of the values or a word of one, or ends with the beginning of a word: also with the escapes of JSON
/// or URLs.
#[must_use]
pub fn repeats<'a>(response: &str, values: impl IntoIterator<Item = &'a str>) -> bool {
    let response = unescaped(&percent_decode_str(response).decode_utf8_lossy()).to_lowercase();
    let said: Vec<&str> = words(&response).collect();
    let cut = said.last().filter(|last| response.ends_with(*last));
    let repeats_word = |word: &str| said.contains(&word) || cut.is_some_and(|cut| word.starts_with(cut));
    let mut values = values.into_iter().map(str::to_lowercase).filter(|value| !value.is_empty());
    values.any(|value| response.contains(&value) || words(&value).any(repeats_word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= MIN_WORD)
}

/// `zo\u00eb` as `zoë`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u");
    let mut units: Vec<u16> = parts.next().unwrap_or_default().encode_utf16().collect();
    for part in parts {
        let hex = part.get(..4).and_then(|hex| Some((u16::from_str_radix(hex, 16).ok()?, &part[4..])));
        let (unit, rest) = hex.map_or((None, part), |(unit, rest)| (Some(unit), rest));
        units.extend(unit.into_iter().chain(rest.encode_utf16()));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_a_value_or_the_beginning_of_one_repeats_it() {
        for response in [
            "got Zoë Lovelace",
            r#"{"name": "Zo\u00EB Lovelace"}"#,
            "ZOË LOVELACE",
            "Hello Zoë!",
            "q=Zo%C3%AB%20L.",
            "Zo&euml;+Lovelace",
            "cut at Zoë Lov",
            r"cut at Zo\u00eb L",
        ] {
            assert!(repeats(response, ["Zoë Lovelace"]), "{response}");
        }
        assert!(repeats(r#"{"notes": "so\n\"Zo\u00eb\" said"}"#, ["so\n\"Zoë\" said"]));
        assert!(repeats("by Bo", ["Bo"]) && repeats(r"\ud83d\ude00", ["😀"]));
        for response in ["", "ok", "thanks, z", "zone", r"\u12", "%", "lovely"] {
            assert!(!repeats(response, ["Zoë Lovelace", ""]), "{response}");
        }
    }
}
