//! Responses of receivers that repeat what they got. Records of deliveries keep no values about people, so that an erasure need
//! not look for them there.

use percent_encoding::percent_decode_str;
use serde_json::json;

/// Stands in place of such a response.
pub const NOT_KEPT: &str = "(not kept: the response repeats values about people)";
/// The shortest end of a cut response that counts as the beginning of a value, in bytes.
const MIN_BEGINNING: usize = 3;

/// Whether a response has one of the values, or ends with the beginning of one: also in JSON or percent-encoded.
#[must_use]
pub fn repeats<'a>(response: &str, values: impl IntoIterator<Item = &'a str>) -> bool {
    let decoded = percent_decode_str(response).decode_utf8_lossy();
    let responses = [response.to_lowercase(), decoded.to_lowercase(), decoded.replace('+', " ").to_lowercase()];
    let in_json = |value: &str| json!(value).to_string().trim_matches('"').to_lowercase();
    let forms = |value: &str| [value.to_lowercase(), in_json(value), ascii(value), ascii(&in_json(value))];
    let mut forms = values.into_iter().filter(|value| !value.is_empty()).flat_map(forms);
    forms.any(|value| responses.iter().any(|response| response.contains(&value) || ends_with_beginning(response, &value)))
}

fn ends_with_beginning(response: &str, value: &str) -> bool {
    let ends = value.char_indices().map(|(end, _)| end).filter(|end| *end >= MIN_BEGINNING);
    ends.filter_map(|end| value.get(..end)).any(|beginning| response.ends_with(beginning))
}

/// `Zoë` as `zo\u00eb`.
fn ascii(value: &str) -> String {
    let mut text = String::new();
    for unit in value.encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii) {
            Some(byte) => text.push(char::from(byte).to_ascii_lowercase()),
            None => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_a_value_or_the_beginning_of_one_repeats_it() {
        for response in
            ["got Zoë Lovelace", r#"{"name": "Zo\u00EB Lovelace"}"#, "ZOË LOVELACE", "cut at Zoë Lov", r"cut at Zo\u00eb L"]
        {
            assert!(repeats(response, ["Zoë Lovelace"]), "{response}");
        }
        assert!(repeats(r#"{"notes": "so\n\"Zo\u00eb\" said"}"#, ["so\n\"Zoë\" said"]));
        for response in ["q=Zo%C3%AB%20Lovelace", "q=Zo%c3%ab+Lovelace"] {
            assert!(repeats(response, ["Zoë Lovelace"]), "{response}");
        }
        assert!(repeats("%41", ["%41"]));
        for response in ["", "ok", "thanks, z", "zone", "%"] {
            assert!(!repeats(response, ["Zoë Lovelace", ""]), "{response}");
        }
    }
}
